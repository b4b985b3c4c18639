"""The wire form of who keeps an agent busy.

Knows no request.
"""

from __future__ import annotations

from tfx.core.identity import Liveness
from tfx.hub.models import LeaseId, MessageId
from tfx.hub.occupancy_models import Evidence, Tier
from tfx.hub.wire.fields import Response


class SeatView(Response, frozen=True, kw_only=True):
    """One tier that is taken: by which process, since when, and what is known of its life.

    A beat's age is shown apart: a live process without progress keeps its seat (EV-B6). With
    `evidence` the holder is gone, and the next one may take over.
    """

    tier: Tier
    seat_id: LeaseId
    host: str
    pid: int
    liveness: Liveness
    evidence: Evidence | None
    since_ms: int
    until_ms: int
    beat_age_ms: int
    message_id: MessageId | None


class EvictedView(Response, frozen=True, kw_only=True):
    """Who was taken over, and on which evidence."""

    seat_id: LeaseId
    host: str
    pid: int
    evidence: Evidence
    beat_age_ms: int
