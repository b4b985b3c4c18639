"""What holds for tasks, leases and reviews after every step, looked at in the file itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from tests.hub.work.crew import Crew

OWNED = {"assigned", "in_progress", "blocked", "in_review"}
TABLES = ("tasks", "blockers", "artifacts", "work_leases", "review_leases", "locks")


def one_owner_at_most(crew: Crew) -> None:
    """A task has one active lease at most; its owner fields and its holder's session agree."""
    rows = crew.bed.rows(
        "SELECT t.status, t.assignee, t.session, l.agent, l.session, count(*) "
        "FROM work_leases l LEFT JOIN tasks t ON t.stream = l.task "
        "WHERE l.status = 'active' GROUP BY l.task"
    )
    for status, assignee, session, agent, life, count in rows:
        assert count == 1
        assert status in OWNED
        assert (assignee, session) == (agent, life)
    for table in ("work_leases", "review_leases"):
        ended = crew.bed.rows(
            f"SELECT l.id FROM {table} l JOIN agents a ON a.id = l.agent "
            "WHERE l.status = 'active' AND a.session IS NOT l.session"
        )
        assert ended == []


def epochs_only_rise(crew: Crew, before: dict[int, list[str]]) -> dict[int, list[str]]:
    """The leases of a task are numbered 0, 1, 2 …; what was numbered keeps its number.

    Takes and returns the lease ids of each task in their order.
    """
    now: dict[int, list[str]] = {}
    rows = crew.bed.rows("SELECT task, epoch, id FROM work_leases ORDER BY task, epoch")
    for task, epoch, lease in rows:
        held = now.setdefault(int(task or 0), [])
        assert epoch == len(held)
        held.append(str(lease))
    for task, known in before.items():
        held = now.get(task, known)  # its leases go with a deleted task
        assert held[: len(known)] == known
    return now


def nobody_reviews_its_own_work(crew: Crew) -> None:
    """A task in review has one reviewer at most, who did none of it and does not have it now.

    Nor was anything ever merged but by such a reviewer, or by the person.
    """
    known = histories(crew)
    rows = crew.bed.rows(
        "SELECT t.stream, t.status, t.assignee, r.agent, count(*) FROM review_leases r "
        "JOIN tasks t ON t.stream = r.task WHERE r.status = 'active' GROUP BY r.task"
    )
    for stream, status, assignee, reviewer, count in rows:
        assert (status, count) == ("in_review", 1)
        assert reviewer not in {assignee, *known[int(stream or 0)].authors}


@dataclass(slots=True)
class History:
    """What the events of one task say of who did its work, read a second time."""

    status: str = ""
    owner: str | None = None
    reviewer: str | None = None
    is_stopped: bool = False
    authors: set[str] = field(default_factory=set)

    def take(self, kind: str, actor: str, body: dict[str, Any]) -> None:
        """Take the next event."""
        if kind == "review_claimed":
            self.reviewer = body["agent"]
        elif kind in {"review_released", "review_revoked"}:
            self.reviewer = None
        elif kind == "artifact_attached":
            if body["artifact"] != "link" or actor == self.owner:
                self.authors.add(actor)
        elif kind == "task_moved":
            self._moved(actor, body)
        elif kind in {"work_claimed", "work_handed_off"}:
            self._becomes(body["status"], body["agent"], actor)
        elif kind.startswith("work_") and "status" in body:
            self._becomes(body["status"], None, actor)
        if self.status == "in_progress" and self.owner is not None:
            self.authors.add(self.owner)

    def _moved(self, actor: str, body: dict[str, Any]) -> None:
        person, before, status = body.get("decided", False), self.status, body["status"]
        assert actor != "operator" or person or before not in OWNED  # else it is nobody
        if status == "merged":
            assert person or actor not in {self.owner, *self.authors}
        self._becomes(status, body.get("assignee"), actor)
        if status == "in_review" and self.owner is not None:
            self.authors.add(self.owner)
        if status == "accepted" and (before == "merged" or person):
            self.authors.clear()
        self.is_stopped = body.get("policy", False)

    def _becomes(self, status: str, owner: str | None, actor: str) -> None:
        if self.is_stopped and status != "blocked":
            assert actor == "operator"
        self.is_stopped = self.is_stopped and status == "blocked"
        self.status, self.owner = status, owner


def histories(crew: Crew) -> dict[int, History]:
    """Read the events of every task."""
    known: dict[int, History] = {}
    rows = crew.bed.rows(
        "SELECT l.stream, l.kind, l.actor, l.body FROM log l "
        "JOIN tasks t ON t.stream = l.stream ORDER BY l.seq"
    )
    for stream, kind, actor, text in rows:
        body = msgspec.json.decode(str(text))
        if kind == "task_created":
            known[int(stream or 0)] = History(status=body["status"])
        known[int(stream or 0)].take(str(kind), str(actor), body)
    return known


def no_rivals_are_at_work(crew: Crew) -> None:
    """No two tasks of a room that somebody owns have one exclusion key (WK-T11)."""
    rows = crew.bed.rows(
        "SELECT room, exclusive FROM tasks WHERE exclusive IS NOT NULL AND deleted_at_ms IS NULL "
        "AND status IN ('assigned', 'in_progress', 'blocked', 'in_review') "
        "GROUP BY room, exclusive HAVING count(*) > 1"
    )
    assert rows == []


@dataclass(frozen=True, slots=True)
class Begun:
    """Which tasks somebody owns, which were ever leased, which wait for another one."""

    owned: frozenset[int] = frozenset()
    leased: frozenset[int] = frozenset()
    behind: frozenset[int] = frozenset()


def nothing_begins_behind_another(crew: Crew, before: Begun) -> Begun:
    """What was not ready got no owner and no first lease by the step between (WK-T11, WK-L4)."""

    def these(sql: str) -> frozenset[int]:
        return frozenset(int(row[0] or 0) for row in crew.bed.rows(sql))

    now = Begun(
        owned=these(f"SELECT stream FROM tasks WHERE status IN {tuple(sorted(OWNED))}"),
        leased=these("SELECT task FROM work_leases"),
        behind=these(
            "SELECT b.task FROM blockers b JOIN tasks o ON o.stream = b.blocker "
            "WHERE o.closed_at_ms IS NULL AND o.deleted_at_ms IS NULL"
        ),
    )
    assert not (now.owned - before.owned) & before.behind
    assert not (now.leased - before.leased) & before.behind
    return now


def ev_p3_rows_carry_their_last_seq(crew: Crew) -> None:
    """Every row names the event that touched it last, which is of its own stream."""
    newest = crew.last_seq()
    for table in TABLES:
        ((most,),) = crew.bed.rows(f"SELECT coalesce(max(last_seq), 0) FROM {table}")
        assert 0 <= int(most or 0) <= newest
    strange = crew.bed.rows(
        "SELECT t.last_seq FROM tasks t WHERE NOT EXISTS "
        "(SELECT 1 FROM log l WHERE l.seq = t.last_seq AND l.stream = t.stream)"
    )
    assert strange == []
