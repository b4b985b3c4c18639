"""Say which schema a database has: a hash over its DDL that survives formatting, not meaning.

Knows no version by name; the registry does.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tfx.core.database import Connection

TAG: Final = "tfxh1:"

_FTS_SHADOWS = ("data", "idx", "content", "docsize", "config")
_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*(?:\n|\Z)|/\*.*?(?:\*/|\Z))
  | (?P<blob>[xX]'[^']*')
  | (?P<string>'(?:[^']|'')*')
  | (?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\])
  | (?P<number>0[xX][0-9a-fA-F]+|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<word>[^\W\d][\w$]*)
  | (?P<sign>\|\||<<|>>|<>|<=|>=|==|!=|->>|->|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

# The words of SQLite's grammar, pinned here so that the hash does not depend on the linked one.
_KEYWORDS: Final = frozenset(
    """
    abort action add after all alter always analyze and as asc attach autoincrement before begin
    between by cascade case cast check collate column commit conflict constraint create cross
    current current_date current_time current_timestamp database default deferrable deferred delete
    desc detach distinct do drop each else end escape except exclude exclusive exists explain fail
    filter first following for foreign from full generated glob group groups having if ignore
    immediate in index indexed initially inner insert instead intersect into is isnull join key last
    left like limit match materialized natural no not nothing notnull null nulls of offset on or
    order others outer over partition plan pragma preceding primary query raise range recursive
    references regexp reindex release rename replace restrict returning right rollback row rows
    savepoint select set table temp temporary then ties to transaction trigger unbounded union
    unique update using vacuum values view virtual when where window with within without
    """.split()  # noqa: SIM905  (147 quoted words would hide the list)
)


@dataclass(frozen=True, slots=True)
class SchemaObject:
    """One object of a schema: its tokens are what identity is made of."""

    type: str
    name: str
    table: str
    tokens: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a database says of itself (U-31)."""

    schema_version: int
    schema_hash: str
    fold_version: int


@dataclass(frozen=True, slots=True)
class Identity:
    """What a database is: the computed hash, its objects, and its stamp if it has one row of it."""

    schema_hash: str
    objects: tuple[SchemaObject, ...]
    encoding: str
    application_id: int
    user_version: int
    stamp: Stamp | None

    @property
    def is_empty(self) -> bool:
        """True for a database without any object."""
        return not self.objects


def tokens_of(sql: str) -> tuple[str, ...]:
    """Return the tokens of a DDL statement in their normal form (U-29, U-30)."""
    found = [_normal(kind, text) for kind, text in _tokens(sql)]
    if found and found[-1] == ";":
        found.pop()
    for at in range(len(found) - 2):
        if found[at : at + 3] == ["if", "not", "exists"]:
            del found[at : at + 3]
            break
    return tuple(found)


def double_quoted_strings(sql: str) -> list[str]:
    """Return the double-quoted tokens of a text; canonical DDL has none (U-30)."""
    return [text for kind, text in _tokens(sql) if kind == "quoted" and text.startswith('"')]


def identify(connection: Connection) -> Identity:
    """Return the identity of the main database (U-27, U-28); reads only."""
    objects = _objects(connection)
    encoding = str(connection.pragma("encoding"))
    application_id = _number(connection.pragma("application_id"))
    listed = [[each.type, each.name, each.table, list(each.tokens)] for each in objects]
    text = json.dumps([TAG, encoding, application_id, listed], separators=(",", ":"))
    return Identity(
        schema_hash=hashlib.sha256(text.encode()).hexdigest(),
        objects=objects,
        encoding=encoding,
        application_id=application_id,
        user_version=_number(connection.pragma("user_version")),
        stamp=_stamp(connection, objects),
    )


def differences(found: Identity, wanted: Identity) -> tuple[str, ...]:
    """Return one line for each object that is missing, unexpected or different, and the header."""
    have = {(each.type, each.name): each for each in found.objects}
    want = {(each.type, each.name): each for each in wanted.objects}
    lines = [f"missing {kind} {name}" for kind, name in sorted(want.keys() - have.keys())]
    lines += [f"unexpected {kind} {name}" for kind, name in sorted(have.keys() - want.keys())]
    lines += [
        f"different {kind} {name}"
        for kind, name in sorted(have.keys() & want.keys())
        if have[kind, name] != want[kind, name]
    ]
    if found.encoding != wanted.encoding:
        lines.append(f"encoding {found.encoding} instead of {wanted.encoding}")
    if found.application_id != wanted.application_id:
        lines.append(f"application_id {found.application_id} instead of {wanted.application_id}")
    return tuple(lines)


def _tokens(sql: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup or "sign"
        if kind != "space":
            yield kind, match.group()


def _normal(kind: str, text: str) -> str:
    if kind in {"word", "number"}:
        return text.lower()
    if kind == "quoted":
        inner = text[1:-1].replace(text[-1] * 2, text[-1]) if text[0] != "[" else text[1:-1]
        plain = _PLAIN.match(inner) and inner.lower() not in _KEYWORDS
        return inner.lower() if plain else f'"{inner}"'
    return text


def _objects(connection: Connection) -> tuple[SchemaObject, ...]:
    rows = [
        (str(kind), str(name), str(table), str(sql))
        for kind, name, table, sql in connection.execute(
            "SELECT type, name, tbl_name, sql FROM sqlite_schema "
            "WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        )
    ]
    tokens = {(kind, name): tokens_of(sql) for kind, name, _, sql in rows}
    full_text = {
        name for kind, name, _, _ in rows if kind == "table" and _is_full_text(tokens[kind, name])
    }
    shadows = {f"{name}_{suffix}" for name in full_text for suffix in _FTS_SHADOWS}
    return tuple(
        SchemaObject(kind, name, table, tokens[kind, name])
        for kind, name, table, _ in sorted(rows)
        if not (kind == "table" and name in shadows)
    )


def _is_full_text(tokens: tuple[str, ...]) -> bool:
    return tokens[:3] == ("create", "virtual", "table") and "fts5" in tokens[3:8]


def _stamp(connection: Connection, objects: tuple[SchemaObject, ...]) -> Stamp | None:
    table = next((o for o in objects if o.type == "table" and o.name == "stamp"), None)
    if table is None or not {"schema_version", "schema_hash", "fold_version"} <= set(table.tokens):
        return None
    rows = connection.execute(
        "SELECT schema_version, schema_hash, fold_version FROM stamp LIMIT 2"
    ).fetchall()
    if len(rows) != 1:
        return None
    version, schema_hash, fold = rows[0]
    if not (isinstance(version, int) and isinstance(schema_hash, str) and isinstance(fold, int)):
        return None
    return Stamp(version, schema_hash, fold) if re.fullmatch("[0-9a-f]{64}", schema_hash) else None


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
