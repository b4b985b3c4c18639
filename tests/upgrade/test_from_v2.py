"""The step from version 2: no row is touched, the file becomes a fresh one with the old rows."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import apsw
import msgspec
import pytest

from tests.hub.driver import FakeClock
from tests.upgrade.scenes import NAMES, NOW_MS, Site, change, everything, select, sha256, unpack
from tests.upgrade.version2 import FROZEN, filled_v2, unpack_v2
from tfx.core import database
from tfx.errors import OperationFailed, StateConflict
from tfx.hub.schema import from_v2, registry, steps
from tfx.hub.schema.outcome import LeftOut, Outcome, Tell, merged
from tfx.hub.store import rebuild
from tfx.hub.store.reader import Reader
from tfx.hub.store.store import Store
from tfx.upgrade import run
from tfx.upgrade.model import Line, Phase, Receipt, RowCount, State, Task

VERSION = 2
OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"
SAME = "SELECT count(*) FROM (SELECT * FROM {0}.{2} EXCEPT SELECT * FROM {1}.{2})"


def is_folded(path: Path) -> bool:
    """Return True when the projections are what the log folds to, byte for byte (EV-P2)."""
    connection = database.open_reader(path)
    folding = rebuild.Refold()
    try:
        reader = Reader(connection, NOW_MS)
        while folding.take_page(reader):
            pass
        return folding.compare(reader) == []
    finally:
        folding.close()
        connection.close()


def objects(path: Path) -> list[database.Row]:
    return select(path, OBJECTS)


def fresh(path: Path) -> Path:
    connection = database.open_writer(path, create=True)
    registry.create(connection)
    connection.close()
    return path


def rows_of_v2(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return every row of the tables that version 2 had, the stamp and the marks besides."""
    found = everything(path)
    return {table: found[table] for table in (*from_v2.KEPT, "sqlite_sequence") if table in found}


def kept_in(receipt: Receipt) -> Path:
    [file] = Path(receipt.backup_directory or "").glob("*.db")
    return file


@pytest.mark.parametrize("name", FROZEN)
def test_must_show_every_frozen_database_keeps_its_rows_and_becomes_a_fresh_one(
    site: Site, tmp_path: Path, name: str
) -> None:
    before = rows_of_v2(unpack_v2(name, tmp_path / "before.db"))
    unpack_v2(name, site.database)
    receipt = site.work(Task.UPGRADE)
    assert (receipt.state, receipt.from_version, receipt.to_version) == (State.UPGRADED, 2, 3)
    assert (receipt.from_schema_hash, receipt.to_schema_hash) == (
        registry.HASHES[2],
        registry.HASHES[3],
    )
    assert receipt.adopted is None, "nothing came from triflux in this run"
    assert rows_of_v2(site.database) == before
    assert before["log"]
    assert objects(site.database) == objects(fresh(tmp_path / "fresh.db"))
    assert is_folded(site.database)
    assert select(site.database, "SELECT * FROM stamp") == [(1, 3, registry.HASHES[3], 1)]
    assert select(site.database, "PRAGMA user_version") == [(3,)]
    kept = kept_in(receipt)
    assert rows_of_v2(kept) == before
    assert sha256(kept) == receipt.backup_sha256
    again = site.work(Task.UPGRADE)
    assert (again.state, again.backup_directory) == (State.CURRENT, None)


def test_must_show_a_hundred_thousand_messages_come_through_unchanged(site: Site) -> None:
    path = filled_v2(site.database, 100_000)
    receipt = site.work(Task.UPGRADE)
    assert (receipt.from_version, receipt.to_version) == (2, 3)
    assert receipt.rows["messages"] == RowCount(110_000, 110_000)
    assert receipt.rows["tasks"] == RowCount(None, 0)
    kept = set(from_v2.KEPT)
    assert all(receipt.rows[table].before == receipt.rows[table].after for table in kept)
    connection = apsw.Connection(str(path))
    connection.execute("ATTACH ? AS old", (str(kept_in(receipt)),))
    for table in (*from_v2.KEPT, "sqlite_sequence"):
        for one, other in (("old", "main"), ("main", "old")):
            assert connection.execute(SAME.format(one, other, table)).fetchall() == [(0,)], table
    connection.close()
    assert is_folded(path)


