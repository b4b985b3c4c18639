"""Adoption: the original is only read, the destination is filled in one step, never merged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.upgrade.scenes import (
    BASE,
    NAMES,
    Site,
    change,
    empty_v1,
    everything,
    message,
    rows,
    select,
    sha256,
    unpack,
)
from tfx.core import database
from tfx.errors import AccessDenied, StateConflict
from tfx.hub.schema import registry
from tfx.hub.services.shapes import shown
from tfx.upgrade import inspect, manifest
from tfx.upgrade.model import Phase, State, Task


@pytest.mark.parametrize("name", NAMES)
def test_must_show_all_five_databases_are_adopted_and_stay_byte_identical(
    site: Site, name: str
) -> None:
    source = unpack(name, site.triflux)
    before, stamp = source.read_bytes(), source.stat().st_mtime_ns
    receipt = site.work(Task.ADOPT, source)
    assert [each.name for each in source.parent.iterdir()] == ["state.db"]
    assert (receipt.state, receipt.database) == (State.UPGRADED, str(site.database))
    adopted = receipt.adopted
    assert adopted is not None
    assert adopted.source == str(source)
    assert {table: adopted.arrived[table] for table in BASE} == {
        table: len(rows(source, table)) for table in BASE
    }
    assert (source.read_bytes(), source.stat().st_mtime_ns) == (before, stamp)
    assert select(site.database, "SELECT count(*) FROM messages") == [(1_575,)]
    assert select(site.database, "PRAGMA auto_vacuum") == [(2,)]
    assert site.database.stat().st_mode & 0o777 == 0o600
    [directory] = site.backups()
    found = manifest.read(directory)
    assert found is not None
    assert (found.stage, found.reason, found.source) == ("done", "adopt", str(source))
    assert everything(directory / found.file) == everything(source)
    assert site.work(Task.UPGRADE).state is State.CURRENT
    left = {each.name for each in site.database.parent.iterdir()}
    assert left == {"hub.db", "hub.db.lock"}


def killed_writer(path: Path, *statements: str) -> None:
    """Leave a WAL behind as a killed hub does."""
    program = (
        "import apsw, os\n"
        f"c = apsw.Connection({str(path)!r})\n"
        "c.pragma('journal_mode', 'WAL')\n"
        f"for statement in {statements!r}:\n"
        "    c.execute(statement)\n"
        "os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9


def test_u84_rows_in_a_killed_writers_wal_arrive_and_the_wal_stays(site: Site) -> None:
    source = empty_v1(site.triflux)
    killed_writer(source, message("in-the-wal"))
    wal = source.with_name("state.db-wal")
    before = (source.read_bytes(), wal.read_bytes(), wal.stat().st_mtime_ns)
    site.work(Task.ADOPT, source)
    assert (source.read_bytes(), wal.read_bytes(), wal.stat().st_mtime_ns) == before
    assert select(site.database, "SELECT id FROM messages") == [("in-the-wal",)]


def test_u84_a_source_that_is_being_written_is_adopted_as_one_state(site: Site) -> None:
    source = empty_v1(site.triflux)
    writer = database.open_writer(source)
    writer.execute(message("first"))
    receipt = site.work(Task.ADOPT, source)
    assert receipt.state is State.UPGRADED
    writer.execute(message("second"))
    writer.close()
    assert select(site.database, "SELECT id FROM messages") == [("first",)]


def test_u84_a_hot_rollback_journal_is_refused_with_advice(site: Site) -> None:
    source = unpack(NAMES[0], site.triflux)
    source.with_name("state.db-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" * 128)
    before = source.read_bytes()
    with pytest.raises(StateConflict) as refused:
        site.work(Task.ADOPT, source)
    assert refused.value.reason == "hot-journal"
    assert source.read_bytes() == before
    assert not site.database.exists()


def test_k34_a_destination_without_messages_is_backed_up_and_replaced(site: Site) -> None:
    connection = database.open_writer(site.database, create=True)
    registry.create(connection)
    connection.execute(
        "INSERT INTO agents (stream, id, client, capabilities, metadata, ttl_ms, "
        "registered_at_ms, last_seq) VALUES (1, 'ann', 'claude', '[]', '{}', 1, 1, 1)"
    )
    connection.close()
    inode = site.database.stat().st_ino
    source = unpack(NAMES[1], site.triflux)
    receipt = site.work(Task.ADOPT, source)
    assert site.database.stat().st_ino == inode
    assert select(site.database, "SELECT count(*) FROM messages") == [(1_575,)]
    reasons = {found.reason for each in site.backups() if (found := manifest.read(each))}
    assert reasons == {"adopt", "replaced"}
    assert receipt.notes[0].startswith(f"what was at {site.database} is in ")


def test_k34_a_destination_with_messages_is_a_conflict(site: Site) -> None:
    unpack(NAMES[0], site.database)
    site.work(Task.UPGRADE)
    before = everything(site.database)
    source = unpack(NAMES[1], site.triflux)
    site.now_ms += 1_000
    with pytest.raises(StateConflict) as refused:
        site.work(Task.ADOPT, source)
    assert refused.value.reason == "not-empty"
    assert everything(site.database) == before
    assert len(site.backups()) == 1


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_k34_a_left_over_journal_without_its_database_is_a_conflict(site: Site, end: str) -> None:
    site.database.with_name(f"hub.db{end}").write_bytes(b"x" * 100)
    with pytest.raises(StateConflict) as refused:
        site.work(Task.ADOPT, unpack(NAMES[0], site.triflux))
    assert refused.value.reason == "leftover-journal"


def test_u85_a_database_of_something_else_is_refused_with_what_differs(site: Site) -> None:
    source = change(unpack(NAMES[0], site.triflux), "CREATE TABLE other (a)")
    with pytest.raises(StateConflict) as refused:
        site.work(Task.ADOPT, source)
    assert refused.value.reason == "not-triflux"
    assert refused.value.details["differences"] == ["unexpected table other"]
    assert not site.database.exists()
    assert site.backups() == []


@pytest.mark.parametrize("phase", [Phase.COPY, Phase.VERIFY_BACKUP, Phase.COMMIT, Phase.PUBLISH])
def test_u88_an_adoption_that_dies_leaves_nothing_and_succeeds_again(
    site: Site, phase: Phase
) -> None:
    source = unpack(NAMES[4], site.triflux)
    before = sha256(source)

    class Died(Exception):
        pass

    def die(entered: Phase) -> None:
        if entered is phase:
            raise Died

    site.on_phase = die
    for _ in range(3):
        with pytest.raises(Died):
            site.work(Task.ADOPT, source)
        assert not site.database.exists()
        assert sha256(source) == before
    site.on_phase = None
    assert site.work(Task.ADOPT, source).state is State.UPGRADED
    assert len(site.backups()) == 1, "attempts that fail do not pile up (U-79)"


def test_u94_a_source_with_two_names_is_refused(site: Site) -> None:
    source = unpack(NAMES[0], site.triflux)
    os.link(source, source.with_name("other.db"))
    with pytest.raises(AccessDenied):
        site.work(Task.ADOPT, source)


def test_k36_payloads_that_are_no_json_are_shown_as_bytes() -> None:
    assert bytes(shown(b'{"a":1}')) == b'{"a":1}'
    assert bytes(shown(b"\xff\xfe")) == b'{"base64":"//4="}'
    assert bytes(shown(b"{")) == b'{"base64":"ew=="}'


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_u84_a_source_in_use_is_read_under_its_locks(site: Site, mode: str) -> None:
    source = empty_v1(site.triflux)
    change(source, f"PRAGMA journal_mode = {mode}", message("first"))
    connection, immutable = inspect.open_quietly(source)
    connection.close()
    assert immutable is (mode == "WAL"), "nobody has it open"
    program = (
        "import apsw, sys\n"
        f"c = apsw.Connection({str(source)!r})\n"
        f'c.execute("BEGIN IMMEDIATE"); c.execute("""{message("second")}""")\n'
        "print('writing', flush=True)\n"
        "sys.stdin.read()\n"
        "c.execute('COMMIT')\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        if mode == "WAL":
            site.work(Task.ADOPT, source)
            assert select(site.database, "SELECT id FROM messages") == [("first",)]
        else:
            with pytest.raises(StateConflict) as refused:
                site.work(Task.ADOPT, source)
            assert refused.value.reason == "hot-journal"
        writer.communicate()
