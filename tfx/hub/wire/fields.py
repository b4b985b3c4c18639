"""The bases and field types that every wire type is made of.

Knows limits, not meanings: whether an id is well formed or known is a matter of the services.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from tfx.hub.models import AgentId, Cursor, OpId


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of what a caller sends: an unknown field is refused (H-28)."""


class Mutation(Request, frozen=True, kw_only=True):
    """Base of a request that changes something: the same key again returns the first result."""

    op_id: Annotated[OpId, Meta(min_length=1, max_length=200)] | None = None


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """Base of what the hub answers."""


JsonObject: TypeAlias = Annotated[msgspec.Raw, Meta(extra_json_schema={"type": "object"})]
"""A JSON object carried as its bytes; the service checks that it is one."""


def empty_object() -> msgspec.Raw:
    """Return `{}` as carried bytes."""
    return msgspec.Raw(b"{}")


AgentName: TypeAlias = Annotated[AgentId, Meta(min_length=3, max_length=64)]
Recipient: TypeAlias = Annotated[str, Meta(min_length=3, max_length=134)]
TopicText: TypeAlias = Annotated[str, Meta(min_length=1, max_length=128)]
IdText: TypeAlias = Annotated[str, Meta(min_length=1, max_length=128)]
LongText: TypeAlias = Annotated[str, Meta(min_length=1, max_length=20_000)]
ShortText: TypeAlias = Annotated[str, Meta(max_length=2_000)]
PriorityLevel: TypeAlias = Annotated[int, Meta(ge=1, le=9)]
TtlMs: TypeAlias = Annotated[int, Meta(ge=1_000, le=86_400_000)]
WaitMs: TypeAlias = Annotated[int, Meta(ge=0, le=45_000)]
MaxBytes: TypeAlias = Annotated[int, Meta(ge=1_024, le=262_144)]
PageSize: TypeAlias = Annotated[int, Meta(ge=1, le=500)]
AfterCursor: TypeAlias = Annotated[Cursor, Meta(min_length=1, max_length=128)]
References: TypeAlias = Annotated[tuple[ShortText, ...], Meta(max_length=32)]
Topics: TypeAlias = Annotated[tuple[TopicText, ...], Meta(max_length=64)]
Ids: TypeAlias = Annotated[tuple[IdText, ...], Meta(max_length=100)]

DEFAULT_MAX_BYTES = 16_384
"""The size of a whole result unless the caller asks for more (H-31)."""
