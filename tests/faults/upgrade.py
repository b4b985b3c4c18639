"""Kill, starve and unplug upgrades, adoptions and restores; after each the database is whole.

    python -m tests.faults.upgrade [--kills N] [--stride N] [--seed N] [--from VERSION]...

Every round leaves the complete old or the complete new database, and a second run ends well. The
sources are triflux's databases and those of every version of our own before this one.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import apsw
import msgspec
import psutil

from tests.faults.disks import ERRORS, Disk
from tests.upgrade.scenes import (
    NAMES,
    Site,
    agent,
    change,
    empty_v1,
    everything,
    message,
    select,
    unpack,
)
from tests.upgrade.version2 import FROZEN, filled_v2, unpack_v2
from tfx.core import locks
from tfx.errors import TfxError
from tfx.hub.schema import from_v2, registry
from tfx.hub.schema.identity import identify
from tfx.hub.schema.registry import Verdict
from tfx.upgrade import run
from tfx.upgrade.model import Line, Phase, State, Task

_UPGRADE = (
    Phase.INSPECT, Phase.LIVENESS, Phase.PREFLIGHT, Phase.BACKUP, Phase.VERIFY_BACKUP,
    Phase.PREPARE, Phase.TRANSFORM, Phase.VERIFY, Phase.COMMIT, Phase.CONFIRM,
)  # fmt: skip
_TWICE = (Phase.TRANSFORM, Phase.VERIFY)
"""Phases that each step of a chain enters."""
PHASES = {
    Task.UPGRADE: _UPGRADE,
    Task.ADOPT: (Phase.COPY, *_UPGRADE, Phase.PUBLISH),
    Task.RESTORE: (Phase.VERIFY_BACKUP, Phase.BACKUP, Phase.RESTORE, Phase.CONFIRM),
}
SOURCES = tuple(range(1, registry.CURRENT))
"""The versions that are upgraded."""
LARGE = 4_000
Rows = dict[str, list[tuple[object, ...]]]


def small(path: Path, version: int = 1) -> Path:
    """Make a small database of a version: every fault point of it can be tried."""
    if version != 1:
        return filled_v2(path, 12)
    change(
        empty_v1(path),
        *(agent(name, '["news"]') for name in ("ann", "bob")),
        *(message(f"m{n}", payload=f"'{json.dumps({'n': 'x' * 700})}'") for n in range(8)),
        "INSERT INTO message_inbox VALUES (1, 'm1', 'bob', NULL, NULL, 0)",
        "INSERT INTO dead_letters VALUES ('m2', 'ttl_expired', 5, 'late')",
    )
    path.chmod(0o600)
    return path


def rows_in(path: Path) -> Rows:
    """Return every row of a database whose WAL, if any, stays beside it."""
    with tempfile.TemporaryDirectory() as name:
        for each in path.parent.glob(f"{path.name}*"):
            shutil.copy2(each, name)
        return everything(Path(name) / path.name)


def site_in(place: Path) -> Site:
    """Make a home without anything in it."""
    home = place / "home"
    shutil.rmtree(home, ignore_errors=True)
    made = Site(home)
    made.database.parent.mkdir(parents=True, mode=0o700)
    return made


def verdict_of(path: Path, old: Rows) -> str:
    """Return `old` or `new`; raises AssertionError for anything between."""
    connection = apsw.Connection(str(path))  # recovers what a crash left, as any opener would
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        found = registry.judge(identify(connection)).verdict
    finally:
        connection.close()
    if found is Verdict.CURRENT:
        assert _arrived(path, old)
        return "new"
    assert found is Verdict.OLDER, found
    assert everything(path) == old
    return "old"


def _arrived(path: Path, old: Rows) -> bool:
    """Return True when the old rows are in a database of this version."""
    now = everything(path)
    if "log" in old:
        return all(now[table] == old[table] for table in (*from_v2.KEPT, "sqlite_sequence"))
    counted = ("messages", "agents", "human_requests")
    return all(len(now[table]) == len(old[table]) for table in counted)


def ends_well(site: Site, task: Task, file: Path | None, old: Rows) -> None:
    """Run again without any fault."""
    site.vfs = None
    site.now_ms += 60_000
    if task is Task.ADOPT and site.database.exists():
        task, file = Task.UPGRADE, None  # it arrived before the fault: a second one is refused
    receipt = site.work(task, file)
    if task is Task.RESTORE:
        assert receipt.state is State.RESTORED
        assert everything(site.database) == old
        return
    assert receipt.state in {State.UPGRADED, State.CURRENT}
    assert verdict_of(site.database, old) == "new"
    rests = [p.name for p in site.database.parent.iterdir() if p.name.startswith(".")]
    assert rests == []
    partial = list(site.store.rglob(".*.partial"))
    assert partial == []


# ---------------------------------------------------------------------------------- kills


def kill_worker(place: Path, seed: int, version: int = 1) -> str:
    """SIGKILL the worker at a random moment of a random phase."""
    chance = random.Random(seed)
    other = Task.ADOPT if version == 1 else Task.UPGRADE
    task = chance.choice((Task.UPGRADE, Task.UPGRADE, other, Task.RESTORE))
    site, file, old = _large(place, task, chance, version)
    before = rows_in(site.database) if site.database.exists() else None
    wanted, pause_s = chance.choice(PHASES[task]), chance.random() ** 2 * 0.08
    times, last = 1 + (wanted in _TWICE and version == 1 and chance.random() < 0.5), None
    child = subprocess.Popen(
        run.worker_argv(), env=site.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, process_group=0,
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(msgspec.json.encode(site.request(task, file)))
    child.stdin.close()
    for raw in child.stdout:
        line = msgspec.json.decode(raw, type=Line)
        if line.progress is None:
            break
        times -= line.progress.phase is wanted and last is not wanted
        last = line.progress.phase
        if not times:
            time.sleep(pause_s)
            break
    with contextlib.suppress(ProcessLookupError):
        os.kill(child.pid, signal.SIGKILL)
    child.stdout.close()
    child.wait()
    _wait_for_lock(site)
    found = "absent"
    if task is Task.RESTORE:
        now = everything(site.database)
        assert now in (before, old)
        found = "restored" if now == old else "kept"
    elif site.database.exists():
        found = verdict_of(site.database, old)
    if task is Task.ADOPT and file is not None:
        assert everything(file) == old
    ends_well(site, task, file, old)
    return f"{task.value}, {wanted.value}: {found}"


def _large(
    place: Path, task: Task, chance: random.Random, version: int
) -> tuple[Site, Path | None, Rows]:
    site = site_in(place)
    if task is Task.ADOPT:
        source = unpack(chance.choice(NAMES), site.triflux)
        return site, source, everything(source)
    _unpack_large(site.database, chance, version)
    old = rows_in(site.database)
    if task is Task.RESTORE:
        directory = Path(site.work(Task.UPGRADE).backup_directory or "")
        site.now_ms += 60_000
        return site, directory, old
    return site, None, old


def _unpack_large(path: Path, chance: random.Random, version: int) -> None:
    if version == 1:
        unpack(chance.choice(NAMES), path)
        return
    name = chance.choice((*FROZEN, None))
    if name is None:
        filled_v2(path, LARGE)
    else:
        unpack_v2(name, path)


def kill_parent(place: Path, seed: int, version: int = 1) -> str:
    """SIGKILL the command at a random moment; its worker ends by itself."""
    chance = random.Random(seed)
    site = site_in(place)
    _unpack_large(site.database, chance, version)
    old = rows_in(site.database)
    child = subprocess.Popen(
        [sys.executable, "-m", "tfx", "upgrade", "--json"], env=site.env, cwd=site.home,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    time.sleep(chance.random() * 1.2)
    child.kill()
    child.wait()
    _wait_for_workers(site)
    found = verdict_of(site.database, old)
    ends_well(site, Task.UPGRADE, None, old)
    return f"parent: {found}"


def _wait_for_workers(site: Site) -> None:
    """Wait until the orphaned worker has ended.

    It may not have taken the lock yet, nor even come to be called a worker.
    """
    home = str(site.home)
    until = time.monotonic() + 120
    while left := [each for each in psutil.process_iter() if _is_in(home, each)]:
        assert time.monotonic() < until, left
        time.sleep(0.02)


def _is_in(home: str, process: psutil.Process) -> bool:
    try:
        gone = process.status() == psutil.STATUS_ZOMBIE
        return not gone and process.environ().get("HOME") == home
    except psutil.Error:
        return False


def _wait_for_lock(site: Site) -> None:
    assert locks.wait_until_free(site.database.with_name("hub.db.lock"), 60)


# --------------------------------------------------------------------------------- disks


def tasks_from(version: int) -> tuple[Task, ...]:
    """Return what can be done with a database of a version; only triflux's is adopted."""
    own = (Task.UPGRADE, Task.RESTORE)
    return (*own, Task.ADOPT) if version == 1 else own


