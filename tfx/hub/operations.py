"""The operation table: every request and response type, and who may call what.

Data only; it knows neither how an operation is carried nor how it is done (K-21).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tfx.hub.models import Privilege, Toolset
from tfx.hub.operation import Operation, row
from tfx.hub.operations_occupancy import OCCUPANCY_ROWS
from tfx.hub.operations_work import WORK_ROWS
from tfx.hub.wire import admin, agents, humans, messages, views

if TYPE_CHECKING:
    from collections.abc import Mapping


_BUS: Final = Toolset.BUS
_OPERATOR: Final = Privilege.OPERATOR

_ROWS: Final = (
    row(
        "register",
        agents.RegisterRequest,
        agents.RegisterResult,
        "Announce an agent and the topics it listens to; returns its lease.",
        toolset=_BUS,
    ),
    row(
        "attach",
        agents.AttachRequest,
        agents.AttachResult,
        "Find or open the identity of the agent process that a caller belongs to.",
    ),
    row(
        "heartbeat",
        agents.HeartbeatRequest,
        agents.HeartbeatResult,
        "Extend an agent's lease.",
    ),
    row(
        "deregister",
        agents.DeregisterRequest,
        agents.DeregisterResult,
        "End an agent's session; its inbox stays.",
    ),
    row(
        "agents",
        agents.AgentsRequest,
        agents.AgentsResult,
        "List the known agents.",
        mutates=False,
    ),
    row(
        "agents_retire",
        agents.RetireRequest,
        agents.RetireResult,
        "Retire an agent: its waiting mail becomes dead letters.",
        privilege=_OPERATOR,
        command="tfx hub agents retire",
    ),
    row(
        "agents_prune",
        agents.PruneAgentsRequest,
        agents.PruneAgentsResult,
        "Retire agents that were not seen for a while.",
        privilege=_OPERATOR,
        command="tfx hub agents prune",
    ),
    row(
        "status",
        views.StatusRequest,
        views.StatusResult,
        "State of the hub, of an agent, of the queues or of one trace.",
        toolset=_BUS,
        mutates=False,
    ),
    row(
        "publish",
        messages.PublishRequest,
        messages.PublishResult,
        "Send a message to an agent or to `topic:NAME`; with correlation_id it answers a request.",
        toolset=_BUS,
    ),
    row(
        "ask",
        messages.AskRequest,
        messages.AskResult,
        "Ask an agent and wait for its one answer, or get a ticket to redeem later.",
        toolset=_BUS,
    ),
    row(
        "poll_messages",
        messages.PollRequest,
        messages.PollResult,
        "Claim messages, waiting if there are none; unacked ones come again.",
        toolset=_BUS,
    ),
    row("ack", messages.AckRequest, messages.AckResult, "Confirm that messages were received."),
    row(
        "wait",
        messages.WaitRequest,
        messages.WaitResult,
        "Wait until something is claimable; claims nothing.",
        mutates=False,
    ),
    row(
        "notices",
        messages.NoticesRequest,
        messages.NoticesResult,
        "Tell once what has come for an agent; claims nothing.",
        mutates=False,
    ),
    row(
        "handoff",
        messages.HandoffRequest,
        messages.HandoffResult,
        "Hand a task with its acceptance criteria to an agent, who accepts or declines by a reply.",
        toolset=_BUS,
    ),
    row(
        "read_message",
        views.ReadMessageRequest,
        views.ReadMessageResult,
        "Read the payload of one message in pieces; claims nothing.",
        toolset=_BUS,
        mutates=False,
    ),
    row(
        "request_human_input",
        humans.HumanInputRequest,
        humans.HumanInputResult,
        "Ask the person at the machine; the default action applies at the deadline.",
        toolset=_BUS,
    ),
    row(
        "submit_human_input",
        humans.HumanAnswerRequest,
        humans.HumanAnswerResult,
        "Answer a request as the person at the machine; needs the operator credential.",
        toolset=_BUS,
        privilege=_OPERATOR,
        command="tfx hub human answer",
    ),
    row(
        "withdraw_human_input",
        humans.HumanWithdrawRequest,
        humans.HumanAnswerResult,
        "Take back a request that you opened.",
        toolset=_BUS,
    ),
    row(
        "human_requests",
        humans.HumanListRequest,
        humans.HumanListResult,
        "List what people are asked.",
        mutates=False,
    ),
    row(
        "dead_letters",
        views.DeadLettersRequest,
        views.DeadLettersResult,
        "List messages that could not be delivered, with reasons.",
        toolset=_BUS,
        mutates=False,
    ),
    row(
        "dead_replay",
        views.DeadReplayRequest,
        views.DeadReplayResult,
        "Send a dead letter again as a new message of the same trace.",
    ),
    row(
        "dead_purge",
        views.DeadPurgeRequest,
        views.DeadPurgeResult,
        "Give dead letters up for good.",
        privilege=_OPERATOR,
        command="tfx hub dead purge",
    ),
    row(
        "trace",
        views.TraceRequest,
        views.TraceResult,
        "Everything that belongs to one trace, in the order of the log.",
        mutates=False,
    ),
    row(
        "events",
        views.EventsRequest,
        views.EventsResult,
        "Read the event log from a cursor.",
        mutates=False,
    ),
    row(
        "rebuild",
        admin.RebuildRequest,
        admin.RebuildResult,
        "Discard the projections and fold them again from the log.",
        privilege=_OPERATOR,
        command="tfx hub rebuild",
    ),
    row(
        "rebuild_check",
        admin.RebuildCheckRequest,
        admin.RebuildCheckResult,
        "Compare the projections with a fold of the log; writes nothing.",
        privilege=_OPERATOR,
        command="tfx hub rebuild --check",
        mutates=False,
    ),
    row(
        "snapshot",
        admin.SnapshotRequest,
        admin.SnapshotResult,
        "Copy the database as it is now into an empty file; `tfx backup create` asks for it.",
        privilege=_OPERATOR,
        command="tfx backup create",
        mutates=False,
    ),
    row(
        "prune",
        admin.PruneRequest,
        admin.PruneResult,
        "Forget closed messages, requests and agents past their keep time.",
        privilege=_OPERATOR,
        command="tfx hub prune",
    ),
    *WORK_ROWS,
    *OCCUPANCY_ROWS,
    row(
        "shutdown",
        admin.ShutdownRequest,
        admin.ShutdownResult,
        "Stop the hub in order.",
        privilege=_OPERATOR,
        command="tfx hub stop",
    ),
)

OPERATIONS: Final[Mapping[str, Operation]] = MappingProxyType({each.name: each for each in _ROWS})
"""Every operation by its name, in the order in which they are offered."""
