"""Databases that a start must refuse, and what it leaves of them (H-22, K-23, EV-U6, EV-U7)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hub.running import RunningHub
from tests.support import Ran, bare_env, listing, tfx
from tfx.core.paths import Paths
from tfx.hub.daemon import ground
from tfx.hub.places import HubFiles
from tfx.hub.schema import registry

MAKE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.executescript(sys.argv[2])
connection.close()
"""


def _database(home: Path) -> Path:
    path = HubFiles.of(Paths.resolve(bare_env(home))).database
    path.parent.mkdir(parents=True, mode=0o700)
    return path


def _refused(home: Path) -> Ran:
    before = {
        name: found for name, found in listing(home).items() if name.endswith((".db", "-wal"))
    }
    ran = tfx(home, "hub", "start", "--port", "0", "--json")
    assert ran.code in {1, 5}, ran.out
    assert "Traceback" not in ran.err
    assert ran.document["problems"][0]["message"]
    after = listing(home)
    assert {name: after[name] for name in before} == before
    directory = HubFiles.of(Paths.resolve(bare_env(home))).directory
    assert {path.name for path in directory.iterdir()} == {"hub.db", "hub.db.lock"}
    return ran


@pytest.mark.parametrize("content", [b"no database\n" * 400, os.urandom(8192), b"\0" * 4096])
def test_h_22_a_file_that_is_no_database_is_refused_and_kept(home: Path, content: bytes) -> None:
    _database(home).write_bytes(content)
    _refused(home)


def test_h_22_a_database_of_somebody_else_is_refused_and_kept(home: Path) -> None:
    path = _database(home)
    script = "CREATE TABLE bookmarks (id INTEGER PRIMARY KEY, url TEXT); "
    subprocess.run([sys.executable, "-c", MAKE, str(path), script], check=True)
    assert _refused(home).code == 5


def test_h_22_a_damaged_hub_database_is_refused_and_kept(hub: RunningHub) -> None:
    hub.end()
    data = bytearray(hub.files.database.read_bytes())
    data[200:4096] = b"\xa5" * 3896
    hub.files.database.write_bytes(data)
    ran = tfx(hub.home, "hub", "start", "--port", "0", "--json", env=hub.env)
    assert ran.code in {1, 5}
    assert hub.files.database.read_bytes() == bytes(data)
    assert not hub.files.state.exists()


def test_k_23_ev_u7_an_older_hub_database_is_never_migrated_by_a_start(home: Path) -> None:
    path = _database(home)
    schema = Path(registry.__file__).with_name("v1.sql").read_text("utf-8")
    subprocess.run([sys.executable, "-c", MAKE, str(path), schema], check=True)
    ran = _refused(home)
    assert ran.code == 5
    assert "tfx upgrade" in (ran.document["problems"][0]["hint"] or "")


def test_an_empty_file_is_what_a_killed_first_start_leaves_and_no_obstacle(home: Path) -> None:
    _database(home).write_bytes(b"")
    try:
        assert tfx(home, "hub", "start", "--port", "0").code == 0
    finally:
        tfx(home, "hub", "stop")


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_h_22_k_45_a_network_file_system_is_recognised(tmp_path: Path, kind: str) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(
        "22 1 0:20 / / rw - ext4 /dev/sda rw\n"
        f"23 22 0:21 / {tmp_path}/far\\040away rw,x - {kind} server:/x rw\n"
        f"24 23 0:22 / {tmp_path}/far\\040away/near rw - ext4 /dev/sdb rw\n"
    )
    assert ground.file_system(tmp_path / "far away" / "x" / "hub.db", table) == kind
    assert ground.file_system(tmp_path / "far away" / "near" / "hub.db", table) == "ext4"
    assert ground.file_system(tmp_path / "far away2", table) == "ext4"
    assert kind in ground._NETWORK
