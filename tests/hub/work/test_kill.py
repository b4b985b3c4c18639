"""kill -9 at every statement of a change: before it or after it, never between (EV-P1, WK-L18)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.hub.store.test_rebuild import refolds_to_itself
from tests.hub.work.killing import DEEDS, die_at, prepare
from tfx.core import database

OWNED = {"assigned", "in_progress", "blocked", "in_review"}
Owners = tuple[tuple[object, ...], ...]


def state(path: Path) -> Owners:
    """Every task with its owner and its active lease, and every lease with how it stands."""
    connection = database.open_writer(path)  # as a hub that starts again opens it
    try:
        rows = connection.execute(
            "SELECT t.number, t.status, t.assignee, l.agent, l.epoch FROM tasks t "
            "LEFT JOIN work_leases l ON l.task = t.stream AND l.status = 'active' "
            "ORDER BY t.number, l.epoch"
        ).fetchall()
        history = connection.execute(
            "SELECT t.number, l.epoch, l.agent, l.status FROM work_leases l "
            "JOIN tasks t ON t.stream = l.task ORDER BY t.number, l.epoch"
        ).fetchall()
    finally:
        connection.close()
    assert [row[0] for row in rows] == [1, 2]  # a task has one row: one owner or none
    for _, status, assignee, agent, _ in rows:
        assert agent is None or (status in OWNED and assignee == agent)
    return (*rows, *history)


def told(path: Path) -> int:
    """How many notices of lost or handed leases are stored."""
    connection = database.open_reader(path)
    try:
        ((count,),) = connection.execute(
            "SELECT count(*) FROM messages WHERE topic LIKE 'work.%'"
        ).fetchall()
    finally:
        connection.close()
    return int(count or 0)


def outcomes(tmp_path: Path, deed: str, fault: str) -> tuple[int, dict[Owners, set[int]]]:
    """Kill a deed at each fault point in turn; return how many there are, and what was found."""
    made = tmp_path / "made.db"
    sessions = prepare(made)
    found: dict[Owners, set[int]] = {state(made): {told(made)}}
    number = 0
    killed = True
    while killed:
        number += 1
        path = tmp_path / f"{deed}-{number}" / "hub.db"
        path.parent.mkdir()
        shutil.copy(made, path)
        killed = die_at(path, sessions, deed, fault, number)
        found.setdefault(state(path), set()).add(told(path))
        refolds_to_itself(path)
        shutil.rmtree(path.parent)
    return number - 1, found


@pytest.mark.parametrize("deed", DEEDS)
def test_ev_b11_killed_at_any_statement_a_task_has_its_owner_of_before_or_after(
    tmp_path: Path, deed: str
) -> None:
    points, found = outcomes(tmp_path, deed, "statement")
    assert points > 4
    assert len(found) == 2, found  # before and after: nothing else
    assert all(len(notices) == 1 for notices in found.values())  # the notice goes with the change


@pytest.mark.faults
@pytest.mark.parametrize("deed", DEEDS)
def test_ev_b11_killed_at_any_write_to_the_disk_too(tmp_path: Path, deed: str) -> None:
    points, found = outcomes(tmp_path, deed, "disk")
    assert points > 2
    assert len(found) == 2, found
    assert all(len(notices) == 1 for notices in found.values())
