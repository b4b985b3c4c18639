"""A chain of steps: what is refused, what is proven and taken back, what is told as one."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import apsw
import pytest

from tests.upgrade.scenes import NAMES, Site, change, everything, select, unpack
from tests.upgrade.version2 import (
    filled_v2,
    fresh,
    is_folded,
    objects,
    unpack_v2,
)
from tfx.core import database
from tfx.errors import OperationFailed, StateConflict
from tfx.hub.schema import registry, steps
from tfx.hub.schema.outcome import LeftOut, Outcome, Tell, merged
from tfx.upgrade.model import Phase, State, Task

VERSION = 2


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
