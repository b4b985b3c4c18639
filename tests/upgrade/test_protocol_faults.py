"""What stops an upgrade before its commit, and what a look changes (U-17 … U-114)."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from tests.upgrade.scenes import (
    NAMES,
    Site,
    everything,
    examine,
    select,
    unpack,
)
from tfx.core import database
from tfx.errors import (
    AccessDenied,
    InvalidRequest,
    NotFound,
    OperationFailed,
    StateConflict,
)
from tfx.hub.schema import registry, steps
from tfx.hub.schema.outcome import Outcome, Tell
from tfx.upgrade import manifest, migrate, tasks
from tfx.upgrade.manifest import Stage
from tfx.upgrade.model import Phase, State, Task
from tfx.upgrade.reporter import Reporter


def test_u107_a_step_that_raises_or_loses_rows_leaves_the_old_database(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = unpack("3.1.0-dev.2", site.database)
    before = everything(path)
    real = steps.STEPS[1]

    def loses(connection: database.Connection, now_ms: int, tell: Tell) -> Outcome:
        outcome = real.transform(connection, now_ms, tell)
        connection.execute("INSERT INTO forgetting SELECT max(stream) FROM messages")
        connection.execute("DELETE FROM deliveries WHERE message IN (SELECT * FROM forgetting)")
        connection.execute("DELETE FROM messages WHERE stream IN (SELECT * FROM forgetting)")
        connection.execute("DELETE FROM log WHERE stream IN (SELECT * FROM forgetting)")
        connection.execute("DELETE FROM forgetting")
        return outcome

    def changes(connection: database.Connection, now_ms: int, tell: Tell) -> Outcome:
        outcome = real.transform(connection, now_ms, tell)
        [guard] = [o.sql for o in registry.objects_of(2) if "log_is_never_edited" in o.sql]
        connection.execute("DROP TRIGGER log_is_never_edited")
        connection.execute("UPDATE log SET payload = x'00' WHERE seq = 100")
        connection.execute(guard)
        return outcome

    def raises(connection: database.Connection, now_ms: int, tell: Tell) -> Outcome:
        real.transform(connection, now_ms, tell)
        raise apsw.SQLError("in the middle")

    broken_steps = ((loses, Phase.VERIFY), (changes, Phase.VERIFY), (raises, Phase.TRANSFORM))
    for transform, phase in broken_steps:
        broken = dataclasses.replace(real, transform=transform)
        monkeypatch.setattr(steps, "STEPS", {**steps.STEPS, 1: broken})
        with pytest.raises(OperationFailed):
            site.work(Task.UPGRADE)
        assert site.reporter.phase is phase
        assert site.reporter.backup_directory is not None
        assert everything(path) == before
    assert len(site.backups()) == 1, "a matching backup is reused (U-79)"


def test_u108_a_file_put_in_its_place_is_noticed_before_the_commit(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = unpack(NAMES[0], site.database)
    other = unpack(NAMES[1], site.home / "other.db")
    real = migrate.same_file

    def replaced(live: Path, inode: tuple[int, int]) -> None:
        if live == path and other.exists():
            other.replace(live)
        real(live, inode)

    monkeypatch.setattr(migrate, "same_file", replaced)
    with pytest.raises(StateConflict) as refused:
        site.work(Task.UPGRADE)
    assert refused.value.reason == "replaced"
    assert site.reporter.phase is Phase.COMMIT


def test_u108_a_writer_meanwhile_gets_busy(site: Site) -> None:
    path = unpack(NAMES[0], site.database)
    seen: list[str] = []

    def write(phase: Phase) -> None:
        if phase not in {Phase.BACKUP, Phase.TRANSFORM, Phase.COMMIT}:
            return
        program = (
            "import apsw\n"
            f"c = apsw.Connection({str(path)!r})\n"
            "try:\n    c.execute('DELETE FROM agents'); print('wrote')\n"
            "except apsw.BusyError:\n    print('busy')\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        seen.append(done.stdout.strip())

    site.on_phase = write
    assert site.work(Task.UPGRADE).state is State.UPGRADED
    assert seen == ["busy"] * len(seen)
    assert len(seen) == 4, "each of the two steps is a transformation"


def test_u110_a_backup_that_is_gone_before_the_commit_stops_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = unpack("3.1.0-dev.2", site.database)
    before = everything(path)
    real = migrate.same_file

    def gone(live: Path, inode: tuple[int, int]) -> None:
        shutil.rmtree(site.store)
        real(live, inode)

    monkeypatch.setattr(migrate, "same_file", gone)
    with pytest.raises(OperationFailed) as refused:
        site.work(Task.UPGRADE)
    assert refused.value.reason == "backup-gone"
    assert everything(path) == before


def test_u109_a_run_that_died_after_its_commit_is_finished_by_the_next(site: Site) -> None:
    path = unpack("3.1.0-dev.2", site.database)

    class Died(Exception):
        pass

    def die(phase: Phase) -> None:
        if phase is Phase.CONFIRM:
            raise Died

    site.on_phase = die
    with pytest.raises(Died):
        site.work(Task.UPGRADE)
    [directory] = site.backups()
    left = manifest.read(directory)
    assert left is not None
    assert left.stage is Stage.BACKED_UP
    site.on_phase = None
    receipt = site.work(Task.UPGRADE)
    assert (receipt.state, receipt.finished_earlier_run) == (State.CURRENT, True)
    done = manifest.read(directory)
    assert done is not None
    assert done.stage is Stage.DONE
    assert select(path, "PRAGMA auto_vacuum") == [(2,)]
    assert site.work(Task.UPGRADE).finished_earlier_run is False


def test_u112_a_missing_database_is_not_found_and_nothing_is_made(site: Site) -> None:
    with pytest.raises(NotFound):
        site.work(Task.UPGRADE)
    assert list(site.database.parent.iterdir()) == []
    assert not site.store.exists()


@pytest.mark.parametrize("damage", ["zero", "truncated", "page", "freelist"])
def test_u103_damage_is_found_before_anything_is_changed(site: Site, damage: str) -> None:
    path = unpack("3.1.0-dev.2", site.database)
    if damage == "zero":
        path.write_bytes(b"")
    elif damage == "truncated":
        os.truncate(path, path.stat().st_size // 2)
    elif damage == "page":
        with path.open("r+b") as file:
            for page in range(3, 300, 7):
                file.seek(page * 4096)
                file.write(b"\xa5" * 4096)
    else:
        with path.open("r+b") as file:
            file.seek(32)
            file.write((5).to_bytes(4, "big") + (900).to_bytes(4, "big"))
    before = path.read_bytes()
    with pytest.raises((OperationFailed, StateConflict)):
        site.work(Task.UPGRADE)
    assert path.read_bytes()[100:] == before[100:], "only the journal mode in the header may differ"
    assert site.reporter.backup_directory is None


def test_u17_a_rehearsal_leaves_the_live_file_as_it_was(site: Site) -> None:
    path = unpack("9.8.4", site.database)
    before, stamp = path.read_bytes(), path.stat().st_mtime_ns
    receipt = site.work(Task.REHEARSE)
    assert (receipt.state, receipt.backup_directory) == (State.REHEARSED, None)
    assert receipt.adopted is not None
    assert receipt.adopted.arrived["messages"] == 1_575
    assert receipt.space[0].needed_bytes > path.stat().st_size
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, stamp)
    assert not site.store.exists()
    assert [each.name for each in path.parent.iterdir()] == ["hub.db", "hub.db.lock"]


def test_u18_a_check_writes_nothing(site: Site) -> None:
    path = unpack("9.8.4", site.database)
    receipt = site.work(Task.CHECK)
    assert (receipt.state, receipt.pending) == (State.CHECKED, "older")
    assert [each.name for each in path.parent.iterdir()] == ["hub.db"]
    site.work(Task.UPGRADE)
    assert site.work(Task.CHECK).state is State.CURRENT


@pytest.mark.parametrize("name", ["with space", "quo'te", "ünïcode-한", "new\nline", "a%3fb?c#d"])
def test_u114_any_name_of_a_path_works(site: Site, name: str) -> None:
    place = site.home / name
    place.mkdir(mode=0o700)
    path = unpack(NAMES[0], place / "data base.db")
    request = site.request(Task.UPGRADE)
    receipt = tasks.run(
        dataclasses.replace(
            request, database=str(path), root=str(place), store=str(site.home / f"b {name}")
        ),
        Reporter(),
        examine,
        site.home,
    )
    assert receipt.state is State.UPGRADED


def test_u22_the_worker_refuses_relative_paths(site: Site) -> None:
    unpack(NAMES[0], site.database)
    good = site.request(Task.UPGRADE)
    for order in (
        dataclasses.replace(good, database="relative"),
        dataclasses.replace(good, store="relative"),
        dataclasses.replace(good, root="relative"),
    ):
        with pytest.raises(InvalidRequest):
            tasks.run(order, Reporter(), examine, site.home)


def test_u95_a_directory_that_others_may_write_is_refused(site: Site) -> None:
    unpack(NAMES[0], site.database)
    site.database.parent.chmod(0o770)
    with pytest.raises(AccessDenied):
        site.work(Task.UPGRADE)
