"""What each status and reason of version 1 becomes; every value has its row (K-36).

Data only.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

MESSAGE_STATES: Final[Mapping[str, tuple[str, str | None]]] = MappingProxyType(
    {
        "queued": ("queued", None),
        "delivered": ("queued", None),
        "acked": ("acked", None),
        "expired": ("dead", "ttl-expired"),
        "dead_letter": ("dead", "imported"),
    }
)
"""A message's status: state and reason of a delivery that says nothing of its own.

Delivered but not acked is queued again: delivery is at least once, and no mail is lost. A
delivery with an ack of its own is acked; a dead letter's row makes it dead; one without an ack
below an acked message is queued, for somebody else's ack is not this receiver's.
"""

DEAD_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ttl_expired": "ttl-expired",
        "no_recipient": "no-subscriber",
        "max_attempts": "max-attempts",
        "delivery_failed": "imported",
    }
)
"""A dead letter's reason; any other one is `imported`, its own text stays in the event."""

OTHER_REASON: Final = "imported"

HUMAN_STATES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "pending": "pending",
        "accepted": "accepted",
        "declined": "declined",
        "cancelled": "cancelled",
        "timed_out": "timed_out",
    }
)

SECRET_KINDS: Final = ("captcha", "credential")
"""Answers to these are not taken over (K-38)."""

AGENT_STATUSES: Final = ("online", "stale", "offline")
"""All become agents without a session: the processes that held them are gone."""
