"""A quick share of the faults in each run, more behind the marker `faults`.

Every point and 200 kills of each kind: `python -m tests.faults.upgrade`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.faults import upgrade
from tests.upgrade.scenes import unpack
from tfx.upgrade.model import Line, Task

CASES = [(task, version) for version in upgrade.SOURCES for task in upgrade.tasks_from(version)]
CODES = ("disk-full", "io", None)


@pytest.mark.parametrize("version", upgrade.SOURCES)
@pytest.mark.parametrize("seed", range(3))
def test_u9_u88_a_killed_worker_leaves_the_old_or_the_new_database(
    tmp_path: Path, seed: int, version: int
) -> None:
    upgrade.kill_worker(tmp_path, seed, version)


@pytest.mark.parametrize("version", upgrade.SOURCES)
@pytest.mark.parametrize("seed", range(2))
def test_u9_u89_a_killed_parent_leaves_the_old_or_the_new_database(
    tmp_path: Path, seed: int, version: int
) -> None:
    upgrade.kill_parent(tmp_path, seed, version)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(("task", "version"), CASES)
def test_u10_u90_a_failing_disk_leaves_the_old_or_the_new_database(
    tmp_path: Path, task: Task, version: int, code: str | None
) -> None:
    stride = 67 if version == 1 else 31
    said = upgrade.sweep(tmp_path, task, code, stride=stride, first=3, version=version)
    assert sum(said.values()) >= 3
    assert set(said) != {"done"}


@pytest.mark.faults
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("version", upgrade.SOURCES)
def test_u9_u88_a_hundred_killed_workers(tmp_path: Path, version: int) -> None:
    for seed in range(1_000, 1_100):
        upgrade.kill_worker(tmp_path, seed, version)


@pytest.mark.faults
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("version", upgrade.SOURCES)
def test_u9_u89_a_hundred_killed_parents(tmp_path: Path, version: int) -> None:
    for seed in range(2_000, 2_100):
        upgrade.kill_parent(tmp_path, seed, version)


@pytest.mark.faults
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(("task", "version"), CASES)
def test_u10_every_seventh_point_at_which_a_disk_can_fail(
    tmp_path: Path, task: Task, version: int, code: str | None
) -> None:
    upgrade.sweep(tmp_path, task, code, stride=7, version=version)


@pytest.mark.parametrize("small", ["store", "database"])
def test_u90_u121_a_small_file_system_is_refused_before_anything_is_written(
    tmp_path: Path, small: str
) -> None:
    """A tiny tmpfs in a mount namespace of its own stands for a full disk (K-44)."""
    site = upgrade.site_in(tmp_path)
    kept = unpack("9.8.4", site.home / "kept.db")
    before = kept.read_bytes()
    place = site.store if small == "store" else site.database.parent
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    size = "2m" if small == "store" else "5m"
    script = (
        f"mount -t tmpfs -o size={size},mode=700 none '{place}' || exit 77; "
        f"cp '{kept}' '{site.database}' || exit 77; "
        f"'{sys.executable}' -m tfx.upgrade.worker; "
        f"cmp -i 100 '{kept}' '{site.database}' || exit 88"
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        input=msgspec.json.encode(site.request(Task.UPGRADE)),
        env=site.env,
        capture_output=True,
        check=False,
    )
    if done.returncode in {1, 77}:
        pytest.skip("no mount namespace for this user here")
    assert done.returncode == 0, "only the journal mode in the header may differ"
    failure = msgspec.json.decode(done.stdout.splitlines()[-1], type=Line).failure
    assert failure is not None
    assert (failure.code, failure.details["phase"]) == ("no-space", "space")
    assert failure.details["backup_directory"] is None
    assert kept.read_bytes() == before