def prepared(place: Path, task: Task, version: int) -> tuple[Site, Path | None, Rows]:
    """Return a site where a task can be done, its file, and the old rows."""
    site = site_in(place)
    if task is Task.ADOPT:
        source = small(site.triflux)
        return site, source, everything(source)
    small(site.database, version)
    old = everything(site.database)
    if task is Task.RESTORE:
        directory = Path(site.work(Task.UPGRADE).backup_directory or "")
        site.now_ms += 60_000
        return site, directory, old
    return site, None, old


def operations_of(place: Path, task: Task, version: int) -> int:
    """Return how many writes, syncs, truncations and deletions a whole run has."""
    site, file, _ = prepared(place, task, version)
    disk = Disk()
    try:
        site.vfs = disk.label
        site.work(task, file)
    finally:
        disk.unregister()
    return disk.count


def fail_at(
    place: Path, task: Task, number: int, code: str | None, seed: int = 0, version: int = 1
) -> str:
    """Let the n-th operation fail, or the power go at it; return what the run said."""
    site, file, old = prepared(place, task, version)
    before = everything(site.database) if site.database.exists() else None
    disk = Disk(number, code)
    said = "done"
    try:
        site.vfs = disk.label
        site.work(task, file)
    except TfxError as error:
        said = error.reason
        _check_backup_named(site)
    finally:
        disk.unregister()
    if code is None:
        disk.lose(seed)
    if file is not None and task is Task.ADOPT:
        assert everything(file) == old
    if site.database.exists():
        if task is Task.RESTORE:
            assert everything(site.database) in (before, old)
        else:
            verdict_of(site.database, old)
    ends_well(site, task, file, old)
    return said


