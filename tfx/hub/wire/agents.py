"""Wire types of agents: register, attach, heartbeat, deregister, list, retire, prune.

Knows nothing of how liveness is judged.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, field

from tfx.hub.models import AgentId, AgentState, LeaseId, Topic
from tfx.hub.wire.fields import (
    AgentName,
    IdText,
    JsonObject,
    Mutation,
    PageSize,
    PathText,
    Pid,
    Repeatable,
    Request,
    Response,
    Topics,
    Whole,
    empty_object,
)
from tfx.hub.wire.seats import SeatView

Client = Annotated[str, Meta(min_length=1, max_length=64)]
LeaseTtlMs = Annotated[int, Meta(ge=10_000, le=7_200_000)]


class ProcessFacts(Request, frozen=True, kw_only=True):
    """The process behind an agent: pid alone proves nothing (EV-B5)."""

    pid: Pid
    start_token: Annotated[str, Meta(min_length=1, max_length=64)]
    boot_id: Annotated[str, Meta(min_length=1, max_length=64)]
    host: Annotated[str, Meta(min_length=1, max_length=255)]
    pid_namespace: Annotated[str, Meta(max_length=64)] = ""


class RegisterRequest(Mutation, frozen=True, kw_only=True):
    """Announce an agent; registering again keeps its inbox and replaces its topics (H-61)."""

    agent_id: AgentName
    cli: Client
    capabilities: Annotated[tuple[IdText, ...], Meta(min_length=1, max_length=64)]
    topics: Topics
    heartbeat_ttl_ms: LeaseTtlMs
    pid: Pid | None = None
    metadata: JsonObject = field(default_factory=empty_object)
    process: ProcessFacts | None = None
    workspace: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=4_096,
                description="your repository, absolute: its tasks are yours",
            ),
        ]
        | None
    ) = None


class RegisterResult(Response, frozen=True, kw_only=True):
    """The lease, to be kept by calls or heartbeats."""

    agent_id: AgentId
    lease_id: LeaseId
    lease_expires_ms: int
    server_time_ms: int


class AttachRequest(Repeatable, frozen=True, kw_only=True):
    """Ask which agent a process is (K-27).

    That of `process`, the nearest ancestor that is an agent CLI; else a new one: `agent_id`
    (TFX_AGENT_ID) or `<cli>.<workspace slug>`, with `.2`, `.3` … while those before it live.
    `find_only` opens nothing: hooks, commands and the status line use it.
    """

    cli: Client
    workspace: PathText
    process: ProcessFacts
    agent_id: AgentName | None = None
    find_only: bool = False
    capabilities: Annotated[tuple[IdText, ...], Meta(max_length=64)] = ()
    topics: Topics = ()
    heartbeat_ttl_ms: LeaseTtlMs = 600_000


class AttachResult(Response, frozen=True, kw_only=True):
    """The identity and its session; nulls are for `find_only`.

    Without a `lease_id` the process has no session of that name and no other live process has.
    """

    agent_id: AgentId | None
    lease_id: LeaseId | None
    lease_expires_ms: int | None
    created: bool
    server_time_ms: int


class HeartbeatRequest(Repeatable, frozen=True, kw_only=True):
    """Extend the lease that `register` or `attach` gave."""

    agent_id: AgentName
    lease_id: IdText | None = None
    heartbeat_ttl_ms: LeaseTtlMs | None = None


class HeartbeatResult(Response, frozen=True, kw_only=True):
    """The lease as it stands now."""

    agent_id: AgentId
    lease_id: LeaseId
    lease_expires_ms: int
    server_time_ms: int


class DeregisterRequest(Mutation, frozen=True, kw_only=True):
    """End a session; with a `lease_id` only if it is still that one."""

    agent_id: AgentName
    lease_id: IdText | None = None


class DeregisterResult(Response, frozen=True, kw_only=True):
    """The agent is offline; its inbox and topics stay."""

    agent_id: AgentId
    ended: bool


class AgentsRequest(Request, frozen=True, kw_only=True):
    """List agents by name; retired ones only when asked."""

    include_retired: bool = False
    after: AgentName | None = None
    limit: PageSize = 100


class AgentView(Response, frozen=True, kw_only=True):
    """One agent as others may see it."""

    agent_id: AgentId
    cli: str
    state: AgentState
    capabilities: tuple[str, ...]
    topics: tuple[Topic, ...]
    workspace: str | None
    pid: int | None
    metadata: msgspec.Raw
    registered_at_ms: int
    last_seen_ms: int
    lease_expires_ms: int
    unread: int
    urgent: int
    owes: int
    awaits: int
    generation: int
    seats: tuple[SeatView, ...]
    """Who keeps it busy now; empty for an idle agent."""


class AgentsResult(Response, frozen=True, kw_only=True):
    """A page of agents; `next_after` continues it."""

    agents: tuple[AgentView, ...]
    next_after: AgentId | None


class RetireRequest(Mutation, frozen=True, kw_only=True):
    """Retire one agent."""

    agent_id: AgentName


class RetireResult(Response, frozen=True, kw_only=True):
    """How many waiting deliveries became dead letters."""

    agent_id: AgentId
    retired: bool
    dead_lettered: int


class PruneAgentsRequest(Mutation, frozen=True, kw_only=True):
    """Retire every agent that is offline and was not seen for this long."""

    unseen_ms: Whole = 7 * 86_400_000
    dry_run: bool = True


class PruneAgentsResult(Response, frozen=True, kw_only=True):
    """Who was retired, or would be."""

    agents: tuple[AgentId, ...]
    dead_lettered: int
    dry_run: bool
