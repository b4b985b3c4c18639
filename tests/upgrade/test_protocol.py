"""The protocol in place: phases, backups, restart by rule, refusals that touch nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.upgrade.scenes import (
    NAMES,
    Site,
    change,
    empty_v1,
    everything,
    message,
    select,
    sha256,
    unpack,
)
from tfx.core import database, locks
from tfx.errors import (
    Exit,
    LockHeld,
    StateConflict,
)
from tfx.hub.schema import registry
from tfx.upgrade import manifest
from tfx.upgrade.manifest import Stage
from tfx.upgrade.model import Phase, State, Task


def current(path: Path) -> Path:
    connection = database.open_writer(path, create=True)
    registry.create(connection)
    connection.close()
    path.chmod(0o600)
    return path


def test_must_show_v1_is_upgraded_and_a_second_run_changes_nothing(site: Site) -> None:
    path = unpack("3.1.0-dev.2", site.database)
    inode = path.stat().st_ino
    receipt = site.work(Task.UPGRADE)
    assert (receipt.state, receipt.from_version, receipt.to_version) == (
        State.UPGRADED,
        1,
        registry.CURRENT,
    )
    assert receipt.from_schema_hash == registry.HASHES[1]
    assert receipt.to_schema_hash == registry.HASHES[registry.CURRENT]
    assert receipt.rows["messages"].before == receipt.rows["messages"].after == 1_575
    assert [each.phase for each in receipt.phases][-1] is Phase.CONFIRM
    assert path.stat().st_ino == inode
    assert select(path, "PRAGMA auto_vacuum") == [(2,)]
    stamp = path.stat().st_mtime_ns
    listing = site.backups()
    again = site.work(Task.UPGRADE)
    assert (again.state, again.backup_directory) == (State.CURRENT, None)
    assert path.stat().st_mtime_ns == stamp
    assert site.backups() == listing
    assert [each.name for each in path.parent.iterdir()] == ["hub.db", "hub.db.lock"]


def test_u74_u75_a_backup_is_private_immutable_and_says_what_it_is(site: Site) -> None:
    path = unpack("9.8.4", site.database)
    before = everything(path)
    receipt = site.work(Task.UPGRADE)
    [directory] = site.backups()
    assert receipt.backup_directory == str(directory)
    assert directory.stat().st_mode & 0o777 == 0o700
    found = manifest.read(directory)
    assert found is not None
    assert found.stage is Stage.DONE
    kept = directory / found.file
    assert kept.stat().st_mode & 0o777 == 0o400
    assert (directory / manifest.NAME).stat().st_mode & 0o777 == 0o600
    assert sha256(kept) == found.sha256 == receipt.backup_sha256
    assert everything(kept) == before
    assert found.rows["assign_jobs"] == 225
    assert (found.from_version, found.to_version) == (1, registry.CURRENT)


def test_u99_rows_that_lie_only_in_the_wal_are_preserved_and_wal_comes_back(site: Site) -> None:
    path = empty_v1(site.database)
    program = (
        "import apsw, os, sys\n"
        f"c = apsw.Connection({str(path)!r})\n"
        "c.pragma('journal_mode', 'WAL')\n"
        f'c.execute("""{message("from-the-wal")}""")\n'
        "os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    assert path.with_name("hub.db-wal").stat().st_size > 0
    site.work(Task.UPGRADE)
    assert select(path, "SELECT id FROM messages") == [("from-the-wal",)]
    assert select(path, "PRAGMA journal_mode") == [("wal",)]


def test_u99_a_reader_that_has_it_open_is_named(site: Site) -> None:
    path = empty_v1(site.database)
    change(path, "PRAGMA journal_mode = WAL", message("m"))
    program = (
        "import apsw, sys\n"
        f"c = apsw.Connection({str(path)!r})\n"
        "c.execute('SELECT * FROM messages').fetchall()\n"
        "print('open', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as reader:
        assert reader.stdout is not None
        reader.stdout.readline()
        with pytest.raises(StateConflict) as refused:
            site.work(Task.UPGRADE)
        reader.communicate()
    assert (refused.value.reason, refused.value.exit) == ("in-use", Exit.REFUSED)
    assert refused.value.details["pids"] == [reader.pid]
    assert site.backups() == []
    assert site.work(Task.UPGRADE).state is State.UPGRADED


def test_u99_a_hot_rollback_journal_is_rolled_back_first(site: Site) -> None:
    path = empty_v1(site.database)
    change(path, message("kept"))
    program = (
        "import apsw, os\n"
        f"c = apsw.Connection({str(path)!r})\n"
        "c.pragma('cache_size', 1)\n"
        "c.execute('BEGIN')\n"
        "for n in range(400):\n"
        f'    c.execute("""{message("lost")}""".replace("lost", f"lost{{n}}" + "x" * 500))\n'
        "os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    assert path.with_name("hub.db-journal").stat().st_size > 0
    site.work(Task.UPGRADE)
    assert select(path, "SELECT id FROM messages") == [("kept",)]


@pytest.mark.parametrize(
    ("statements", "code"),
    [
        (("UPDATE stamp SET schema_version = 99",), "schema-newer"),
        (("UPDATE stamp SET fold_version = 99",), "schema-newer"),
        (("CREATE TABLE extra (a)",), "schema-tampered"),
        (("DROP INDEX deliveries_due",), "schema-tampered"),
        (
            ("CREATE TRIGGER x AFTER INSERT ON log BEGIN SELECT 1; END",),
            "schema-tampered",
        ),
        (
            ("ALTER TABLE beats ADD COLUMN more INTEGER",),
            "schema-tampered",
        ),
        (("DROP TRIGGER stamp_stays", "DELETE FROM stamp"), "schema-unknown"),
        (("DROP TABLE beats",), "schema-tampered"),
        (
            ("PRAGMA ignore_check_constraints = 1", "UPDATE stamp SET schema_hash = 'zz'"),
            "schema-tampered",
        ),
    ],
)
def test_u6_u100_u101_what_is_newer_unknown_or_tampered_is_refused_before_anything_is_made(
    site: Site, statements: tuple[str, ...], code: str
) -> None:
    path = current(site.database)
    change(path, *statements)
    before = path.read_bytes()
    with pytest.raises(StateConflict) as refused:
        site.work(Task.UPGRADE)
    assert (refused.value.reason, refused.value.exit) == (code, Exit.REFUSED)
    assert path.read_bytes() == before
    assert not site.store.exists()
    assert site.reporter.backup_directory is None


def test_u13_another_fold_version_is_backed_up_and_refolded(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpack("4.2.9", site.database)
    site.work(Task.UPGRADE)
    path = site.database
    change(path, "UPDATE deliveries SET attempts = attempts + 1")
    monkeypatch.setattr(registry, "FOLD", registry.FOLD + 1)
    site.now_ms += 60_000
    receipt = site.work(Task.UPGRADE)
    assert (receipt.state, receipt.from_version) == (State.UPGRADED, registry.CURRENT)
    assert receipt.backup_directory is not None
    assert select(path, "SELECT sum(attempts) FROM deliveries") == [(0,)]
    assert select(path, "SELECT fold_version FROM stamp") == [(registry.FOLD,)]
    assert site.work(Task.UPGRADE).state is State.CURRENT


def test_u96_a_held_lock_refuses_and_a_stale_file_does_not(site: Site) -> None:
    path = unpack(NAMES[0], site.database)
    before = path.read_bytes()
    lock = locks.try_lock(path.with_name("hub.db.lock"), "hub")
    assert lock is not None
    with lock, pytest.raises(StateConflict) as refused:
        site.work(Task.UPGRADE)
    assert refused.value.reason == "hub-running"
    assert path.read_bytes() == before
    path.with_name("hub.db.lock").write_text('{"purpose":"hub","pid":1}')
    assert site.work(Task.UPGRADE).state is State.UPGRADED


def test_u98_another_name_of_the_database_has_the_same_lock(site: Site, tmp_path: Path) -> None:
    unpack(NAMES[0], site.database)
    link = tmp_path / "link.db"
    link.symlink_to(site.database)
    lock = locks.try_lock(site.database.with_name("hub.db.lock"), "upgrade")
    assert lock is not None
    with lock:
        answer = site.tfx("upgrade", "--db", str(link), code=5)
    problems = answer["problems"]
    assert isinstance(problems, list)
    assert problems[0]["code"] == LockHeld.code