def _check_backup_named(site: Site) -> None:
    """A backup that an error names is there and verified (U-3)."""
    named = site.reporter.backup_directory
    if named is not None:
        [kept] = Path(named).glob("*.db")
        assert select(kept, "PRAGMA integrity_check") == [("ok",)]


def sweep(
    place: Path, task: Task, code: str | None, stride: int, first: int = 1, version: int = 1
) -> Counter[str]:
    """Try every `stride`-th fault point from the first to behind the last."""
    total = operations_of(place, task, version)
    said: Counter[str] = Counter()
    for number in range(first, total + 1, stride):
        said[fail_at(place, task, number, code, number, version)] += 1
    return said


def main() -> int:
    """Run everything and print one line for each kind of fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", dest="versions", type=int, nargs="*", default=list(SOURCES))
    wanted = parser.parse_args()
    rounds: tuple[tuple[str, Callable[[Path, int, int], str]], ...] = (
        ("SIGKILL of the worker", kill_worker),
        ("SIGKILL of the parent", kill_parent),
    )
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for version in wanted.versions:
            for title, kill in rounds:
                seen = Counter(
                    kill(place, wanted.seed + each, version) for each in range(wanted.kills)
                )
                print(
                    f"from {version}, {title}: {wanted.kills} rounds, all whole: "
                    f"{dict(sorted(seen.items()))}",
                    flush=True,
                )
            for task, code in itertools.product(tasks_from(version), (*ERRORS, None)):
                said = sweep(place, task, code, wanted.stride, version=version)
                print(
                    f"from {version}, {task}, {code or 'power loss'}: {sum(said.values())} points, "
                    f"all whole: {dict(said)}",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
