from __future__ import annotations

from collections.abc import Callable

import pytest

from tfx.core import database
from tfx.hub.schema.identity import double_quoted_strings, identify, tokens_of

SCHEMA = """
CREATE TABLE parent (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL COLLATE NOCASE)
STRICT;
CREATE TABLE child (
  id INTEGER PRIMARY KEY,
  parent INTEGER REFERENCES parent (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
  state TEXT NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'old')),
  amount INTEGER,
  twice INTEGER GENERATED ALWAYS AS (amount * 2) STORED,
  CONSTRAINT small CHECK (amount < 100),
  UNIQUE (state, amount) ON CONFLICT ABORT
);
CREATE INDEX child_state ON child (state DESC) WHERE amount IS NOT NULL;
CREATE VIEW names AS SELECT name FROM parent;
CREATE TRIGGER child_stays BEFORE DELETE ON child BEGIN SELECT RAISE(ABORT, 'stay'); END;
CREATE VIRTUAL TABLE words USING fts5(body, tokenize = 'porter');
"""


def made(text: str = SCHEMA) -> database.Connection:
    connection = database.open_memory()
    database.script(connection, text)
    return connection


def hash_of(connection: database.Connection) -> str:
    try:
        return identify(connection).schema_hash
    finally:
        connection.close()


def after(*statements: str) -> Callable[[], database.Connection]:
    def build() -> database.Connection:
        connection = made()
        for statement in statements:
            connection.execute(statement).fetchall()
        return connection

    return build


def of(old: str, new: str) -> Callable[[], database.Connection]:
    def build() -> database.Connection:
        assert old in SCHEMA
        return made(SCHEMA.replace(old, new, 1))

    return build


def _reordered() -> database.Connection:
    statements = [part for part in SCHEMA.split(";\n") if part.strip()]
    tables = [s for s in statements if "CREATE TABLE" in s or "VIRTUAL" in s]
    others = [s for s in statements if s not in tables]
    return made(";\n".join([*reversed(tables), *reversed(others)]) + ";")


EQUAL = {
    "whitespace": of("(id INTEGER PRIMARY KEY AUTOINCREMENT, ", "(  id\n INTEGER PRIMARY\tKEY "
                     "AUTOINCREMENT,"),
    "comments": of("CREATE TABLE child (", "CREATE TABLE child ( -- one\n/* two */"),
    "keyword case": of("REFERENCES parent (id) ON DELETE CASCADE",
                       "references PARENT (ID) on delete cascade"),
    "if not exists": of("CREATE INDEX child_state", "CREATE INDEX IF NOT EXISTS child_state"),
    "quoted identifiers": of("CHECK (amount < 100)", 'CHECK ("amount" < 100)'),
    "bracketed identifiers": of("ON child (state DESC)", "ON [child] (`state` DESC)"),
    "creation order": _reordered,
    "ANALYZE": after("INSERT INTO parent (name) VALUES ('x')", "ANALYZE"),
    "VACUUM": after("VACUUM"),
    "data": after("INSERT INTO parent (name) VALUES ('x')"),
    "FTS rebuild and optimize": after(
        "INSERT INTO words (body) VALUES ('a b')",
        "INSERT INTO words (words) VALUES ('rebuild')",
        "INSERT INTO words (words) VALUES ('optimize')",
    ),
    "RENAME TABLE round trip": after(
        "ALTER TABLE parent RENAME TO other", "ALTER TABLE other RENAME TO parent"
    ),
    "RENAME COLUMN round trip": after(
        "ALTER TABLE child RENAME COLUMN amount TO other",
        "ALTER TABLE child RENAME COLUMN other TO amount",
    ),
    "ADD and DROP COLUMN": after(
        "ALTER TABLE parent ADD COLUMN extra INTEGER", "ALTER TABLE parent DROP COLUMN extra"
    ),
}  # fmt: skip

DIFFERENT = {
    "CHECK text": of("'new', 'old'", "'new', 'old', 'odd'"),
    "DEFAULT value": of("DEFAULT 'new'", "DEFAULT 'old'"),
    "COLLATE dropped": of(" COLLATE NOCASE", ""),
    "foreign key action": of("ON DELETE CASCADE", "ON DELETE SET NULL"),
    "foreign key DEFERRABLE": of(" DEFERRABLE INITIALLY DEFERRED", ""),
    "generated expression": of("amount * 2", "amount * 3"),
    "STORED to VIRTUAL": of("STORED", "VIRTUAL"),
    "AUTOINCREMENT dropped": of(" AUTOINCREMENT", ""),
    "STRICT dropped": of("STRICT;", ";"),
    "NOT NULL dropped": of("name TEXT NOT NULL", "name TEXT"),
    "index DESC": of("(state DESC)", "(state)"),
    "partial index WHERE": of("WHERE amount IS NOT NULL", "WHERE amount > 0"),
    "trigger body": of("'stay'", "'leave'"),
    "trigger timing": of("BEFORE DELETE", "AFTER DELETE"),
    "extra trigger": after("CREATE TRIGGER more AFTER INSERT ON child BEGIN SELECT 1; END"),
    "view body": of("SELECT name FROM parent", "SELECT id FROM parent"),
    "FTS tokenizer option": of("porter", "ascii"),
    "UNIQUE ON CONFLICT": of("ON CONFLICT ABORT", "ON CONFLICT IGNORE"),
    "constraint name": of("CONSTRAINT small", "CONSTRAINT tiny"),
    "string case": of("DEFAULT 'new'", "DEFAULT 'NEW'"),
    "extra index": after("CREATE INDEX more ON parent (name)"),
    "extra table": after("CREATE TABLE more (id INTEGER)"),
    "table named like a shadow table": after("CREATE TABLE words_extra (id INTEGER)"),
}


@pytest.mark.parametrize("mutation", EQUAL)
def test_u_34_a_change_of_form_keeps_the_hash(mutation: str) -> None:
    assert hash_of(EQUAL[mutation]()) == hash_of(made())


@pytest.mark.parametrize("mutation", DIFFERENT)
def test_u_35_a_change_of_meaning_changes_the_hash(mutation: str) -> None:
    assert hash_of(DIFFERENT[mutation]()) != hash_of(made())


@pytest.mark.parametrize("pragma", ["application_id = 7", "encoding = 'UTF-16le'"])
def test_u_27_encoding_and_application_id_count(pragma: str) -> None:
    connection = database.open_memory()
    connection.execute(f"PRAGMA {pragma}").fetchall()
    database.script(connection, SCHEMA)
    assert hash_of(connection) != hash_of(made())


@pytest.mark.parametrize("pragma", ["user_version = 9", "page_size = 8192"])
def test_u_27_page_size_and_user_version_do_not_count(pragma: str) -> None:
    connection = database.open_memory()
    connection.execute(f"PRAGMA {pragma}").fetchall()
    database.script(connection, SCHEMA)
    assert hash_of(connection) == hash_of(made())


def test_u_29_tokens_keep_strings_and_drop_the_rest_of_the_form() -> None:
    text = "CREATE TABLE IF NOT EXISTS \"Foo\" (a TEXT DEFAULT 'It''s', \"select\" INT);"
    assert tokens_of(text) == (
        "create", "table", "foo", "(", "a", "text", "default", "'It''s'", ",", '"select"', "int",
        ")",
    )  # fmt: skip


def test_u_30_double_quoted_tokens_are_found() -> None:
    assert double_quoted_strings('SELECT "a", \'b\', [c] -- "d"\n') == ['"a"']
