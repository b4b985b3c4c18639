"""The rows of the operation table about occupancy and invocations.

Data only (K-21); programs that deliver turns call them, so none is an MCP tool.
"""

from __future__ import annotations

from typing import Final

from tfx.hub.models import Privilege
from tfx.hub.operation import Operation, row
from tfx.hub.wire import invocations, occupancy

OCCUPANCY_ROWS: Final[tuple[Operation, ...]] = (
    row(
        "busy",
        occupancy.BusyRequest,
        occupancy.BusyResult,
        "Say whether an agent is busy, with what, and what is known of the holder.",
        mutates=False,
    ),
    row(
        "receiver_hold",
        occupancy.ReceiverHoldRequest,
        occupancy.ReceiverHoldResult,
        "Hold an agent while a turn is delivered to it; over a holder only when it is gone.",
    ),
    row(
        "receiver_beat",
        occupancy.ReceiverBeatRequest,
        occupancy.BeatResult,
        "Say that the holder of a receiver works.",
    ),
    row(
        "receiver_release",
        occupancy.ReceiverReleaseRequest,
        occupancy.ReleaseResult,
        "End a hold; its message is acked when it was delivered, else it comes back.",
    ),
    row(
        "terminal_open",
        occupancy.TerminalOpenRequest,
        occupancy.TerminalOpenResult,
        "Lock an agent for a person's terminal: no turn is delivered to it meanwhile.",
    ),
    row(
        "terminal_beat",
        occupancy.TerminalBeatRequest,
        occupancy.BeatResult,
        "Say that a terminal is still open.",
    ),
    row(
        "terminal_close",
        occupancy.TerminalCloseRequest,
        occupancy.ReleaseResult,
        "Give an agent back to its mail.",
    ),
    row(
        "agents_free",
        occupancy.AgentsFreeRequest,
        occupancy.AgentsFreeResult,
        "Free an agent of holders that are gone; with force of every one.",
        privilege=Privilege.OPERATOR,
        command="tfx hub agents free",
    ),
    row(
        "invocation_start",
        invocations.InvocationStartRequest,
        invocations.InvocationStartResult,
        "Report that a process runs for an agent.",
    ),
    row(
        "invocation_beat",
        invocations.InvocationBeatRequest,
        invocations.InvocationBeatResult,
        "Say that an invocation still runs.",
    ),
    row(
        "invocation_finish",
        invocations.InvocationFinishRequest,
        invocations.InvocationFinishResult,
        "Report how an invocation ended, late too.",
    ),
    row(
        "invocation_notify",
        invocations.InvocationNotifyRequest,
        invocations.InvocationNotifyResult,
        "Become the one who tells of the end of an invocation.",
    ),
    row(
        "invocations",
        invocations.InvocationsRequest,
        invocations.InvocationsResult,
        "List what runs and ran, newest first.",
        mutates=False,
    ),
    row(
        "invocations_probe",
        invocations.ProbeRequest,
        invocations.ProbeResult,
        "Look at everything that is recorded as running; what is gone is lost.",
    ),
)
