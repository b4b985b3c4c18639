"""The words of the hub: ids, states and the small frozen values that every layer speaks.

Knows neither wire, nor rules, nor SQL; it imports nothing of the hub.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NewType

from tfx.errors import InvalidRequest

AgentId = NewType("AgentId", str)
MessageId = NewType("MessageId", str)
HumanRequestId = NewType("HumanRequestId", str)
LeaseId = NewType("LeaseId", str)
TraceId = NewType("TraceId", str)
CorrelationId = NewType("CorrelationId", str)
Topic = NewType("Topic", str)
OpId = NewType("OpId", str)
Cursor = NewType("Cursor", str)
StreamNo = NewType("StreamNo", int)
"""The seq of the first event of a stream: a stream is named by where it begins."""

OPERATOR: Final = AgentId("operator")
"""The identity of the command line (K-31)."""
HUB: Final = AgentId("hub:hub")
"""The actor of what the hub does by itself: expiry, redelivery, deadlines."""
TOPIC_PREFIX: Final = "topic:"
HUB_PREFIX: Final = "hub:"
URGENT_PRIORITY: Final = 7
"""A message of this priority or a higher one counts as urgent (H-38)."""
MAX_WAIT_MS: Final = 45_000
"""No call blocks longer (H-39)."""

_MIN_NAME = 3
_MAX_NAME = 64
_MAX_TOPIC = 128
_PUNCTUATION = frozenset("._:-")


class MessageType(StrEnum):
    """What a message is to its receiver."""

    EVENT = "event"
    REQUEST = "request"
    RESPONSE = "response"
    HANDOFF = "handoff"
    HUMAN_REQUEST = "human_request"
    HUMAN_RESPONSE = "human_response"
    SYSTEM = "system"


class DeliveryState(StrEnum):
    """Where one message stands with one receiver; queued and claimed are open, the rest closed."""

    QUEUED = "queued"
    CLAIMED = "claimed"
    ACKED = "acked"
    DEAD = "dead"
    PURGED = "purged"


class DeadReason(StrEnum):
    """Why a delivery became a dead letter (H-53)."""

    TTL_EXPIRED = "ttl-expired"
    MAX_ATTEMPTS = "max-attempts"
    NO_SUBSCRIBER = "no-subscriber"
    RECIPIENT_RETIRED = "recipient-retired"
    IMPORTED = "imported"


class NotAckedReason(StrEnum):
    """Why an id of an ack was not acked (H-86)."""

    UNKNOWN = "unknown"
    FOREIGN = "foreign"
    DEAD = "dead"


class AskState(StrEnum):
    """What a requester can know of its ask or handoff (H-58, H-59, EV-R3)."""

    QUEUED = "queued"
    DELIVERED = "delivered"
    ANSWERED = "answered"
    DEAD = "dead"


class HandoffState(StrEnum):
    """How a handoff stands; a reply with `"accepted": false` declines it (H-59)."""

    QUEUED = "queued"
    DELIVERED = "delivered"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    DEAD = "dead"


class AgentState(StrEnum):
    """Liveness of an agent: its last call against its lease, and retirement (H-61)."""

    ONLINE = "online"
    STALE = "stale"
    OFFLINE = "offline"
    RETIRED = "retired"


class HumanKind(StrEnum):
    """What a person is asked for; answers of captcha and credential are secrets (H-48)."""

    CAPTCHA = "captcha"
    APPROVAL = "approval"
    CREDENTIAL = "credential"
    CHOICE = "choice"
    TEXT = "text"


class HumanState(StrEnum):
    """States of a human request; all but pending are closed (§8)."""

    PENDING = "pending"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    WITHDRAWN = "withdrawn"


class HumanAction(StrEnum):
    """What a person does with a request."""

    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"


class DefaultAction(StrEnum):
    """What the deadline does when nobody answered."""

    DECLINE = "decline"
    CANCEL = "cancel"
    TIMEOUT_CONTINUE = "timeout_continue"


class ChannelPreference(StrEnum):
    """triflux's hint where to ask; kept for its callers."""

    TERMINAL = "terminal"
    PIPE = "pipe"
    FILE_POLLING = "file_polling"


