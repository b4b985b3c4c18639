"""Kill, starve and unplug upgrades, adoptions and restores; after each the database is whole.

    python -m tests.faults.upgrade [--kills N] [--stride N] [--seed N]

Every round leaves the complete old or the complete new database, and a second run ends well.
"""

from __future__ import annotations

import argparse
import contextlib
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

from tests.faults.disks import Disk
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
from tfx.core import locks
from tfx.errors import TfxError
from tfx.hub.schema import registry
from tfx.hub.schema.identity import identify
from tfx.hub.schema.registry import Verdict
from tfx.upgrade import run
from tfx.upgrade.model import Line, Phase, State, Task

_UPGRADE = (
    Phase.INSPECT, Phase.LIVENESS, Phase.PREFLIGHT, Phase.BACKUP, Phase.VERIFY_BACKUP,
    Phase.PREPARE, Phase.TRANSFORM, Phase.VERIFY, Phase.COMMIT, Phase.CONFIRM,
)  # fmt: skip
PHASES = {
    Task.UPGRADE: _UPGRADE,
    Task.ADOPT: (Phase.COPY, *_UPGRADE, Phase.PUBLISH),
    Task.RESTORE: (Phase.VERIFY_BACKUP, Phase.BACKUP, Phase.RESTORE, Phase.CONFIRM),
}
Rows = dict[str, list[tuple[object, ...]]]


def small(path: Path) -> Path:
    """Make a small database of version 1: every fault point of it can be tried."""
    change(
        empty_v1(path),
        *(agent(name, '["news"]') for name in ("ann", "bob")),
        *(message(f"m{n}", payload=f"'{json.dumps({'n': 'x' * 700})}'") for n in range(8)),
        "INSERT INTO message_inbox VALUES (1, 'm1', 'bob', NULL, NULL, 0)",
        "INSERT INTO dead_letters VALUES ('m2', 'ttl_expired', 5, 'late')",
    )
    path.chmod(0o600)
    return path


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
        if found is Verdict.CURRENT:
            counted = connection.execute(
                "SELECT (SELECT count(*) FROM messages), (SELECT count(*) FROM agents), "
                "(SELECT count(*) FROM human_requests)"
            ).fetchall()
            wanted = tuple(len(old[table]) for table in ("messages", "agents", "human_requests"))
            assert counted == [wanted]
            return "new"
    finally:
        connection.close()
    assert found is Verdict.OLDER, found
    assert everything(path) == old
    return "old"


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


def kill_worker(place: Path, seed: int) -> str:
    """SIGKILL the worker at a random moment of a random phase."""
    chance = random.Random(seed)
    task = chance.choice((Task.UPGRADE, Task.UPGRADE, Task.ADOPT, Task.RESTORE))
    site, file, old = _large(place, task, chance)
    before = everything(site.database) if site.database.exists() else None
    wanted, pause_s = chance.choice(PHASES[task]), chance.random() ** 2 * 0.08
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
        if line.progress is not None and line.progress.phase is wanted:
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


def _large(place: Path, task: Task, chance: random.Random) -> tuple[Site, Path | None, Rows]:
    site = site_in(place)
    name = chance.choice(NAMES)
    if task is Task.ADOPT:
        source = unpack(name, site.triflux)
        return site, source, everything(source)
    unpack(name, site.database)
    old = everything(site.database)
    if task is Task.RESTORE:
        directory = Path(site.work(Task.UPGRADE).backup_directory or "")
        site.now_ms += 60_000
        return site, directory, old
    return site, None, old


def kill_parent(place: Path, seed: int) -> str:
    """SIGKILL the command at a random moment; its worker ends by itself."""
    chance = random.Random(seed)
    site = site_in(place)
    unpack(chance.choice(NAMES), site.database)
    old = everything(site.database)
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
    """Wait until the orphaned worker has ended; it may not have taken the lock yet."""
    home = str(site.home)
    for each in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if run.MODULE in each.cmdline() and each.environ().get("HOME") == home:
                each.wait(60)


def _wait_for_lock(site: Site) -> None:
    assert locks.wait_until_free(site.database.with_name("hub.db.lock"), 60)


# --------------------------------------------------------------------------------- disks


def prepared(place: Path, task: Task) -> tuple[Site, Path | None, Rows]:
    """Return a site where a task can be done, its file, and the rows of version 1."""
    site = site_in(place)
    if task is Task.ADOPT:
        source = small(site.triflux)
        return site, source, everything(source)
    small(site.database)
    old = everything(site.database)
    if task is Task.RESTORE:
        directory = Path(site.work(Task.UPGRADE).backup_directory or "")
        site.now_ms += 60_000
        return site, directory, old
    return site, None, old


def operations_of(place: Path, task: Task) -> int:
    """Return how many writes, syncs, truncations and deletions a whole run has."""
    site, file, _ = prepared(place, task)
    disk = Disk()
    try:
        site.vfs = disk.label
        site.work(task, file)
    finally:
        disk.unregister()
    return disk.count


def fail_at(place: Path, task: Task, number: int, code: str | None, seed: int = 0) -> str:
    """Let the n-th operation fail, or the power go at it; return what the run said."""
    site, file, old = prepared(place, task)
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


def sweep(place: Path, task: Task, code: str | None, stride: int, first: int = 1) -> Counter[str]:
    """Try every `stride`-th fault point from the first to behind the last."""
    total = operations_of(place, task)
    said: Counter[str] = Counter()
    for number in range(first, total + 1, stride):
        said[fail_at(place, task, number, code, number)] += 1
    return said


def main() -> int:
    """Run everything and print one line for each kind of fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    rounds: tuple[tuple[str, Callable[[Path, int], str], int], ...] = (
        ("SIGKILL of the worker", kill_worker, wanted.kills),
        ("SIGKILL of the parent", kill_parent, wanted.kills),
    )
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for title, kill, number in rounds:
            seen = Counter(kill(place, wanted.seed + each) for each in range(number))
            print(f"{title}: {number} rounds, all whole: {dict(sorted(seen.items()))}", flush=True)
        for task in (Task.UPGRADE, Task.ADOPT, Task.RESTORE):
            for code in ("disk-full", "io", None):
                said = sweep(place, task, code, wanted.stride)
                what = code or "power loss"
                print(
                    f"{task}, {what}: {sum(said.values())} points, all whole: {dict(said)}",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
