"""What helps after the hub refused something about work, in words of the command line.

Knows the codes and the details of the refusals; changes neither message nor code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tfx.errors import JsonValue, TfxError


def helped(error: TfxError, task: int | None) -> TfxError:
    """Return the error with a hint that is a command, where there is one for its code.

    `task` is the number the command was given, for refusals that do not repeat it.
    """
    build = _HINTS.get(error.reason)
    if build is not None:
        number = error.details.get("task", task)
        hint = build(error.details, "TASK" if number is None else str(number))
        error.hint = hint or error.hint
    return error


def _held(details: Mapping[str, JsonValue], task: str) -> str | None:
    holder = details.get("holder")
    if holder:
        handoff = f"{holder} can hand it to you: tfx lease handoff {task} --to YOU"
        return f"{handoff}; its lease: tfx lease status {task}"
    return f"how it stands: tfx task show {task}" if details.get("reviewer") else None


def _lost(details: Mapping[str, JsonValue], task: str) -> str:
    lease = details.get("lease_id")
    successor = details.get("successor")
    now = " (somebody else has it now)" if successor else ""
    look = f"tfx lease status --lease {lease}" if lease else f"tfx lease status {task}"
    return f"stop changing the task{now}; what became of the lease: {look}"


def _allowed(details: Mapping[str, JsonValue], task: str) -> str | None:
    allowed = details.get("allowed")
    if not isinstance(allowed, list) or not allowed:
        return None
    return f"tfx task update {task} --status {'|'.join(str(each) for each in allowed)}"


def _by_the_person(details: Mapping[str, JsonValue], task: str) -> str:
    if details.get("holder"):
        take = f"tfx lease force-release {task} --reason TEXT"
        return f"as the person at this machine: {take}, or the same again with --operator"
    if details.get("assignee"):
        return "as the person at this machine: the same again with --operator"
    return "run it inside the agent, or add --agent NAME --session ID"


def _other(details: Mapping[str, JsonValue], task: str) -> str:
    return _twin(details, str(details.get("other", task)))


def _twin(details: Mapping[str, JsonValue], task: str) -> str:
    if details.get("route") == "review":
        return f"it waits for a review; an agent takes it: tfx lease review claim {task}"
    owner = details.get("assignee")
    if owner:
        return f"{owner} works on it and can hand it on: tfx lease handoff {task} --to YOU"
    return f"the work that is already there: tfx task show {task}"


def _fixed(text: str) -> Callable[[Mapping[str, JsonValue], str], str]:
    return lambda _details, task: text.replace("TASK", task)


_HINTS: Final[Mapping[str, Callable[[Mapping[str, JsonValue], str], str | None]]] = {
    "held": _held,
    "lease-holder": _held,
    "lease-lost": _lost,
    "lease-changed": _fixed("look again: tfx lease status TASK"),
    "lease-missing": _fixed(
        "an agent claims it: tfx lease claim TASK; how it stands: tfx lease status TASK"
    ),
    "lease-kind": _fixed("a review changes no work; its holder does: tfx lease status TASK"),
    "actor-missing": _by_the_person,
    "authority-ended": _fixed(
        "the session has ended; the agent registers again, then: tfx lease claim TASK"
    ),
    "bad-transition": _allowed,
    "stale": _fixed("read it again: tfx task show TASK"),
    "not-ready": _fixed("what it waits for: tfx task show TASK"),
    "bad-status": _fixed("how it stands: tfx task show TASK"),
    "lock-active": _fixed("the person lets it go on: tfx lease unlock TASK, or --whole-room"),
    "nothing-ready": _fixed("what waits for what: tfx task list"),
    "duplicate-work": _twin,
    "use-handoff": _fixed("tfx lease handoff TASK --to AGENT"),
    "artifact-mismatch": _other,
    "review-missing": _fixed("a reviewer first: tfx lease review claim TASK"),
    "policy-limit": _fixed("a person decides: tfx task update TASK --status STATUS --operator"),
    "no-ttl": _fixed("it holds until it is given back: tfx lease release TASK"),
    "unknown-task": _fixed("what is there: tfx task list --all"),
    "self-review": _fixed("another agent reviews it: tfx lease review claim TASK"),
    "foreign-room": _fixed("an agent works in the workspace it is registered in"),
    "room-needed": _fixed("name the workspace: --room PATH"),
    "target-not-unique": _fixed("choose one session: --to-session ID (see tfx hub agents)"),
    "target-unreachable": _fixed("who is there: tfx hub agents"),
}