class Durability(StrEnum):
    """What an acknowledged commit survives (event-log.md §11)."""

    NORMAL = "normal"
    FULL = "full"


class StatusScope(StrEnum):
    """Which part of the truth `status` is asked for."""

    HUB = "hub"
    AGENT = "agent"
    QUEUE = "queue"
    TRACE = "trace"


class Toolset(StrEnum):
    """The groups in which operations are offered as MCP tools (H-36)."""

    BUS = "bus"
    WORK = "work"


class Privilege(StrEnum):
    """The credential an operation needs (H-47, K-28)."""

    BUS = "bus"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the credential it proved, and the agent the transport knows it as, if any."""

    agent: AgentId | None = None
    operator: bool = False
    session: LeaseId | None = None
    """The register lease that the agent's bridge holds."""

    @property
    def actor(self) -> AgentId:
        """The name an event carries when the request names no agent (K-31)."""
        return self.agent or OPERATOR


@dataclass(frozen=True, slots=True)
class Unread:
    """What waits for an agent and is not claimed (H-38)."""

    total: int
    urgent: int


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds and defaults of the bus; each [D] in the design, each configurable."""

    visibility_ms: int = 60_000
    max_attempts: int = 5
    lane_open: int = 1_000
    inbox_open: int = 10_000
    hub_open: int = 100_000
    open_waits: int = 2_000
    payload_bytes: int = 1_000_000
    review_rounds: int = 5
    """So often may a task go into review before a person decides; 0 is no limit (WK-K8)."""
    turns: int = 50
    """So many turns may agents report for a task before a person decides; 0 is no limit."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How long closed things are kept, in milliseconds; 0 keeps for ever (H-72)."""

    messages_ms: int = 14 * 86_400_000
    dead_letters_ms: int = 30 * 86_400_000
    human_requests_ms: int = 90 * 86_400_000
    agents_ms: int = 30 * 86_400_000
    tasks_ms: int = 90 * 86_400_000


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What one life of the daemon says of itself in `status`; the store knows none of it."""

    instance: str
    version: str
    pid: int
    host: str
    port: int
    url: str
    started_at_ms: int
    database: str
    log: str


def agent_id(text: str, field: str) -> AgentId:
    """Return text as an agent id: 3 to 64 letters, digits or `._:-` in NFC (H-29).

    Raises InvalidRequest `bad-id`, naming the field.
    """
    _check(text, field, _MIN_NAME, _MAX_NAME)
    return AgentId(text)


def topic_name(text: str, field: str) -> Topic:
    """Return text as a topic: 1 to 128 characters of the same set (H-29).

    Raises InvalidRequest `bad-id`, naming the field.
    """
    _check(text, field, 1, _MAX_TOPIC)
    return Topic(text)


def is_reserved(name: AgentId) -> bool:
    """Return True for names that no agent may register (H-29)."""
    return name == OPERATOR or name.startswith((TOPIC_PREFIX, HUB_PREFIX))


def _check(text: str, field: str, shortest: int, longest: int) -> None:
    if not shortest <= len(text) <= longest:
        raise InvalidRequest(
            f"{field} has {len(text)} characters; {shortest} to {longest} are allowed",
            code="bad-id",
            details={"field": field, "length": len(text), "limit": [shortest, longest]},
        )
    if text.isascii() and text.replace("-", "_").replace(":", "_").replace(".", "_").isidentifier():
        return
    strange = sorted({c for c in text if not (c.isalnum() or c in _PUNCTUATION)})
    if strange or not unicodedata.is_normalized("NFC", text):
        what = f"the characters {strange!r}" if strange else "text that is not in Unicode form NFC"
        raise InvalidRequest(
            f"{field} holds {what}; letters, digits and ._:- in form NFC are allowed",
            code="bad-id",
            details={"field": field},
        )
