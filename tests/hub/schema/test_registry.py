from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.hub.driver import FakeClock
from tfx.core import database
from tfx.errors import Exit, StateConflict
from tfx.hub.schema import registry
from tfx.hub.schema.identity import double_quoted_strings, identify
from tfx.hub.schema.registry import Verdict
from tfx.hub.store.store import Store

# A released version never changes: adding one adds a line.
FROZEN = {
    1: "71eac8a0e34eecb0d920e951150869f6646dba1a4d465d4ac5462cc883483616",
    2: "fc6a27981529b3ee87251ec84ff957f80f0e9453080ddd56e07766380f0b330b",
}


def make(path: Path, version: int = registry.CURRENT, *statements: str) -> None:
    connection = database.open_writer(path, create=True)
    registry.create(connection, version)
    for statement in statements:
        connection.execute(statement).fetchall()
    connection.close()


def look(path: Path) -> registry.Judgement:
    connection = database.open_inspector(path)
    try:
        return registry.judge(identify(connection))
    finally:
        connection.close()


@pytest.mark.parametrize("version", FROZEN)
def test_u_37_a_schema_text_never_changes(version: int) -> None:
    digest = hashlib.sha256(registry.schema_text(version).encode()).hexdigest()
    assert digest == FROZEN[version]


@pytest.mark.parametrize("version", registry.HASHES)
def test_u_36_pinned_hashes_are_those_of_the_texts(version: int) -> None:
    assert registry.reference(version).schema_hash == registry.HASHES[version]


def test_u_30_the_schema_has_no_double_quoted_strings() -> None:
    assert double_quoted_strings(registry.schema_text(registry.CURRENT)) == []


def test_u_40_version_1_is_recognised_by_its_hash_alone(tmp_path: Path) -> None:
    path = tmp_path / "tfx.db"
    make(path, 1)
    assert look(path).verdict is Verdict.OLDER
    assert look(path).version == 1


def test_u_48_an_older_schema_of_a_newer_fold_is_a_newer_programs(tmp_path: Path) -> None:
    path = tmp_path / "tfx.db"
    make(path, 2, "UPDATE stamp SET fold_version = 99")
    assert look(path) == registry.Judgement(Verdict.NEWER, 2)


@pytest.mark.parametrize(
    ("statements", "verdict", "code", "hint"),
    [
        (
            ("UPDATE stamp SET fold_version = fold_version + 1",),
            Verdict.NEWER,
            "schema-newer",
            "tfx update",
        ),
        (
            ("UPDATE stamp SET schema_version = 99",),
            Verdict.NEWER,
            "schema-newer",
            "tfx update",
        ),
        (
            ("CREATE TABLE extra (a INTEGER)",),
            Verdict.TAMPERED,
            "schema-tampered",
            "tfx backup list",
        ),
        (
            ("DROP TRIGGER stamp_stays", "DELETE FROM stamp"),
            Verdict.UNKNOWN,
            "schema-unknown",
            None,
        ),
        (
            ("UPDATE stamp SET schema_hash = replace(hex(zeroblob(32)), ' ', '')",),
            Verdict.TAMPERED,
            "schema-tampered",
            None,
        ),
    ],
)
def test_u_7_u_31_the_hub_refuses_every_other_schema_and_leaves_it_alone(
    tmp_path: Path, statements: tuple[str, ...], verdict: Verdict, code: str, hint: str | None
) -> None:
    path = tmp_path / "tfx.db"
    make(path, registry.CURRENT, *statements)
    before = path.read_bytes()
    assert look(path).verdict is verdict
    with pytest.raises(StateConflict) as refused:
        Store.open(path, clock=FakeClock())
    assert refused.value.reason == code
    assert refused.value.exit is Exit.REFUSED
    assert hint is None or refused.value.hint == hint
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["tfx.db"]


@pytest.mark.parametrize("version", range(1, registry.CURRENT))
def test_u_7_an_older_schema_is_refused_with_the_command_that_upgrades(
    tmp_path: Path, version: int
) -> None:
    path = tmp_path / "tfx.db"
    make(path, version)
    before = path.read_bytes()
    with pytest.raises(StateConflict) as refused:
        Store.open(path, clock=FakeClock())
    assert (refused.value.reason, refused.value.hint) == ("schema-older", "tfx upgrade")
    assert path.read_bytes() == before


def test_ev_p5_another_fold_version_is_refused_until_upgrade_refolds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tfx.db"
    make(path)
    before = path.read_bytes()
    monkeypatch.setattr(registry, "FOLD", registry.FOLD + 1)
    with pytest.raises(StateConflict) as refused:
        Store.open(path, clock=FakeClock())
    assert (refused.value.reason, refused.value.hint) == ("fold-other", "tfx upgrade")
    assert path.read_bytes() == before


def test_u_7_what_differs_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tfx.db"
    make(path, registry.CURRENT, "DROP INDEX deliveries_due", "CREATE TABLE extra (a INTEGER)")
    with pytest.raises(StateConflict) as refused:
        Store.open(path, clock=FakeClock())
    assert refused.value.details["differences"] == [
        "missing index deliveries_due",
        "unexpected table extra",
    ]


@pytest.mark.parametrize("content", [b"not a database at all" * 100, b"SQLite format 3\0" * 300])
def test_h_22_a_file_that_is_no_database_is_refused_and_kept(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "tfx.db"
    path.write_bytes(content)
    with pytest.raises(Exception) as refused:  # noqa: PT011  (either of two kinds)
        Store.open(path, clock=FakeClock())
    assert getattr(refused.value, "reason", None) in {"not-a-database", "corrupt"}
    assert path.read_bytes() == content


def test_h_45_h_74_a_new_file_is_private_and_vacuums_itself(tmp_path: Path) -> None:
    path = tmp_path / "tfx.db"
    store = Store.open(path, clock=FakeClock())
    assert {(each.name, each.stat().st_mode & 0o777) for each in tmp_path.iterdir()} == {
        ("tfx.db", 0o600),
        ("tfx.db-wal", 0o600),
        ("tfx.db-shm", 0o600),
    }
    store.close_now()
    connection = database.open_inspector(path)
    assert connection.pragma("auto_vacuum") == 2
    assert connection.pragma("application_id") == registry.APPLICATION_ID
    assert connection.pragma("user_version") == registry.CURRENT
    connection.close()
    assert [each.name for each in tmp_path.iterdir()] == ["tfx.db"]


def test_a_first_start_that_was_cut_off_does_not_stand_in_the_way(tmp_path: Path) -> None:
    path = tmp_path / "tfx.db"
    path.touch()
    Store.open(path, clock=FakeClock()).close_now()
    assert look(path).verdict is Verdict.CURRENT