@pytest.mark.parametrize("name", NAMES)
def test_must_show_a_triflux_database_becomes_version_3_in_one_run(
    site: Site, tmp_path: Path, name: str
) -> None:
    unpack(name, site.database)
    receipt = site.work(Task.UPGRADE)
    assert (receipt.from_version, receipt.to_version) == (1, 3)
    assert len(site.backups()) == 1
    assert receipt.adopted is not None, "what the first step told is in the receipt"
    assert receipt.adopted.arrived["messages"] == 1_575
    assert receipt.adopted.shift_ms > 0
    assert objects(site.database) == objects(fresh(tmp_path / "fresh.db"))
    assert is_folded(site.database)
    entered = [each for each in site.phases if each in {Phase.TRANSFORM, Phase.VERIFY}]
    assert entered == [Phase.TRANSFORM, Phase.VERIFY] * 2 + [Phase.VERIFY]


@pytest.mark.parametrize("table", ["tasks", "work_leases", "numbers", "invocations"])
def test_ev_m5_new_tables_are_there_and_empty(site: Site, table: str) -> None:
    unpack_v2("hub", site.database)
    site.work(Task.UPGRADE)
    assert select(site.database, f"SELECT count(*) FROM {table}") == [(0,)]


def test_u99_rows_that_a_killed_hub_left_in_its_wal_arrive(site: Site) -> None:
    path = unpack_v2("crashed", site.database)
    in_the_wal = "SELECT count(*) FROM messages WHERE topic = 'wal'"
    uri = database.uri(path, "immutable=1")
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    alone = apsw.Connection(uri, flags=flags)
    without = alone.execute(in_the_wal).fetchall()
    alone.close()
    site.work(Task.UPGRADE)
    assert select(path, in_the_wal) == [(8,)] != without
    assert select(path, "PRAGMA journal_mode") == [("wal",)]


def test_u105_ev_m6_an_id_that_was_forgotten_is_never_used_again(site: Site) -> None:
    path = filled_v2(site.database, 30)
    change(
        path,
        "INSERT INTO forgetting SELECT max(stream) FROM messages",
        "DELETE FROM deliveries WHERE message IN (SELECT stream FROM forgetting)",
        "DELETE FROM messages WHERE stream IN (SELECT stream FROM forgetting)",
        "DELETE FROM log WHERE stream IN (SELECT stream FROM forgetting)",
        "DELETE FROM forgetting",
    )
    [(highest, mark)] = select(
        path, "SELECT max(log.seq), s.seq FROM log, sqlite_sequence s WHERE name = 'log'"
    )
    assert int(str(mark)) > int(str(highest))
    site.work(Task.UPGRADE)
    assert select(path, "SELECT seq FROM sqlite_sequence WHERE name = 'log'") == [(mark,)]


# ------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("change_it", "reason"),
    [
        ("body = '{\"half\":'", "its body is not JSON"),
        ("body = '[1]'", "its body is not a JSON object"),
        ("actor = CAST(x'ff41' AS TEXT)", "a text is not UTF-8"),
    ],
)
def test_k37_u104_a_row_that_cannot_be_represented_refuses_the_whole_run(
    site: Site, change_it: str, reason: str
) -> None:
    path = filled_v2(site.database, 30)
    [(guard,)] = select(path, "SELECT sql FROM sqlite_schema WHERE name = 'log_is_never_edited'")
    change(
        path,
        "DROP TRIGGER log_is_never_edited",
        f"UPDATE log SET {change_it} WHERE seq = 47",
        str(guard),
    )
    before = path.read_bytes()
    for task in (Task.CHECK, Task.REHEARSE, Task.UPGRADE):
        with pytest.raises(OperationFailed) as refused:
            site.work(task)
        assert refused.value.reason == "rows-refused"
        assert refused.value.details["rows"] == [f"log rowid 47 (47): {reason}"]
        assert site.reporter.phase is Phase.PREFLIGHT
        assert not site.store.exists(), "nothing is made before the rows are looked at"
    assert path.read_bytes()[100:] == before[100:]


