"""`hub.work`: tasks that stand still: held, left or reviewed by the gone, unreviewed, locked.

Reads the hub's database, and asks a running hub whom it heard when; frees nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tfx.core.clock import SystemClock
from tfx.core.identity import Liveness, examine
from tfx.doctor.facts import Facts
from tfx.doctor.model import MANUAL, Finding, Remedy, Status
from tfx.doctor.words import DAY_MS, HOUR_MS, MINUTE_MS, age, command

if TYPE_CHECKING:
    from tfx.errors import JsonValue
    from tfx.hub.store.held_work import (
        HeldReview,
        HeldTask,
        LeftTask,
        StandingLock,
        StoppedTask,
        WaitingTask,
        Worker,
    )

LONG_CALL_MS: Final = 4 * HOUR_MS
"""A holder that lives may be silent for its longest tool call (WK-D1)."""
UNPROVEN_MS: Final = HOUR_MS
"""So long one may be silent whose end could never be proven: it named no process we can see."""
START_HUB: Final = Remedy("the hub sees to it once it runs", "tfx hub start")
_SHOWN: Final = 8
_SWEPT_WITHIN_MS: Final = MINUTE_MS


@dataclass(frozen=True, slots=True)
class _Now:
    """The time, and by agent when a running hub heard it last; without a hub nobody could beat."""

    facts: Facts
    ms: int
    heard: Mapping[str, int] | None

    def seen(self, worker: Worker) -> int:
        """Return when an agent was heard last, or could not have been because no hub ran."""
        if self.heard is None:
            return worker.seen_ms
        return max(worker.seen_ms, self.heard.get(worker.name, 0), self.facts.hub_since_ms)

    def target(self, room: str, task: int | None) -> str:
        """Return what a row is about."""
        place = self.facts.paths.display(Path(room))
        return f"room {place}" if task is None else f"task {task} of {place}"

    def lease_command(self, *words: str, room: str) -> str:
        """Return a command of `tfx lease` for a board."""
        return command(self.facts.paths.home, "tfx", "lease", *words, "--room", Path(room))

    def life_of(self, worker: Worker) -> Liveness:
        """Return whether an agent lives: dead without an open session, unknown without a proof."""
        if not worker.has_session:
            return Liveness.DEAD
        return Liveness.UNKNOWN if worker.process is None else examine(worker.process).liveness


def unreadable(facts: Facts) -> Finding | None:
    """Return why the database cannot be asked for its rows, or None where it can."""
    from tfx.hub.store import inspection  # noqa: PLC0415  (start-up rule)

    path = facts.probe.files.database
    if not path.exists():
        return Finding("database", Status.SKIP, "there is no hub database yet")
    if not inspection.is_current(path):
        return Finding("database", Status.UNKNOWN, "the schema is not this program's")
    return None


def work(facts: Facts) -> Iterator[Finding]:
    """Yield the tasks that stand still because of whoever has them (WK-L24, WK-D3, WK-D5)."""
    from tfx.hub.store import held_work  # noqa: PLC0415  (start-up rule)

    reason = unreadable(facts)
    if reason is not None:
        yield reason
        return
    heard = None
    if facts.hub_runs:
        heard = {str(each.agent_id): each.last_seen_ms for each in facts.hub_agents}
    seen = held_work.look(facts.probe.files.database)
    now = _Now(facts, SystemClock().now_ms(), heard)
    found = [
        *_shown("leases", (_lease(each, now) for each in seen.held), "tfx lease status"),
        *_shown("tasks", (_left(each, now) for each in seen.left), "tfx task list"),
        *_shown("reviews", (_review(each, now) for each in seen.reviews), "tfx lease status"),
        *_shown("waits", (_waiting(each, now) for each in seen.waiting), "tfx task list"),
        *_shown("stops", (_stopped(each, now) for each in seen.stopped), "tfx task list"),
        *_shown("locks", (_lock(each, now) for each in seen.locks), "tfx lease status"),
    ]
    yield from found
    if not found:
        number = len(seen.held)
        held = "no task is held" if not number else f"{number} held, by nobody known to be gone"
        yield Finding("work", Status.OK, f"{held}; nothing stands still", {"held": number})


def _shown(what: str, each: Iterable[Finding | None], more: str) -> Iterator[Finding]:
    """Yield the first findings of a kind, and one for the rest."""
    found = (one for one in each if one is not None)
    yield from islice(found, _SHOWN)
    if rest := list(found):
        warns = any(one.status is Status.WARN for one in rest)
        yield Finding(
            f"more {what}",
            Status.WARN if warns else Status.INFO,
            f"{len(rest)} more like these",
            {"count": len(rest)},
            (Remedy("see those of a workspace", more),),
            MANUAL,
        )


def _lease(each: HeldTask, now: _Now) -> Finding | None:
    """Return what is wrong with a lease: over, its holder gone, or silent for too long."""
    name, runs = each.holder.name, now.heard is not None
    over_ms = 0 if each.expires_at_ms is None else now.ms - each.expires_at_ms
    process = each.holder.process
    life = Liveness.UNKNOWN if process is None else examine(process).liveness
    silent_ms = now.ms - max(each.moved_ms, now.seen(each.holder))
    status = Status.INFO
    if over_ms > (_SWEPT_WITHIN_MS if runs else 0):
        what = f"the lease of {name} ran out {age(over_ms)} ago"
        status = Status.WARN if runs else Status.INFO
    elif life is Liveness.DEAD:
        what = f"{name}, who holds it, is gone"
        what += "; the hub ends the lease within seconds" if runs else ""
    elif runs and silent_ms >= (LONG_CALL_MS if life is Liveness.ALIVE else UNPROVEN_MS):
        lives = "its process lives" if life is Liveness.ALIVE else "nothing could prove its end"
        what = f"{name} holds it, silent for {age(silent_ms)}; {lives}"
        status = Status.WARN
    else:
        return None
    details: dict[str, JsonValue] = {
        "agent": name,
        "lease": each.lease,
        "epoch": each.epoch,
        "process": life.value,
        "silent_s": silent_ms // 1000,
    }
    fence = ("--lease", each.lease, "--epoch", str(each.epoch))
    return Finding(
        now.target(each.room, each.task),
        status,
        what,
        details,
        (_release(each.room, each.task, fence, now) if runs else START_HUB,),
        MANUAL,
    )


def _left(each: LeftTask, now: _Now) -> Finding | None:
    """Return what is wrong with a task that only its assignee can claim (WK-L4, WK-L24)."""
    who = each.assignee
    gone_ms = now.ms - each.left_ms
    life = Liveness.DEAD
    if who.has_session:
        gone_ms = now.ms - max(each.left_ms, now.seen(who))
        life = Liveness.UNKNOWN if who.process is None else examine(who.process).liveness
    if who.is_retired:
        why, limit_ms = "who is retired", 0
    elif not each.is_known:
        why, limit_ms = "whom the hub does not know", HOUR_MS
    elif life is Liveness.ALIVE or (life is Liveness.UNKNOWN and gone_ms < DAY_MS):
        return None
    else:
        why, limit_ms = f"gone for {age(gone_ms)}", HOUR_MS
    if gone_ms < limit_ms:
        return None
    returns = each.is_known and not who.is_retired
    return Finding(
        now.target(each.room, each.task),
        Status.INFO if returns and gone_ms < DAY_MS else Status.WARN,
        f"{each.status.value} and held by nobody; only {who.name} may claim it, {why}",
        {"agent": who.name, "task_status": each.status.value, "gone_s": gone_ms // 1000},
        (_release(each.room, each.task, ("--no-lease",), now),),
        MANUAL,
    )


def _review(each: HeldReview, now: _Now) -> Finding | None:
    """Return a review that nobody goes on with: its reviewer is gone, or silent for too long."""
    name, runs = each.reviewer.name, now.heard is not None
    life = now.life_of(each.reviewer)
    silent_ms = now.ms - max(each.since_ms, now.seen(each.reviewer))
    status = Status.INFO
    if life is Liveness.DEAD:
        what = f"{name}, who reviews it, is gone"
        what += "; the hub ends the review within seconds" if runs else ""
    elif runs and silent_ms >= LONG_CALL_MS:
        what = f"{name} reviews it, silent for {age(silent_ms)}; nobody else can"
        status = Status.WARN
    else:
        return None
    words = ("review", "release", str(each.task), "--review", each.review, "--operator")
    free = Remedy("let another agent review it", now.lease_command(*words, room=each.room))
    return Finding(
        f"review of {now.target(each.room, each.task)}",
        status,
        what,
        {"agent": name, "review": each.review, "silent_s": silent_ms // 1000},
        (free if runs else START_HUB,),
        MANUAL,
    )


def _waiting(each: WaitingTask, now: _Now) -> Finding | None:
    """Return a task that waits for a reviewer for a day, or for an assignee who is gone too."""
    since_ms = now.ms - each.since_ms
    if since_ms < DAY_MS:
        return None
    who = each.assignee
    is_gone = who is not None and (who.is_retired or now.life_of(who) is Liveness.DEAD)
    claim = now.lease_command("review", "claim", str(each.task), room=each.room)
    remedies = [Remedy("an agent that did not do it reviews it", claim)]
    what = f"in review for {age(since_ms)}, and nobody reviews it"
    if who is not None and is_gone:
        what += f"; {who.name}, whose work it is, is gone"
        if not each.is_held:
            remedies.append(_release(each.room, each.task, ("--no-lease",), now))
    return Finding(
        f"review of {now.target(each.room, each.task)}",
        Status.WARN,
        what,
        {"agent": None if who is None else who.name, "since_s": since_ms // 1000},
        tuple(remedies),
        MANUAL,
    )


def _stopped(each: StoppedTask, now: _Now) -> Finding:
    """Return a task that the policy blocked: only a person lets it go on (WK-K8)."""
    since_ms = now.ms - each.since_ms
    words = ("update", str(each.task), "--status", "in_progress", "--operator")
    go_on = command(now.facts.paths.home, "tfx", "task", *words, "--room", Path(each.room))
    return Finding(
        now.target(each.room, each.task),
        Status.WARN,
        f"blocked by the policy for {age(since_ms)}: its agents did as much as they may, and you"
        " decide",
        {"agent": each.assignee, "since_s": since_ms // 1000},
        (Remedy("let it go on", go_on),),
        MANUAL,
    )


def _lock(each: StandingLock, now: _Now) -> Finding | None:
    """Return a lock that may have been forgotten."""
    since_ms = now.ms - each.set_at_ms
    if since_ms < DAY_MS:
        return None
    scope = "--whole-room" if each.task is None else str(each.task)
    return Finding(
        f"lock of {now.target(each.room, each.task)}",
        Status.INFO,
        f"locked for {age(since_ms)} by {each.set_by}: {each.reason.value}",
        {"set_by": each.set_by, "reason": each.reason.value, "since_s": since_ms // 1000},
        (Remedy("let it go on", now.lease_command("unlock", scope, room=each.room)),),
        MANUAL,
    )


def _release(room: str, task: int, fence: tuple[str, ...], now: _Now) -> Remedy:
    words = ("force-release", str(task), *fence, "--reason", "its agent is gone")
    return Remedy("free it for anybody", now.lease_command(*words, room=room))
