"""Wait for an agent's mail across time-outs of single calls and restarts of the hub (H-71)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tfx.cli.hub.calls import Answered, milliseconds
from tfx.errors import AgentUnavailable, OperationFailed
from tfx.hub.client import HubClient
from tfx.hub.exchange import CUT
from tfx.hub.models import MAX_WAIT_MS
from tfx.hub.wire.messages import WaitResult
from tfx.result import Problem, Result, Status

if TYPE_CHECKING:
    from tfx.core.paths import Paths

_AWAY_S = 30.0
_PAUSE_S = 0.2


def wait_for_mail(
    paths: Paths, agent: str, timeout_s: float | None
) -> Result[Answered[WaitResult]]:
    """Return once something is claimable, or with the problem `no-mail` at the time-out.

    A hub that goes away while we wait, or while we begin to, may take 30 s to come back; one that
    is not there at the beginning is AgentUnavailable at once.
    """
    deadline = None if timeout_s is None else time.monotonic() + milliseconds(timeout_s) / 1000
    away_since: float | None = None
    found = _first(paths, agent)
    while found is None or not found.total:
        try:
            found = _once(paths, agent, _left_ms(deadline))
        except AgentUnavailable:
            now = time.monotonic()
            away_since = away_since or now
            over = deadline is not None and now >= deadline
            if over or now - away_since > _AWAY_S:
                raise
            time.sleep(_PAUSE_S)
            continue
        away_since = None
        if not found.total and deadline is not None and time.monotonic() >= deadline:
            late = OperationFailed(f"no mail for {agent} within {timeout_s:g} s", code="no-mail")
            return Result(Answered(found), Status.FAILED, (Problem.of(late),))
    return Result(Answered(found))


def _first(paths: Paths, agent: str) -> WaitResult | None:
    """Return what waits now; None when the hub was there and ended before it answered."""
    try:
        return _once(paths, agent, 0)
    except AgentUnavailable as error:
        if isinstance(error.__cause__, CUT):
            return None
        raise  # a hub that is not there now is not waited for


def _once(paths: Paths, agent: str, wait_ms: int) -> WaitResult:
    with HubClient.of(paths) as client:
        fields = {"agent_id": agent, "wait_ms": wait_ms}
        return client.call_with("wait", fields, WaitResult, wait_ms=wait_ms)


def _left_ms(deadline: float | None) -> int:
    if deadline is None:
        return MAX_WAIT_MS
    return max(0, min(MAX_WAIT_MS, round((deadline - time.monotonic()) * 1000)))
