"""The vocabulary of the log: one body type for each kind of event, and the event itself.

Knows neither tables nor rules (event-log.md §3).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

from tfx.hub.store.body import Body
from tfx.hub.store.imported import Imported
from tfx.hub.store.kinds import Kind
from tfx.hub.store.occupancy_bodies import OCCUPANCY_BODIES
from tfx.hub.store.work_bodies import WORK_BODIES

if TYPE_CHECKING:
    from collections.abc import Mapping


class HubStarted(Body, frozen=True):
    """One life of the hub begins."""

    epoch: str
    fold_version: int
    program: str


class HubStopped(Body, frozen=True):
    """It ended in order."""


class ClockJumped(Body, frozen=True):
    """The wall clock left the monotonic one: open deadlines move with it (EV-B9)."""

    jump_ms: int


class Session(Body, frozen=True):
    """An agent as it registers, the first time or again."""

    capabilities: list[str]
    client: str
    id: str
    metadata: msgspec.Raw
    session: str
    topics: list[str]
    ttl_ms: int
    boot_id: str | None = None
    host: str | None = None
    pid: int | None = None
    pid_namespace: str | None = None
    start_token: str | None = None
    workspace: str | None = None


class SessionEnded(Body, frozen=True):
    """A session ended; inbox and topics stay."""

    reason: str


class AgentRetired(Body, frozen=True):
    """An agent is gone for good, unless it registers again; it listens to nothing any more."""

    id: str
    reason: str
    dead_lettered: int = 0
    together: list[str] = msgspec.field(default_factory=list)
    """On the event with the key: who was retired with that command, and what became of the mail."""


class Posted(Body, frozen=True):
    """A message, with the receivers it had at commit."""

    expires_at_ms: int
    id: str
    priority: int
    receivers: list[str]
    recipient: str
    sender: str
    topic: str
    type: str
    cause: str | None = None
    correlation_id: str | None = None
    dead_receiver: str | None = None
    """Nobody could receive it: the dead letter's receiver, with `dead_reason`."""
    dead_reason: str | None = None
    outcome: str | None = None
    """On a reply: how it settles the request."""
    request: int | None = None
    """On a reply: the stream of the request."""
    trace_id: str | None = None


class Queued(Body, frozen=True):
    """A deferred message found its receiver."""

    instead_of: str
    receiver: str


class Claimed(Body, frozen=True):
    """A receiver took a message; until then it is invisible to its next poll."""

    attempt: int
    claim: str
    receiver: str
    visible_until_ms: int


class Returned(Body, frozen=True):
    """A claim ran out; the message is claimable again."""

    receiver: str


class Acked(Body, frozen=True):
    """The receiver confirmed it."""

    receiver: str


class Dead(Body, frozen=True):
    """It became a dead letter."""

    reason: str
    receiver: str
    last_error: str | None = None
    settles: bool = False
    """True on an unanswered ask or handoff: nobody will answer it any more."""


class Replayed(Body, frozen=True):
    """A dead letter was sent again under another id."""

    receiver: str
    replayed_as: str


class Purged(Body, frozen=True):
    """A dead letter was given up."""

    receiver: str
    together: int = 1
    """On the event with the key: how many went with that command."""


class HumanOpened(Body, frozen=True):
    """A person is asked; the requested schema is the payload."""

    channel: str
    correlation_id: str
    deadline_ms: int
    default_action: str
    digest: str
    human_kind: str
    id: str
    prompt: str
    requester: str
    trace_id: str


class HumanClosed(Body, frozen=True):
    """A request was answered, expired or withdrawn; the payload is the answer unless secret."""

    response: str
    state: str
    answered_by: str | None = None


class RequestNoted(Body, frozen=True):
    """A request with a key went well and changed nothing; its retry is told by this (EV-L7)."""

    verb: str
    result: str | None = None
    """The id of the lease, review or lock that it was answered with."""


BODIES: Final[Mapping[Kind, type[Body]]] = MappingProxyType(
    {
        Kind.HUB_STARTED: HubStarted,
        Kind.HUB_STOPPED: HubStopped,
        Kind.CLOCK_JUMPED: ClockJumped,
        Kind.AGENT_REGISTERED: Session,
        Kind.SESSION_OPENED: Session,
        Kind.SESSION_ENDED: SessionEnded,
        Kind.AGENT_RETIRED: AgentRetired,
        Kind.MESSAGE_POSTED: Posted,
        Kind.REPLY_POSTED: Posted,
        Kind.DELIVERY_QUEUED: Queued,
        Kind.DELIVERY_CLAIMED: Claimed,
        Kind.DELIVERY_RETURNED: Returned,
        Kind.DELIVERY_ACKED: Acked,
        Kind.DELIVERY_DEAD: Dead,
        Kind.DELIVERY_REPLAYED: Replayed,
        Kind.DELIVERY_PURGED: Purged,
        Kind.HUMAN_REQUEST_OPENED: HumanOpened,
        Kind.HUMAN_REQUEST_ANSWERED: HumanClosed,
        Kind.HUMAN_REQUEST_EXPIRED: HumanClosed,
        Kind.HUMAN_REQUEST_WITHDRAWN: HumanClosed,
        Kind.IMPORTED: Imported,
        Kind.REQUEST_NOTED: RequestNoted,
        **WORK_BODIES,
        **OCCUPANCY_BODIES,
    }
)

_encode = msgspec.json.Encoder(order="sorted").encode
_decoders: Final[Mapping[str, msgspec.json.Decoder[Body]]] = MappingProxyType(
    {kind.value: msgspec.json.Decoder(body) for kind, body in BODIES.items()}
)


@dataclass(slots=True)
class Event:
    """One row of the log as the fold sees it; no clock, pid or random value is missing in it."""

    seq: int
    stream: int
    at_ms: int
    kind: str
    actor: str
    body: Body


def encode_body(body: Body) -> str:
    """Return the canonical JSON of a body."""
    return _encode(body).decode()


def encode_texts(texts: list[str]) -> str:
    """Return a list of strings as JSON, for columns that no rule reads."""
    return _encode(texts).decode()


def decode_body(kind: str, text: str) -> Body | None:
    """Return the body of a kind this program knows, else None."""
    decoder = _decoders.get(kind)
    return None if decoder is None else decoder.decode(text)


def event_id(stream: str, kind: str, observed: int) -> bytes:
    """Return the hash of an intent: 16 bytes over its length-prefixed parts (EV-L5, EV-L6)."""
    name = stream.encode()
    what = kind.encode()
    return hashlib.blake2b(
        b"%d:%s%d:%s%d" % (len(name), name, len(what), what, observed), digest_size=16
    ).digest()
