"""A triflux database is judged by what it holds: any of the known extra tables, any version."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.upgrade.scenes import NAMES, Site, change, empty_v1, message, select, unpack
from tests.upgrade.version2 import filled_v2
from tfx.core import database
from tfx.errors import StateConflict
from tfx.hub.schema import registry, steps
from tfx.hub.schema.identity import identify, tokens_of
from tfx.hub.schema.registry import Verdict
from tfx.upgrade.model import State, Task

EXTRAS = ("_meta", "pipeline_state", "assign_jobs", "reflexion_entries", "adaptive_rules")


def judged(path: Path) -> registry.Judgement:
    connection = database.open_inspector(path)
    try:
        return registry.judge(identify(connection))
    finally:
        connection.close()


def definitions(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {name: [] for name in EXTRAS}
    for table, sql in select(
        path, "SELECT tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type DESC"
    ):
        if table in found:
            found[str(table)].append(str(sql))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_u85_every_released_database_is_recognised(tmp_path: Path, name: str) -> None:
    found = judged(unpack(name, tmp_path / "state.db"))
    assert (found.verdict, found.version) == (Verdict.OLDER, 1)


@pytest.mark.parametrize("source", ["9.8.4", "upgraded-3.1.0-dev.2-to-10.17.4"])
def test_u85_any_combination_of_extra_tables_is_recognised(tmp_path: Path, source: str) -> None:
    known = definitions(unpack(source, tmp_path / "source.db"))
    for number in range(len(EXTRAS) + 1):
        for chosen in itertools.combinations(EXTRAS, number):
            path = tmp_path / f"{'-'.join(chosen)}.db"
            change(empty_v1(path), *(sql for table in chosen for sql in known[table]))
            found = judged(path)
            assert (found.verdict, set(found.extras)) == (Verdict.OLDER, set(chosen))


@pytest.mark.parametrize(
    "columns",
    [
        (),
        ("error_message TEXT",),
        ("error_message TEXT", "solution TEXT"),
        ("context TEXT", "error_message TEXT", "solution TEXT"),
    ],
)
def test_u85_columns_that_later_releases_added_one_by_one_are_recognised(
    tmp_path: Path, columns: tuple[str, ...]
) -> None:
    path = unpack("9.8.4", tmp_path / "state.db")
    change(path, *(f"ALTER TABLE adaptive_rules ADD COLUMN {each}" for each in columns))
    assert judged(path).verdict is Verdict.OLDER


@pytest.mark.parametrize("claimed", ["0", "1", "99", "nonsense"])
def test_u86_the_version_it_claims_is_never_believed(site: Site, claimed: str) -> None:
    path = unpack("9.8.4", site.database)
    change(path, f"UPDATE _meta SET value = '{claimed}' WHERE key = 'schema_version'")
    assert site.work(Task.UPGRADE).state is State.UPGRADED


@pytest.mark.parametrize(
    ("statement", "line"),
    [
        ("CREATE TABLE extra (a)", "unexpected table extra"),
        ("ALTER TABLE messages ADD COLUMN more TEXT", "different table messages"),
        ("DROP INDEX idx_messages_trace", "missing index idx_messages_trace"),
        ("ALTER TABLE adaptive_rules ADD COLUMN other TEXT", "unexpected table adaptive_rules"),
        (
            "CREATE TRIGGER t AFTER INSERT ON messages BEGIN SELECT 1; END",
            "unexpected trigger t",
        ),
        ("CREATE INDEX i ON assign_jobs (task)", "unexpected index i"),
    ],
)
def test_u85_anything_else_is_refused_with_what_differs(
    site: Site, statement: str, line: str
) -> None:
    path = change(unpack("9.8.4", site.database), statement)
    before = path.read_bytes()
    with pytest.raises(StateConflict) as refused:
        site.work(Task.UPGRADE)
    assert refused.value.reason == "schema-unknown"
    differences = refused.value.details["differences"]
    assert isinstance(differences, list)
    assert line in differences
    assert path.read_bytes() == before
    assert site.backups() == []


def test_k39_tables_that_tfx_does_not_use_are_counted_and_stay_in_the_backup(site: Site) -> None:
    path = unpack("9.8.4", site.database)
    receipt = site.work(Task.UPGRADE)
    assert receipt.adopted is not None
    assert receipt.adopted.not_taken == {
        "_meta": 3,
        "adaptive_rules": 210,
        "assign_jobs": 225,
        "pipeline_state": 60,
        "reflexion_entries": 220,
    }
    tables = {str(row[0]) for row in select(path, "SELECT name FROM sqlite_schema")}
    assert tables.isdisjoint(EXTRAS)
    kept = next(Path(receipt.backup_directory or "").glob("*.db"))
    assert select(kept, "SELECT count(*) FROM reflexion_entries") == [(220,)]
    assert judged(path).verdict is Verdict.CURRENT


def test_u36_an_older_sqlite_gives_the_same_hashes(tmp_path: Path) -> None:
    """The standard library's SQLite reads the DDL back; it runs in a process of its own (U-63)."""
    program = (
        "import sqlite3, sys, json\n"
        "c = sqlite3.connect(':memory:')\n"
        "c.executescript(open(sys.argv[1]).read())\n"
        'rows = c.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema '
        "WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\\\_%' ESCAPE '\\\\'\").fetchall()\n"
        "print(json.dumps([sqlite3.sqlite_version, rows]))\n"
    )
    for version in registry.HASHES:
        text = tmp_path / f"v{version}.sql"
        text.write_text(registry.schema_text(version), "utf-8")
        done = subprocess.run(
            [sys.executable, "-c", program, str(text)], capture_output=True, check=True, text=True
        )
        older, objects = json.loads(done.stdout)
        assert older != database.sqlite_version()
        mine = {(o.type, o.name): o.tokens for o in registry.reference(version).objects}
        assert {(kind, name): tokens_of(sql) for kind, name, _, sql in objects} == mine


@pytest.mark.parametrize("version", range(1, registry.CURRENT))
def test_u39_every_version_is_brought_to_the_hash_of_a_fresh_database(
    site: Site, version: int
) -> None:
    if version == 1:
        change(empty_v1(site.database), message("m"))
    else:
        filled_v2(site.database, 20)
    site.work(Task.UPGRADE)
    connection = database.open_inspector(site.database)
    assert identify(connection).schema_hash == registry.HASHES[registry.CURRENT]
    connection.close()


def test_u37_u38_every_version_has_its_text_its_hash_and_one_step_to_the_next() -> None:
    assert sorted(registry.HASHES) == list(range(1, registry.CURRENT + 1))
    assert sorted(steps.STEPS) == list(range(1, registry.CURRENT))
    assert all((each.source, each.target) == (at, at + 1) for at, each in steps.STEPS.items())
    for step in list(steps.STEPS.values())[1:]:
        objects = registry.objects_of(step.source)
        tables = {each.table for each in objects if each.type == "table"}
        assert {*step.kept, *step.rebuilt, "stamp"} == tables, "no table is without a proof"
