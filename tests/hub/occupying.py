"""Short names for what tests of occupancy do, and processes of every kind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import msgspec
import pytest

from tests.hub.driver import NOBODY, OPERATOR_CALLER, Bed
from tfx.core.identity import Finding, Liveness, ProcessIdentity, Proof, examine, identify
from tfx.errors import StateConflict
from tfx.hub.models import AgentId, OpId
from tfx.hub.occupancy_models import InvocationKind, Outcome
from tfx.hub.wire import invocations, occupancy
from tfx.hub.wire.agents import ProcessFacts

GRACE_MS = 60_000
HOUR_MS = 3_600_000
TERMINAL = InvocationKind.TERMINAL


def facts(found: ProcessIdentity) -> ProcessFacts:
    return ProcessFacts(
        pid=found.pid,
        start_token=found.start_token,
        boot_id=found.boot_id,
        host=found.host,
        pid_namespace=found.pid_namespace,
    )


def me() -> ProcessFacts:
    """This process, which lives."""
    own = identify()
    assert own is not None
    return facts(own)


def ended() -> ProcessFacts:
    """A process that has lived and is gone."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        found = identify(child.pid)
        assert found is not None
        child.communicate(b"\n")
    return facts(found)


def far(pid: int = 2) -> ProcessFacts:
    """A process of another host: nothing can be said of its life."""
    return msgspec.structs.replace(me(), host="another-host", pid=pid)


class Door:
    """The one door to the processes of this machine, with deaths that tests decide (K-45)."""

    def __init__(self, bed: Bed) -> None:
        self.dead: dict[int, Proof] = {}
        self._real: Callable[[ProcessIdentity], Finding] = examine
        bed.core.judge.examine = self.look

    def look(self, process: ProcessIdentity) -> Finding:
        proof = self.dead.get(process.pid)
        return self._real(process) if proof is None else Finding(Liveness.DEAD, proof)


async def hold(
    bed: Bed,
    name: str = "bob",
    process: ProcessFacts | None = None,
    *,
    ttl_ms: int = 600_000,
    message: str | None = None,
    force: bool = False,
    op_id: str | None = None,
) -> occupancy.ReceiverHoldResult:
    return await bed.core.receivers.receiver_hold(
        OPERATOR_CALLER if force else NOBODY,
        occupancy.ReceiverHoldRequest(
            agent_id=AgentId(name),
            process=process or me(),
            ttl_ms=ttl_ms,
            message_id=message,
            force=force,
            op_id=None if op_id is None else OpId(op_id),
        ),
    )


async def beat(bed: Bed, hold_id: str, name: str = "bob") -> occupancy.BeatResult:
    request = occupancy.ReceiverBeatRequest(agent_id=AgentId(name), hold_id=hold_id)
    return await bed.core.receivers.receiver_beat(NOBODY, request)


async def release(
    bed: Bed, hold_id: str, name: str = "bob", *, delivered: bool = False, op_id: str | None = None
) -> bool:
    request = occupancy.ReceiverReleaseRequest(
        agent_id=AgentId(name),
        hold_id=hold_id,
        delivered=delivered,
        op_id=None if op_id is None else OpId(op_id),
    )
    return (await bed.core.receivers.receiver_release(NOBODY, request)).released


async def open_terminal(
    bed: Bed,
    name: str = "bob",
    process: ProcessFacts | None = None,
    ttl_ms: int = 600_000,
    op_id: str | None = None,
) -> occupancy.TerminalOpenResult:
    request = occupancy.TerminalOpenRequest(
        agent_id=AgentId(name),
        process=process or me(),
        ttl_ms=ttl_ms,
        op_id=None if op_id is None else OpId(op_id),
    )
    return await bed.core.terminals.terminal_open(NOBODY, request)


async def close_terminal(bed: Bed, terminal_id: str, name: str = "bob") -> bool:
    request = occupancy.TerminalCloseRequest(agent_id=AgentId(name), terminal_id=terminal_id)
    return (await bed.core.terminals.terminal_close(NOBODY, request)).released


async def busy(bed: Bed, name: str = "bob") -> occupancy.BusyResult:
    return await bed.core.occupancy.busy(NOBODY, occupancy.BusyRequest(agent_id=AgentId(name)))


async def free(
    bed: Bed, name: str = "bob", *, force: bool = False, generation: int | None = None
) -> occupancy.AgentsFreeResult:
    if force and generation is None:
        generation = (await busy(bed, name)).generation
    request = occupancy.AgentsFreeRequest(
        agent_id=AgentId(name), force=force, generation=generation
    )
    return await bed.core.occupancy.agents_free(OPERATOR_CALLER, request)


async def start(
    bed: Bed,
    name: str = "bob",
    process: ProcessFacts | None = None,
    *,
    kind: InvocationKind = InvocationKind.TURN,
    ttl_ms: int = 600_000,
    title: str | None = None,
    trace_id: str | None = None,
    op_id: str | None = None,
) -> str:
    request = invocations.InvocationStartRequest(
        agent_id=AgentId(name),
        kind=kind,
        process=process or me(),
        ttl_ms=ttl_ms,
        title=title,
        trace_id=trace_id,
        op_id=None if op_id is None else OpId(op_id),
    )
    return (await bed.core.invocations.invocation_start(NOBODY, request)).invocation_id


async def finish(
    bed: Bed,
    invocation_id: str,
    outcome: Outcome = Outcome.OK,
    *,
    summary: str | None = None,
    error: str | None = None,
) -> invocations.InvocationFinishResult:
    request = invocations.InvocationFinishRequest(
        invocation_id=invocation_id, outcome=outcome, summary=summary, error=error
    )
    return await bed.core.invocations.invocation_finish(NOBODY, request)


async def notify(bed: Bed, run: str, by: str = "boss") -> invocations.InvocationNotifyResult:
    request = invocations.InvocationNotifyRequest(invocation_id=run, by=AgentId(by))
    return await bed.core.invocations.invocation_notify(NOBODY, request)


async def listed(bed: Bed, **wanted: object) -> tuple[invocations.InvocationView, ...]:
    request = msgspec.convert(wanted, invocations.InvocationsRequest)
    return (await bed.core.running.invocations(NOBODY, request)).invocations


async def delivery(bed: Bed, message_id: str) -> tuple[object, ...]:
    """State, attempts and reason of the one delivery of a message."""
    (row,) = bed.rows(
        "SELECT d.state, d.attempts, d.reason FROM deliveries d "
        "JOIN messages m ON m.stream = d.message WHERE m.id = ?",
        message_id,
    )
    return row


async def refusal(call: object) -> StateConflict:
    with pytest.raises(StateConflict) as refused:
        await call  # type: ignore[misc]
    return refused.value


def body_of(bed: Bed, kind: str) -> dict[str, object]:
    ((text,),) = bed.rows("SELECT body FROM log WHERE kind = ? ORDER BY seq DESC LIMIT 1", kind)
    body: dict[str, object] = msgspec.json.decode(str(text))
    return body
