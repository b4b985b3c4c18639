"""The known schema versions, the one the hub runs on, and the verdict on a database.

Knows no way from one version to the next; upgrade does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from tfx.core import database
from tfx.errors import StateConflict
from tfx.hub.schema.identity import Identity, Stamp, differences, hash_of, identify
from tfx.hub.schema.triflux import is_known_extra

CURRENT: Final = 3
FOLD: Final = 1
"""The version of the fold: raised when the same log would give other projections (K-23)."""
APPLICATION_ID: Final = 0x74667868

HASHES: Final[Mapping[int, str]] = MappingProxyType(
    {
        1: "40f251b6a1088f7f193b6e1adf1d2a1fcf5d46ef273b6660a1af70dd651a0915",
        2: "409676107ae87e14753f6fdd1777e133b210664dafd083753598e4e6ad1a2a6a",
        3: "9d71e09e545f34c2c906bb74f8364ac22508b0347e1d5e2f6b9ee68b823a5a6c",
    }
)
"""Every known version and the hash of its text, pinned (U-31, U-36)."""

PROJECTIONS: Final = (
    "runs",
    "agents",
    "subscriptions",
    "messages",
    "deliveries",
    "human_requests",
    "tasks",
    "blockers",
    "artifacts",
    "work_leases",
    "review_leases",
    "locks",
    "occupancy",
    "invocations",
)
"""The tables that a rebuild drops, recreates and folds again."""


class Verdict(StrEnum):
    """What a database is to this program."""

    EMPTY = "empty"
    CURRENT = "current"
    OLDER = "older"
    OTHER_FOLD = "other-fold"
    NEWER = "newer"
    TAMPERED = "tampered"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict, the version where it is known, and what differs where it is not.

    `extras` are tables of triflux that stand beside version 1 and are not taken over (U-41).
    """

    verdict: Verdict
    version: int | None
    differences: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()


def schema_text(version: int) -> str:
    """Return the whole schema of a version, as released."""
    return (files(__package__) / f"v{version}.sql").read_text("utf-8")


def create(connection: database.Connection, version: int = CURRENT) -> None:
    """Make the schema of a version in an empty database, with its stamp, in one transaction."""
    with database.Transaction(connection):
        fill(connection, version)


def fill(connection: database.Connection, version: int = CURRENT) -> None:
    """Do what `create` does inside the caller's transaction."""
    database.script(connection, schema_text(version))
    if version == 1:
        return
    connection.execute("INSERT INTO counted VALUES (1, 0, 0, 0, 0)")
    restamp(connection, version, FOLD)


def restamp(connection: database.Connection, version: int, fold: int | None = None) -> None:
    """Write into the file what it is now: header, version, hash of its own objects, fold (U-31).

    Without `fold` the stamp keeps the one it names. Runs in the caller's transaction, of which
    the header's `user_version` is a part too (EV-M1).
    """
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}").fetchall()
    connection.execute(f"PRAGMA user_version = {version}").fetchall()
    connection.execute(
        "INSERT INTO stamp VALUES (1, ?1, ?2, coalesce(?3, (SELECT fold_version FROM stamp))) "
        "ON CONFLICT (one) DO UPDATE SET schema_version = excluded.schema_version, "
        "schema_hash = excluded.schema_hash, fold_version = excluded.fold_version",
        (version, identify(connection).schema_hash, fold),
    )


def statements_of(tables: Collection[str]) -> tuple[str, ...]:
    """Return the statements of the current schema that make these tables, tables first."""
    return tuple(each.sql for each in objects_of(CURRENT) if each.table in tables)


@dataclass(frozen=True, slots=True)
class Definition:
    """One object of a version as its text makes it: kind, the table it belongs to, statement."""

    type: str
    table: str
    sql: str


@cache
def objects_of(version: int) -> tuple[Definition, ...]:
    """Return the objects of a version in the order of its text."""
    connection = database.open_memory()
    try:
        database.script(connection, schema_text(version))
        rows = connection.execute(
            "SELECT type, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL "
            "AND name <> 'sqlite_sequence' ORDER BY rowid"
        ).fetchall()
    finally:
        connection.close()
    return tuple(Definition(str(kind), str(table), str(sql)) for kind, table, sql in rows)


