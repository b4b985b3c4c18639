"""The bases and field types that every wire type is made of.

Knows limits, not meanings: whether an id is well formed or known is a matter of the services.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

from tfx.errors import InvalidRequest
from tfx.hub.models import AgentId, Cursor, OpId

_PLACES: Final = ("room", "workspace", "worktree")


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of what a caller sends: an unknown field is refused (H-28).

    Whatever request has a room, a workspace or a worktree has it as one path for one place.
    """

    def __post_init__(self) -> None:
        """Put the places into their one form; raises InvalidRequest for a relative one."""
        for name in _PLACES:
            given: str | None = getattr(self, name, None)
            if given is not None:
                msgspec.structs.force_setattr(self, name, place(given, name))


def place(text: str, field: str) -> str:
    """Return an absolute path without double or trailing slashes; it need not exist.

    Boards are found by it, so two ways to write one path would be two boards. Raises
    InvalidRequest for a relative path, and for `.` and `..`, which only their author can resolve.
    """
    parts = [each for each in text.split("/") if each]
    if not text.startswith("/") or {".", ".."} & set(parts):
        raise InvalidRequest(
            f"{field} must be an absolute path without . and ..",
            details={"field": field, "limit": "an absolute path", "received": text[:200]},
        )
    return "/" + "/".join(parts)


class Mutation(Request, frozen=True, kw_only=True):
    """Base of a request that changes something: the same key again returns the first result."""

    op_id: (
        Annotated[OpId, Meta(min_length=1, max_length=200, description="your key for a safe retry")]
        | None
    ) = None


class Repeatable(Mutation, frozen=True, kw_only=True):
    """Base of a mutation that does no more the second time: its key is taken and not kept.

    Its repetition tells how things are then, which is what the first one brought about.
    """


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """Base of what the hub answers."""


JsonObject: TypeAlias = Annotated[msgspec.Raw, Meta(extra_json_schema={"type": "object"})]
"""A JSON object carried as its bytes; the service checks that it is one."""


def empty_object() -> msgspec.Raw:
    """Return `{}` as carried bytes."""
    return msgspec.Raw(b"{}")


AgentName: TypeAlias = Annotated[AgentId, Meta(min_length=3, max_length=64)]
Recipient: TypeAlias = Annotated[
    str, Meta(min_length=3, max_length=134, description="an agent id or topic:NAME")
]
TopicText: TypeAlias = Annotated[str, Meta(min_length=1, max_length=128)]
PathText: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=4_096, description="absolute path")
]
IdText: TypeAlias = Annotated[str, Meta(min_length=1, max_length=128)]
LongText: TypeAlias = Annotated[str, Meta(min_length=1, max_length=20_000)]
ShortText: TypeAlias = Annotated[str, Meta(max_length=2_000)]
PriorityLevel: TypeAlias = Annotated[int, Meta(ge=1, le=9)]
TTL_MS: Final = (1_000, 86_400_000)
"""The shortest and the longest time to live of a message."""
TtlMs: TypeAlias = Annotated[int, Meta(ge=TTL_MS[0], le=TTL_MS[1])]
WaitMs: TypeAlias = Annotated[int, Meta(ge=0, le=45_000)]
MaxBytes: TypeAlias = Annotated[int, Meta(ge=1_024, le=262_144)]
Whole: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""A seq, an offset, an age: what the database can compare with."""
Pid: TypeAlias = Annotated[int, Meta(ge=1, le=2**31 - 1)]
PageSize: TypeAlias = Annotated[int, Meta(ge=1, le=500)]
AfterCursor: TypeAlias = Annotated[Cursor, Meta(min_length=1, max_length=128)]
References: TypeAlias = Annotated[tuple[ShortText, ...], Meta(max_length=32)]
Topics: TypeAlias = Annotated[tuple[TopicText, ...], Meta(max_length=64)]
Deferred: TypeAlias = Annotated[bool, Meta(description="keep it for a receiver to come")]
Ids: TypeAlias = Annotated[tuple[IdText, ...], Meta(max_length=100)]

DEFAULT_MAX_BYTES = 16_384
"""The size of a whole result unless the caller asks for more (H-31)."""