def test_u103_a_rule_of_version_2_that_is_broken_is_found_before_the_backup(site: Site) -> None:
    path = filled_v2(site.database, 30)
    connection = apsw.Connection(str(path))
    connection.pragma("ignore_check_constraints", 1)
    connection.execute("UPDATE messages SET type = 'nonsense' WHERE id = 'm-00000003'")
    connection.close()
    with pytest.raises(OperationFailed) as refused:
        site.work(Task.UPGRADE)
    assert refused.value.reason == "corrupt"
    assert site.backups() == []


def test_k37_rows_that_the_second_step_of_a_chain_refuses_take_the_first_back(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = unpack(NAMES[0], site.database)
    before = everything(path)

    def finds(connection: database.Connection) -> Outcome:
        [(seq,)] = connection.execute("SELECT min(seq) FROM log").fetchall()
        return Outcome(left_out=(LeftOut("log", str(seq), int(str(seq)), "no reason"),))

    picky = dataclasses.replace(steps.STEPS[VERSION], scan=finds)
    monkeypatch.setattr(steps, "STEPS", {**steps.STEPS, VERSION: picky})
    with pytest.raises(OperationFailed) as refused:
        site.work(Task.UPGRADE)
    assert refused.value.reason == "rows-refused"
    assert everything(path) == before


@pytest.mark.parametrize("source", ["v2", "v1"])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE agents SET client = 'other' WHERE stream = (SELECT min(stream) FROM agents)",
        "UPDATE deliveries SET attempts = attempts + 1",
        "UPDATE human_requests SET response = 'x' WHERE state = 'accepted'",
        "UPDATE totals SET value = value + 1",
        "DELETE FROM beats WHERE agent = (SELECT min(agent) FROM beats)",
        "INSERT INTO beats VALUES ('stranger', 1, 1, 0)",
        "UPDATE counted SET skipped = 9",
        "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'log'",
        "INSERT INTO forgetting VALUES (4)",
        "INSERT INTO numbers VALUES ('room', 4)",
    ],
)
def test_u54_u107_a_step_that_touches_one_row_is_taken_back(
    site: Site, monkeypatch: pytest.MonkeyPatch, source: str, statement: str
) -> None:
    path = unpack_v2("hub", site.database) if source == "v2" else unpack(NAMES[0], site.database)
    before = everything(path)
    real = steps.STEPS[VERSION]

    def touches(connection: database.Connection, now_ms: int, tell: Tell) -> Outcome:
        outcome = real.transform(connection, now_ms, tell)
        connection.execute(statement)
        return outcome

    broken = dataclasses.replace(real, transform=touches)
    monkeypatch.setattr(steps, "STEPS", {**steps.STEPS, VERSION: broken})
    with pytest.raises(OperationFailed) as failed:
        site.work(Task.UPGRADE)
    assert failed.value.reason == "not-proven"
    assert site.reporter.phase is Phase.VERIFY
    assert everything(path) == before


