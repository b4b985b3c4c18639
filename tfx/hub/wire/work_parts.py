"""Parts of a task on the wire.

Data only; it knows no request.
"""

from __future__ import annotations

from tfx.hub.models import AgentId
from tfx.hub.wire.fields import Response
from tfx.hub.work_models import ArtifactKind


class Assignee(Response, frozen=True, kw_only=True):
    """Who a task is given to; authority compares agent and session, never the label (WK-D6)."""

    label: str | None
    agent_id: AgentId | None
    instance: str | None
    session: str | None


class ArtifactView(Response, frozen=True, kw_only=True):
    """Something that the work has brought about."""

    kind: ArtifactKind
    identity: str
    attached_by: AgentId
    attached_at_ms: int
