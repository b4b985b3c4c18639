"""What people see of tasks and leases: lists, one task with all it has, who holds what.

Draws typed answers; asks nobody. The board has a module of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfx.cli.tables import print_table, table_of
from tfx.cli.work.words import ago, lock_line, safe, standing, until
from tfx.hub.work_models import LeaseState

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfx.cli.output import Screen
    from tfx.hub.wire.leases import LeaseStatusResult
    from tfx.hub.wire.work import LeaseView, LockView, ReviewView, TaskListResult, TaskView

_TEXT_SHOWN: Final = 4_000


def show_list(screen: Screen, data: TaskListResult) -> None:
    """Draw a page of tasks as a table."""
    show_locks(screen, data.locks, data.locks_total)
    if not data.tasks:
        screen.line("no such task on this board", sign="info")
    else:
        table = table_of("task", "status", "prio", "title", "of", "review", "next")
        for task in data.tasks:
            table.add_row(
                str(task.task),
                task.status.value,
                str(task.priority),
                safe(task.title),
                task.holder or _given(task.agent_id or task.label),
                task.reviewer or "",
                standing(task.waits_for, ready=task.ready),
            )
        print_table(screen, table)
    if data.next_after is not None:
        screen.note(f"there are more: tfx task list --after {data.next_after}")


def show_locks(screen: Screen, locks: Sequence[LockView], total: int) -> None:
    """Draw what is locked, and how much more is."""
    for lock in locks:
        screen.line(lock_line(lock), sign="warn")
    if total > len(locks):
        screen.note(f"{total - len(locks)} more locks: tfx lease status")


def show_task(screen: Screen, task: TaskView) -> None:
    """Draw a task with all that belongs to it."""
    screen.line(f"#{task.task} {safe(task.title)}")
    facts = {name: safe(value) for name, value in _facts(task) if value}
    width = max(len(name) for name in facts)
    for name, value in facts.items():
        screen.line(f"  {name:<{width}}  {value}")
    for lock in task.locks:
        screen.line(f"  {lock_line(lock)}", sign="warn")
    older = task.artifacts_total - len(task.artifacts)
    if older:
        screen.line(f"  {older} older artifacts: tfx hub trace {task.trace_id}")
    for artifact in task.artifacts:
        by = f"by {artifact.attached_by}, {ago(artifact.attached_at_ms)}"
        screen.line(f"  {artifact.kind.value} {safe(artifact.identity)} ({by})")
    for title, text in (("note", task.note), ("detail", task.detail)):
        if text:
            screen.line(f"  {title}:")
            for line in text[:_TEXT_SHOWN].splitlines():
                screen.line(f"    {safe(line)}")
    if task.detail and len(task.detail) < task.detail_chars:
        screen.line(f"    … of {task.detail_chars} characters: tfx task show {task.task}")


def _given(name: str | None) -> str:
    return "" if name is None else f"({safe(name)})"


def _facts(task: TaskView) -> Iterator[tuple[str, str | None]]:
    waits = standing(task.waits_for, ready=task.ready)
    yield "status", f"{task.status.value} ({waits})" if waits else task.status.value
    yield "priority", str(task.priority)
    yield "by", f"{task.author}, {ago(task.created_at_ms)}"
    if task.assignee is not None:
        yield "of", task.assignee.label or task.assignee.agent_id
    if task.lease is not None:
        yield "lease", _lease_facts(task.lease)
    if task.review is not None:
        since = ago(task.review.created_at_ms)
        yield "review", f"{task.review.agent_id}, since {since} ({task.review.review_id})"
    yield "rounds", str(task.rounds) if task.rounds else None
    yield "part of", f"#{task.parent}" if task.parent is not None else None
    yield "comes after", ", ".join(f"#{each}" for each in task.blocked_by)
    yield "exclusive", task.exclusive
    yield "branch", task.branch
    yield "PR", task.pr
    yield "output", task.output
    yield "from", task.source_message or task.source_task
    yield "trace", task.trace_id
    yield "revision", f"{task.revision}, changed {ago(task.changed_at_ms)}"


def _lease_facts(lease: LeaseView) -> str:
    return (
        f"{lease.agent_id} holds it {until(lease)}, beat {ago(lease.last_beat_ms)}"
        f" (lease {lease.lease_id}, epoch {lease.epoch})"
    )


def show_claimed(screen: Screen, lease: LeaseView) -> None:
    """Draw a lease that somebody has now: what every later change has to name."""
    text = f"task {lease.task} is held by {lease.agent_id} {until(lease)}"
    screen.line(text, sign="ok")
    screen.line(f"  --lease {lease.lease_id} --epoch {lease.epoch}")


def show_leases(screen: Screen, data: LeaseStatusResult) -> None:
    """Draw leases with how they ended, reviews and locks."""
    for lock in data.locks:
        screen.line(lock_line(lock), sign="warn")
    if not (data.leases or data.reviews):
        screen.line("nobody holds anything", sign="info")
    for lease in data.leases:
        active = lease.state is LeaseState.ACTIVE
        screen.line(_lease_line(lease), sign="ok" if active else "info")
    for review in data.reviews:
        active = review.state is LeaseState.ACTIVE
        screen.line(_review_line(review), sign="ok" if active else "info")
    if data.more:
        screen.note("there is more: ask for a task, --lease or --of, or a greater --limit")


def _review_line(review: ReviewView) -> str:
    if review.state is LeaseState.ACTIVE:
        since = ago(review.created_at_ms)
        return f"{review.agent_id} reviews task {review.task}, since {since} ({review.review_id})"
    when = "" if review.ended_at_ms is None else f" {ago(review.ended_at_ms)}"
    why = f": {safe(review.reason)}" if review.reason else ""
    about = f"task {review.task}: the review of {review.agent_id} ({review.review_id})"
    return f"{about}, {review.state.value}{when}{why}"


def _lease_line(lease: LeaseView) -> str:
    about = f"task {lease.task}: {lease.agent_id}, epoch {lease.epoch}, lease {lease.lease_id}"
    if lease.state is LeaseState.ACTIVE:
        return f"{about}, {until(lease)}, beat {ago(lease.last_beat_ms)}"
    when = "" if lease.ended_at_ms is None else f" {ago(lease.ended_at_ms)}"
    why = f": {safe(lease.reason)}" if lease.reason else ""
    now = f"; now lease {lease.successor}" if lease.successor else ""
    return f"{about}, {lease.state.value}{when}{why}{now}"