def test_ev_m1_version_stamp_and_tables_are_one_atom(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = unpack_v2("hub", site.database)
    before, schema = everything(path), objects(path)
    real = steps.STEPS[VERSION]
    seen: list[database.Row] = []

    def raises(connection: database.Connection, now_ms: int, tell: Tell) -> Outcome:
        real.transform(connection, now_ms, tell)
        seen.extend(connection.execute("PRAGMA user_version"))
        seen.extend(connection.execute("SELECT schema_version FROM stamp"))
        raise apsw.SQLError("in the middle")

    broken = dataclasses.replace(real, transform=raises)
    monkeypatch.setattr(steps, "STEPS", {**steps.STEPS, VERSION: broken})
    with pytest.raises(OperationFailed):
        site.work(Task.UPGRADE)
    assert seen == [(3,), (3,)]
    assert (everything(path), objects(path)) == (before, schema)
    assert select(path, "PRAGMA user_version") == [(2,)]


@pytest.mark.parametrize("wal", [False, True])
def test_ev_m3_a_newer_database_keeps_every_byte_and_its_wal(site: Site, *, wal: bool) -> None:
    path = fresh(site.database)
    path.chmod(0o600)
    newer = f"UPDATE stamp SET schema_version = {registry.CURRENT + 1}"
    program = (
        "import apsw, os\n"
        f"c = apsw.Connection({str(path)!r})\n"
        f"c.pragma('journal_mode', {'WAL' if wal else 'DELETE'!r})\n"
        f"c.execute({newer!r})\n"
        "os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    beside = path.with_name("hub.db-wal")
    assert beside.exists() is wal
    before = path.read_bytes(), beside.read_bytes() if wal else b""
    for task in (Task.UPGRADE, Task.CHECK):
        with pytest.raises(StateConflict) as refused:
            site.work(task)
        assert (refused.value.reason, refused.value.hint) == ("schema-newer", "tfx update")
        assert (path.read_bytes(), beside.read_bytes() if wal else b"") == before
    assert site.backups() == []


def test_u48_u101_a_version_2_file_with_another_schema_is_refused_as_tampered(site: Site) -> None:
    path = unpack_v2("hub", site.database)
    change(path, "DROP INDEX deliveries_due", "CREATE TABLE tasks (a)")
    before = path.read_bytes()
    with pytest.raises(StateConflict) as refused:
        site.work(Task.UPGRADE)
    assert refused.value.reason == "schema-tampered"
    assert refused.value.details["differences"] == [
        "missing index deliveries_due",
        "unexpected table tasks",
    ]
    assert path.read_bytes() == before


# ---------------------------------------------------------------------------------- chain


@pytest.mark.parametrize("source", ["v2", "v1"])
def test_k23_an_older_fold_is_folded_again_in_the_same_run(
    site: Site, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.setattr(registry, "FOLD", registry.FOLD + 1)
    if source == "v2":
        unpack_v2("hub", site.database)
        change(site.database, "UPDATE deliveries SET attempts = attempts + 1")
    else:
        unpack(NAMES[0], site.database)
    receipt = site.work(Task.UPGRADE)
    assert (receipt.state, receipt.to_version) == (State.UPGRADED, 3)
    assert select(site.database, "SELECT fold_version FROM stamp") == [(registry.FOLD,)]
    assert is_folded(site.database)
    assert site.work(Task.UPGRADE).state is State.CURRENT


def test_the_outcomes_of_a_chain_are_told_as_one() -> None:
    row = LeftOut("messages", "m", 1, "why")
    first = Outcome((row,), {"captcha": 1}, {"_meta": 3}, 50, 7)
    second = Outcome((), {"captcha": 2, "credential": 1}, {}, None, 0)
    assert merged((first, second)) == Outcome(
        (row,), {"captcha": 3, "credential": 1}, {"_meta": 3}, 50, 7
    )
    assert merged(()) == Outcome()


# ------------------------------------------------------------------------------- commands


def test_u18_a_check_of_version_2_tells_what_is_to_be_done_and_writes_nothing(site: Site) -> None:
    path = filled_v2(site.database, 3_000)
    before = path.read_bytes()
    receipt = site.work(Task.CHECK)
    assert (receipt.state, receipt.pending) == (State.CHECKED, "older")
    assert (receipt.from_version, receipt.to_version, receipt.adopted) == (2, 3, None)
    size = len(before)
    needed = sum(each.needed_bytes for each in receipt.space)
    assert size < needed < 1.5 * size + 3_000_000, "a backup, and no second copy"
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == ["hub.db"]


@pytest.mark.parametrize("name", FROZEN)
def test_u17_a_rehearsal_of_version_2_leaves_it_as_it_was(site: Site, name: str) -> None:
    path = unpack_v2(name, site.database)
    before = {each.name: each.read_bytes() for each in path.parent.glob("hub.db*")}
    receipt = site.work(Task.REHEARSE)
    assert (receipt.state, receipt.from_version, receipt.to_version) == (State.REHEARSED, 2, 3)
    assert (receipt.backup_directory, receipt.adopted) == (None, None)
    assert receipt.rows["tasks"] == RowCount(None, 0)
    after = {each.name: each.read_bytes() for each in path.parent.glob("hub.db*")}
    assert {name: after[name] for name in before} == before
    assert not site.store.exists()


def test_u7_a_hub_refuses_version_2_and_names_the_upgrade(site: Site) -> None:
    path = unpack_v2("hub", site.database)
    before = path.read_bytes()
    answer = site.tfx("hub", "start", "--port", "0", code=5)
    problem = answer["problems"][0]  # type: ignore[index]
    assert (problem["code"], problem["hint"]) == ("schema-older", "tfx upgrade")
    assert path.read_bytes() == before


def test_u13_u20_the_command_upgrades_version_2_and_then_says_current(site: Site) -> None:
    unpack_v2("hub", site.database)
    data = site.tfx("upgrade", "--stop-hub", "--yes")["data"]
    assert isinstance(data, dict)
    assert (data["state"], data["from_version"], data["to_version"]) == ("upgraded", 2, 3)
    assert data["adopted"] is None
    assert data["rows"]["log"]["before"] == data["rows"]["log"]["after"]
    again = site.tfx("upgrade")["data"]
    assert isinstance(again, dict)
    assert (again["state"], again["backup_directory"]) == ("current", None)


def test_ev_m7_two_upgrades_of_version_2_at_once_one_upgrades(site: Site) -> None:
    filled_v2(site.database, 5_000)
    children = [
        subprocess.Popen(
            run.worker_argv(), env=site.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    order = msgspec.json.encode(site.request(Task.UPGRADE))
    for child in children:
        assert child.stdin is not None
        child.stdin.write(order)
        child.stdin.close()
        child.stdin = None  # `communicate` would flush it
    ends = [
        msgspec.json.decode(child.communicate(timeout=120)[0].splitlines()[-1], type=Line)
        for child in children
    ]
    states = sorted(
        end.receipt.state if end.receipt else (end.failure.kind if end.failure else "")
        for end in ends
    )
    assert states in (["state-conflict", "upgraded"], ["current", "upgraded"])
    assert site.work(Task.UPGRADE).state is State.CURRENT


@pytest.mark.parametrize("name", FROZEN)
def test_u82_a_backup_of_version_2_comes_back_whole_and_says_what_to_do(
    site: Site, tmp_path: Path, name: str
) -> None:
    before = everything(unpack_v2(name, tmp_path / "before.db"))
    unpack_v2(name, site.database)
    directory = Path(site.work(Task.UPGRADE).backup_directory or "")
    site.now_ms += 60_000
    receipt = site.work(Task.RESTORE, directory)
    assert (receipt.from_version, receipt.to_version) == (3, 2)
    assert everything(site.database) == before
    assert [note for note in receipt.notes if "tfx upgrade" in note] == [
        "it has schema version 2, this program's is 3: the hub starts on it after `tfx upgrade`"
    ]
    with pytest.raises(StateConflict) as refused:
        Store.open(site.database, clock=FakeClock())
    assert refused.value.reason == "schema-older"
    site.now_ms += 60_000
    assert site.work(Task.UPGRADE).state is State.UPGRADED
    assert is_folded(site.database)


def test_k34_an_adoption_replaces_an_empty_version_2_and_refuses_one_with_mail(site: Site) -> None:
    source = unpack(NAMES[0], site.triflux)
    filled_v2(site.database, 0)
    receipt = site.work(Task.ADOPT, source)
    assert (receipt.from_version, receipt.to_version) == (1, 3)
    assert is_folded(site.database)
    unpack_v2("hub", site.database)
    before = site.database.read_bytes()
    with pytest.raises(StateConflict) as refused:
        site.work(Task.ADOPT, source)
    assert refused.value.reason == "not-empty"
    assert site.database.read_bytes()[100:] == before[100:]


def test_u83_a_version_2_file_is_not_adopted_but_upgraded(site: Site, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir(mode=0o700)
    source = unpack_v2("hub", tmp_path / "own" / "hub.db")
    with pytest.raises(StateConflict) as refused:
        site.work(Task.ADOPT, source)
    assert refused.value.reason == "not-triflux"
    assert "tfx upgrade --db" in (refused.value.hint or "")
