"""What holds for tasks, leases and reviews after every step, looked at in the file itself."""

from __future__ import annotations

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
    """A task in review has one reviewer at most, who is not the assignee."""
    rows = crew.bed.rows(
        "SELECT t.status, t.assignee, r.agent, count(*) FROM review_leases r "
        "JOIN tasks t ON t.stream = r.task WHERE r.status = 'active' GROUP BY r.task"
    )
    for status, assignee, reviewer, count in rows:
        assert (status, count) == ("in_review", 1)
        assert assignee != reviewer


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
