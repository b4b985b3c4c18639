"""One call of an operation for a command, and its answer in both forms.

Chooses the credential by the operation's row (K-28); draws nothing.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from tfx.errors import InvalidRequest, JsonValue, Kind, OperationFailed
from tfx.hub import ancestry
from tfx.hub.client import HubClient
from tfx.hub.models import Privilege
from tfx.hub.operations import OPERATIONS
from tfx.hub.wire.agents import AttachResult
from tfx.result import Problem, Result, Status

if TYPE_CHECKING:
    from tfx.core.paths import Paths
    from tfx.hub.wire.admin import RebuildCheckResult, RebuildResult
    from tfx.hub.wire.messages import AckResult

T = TypeVar("T", bound=msgspec.Struct)

STDIN = "-"
_FOLD_MS = 600_000  # a large log takes its time


class Answered(Mapping[str, JsonValue], Generic[T]):
    """An answer of the hub: `struct` for the view, a mapping for the JSON document."""

    def __init__(self, struct: T) -> None:
        self.struct = struct
        self._plain: dict[str, JsonValue] = json.loads(msgspec.json.encode(struct))

    def __getitem__(self, key: str) -> JsonValue:
        return self._plain[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._plain)

    def __len__(self) -> int:
        return len(self._plain)


def call(
    paths: Paths,
    name: str,
    fields: Mapping[str, object],
    response: type[T],
    *,
    wait_ms: int = 0,
) -> Result[Answered[T]]:
    """Call an operation of the running hub; raises what it raises."""
    operator = OPERATIONS[name].privilege is Privilege.OPERATOR
    with HubClient.of(paths, operator=operator) as client:
        return Result(Answered(client.call_with(name, fields, response, wait_ms=wait_ms)))


def workspace_at(given: str) -> str:
    """Return the workspace of a path of the command line, which may be relative (K-4)."""
    return str(ancestry.workspace_of(Path(os.path.realpath(given))))


def agent_of(paths: Paths, given: str | None) -> str:
    """Return who the command speaks for: the option, `TFX_AGENT_ID`, else the operator (K-31).

    The variable says what an agent is called; which of several of that name this runs in, the
    hub knows (K-27). Raises what asking it raises.
    """
    named = paths.env.get("TFX_AGENT_ID")
    if given or not named:
        return given or "operator"
    with HubClient.of(paths) as client:
        found = identity(client, named)
    return str(found.agent_id) if found is not None and found.agent_id is not None else named


def identity(client: HubClient, named: str | None) -> AttachResult | None:
    """Ask the hub which agent this process belongs to; opens no identity (K-27)."""
    ancestor = ancestry.belongs_to()
    if ancestor is None:
        return None
    wish = {
        "cli": ancestor.cli,
        "workspace": ancestor.workspace,
        "process": ancestry.facts_of(ancestor.process),
        "agent_id": named,
        "find_only": True,
    }
    return client.call_with("attach", wish, AttachResult)


def text_of(argument: str) -> str:
    """Return a text argument, or all of standard input for `-`.

    Raises InvalidRequest `not-utf8` for bytes that no message can carry.
    """
    try:
        data = sys.stdin.buffer.read() if argument == STDIN else argument.encode("utf-8")
        return data.decode("utf-8")
    except UnicodeError as error:
        raise InvalidRequest("the text is not UTF-8", code="not-utf8") from error


def object_of(text: str, option: str) -> msgspec.Raw:
    """Return a JSON object given on the command line; raises InvalidRequest for anything else."""
    from tfx.core import canonical_json

    data = text.encode("utf-8")
    if not isinstance(canonical_json.parse(data), dict):
        raise InvalidRequest(f"{option} must be a JSON object", details={"field": option})
    return msgspec.Raw(data)


def body_of(text: str | None, payload: str | None) -> msgspec.Raw:
    """Return the payload: `{"text": …}` of an argument, or the given object; exactly one of both.

    `-` reads standard input.
    """
    if (text is None) == (payload is None):
        raise InvalidRequest("give either a text or --payload", code="usage")
    if payload is not None:
        return object_of(text_of(payload), "--payload")
    return msgspec.Raw(json.dumps({"text": text_of(text or "")}, ensure_ascii=False).encode())


def milliseconds(seconds: float) -> int:
    """Return whole milliseconds; raises InvalidRequest for what is no length of time."""
    if not math.isfinite(seconds):
        raise InvalidRequest(f"{seconds} is no length of time", code="usage")
    return round(seconds * 1000)


def not_acked(result: Result[Answered[AckResult]]) -> Result[Answered[AckResult]]:
    """Return the result as failed, with one problem for each id that was not acked."""
    left = result.data.struct.not_acked
    if not left:
        return result
    problems = tuple(
        Problem(
            "not-acked",
            Kind.STATE_CONFLICT,
            f"{each.message_id} was not acked: {each.reason.value}",
            details={"message_id": each.message_id, "reason": each.reason.value},
        )
        for each in left
    )
    return Result(result.data, Status.FAILED, problems)


def rebuilt(paths: Paths) -> Result[Answered[RebuildResult]]:
    """Fold again: an operation of a running hub, else a worker under its lock (K-22)."""
    from tfx.hub.daemon import offline
    from tfx.hub.wire.admin import RebuildResult

    if _is_held(paths):
        return call(paths, "rebuild", {}, RebuildResult, wait_ms=_FOLD_MS)
    return Result(Answered(offline.rebuild(paths)))


def compared(paths: Paths) -> Result[Answered[RebuildCheckResult]]:
    """Compare with a fold of the log, by the hub or beside it as `rebuilt` does."""
    from tfx.hub.daemon import offline
    from tfx.hub.wire.admin import RebuildCheckResult

    if _is_held(paths):
        found = call(paths, "rebuild_check", {}, RebuildCheckResult, wait_ms=_FOLD_MS)
    else:
        found = Result(Answered(offline.check(paths)))
    return _unequal(found)


def _is_held(paths: Paths) -> bool:
    from tfx.core import locks
    from tfx.hub.places import HubFiles

    return locks.is_held(HubFiles.of(paths).lock) or bool(paths.env.get("TFX_HUB_URL"))


def _unequal(result: Result[Answered[RebuildCheckResult]]) -> Result[Answered[RebuildCheckResult]]:
    """Return the comparison as failed when the projections are not what the log says."""
    if result.data.struct.equal:
        return result
    problem = OperationFailed(
        "the projections are not what the log says",
        code="projections-differ",
        hint="tfx hub rebuild",
    )
    return Result(result.data, Status.FAILED, (Problem.of(problem),))
