"""The operation table: every request and response type, and who may call what.

Data only; it knows neither how an operation is carried nor how it is done (K-21).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tfx.hub.models import Privilege, Toolset
from tfx.hub.wire import admin, agents, humans, messages, views

if TYPE_CHECKING:
    from collections.abc import Mapping

    import msgspec


@dataclass(frozen=True, slots=True)
class Operation:
    """One row: `POST /v1/<name>`, an MCP tool if it has a toolset, a method of a service."""

    name: str
    request: type[msgspec.Struct]
    response: type[msgspec.Struct]
    toolset: Toolset | None
    privilege: Privilege
    mutates: bool
    summary: str


def _row(
    name: str,
    request: type[msgspec.Struct],
    response: type[msgspec.Struct],
    summary: str,
    *,
    toolset: Toolset | None = None,
    privilege: Privilege = Privilege.BUS,
    mutates: bool = True,
) -> Operation:
    return Operation(name, request, response, toolset, privilege, mutates, summary)


_BUS: Final = Toolset.BUS
_OPERATOR: Final = Privilege.OPERATOR

_ROWS: Final = (
    _row(
        "register",
        agents.RegisterRequest,
        agents.RegisterResult,
        "Announce an agent and the topics it listens to; returns its lease.",
        toolset=_BUS,
    ),
    _row(
        "attach",
        agents.AttachRequest,
        agents.AttachResult,
        "Find or open the identity of the agent process that a caller belongs to.",
    ),
    _row(
        "heartbeat",
        agents.HeartbeatRequest,
        agents.HeartbeatResult,
        "Extend an agent's lease.",
    ),
    _row(
        "deregister",
        agents.DeregisterRequest,
        agents.DeregisterResult,
        "End an agent's session; its inbox stays.",
    ),
    _row(
        "agents",
        agents.AgentsRequest,
        agents.AgentsResult,
        "List the known agents.",
        mutates=False,
    ),
    _row(
        "agents_retire",
        agents.RetireRequest,
        agents.RetireResult,
        "Retire an agent: its waiting mail becomes dead letters.",
        privilege=_OPERATOR,
    ),
    _row(
        "agents_prune",
        agents.PruneAgentsRequest,
        agents.PruneAgentsResult,
        "Retire agents that were not seen for a while.",
        privilege=_OPERATOR,
    ),
    _row(
        "status",
        views.StatusRequest,
        views.StatusResult,
        "State of the hub, of an agent, of the queues or of one trace.",
        toolset=_BUS,
        mutates=False,
    ),
    _row(
        "publish",
        messages.PublishRequest,
        messages.PublishResult,
        "Send a message to an agent or to `topic:NAME`; with correlation_id it answers a request.",
        toolset=_BUS,
    ),
    _row(
        "ask",
        messages.AskRequest,
        messages.AskResult,
        "Ask an agent and wait for its one answer, or get a ticket to redeem later.",
        toolset=_BUS,
    ),
    _row(
        "poll_messages",
        messages.PollRequest,
        messages.PollResult,
        "Claim messages, waiting if there are none; unacked ones come again.",
        toolset=_BUS,
    ),
    _row("ack", messages.AckRequest, messages.AckResult, "Confirm that messages were received."),
    _row(
        "wait",
        messages.WaitRequest,
        messages.WaitResult,
        "Wait until something is claimable; claims nothing.",
        mutates=False,
    ),
    _row(
        "handoff",
        messages.HandoffRequest,
        messages.HandoffResult,
        "Hand a task with its acceptance criteria to an agent, who accepts or declines by a reply.",
        toolset=_BUS,
    ),
    _row(
        "read_message",
        views.ReadMessageRequest,
        views.ReadMessageResult,
        "Read the payload of one message in pieces; claims nothing.",
        toolset=_BUS,
        mutates=False,
    ),
    _row(
        "request_human_input",
        humans.HumanInputRequest,
        humans.HumanInputResult,
        "Ask the person at the machine; the default action applies at the deadline.",
        toolset=_BUS,
    ),
    _row(
        "human_requests",
        humans.HumanListRequest,
        humans.HumanListResult,
        "List what people are asked.",
        mutates=False,
    ),
    _row(
        "dead_letters",
        views.DeadLettersRequest,
        views.DeadLettersResult,
        "List messages that could not be delivered, with reasons.",
        toolset=_BUS,
        mutates=False,
    ),
    _row(
        "dead_replay",
        views.DeadReplayRequest,
        views.DeadReplayResult,
        "Send a dead letter again as a new message of the same trace.",
    ),
    _row(
        "dead_purge",
        views.DeadPurgeRequest,
        views.DeadPurgeResult,
        "Give dead letters up for good.",
        privilege=_OPERATOR,
    ),
    _row(
        "trace",
        views.TraceRequest,
        views.TraceResult,
        "Everything that belongs to one trace, in the order of the log.",
        mutates=False,
    ),
    _row(
        "events",
        views.EventsRequest,
        views.EventsResult,
        "Read the event log from a cursor.",
        mutates=False,
    ),
    _row(
        "rebuild",
        admin.RebuildRequest,
        admin.RebuildResult,
        "Discard the projections and fold them again from the log.",
        privilege=_OPERATOR,
    ),
    _row(
        "rebuild_check",
        admin.RebuildCheckRequest,
        admin.RebuildCheckResult,
        "Compare the projections with a fold of the log; writes nothing.",
        privilege=_OPERATOR,
        mutates=False,
    ),
    _row(
        "prune",
        admin.PruneRequest,
        admin.PruneResult,
        "Forget closed messages, requests and agents past their keep time.",
        privilege=_OPERATOR,
    ),
    _row(
        "shutdown",
        admin.ShutdownRequest,
        admin.ShutdownResult,
        "Stop the hub in order.",
        privilege=_OPERATOR,
    ),
)

OPERATIONS: Final[Mapping[str, Operation]] = MappingProxyType({row.name: row for row in _ROWS})
"""Every operation by its name, in the order in which they are offered."""
