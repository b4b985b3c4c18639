"""The body of an `imported` event: a row of another hub, and what it became here (K-36).

Knows neither tables nor rules.
"""

from __future__ import annotations

from tfx.hub.store.body import Body


class ImportedAgent(Body, frozen=True):
    """An agent of another hub as its row said it; it has no session here."""

    capabilities: list[str]
    capabilities_json: str
    client: str
    id: str
    last_seen_ms: int
    lease_expires_ms: int
    metadata: str
    """JSON that the hub can show; the bytes of the row are the payload."""
    seen_at_ms: int
    status: str
    topics: list[str]
    topics_json: str
    ttl_ms: int
    pid: int | None = None


class ImportedDelivery(Body, frozen=True):
    """One receiver of an imported message; the times of its row stand beside what it became."""

    attempts: int
    receiver: str
    state: str
    acked_at_ms: int | None = None
    closed_at_ms: int | None = None
    delivered_at_ms: int | None = None
    delivery_id: int | None = None
    last_error: str | None = None
    reason: str | None = None


class ImportedMessage(Body, frozen=True):
    """A message of another hub; `until_ms` is its deadline here (K-35)."""

    correlation_id: str
    created_at_ms: int
    deliveries: list[ImportedDelivery]
    expires_at_ms: int
    id: str
    priority: int
    recipient: str
    sender: str
    status: str
    topic: str
    trace_id: str
    ttl_ms: int
    type: str
    until_ms: int
    answer: str | None = None
    dead_at_ms: int | None = None
    dead_error: str | None = None
    dead_reason: str | None = None
    settled: str | None = None


class ImportedHuman(Body, frozen=True):
    """A human request of another hub; its schema is the payload."""

    correlation_id: str
    deadline_ms: int
    default_action: str
    digest: str
    human_kind: str
    id: str
    opened_at_ms: int
    prompt: str
    requester: str
    trace_id: str
    until_ms: int


class ImportedOutcome(Body, frozen=True):
    """How an imported human request ended; the answer is the payload unless it was `dropped`."""

    closed_at_ms: int
    dropped: bool
    state: str


class Imported(Body, frozen=True):
    """A row of another hub's database (K-36): exactly one of the four is there."""

    key: str
    source: str
    agent: ImportedAgent | None = None
    human: ImportedHuman | None = None
    message: ImportedMessage | None = None
    outcome: ImportedOutcome | None = None
