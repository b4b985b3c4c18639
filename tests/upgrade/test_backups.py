"""Backups: made, listed, verified, thinned and restored; none is believed without its digest."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from tests.upgrade.scenes import NAMES, Site, change, everything, select, unpack
from tfx.core.paths import Paths
from tfx.errors import InvalidRequest, NotFound, OperationFailed
from tfx.upgrade import backup, manifest, shelf
from tfx.upgrade.manifest import Stage
from tfx.upgrade.model import Phase, Receipt, State, Task
from tfx.upgrade.shelf import Health


def upgraded(site: Site, name: str = "9.8.4") -> tuple[dict[str, list[tuple[object, ...]]], Path]:
    """Return every row of the database before its upgrade, and the backup."""
    unpack(name, site.database)
    before = everything(site.database)
    receipt = site.work(Task.UPGRADE)
    return before, Path(receipt.backup_directory or "")


@pytest.mark.parametrize("name", NAMES)
def test_must_show_a_restore_brings_back_equal_rows_and_backs_up_first(
    site: Site, name: str
) -> None:
    before, directory = upgraded(site, name)
    after = everything(site.database)
    inode = site.database.stat().st_ino
    site.now_ms += 5_000
    receipt = site.work(Task.RESTORE, directory)
    assert (receipt.state, receipt.to_version) == (State.RESTORED, 1)
    assert receipt.restored_from == str(directory)
    assert everything(site.database) == before
    assert site.database.stat().st_ino == inode
    assert "delivered again" in receipt.notes[0]
    safe = Path(receipt.backup_directory or "")
    found = manifest.read(safe)
    assert found is not None
    assert (found.reason, found.stage) == ("pre-restore", Stage.DONE)
    assert everything(safe / found.file) == after
    assert site.work(Task.UPGRADE).state is State.UPGRADED


def test_u82_a_database_that_is_gone_is_restored(site: Site) -> None:
    before, directory = upgraded(site)
    site.database.unlink()
    receipt = site.work(Task.RESTORE, directory)
    assert receipt.backup_directory is None
    assert everything(site.database) == before
    assert site.database.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("phase", [Phase.BACKUP, Phase.VERIFY_BACKUP, Phase.RESTORE])
def test_u88_a_restore_that_dies_leaves_the_database(site: Site, phase: Phase) -> None:
    before, directory = upgraded(site)
    now = everything(site.database)

    class Died(Exception):
        pass

    def die(entered: Phase) -> None:
        if entered is phase:
            raise Died

    site.on_phase = die
    with pytest.raises(Died):
        site.work(Task.RESTORE, directory)
    assert everything(site.database) == now
    site.on_phase = None
    site.work(Task.RESTORE, directory)
    assert everything(site.database) == before


def tampered(directory: Path, how: str) -> None:
    found = manifest.read(directory)
    assert found is not None
    file = directory / found.file
    if how == "gone":
        file.unlink()
        return
    file.chmod(0o600)
    if how == "truncated":
        os.truncate(file, file.stat().st_size - 4096)
    elif how == "byte":
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
    else:
        change(file, "CREATE TRIGGER evil AFTER INSERT ON agents BEGIN SELECT 1; END")


@pytest.mark.parametrize("how", ["gone", "truncated", "byte", "sql"])
def test_u77_a_tampered_backup_is_never_restored_or_blessed(site: Site, how: str) -> None:
    _, directory = upgraded(site)
    tampered(directory, how)
    before = everything(site.database)
    with pytest.raises((OperationFailed, NotFound)):
        site.work(Task.RESTORE, directory)
    assert everything(site.database) == before
    answer = site.tfx("backup", "verify", code=1)
    problems = answer["problems"]
    assert isinstance(problems, list)
    assert problems[0]["code"] in {"backup-changed", "no-backup"}


def test_u76_the_list_tells_sound_unfinished_and_damaged_apart(site: Site) -> None:
    _, directory = upgraded(site)
    site.now_ms += 1_000
    second = Path(site.work(Task.BACKUP).backup_directory or "")
    pending = site.store / "hub-pending"
    pending.mkdir()
    found = manifest.read(directory)
    assert found is not None
    manifest.write(pending, dataclasses.replace(found, stage=Stage.PENDING, made_at_ms=0))
    tampered(directory, "truncated")
    (site.store / "junk").mkdir()
    listed = shelf.listed(site.store)
    health = {Path(row.directory).name: row.health for row in listed.data.backups}
    assert health == {
        directory.name: Health.DAMAGED,
        second.name: Health.SOUND,
        "hub-pending": Health.UNVERIFIED,
        "junk": Health.DAMAGED,
    }
    assert listed.exit == 0, "a damaged backup is a warning"
    with pytest.raises(InvalidRequest):
        site.work(Task.RESTORE, pending)


def test_u78_thinning_keeps_the_newest_the_first_of_each_schema_and_unfinished_ones(
    site: Site,
) -> None:
    _, first = upgraded(site)
    made: list[Receipt] = []
    for _ in range(5):
        site.now_ms += 1_000
        made.append(site.work(Task.BACKUP))
    names = [Path(each.backup_directory or "") for each in made]
    stalled = manifest.read(names[1])
    assert stalled is not None
    manifest.write(names[1], dataclasses.replace(stalled, stage=Stage.BACKED_UP))
    would = shelf.prune(site.store, site.database, 1, dry_run=True)
    gone = shelf.prune(site.store, site.database, 1, dry_run=False)
    assert would.data.removed == gone.data.removed
    assert site.backups() == sorted([first, names[0], names[1], names[4]])


def test_u79_what_dead_runs_left_goes_and_what_living_ones_make_stays(site: Site) -> None:
    _, directory = upgraded(site, NAMES[0])
    found = manifest.read(directory)
    assert found is not None
    left = site.store / "hub-left"
    left.mkdir()
    (left / ".hub-left.db.partial").write_bytes(b"half")
    living = dataclasses.replace(found, stage=Stage.PENDING, file="hub-left.db")
    manifest.write(left, living)
    assert backup.clean(site.store) == [], "its maker, this process, still runs"
    manifest.write(left, dataclasses.replace(living, pid=2**22 + 1))
    assert backup.clean(site.store) == [left]
    assert site.backups() == [directory]


def test_u4_two_backups_of_one_second_have_two_directories(site: Site) -> None:
    _, _ = upgraded(site)
    one, two = site.work(Task.BACKUP), site.work(Task.BACKUP)
    assert one.backup_directory != two.backup_directory


def test_u76_a_running_hub_makes_its_own_snapshot(site: Site) -> None:
    unpack(NAMES[0], site.database)
    site.work(Task.UPGRADE)
    site.tfx("hub", "start", "--port", "0")
    try:
        answer = site.tfx("backup", "create")
        data = answer["data"]
        assert isinstance(data, dict)
        directory = Path(str(data["backup_directory"]))
        found = manifest.read(directory)
        assert found is not None
        assert found.stage is Stage.DONE
        kept = directory / found.file
        assert kept.stat().st_mode & 0o777 == 0o400
        assert select(kept, "SELECT count(*) FROM messages") == [(1_575,)]
        assert select(kept, "PRAGMA journal_mode") == [("delete",)]
        assert site.tfx("backup", "verify", directory.name)["exit"] == 0
    finally:
        site.tfx("hub", "stop")


def test_find_names_a_backup_by_name_directory_or_file(site: Site) -> None:
    _, directory = upgraded(site)
    found = manifest.read(directory)
    assert found is not None
    for name in (directory.name, str(directory), str(directory / found.file)):
        assert shelf.find(site.store, name) == directory
    with pytest.raises(NotFound):
        shelf.find(site.store, "nothing")
    assert Paths.resolve(site.env).backup_dir == site.store
