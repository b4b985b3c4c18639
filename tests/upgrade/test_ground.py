"""Paths that are not ours or lie in each other are refused before anything is touched."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.upgrade.scenes import NAMES, Site, unpack
from tfx.core.paths import Paths
from tfx.errors import AccessDenied, InvalidRequest, OperationFailed
from tfx.hub.daemon import ground as hub_ground
from tfx.upgrade import ground, space
from tfx.upgrade.model import Space, Task

NOBODY = 65_534


@pytest.mark.parametrize("place", ["inside", "equal", "around", "link", "dots", "alias"])
def test_u91_a_backup_store_and_the_hubs_directory_never_lie_in_each_other(
    tmp_path: Path, place: str
) -> None:
    root = tmp_path / "state" / "hub"
    root.mkdir(parents=True)
    store = {
        "inside": root / "backups",
        "equal": root,
        "around": tmp_path / "state",
        "link": tmp_path / "link",
        "dots": tmp_path / "state" / ".." / "state" / "hub" / "b",
        "alias": tmp_path / "alias" / "b",
    }[place]
    (tmp_path / "link").symlink_to(root)
    (tmp_path / "alias").symlink_to(root)
    with pytest.raises(InvalidRequest) as refused:
        ground.check_apart(store, root, tmp_path / "home")
    assert refused.value.reason == "backup-inside"


def test_u92_a_common_prefix_is_not_inside(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    ground.check_apart(tmp_path / "a" / "b2", tmp_path / "a" / "b", tmp_path / "home")


def test_u43_a_database_in_the_home_itself_may_have_backups_below_it(tmp_path: Path) -> None:
    ground.check_apart(tmp_path / ".local" / "backups", tmp_path, tmp_path)


@pytest.mark.parametrize("kind", ["fifo", "directory", "hard-link", "symlink", "wal", "owner"])
def test_u93_u94_u95_what_is_no_plain_file_of_ours_is_refused(site: Site, kind: str) -> None:
    path = site.database
    expected: type[Exception] = AccessDenied
    if kind == "fifo":
        os.mkfifo(path)
        expected = InvalidRequest
    elif kind == "directory":
        path.mkdir()
        expected = InvalidRequest
    else:
        unpack(NAMES[0], path)
    if kind == "hard-link":
        os.link(path, site.home / "other")
    elif kind == "symlink":
        path.rename(site.home / "real.db")
        path.symlink_to(site.home / "real.db")
    elif kind == "wal":
        path.with_name("hub.db-wal").symlink_to(site.home / "target")
    elif kind == "owner":
        if os.geteuid() != 0:
            pytest.skip("only root can give a file away")
        os.chown(path, NOBODY, NOBODY)
    with pytest.raises(expected):
        site.work(Task.UPGRADE)
    assert not site.store.exists()
    assert not (site.home / "target").exists()


def test_u93_a_lock_that_is_a_symbolic_link_is_refused(site: Site) -> None:
    unpack(NAMES[0], site.database)
    target = site.home / "target"
    site.database.with_name("hub.db.lock").symlink_to(target)
    with pytest.raises(AccessDenied):
        site.work(Task.UPGRADE)
    assert not target.exists()


def test_u93_a_link_of_another_user_on_the_way_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a link away")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.chown(tmp_path / "link", NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(AccessDenied) as refused:
        ground.check_owned_path(tmp_path / "link" / "backups")
    assert refused.value.reason == "foreign-symlink"


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_u95_directories_that_others_may_write_are_refused(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(AccessDenied) as refused:
        ground.check_directory(tmp_path)
    assert refused.value.reason == "writable-by-others"
    tmp_path.chmod(0o777 | stat.S_ISVTX)
    ground.check_directory(tmp_path)


def test_u95_a_directory_that_cannot_be_written_is_refused(site: Site) -> None:
    unpack(NAMES[0], site.database)
    if os.geteuid() == 0:
        if subprocess.run(["chattr", "+i", site.database.parent], check=False,
                          capture_output=True).returncode:  # fmt: skip
            pytest.skip("this file system has no immutable flag")
        try:
            with pytest.raises(AccessDenied):
                site.work(Task.UPGRADE)
        finally:
            subprocess.run(["chattr", "-i", site.database.parent], check=True)
        return
    site.database.parent.chmod(0o500)
    with pytest.raises(AccessDenied):
        site.work(Task.UPGRADE)


def test_u58_network_file_systems_are_refused_by_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(f"1 1 0:1 / / rw - ext4 x rw\n2 1 0:2 / {tmp_path} rw - nfs4 x rw\n")
    monkeypatch.setattr(ground, "file_system", lambda path: hub_ground.file_system(path, table))
    with pytest.raises(InvalidRequest) as refused:
        ground.check_directory(tmp_path)
    assert refused.value.reason == "network-file-system"


def test_u113_a_backup_directory_that_is_a_file_is_refused(site: Site) -> None:
    unpack(NAMES[0], site.database)
    site.store.parent.mkdir(parents=True)
    site.store.write_text("a file")
    with pytest.raises(InvalidRequest):
        site.work(Task.UPGRADE)


def test_u121_needs_on_one_file_system_add_up_and_too_little_is_refused(tmp_path: Path) -> None:
    [only] = space.needs(tmp_path / "hub.db", tmp_path / "store" / "deep", 10_000_000, 2.0)
    assert only.needed_bytes == 30_000_000 + 2 * space.RESERVE
    assert only.free_bytes > 0
    with pytest.raises(OperationFailed) as refused:
        space.refuse_when_short((Space("/x", 10, 9),))
    assert refused.value.reason == "no-space"


def test_k41_the_store_may_have_any_mode_and_our_directory_in_it_is_private(site: Site) -> None:
    unpack(NAMES[0], site.database)
    site.store.mkdir(parents=True)
    site.store.chmod(0o755)
    site.work(Task.UPGRADE)
    assert site.store.stat().st_mode & 0o777 == 0o755
    assert site.backups()[0].stat().st_mode & 0o777 == 0o700
    assert Paths.resolve(site.env).backup_dir == site.store
