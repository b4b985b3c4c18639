"""A quick share of the faults in each run; all of them behind the marker `faults`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import upgrade
from tfx.upgrade.model import Task

TASKS = (Task.UPGRADE, Task.ADOPT, Task.RESTORE)
CODES = ("disk-full", "io", None)


@pytest.mark.parametrize("seed", range(4))
def test_u9_u88_a_killed_worker_leaves_the_old_or_the_new_database(
    tmp_path: Path, seed: int
) -> None:
    upgrade.kill_worker(tmp_path, seed)


@pytest.mark.parametrize("seed", range(2))
def test_u9_u89_a_killed_parent_leaves_the_old_or_the_new_database(
    tmp_path: Path, seed: int
) -> None:
    upgrade.kill_parent(tmp_path, seed)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("task", TASKS)
def test_u10_u90_a_failing_disk_leaves_the_old_or_the_new_database(
    tmp_path: Path, task: Task, code: str | None
) -> None:
    said = upgrade.sweep(tmp_path, task, code, stride=29, first=3)
    assert sum(said.values()) > 3
    assert set(said) != {"done"}


@pytest.mark.faults
@pytest.mark.timeout(3_600)
def test_u9_u88_two_hundred_killed_workers(tmp_path: Path) -> None:
    for seed in range(1_000, 1_200):
        upgrade.kill_worker(tmp_path, seed)


@pytest.mark.faults
@pytest.mark.timeout(3_600)
def test_u9_u89_two_hundred_killed_parents(tmp_path: Path) -> None:
    for seed in range(2_000, 2_200):
        upgrade.kill_parent(tmp_path, seed)


@pytest.mark.faults
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("task", TASKS)
def test_u10_every_point_at_which_a_disk_can_fail(
    tmp_path: Path, task: Task, code: str | None
) -> None:
    upgrade.sweep(tmp_path, task, code, stride=1)