def reference(version: int) -> Identity:
    """Return the identity of a version, computed from its text."""
    connection = database.open_memory()
    try:
        create(connection, version)
        return identify(connection)
    finally:
        connection.close()


def judge(identity: Identity) -> Judgement:
    """Return the verdict on a database: stamp, computed hash and known versions agree, or not.

    Version 1 is recognised by its hash alone (U-40); every later one needs its stamp (U-31).
    """
    if identity.is_empty:
        return Judgement(Verdict.EMPTY, None)
    if identity.stamp is None:
        return _judge_unstamped(identity)
    if identity.stamp.schema_version > CURRENT:
        return Judgement(Verdict.NEWER, identity.stamp.schema_version)
    return _judge_stamped(identity, identity.stamp)


def _judge_unstamped(identity: Identity) -> Judgement:
    known = next((v for v, h in HASHES.items() if h == identity.schema_hash), None)
    if known == 1:
        return Judgement(Verdict.OLDER, known)
    if known is not None:
        return Judgement(Verdict.TAMPERED, known, ("the stamp does not hold exactly one row",))
    names = {each.name for each in identity.objects}
    if names.isdisjoint({"message_inbox", "dead_letters"}):
        return Judgement(Verdict.UNKNOWN, None, differences(identity, reference(CURRENT)))
    return _judge_triflux(identity)


def _judge_triflux(identity: Identity) -> Judgement:
    extras = tuple(each for each in identity.objects if is_known_extra(each))
    base = tuple(each for each in identity.objects if each not in extras)
    if hash_of(base, identity.encoding, identity.application_id) != HASHES[1]:
        without = replace(identity, objects=base)
        return Judgement(Verdict.UNKNOWN, None, differences(without, reference(1)))
    tables = tuple(each.name for each in extras if each.type == "table")
    return Judgement(Verdict.OLDER, 1, extras=tables)


def _judge_stamped(identity: Identity, stamp: Stamp) -> Judgement:
    version = stamp.schema_version
    if not identity.schema_hash == stamp.schema_hash == HASHES.get(version):
        found = differences(identity, reference(version if version in HASHES else CURRENT))
        return Judgement(Verdict.TAMPERED, version, found or ("the stamp names another schema",))
    if stamp.fold_version > FOLD:
        return Judgement(Verdict.NEWER, version)
    if version < CURRENT:
        return Judgement(Verdict.OLDER, version)
    current = stamp.fold_version == FOLD
    return Judgement(Verdict.CURRENT if current else Verdict.OTHER_FOLD, version)


def refuse_unless_current(identity: Identity, path: str) -> None:
    """Raise StateConflict for every database the hub must not run on (U-7, K-23).

    Codes: `schema-older`, `schema-newer`, `schema-unknown`, `schema-tampered`, `fold-other`.
    """
    judgement = judge(identity)
    verdict, version = judgement.verdict, judgement.version
    if verdict is Verdict.CURRENT:
        return
    code, what, hint = _REFUSALS[verdict]
    named = "" if version is None else f" (schema version {version})"
    raise StateConflict(
        f"{path} {what}{named}",
        code=code,
        hint=hint,
        details={
            "path": path,
            "found_version": version,
            "wanted_version": CURRENT,
            "differences": list(judgement.differences[:50]),
        },
    )


_REFUSALS: Final[Mapping[Verdict, tuple[str, str, str]]] = MappingProxyType(
    {
        Verdict.EMPTY: ("schema-unknown", "holds no schema", "move the file away"),
        Verdict.OLDER: ("schema-older", "has an older schema", "tfx upgrade"),
        Verdict.OTHER_FOLD: ("fold-other", "was folded by an older program", "tfx upgrade"),
        Verdict.NEWER: ("schema-newer", "was written by a newer tfx", "tfx update"),
        Verdict.TAMPERED: (
            "schema-tampered",
            "has a schema that its stamp does not name",
            "tfx backup list",
        ),
        Verdict.UNKNOWN: (
            "schema-unknown",
            "is a database of another program or an unknown version",
            "name another file in TFX_HUB_DB, or move this one away",
        ),
    }
)
