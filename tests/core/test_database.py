from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tfx.core import copies, database
from tfx.errors import AccessDenied, NotFound, OperationFailed, StateConflict, TfxError


def made(path: Path, rows: int = 0) -> database.Connection:
    connection = database.open_writer(path, create=True)
    with database.Transaction(connection):
        connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT) STRICT")
        for number in range(rows):
            connection.execute("INSERT INTO t VALUES (?, ?)", (number, "x" * 500))
    return connection


def test_an_absent_database_is_not_made_by_looking(tmp_path: Path) -> None:
    for opened in (database.open_inspector, database.open_writer):
        with pytest.raises(NotFound):
            opened(tmp_path / "absent.db")
    assert list(tmp_path.iterdir()) == []


def test_an_exception_rolls_the_transaction_back(tmp_path: Path) -> None:
    connection = made(tmp_path / "a.db")

    def fail() -> None:
        with database.Transaction(connection):
            connection.execute("INSERT INTO t VALUES (1, 'x')")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert connection.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
    connection.close()


def test_k_22_an_inspector_changes_no_byte_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    made(path, 3).close()
    before = path.read_bytes(), path.stat().st_mtime_ns
    inspector = database.open_inspector(path)
    assert inspector.execute("SELECT count(*) FROM t").fetchall() == [(3,)]
    with pytest.raises(database.Error):
        inspector.execute("DELETE FROM t")
    inspector.close()
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert [each.name for each in tmp_path.iterdir()] == ["a.db"]


def test_an_inspector_reads_what_still_lies_in_the_wal(tmp_path: Path) -> None:
    path = tmp_path / "strange %41 # name?.db"
    writer = made(path, 3)
    inspector = database.open_inspector(path)
    assert inspector.execute("SELECT count(*) FROM t").fetchall() == [(3,)]
    inspector.close()
    writer.close()


def test_a_backup_reports_its_progress_and_is_whole(tmp_path: Path) -> None:
    source = made(tmp_path / "a.db", 500)
    target = database.open_writer(tmp_path / "b.db", create=True)
    steps: list[tuple[int, int]] = []
    copies.backup(source, target, progress=lambda d, t: steps.append((d, t)), pages=10)
    assert len(steps) > 5
    assert steps[-1][0] == steps[-1][1]
    assert copies.quick_check(target) == []
    assert target.execute("SELECT count(*) FROM t").fetchall() == [(500,)]
    source.close()
    target.close()


def test_damage_is_found_and_typed(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    made(path, 2_000).close()
    data = bytearray(path.read_bytes())
    data[8_192:40_960] = b"\xaa" * (40_960 - 8_192)
    path.write_bytes(data)
    inspector = database.open_inspector(path)
    assert copies.quick_check(inspector) != []
    inspector.close()


def test_a_checkpoint_behind_a_reader_says_what_it_moved(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    writer = made(path)
    reader = database.open_reader(path)
    with database.Snapshot(reader):
        reader.execute("SELECT count(*) FROM t").fetchall()
        with database.Transaction(writer):
            writer.execute("INSERT INTO t VALUES (1, 'x')")
        writer.set_busy_timeout(0)
        frames, moved = database.checkpoint(writer, truncate=True)
        assert moved < frames
    assert database.checkpoint(writer, truncate=True) == (0, 0)
    reader.close()
    writer.close()


@pytest.mark.parametrize(
    ("raised", "kind", "code"),
    [
        ("FullError", OperationFailed, "disk-full"),
        ("IOError", OperationFailed, "io"),
        ("CorruptError", OperationFailed, "corrupt"),
        ("BusyError", StateConflict, "busy"),
        ("NotADBError", StateConflict, "not-a-database"),
        ("ReadOnlyError", AccessDenied, "read-only"),
        ("CantOpenError", OperationFailed, "cannot-open"),
        ("SQLError", OperationFailed, "storage"),
    ],
)
def test_each_failure_of_sqlite_has_its_code(raised: str, kind: type[TfxError], code: str) -> None:
    import apsw  # noqa: PLC0415  (only to make the errors)

    error = database.error_of(getattr(apsw, raised)("why"), "/some/file")
    assert type(error) is kind
    assert error.reason == code
    assert "/some/file" in error.message


def test_ev_s10_an_old_sqlite_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "OLDEST_SQLITE", (99, 0, 0))
    with pytest.raises(OperationFailed) as refused:
        database.open_writer(tmp_path / "a.db", create=True)
    assert refused.value.reason == "old-sqlite"
    assert list(tmp_path.iterdir()) == []


# In a process of its own: whatever else a worker has run may have a database open.
FORKS = """
import multiprocessing, os, pty, subprocess, sys
from pathlib import Path
from tfx.core import database
from tfx.errors import OperationFailed
connection = database.open_writer(Path(sys.argv[1]), create=True)
process = multiprocessing.get_context("fork").Process(target=int)
for fork in (os.fork, pty.fork, process.start):
    try:
        fork()
    except OperationFailed as refused:
        print(refused.reason)
with database.Transaction(connection):
    connection.execute("CREATE TABLE t (x)")
print(subprocess.run(["true"], check=False).returncode)  # starting a program is none
connection.close()
child = os.fork()
if child == 0:
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_ev_s9_ev_t5_a_process_with_an_open_database_does_not_fork(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKS, tmp_path / "x.db"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout.split() == ["fork-refused"] * 3 + ["0", "7"]
