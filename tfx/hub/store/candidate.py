"""A message as its receiver may claim it: what poll, wake-up and trace hand on.

Knows neither SQL nor rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfx.hub.models import MessageId, StreamNo


@dataclass(frozen=True, slots=True)
class Candidate:
    """A message that its receiver may claim, or holds."""

    stream: StreamNo
    id: MessageId
    type: str
    sender: str
    recipient: str
    topic: str
    priority: int
    correlation_id: str | None
    trace_id: str | None
    posted_at_ms: int
    expires_at_ms: int
    attempts: int
    payload: bytes
