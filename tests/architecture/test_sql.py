"""SQL that must not be written, anywhere in the product (EV-L1, EV-L11, EV-S3, EV-S12)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tfx

SOURCES = sorted(Path(tfx.__file__).parent.rglob("*.py")) + sorted(
    Path(tfx.__file__).parent.rglob("*.sql")
)
DOOR = "database.py"


@pytest.mark.parametrize(
    "pattern",
    [
        r"OR\s+REPLACE\b",
        r"\bREPLACE\s+INTO\b",
        r"\bexecutescript\b",
        r"\blast_?rowid\b|last_insert_rowid",
        r"[\"']BEGIN( |;|[\"']\))",
        r"\bmmap_size\b",
        r"synchronous\W+OFF\b(?!.*scratch)",
    ],
)
def test_a_banned_phrase_stands_nowhere_but_in_the_door(pattern: str) -> None:
    found = [
        path.name
        for path in SOURCES
        if path.name != DOOR and re.search(pattern, path.read_text("utf-8"), re.IGNORECASE)
    ]
    assert found == []


def test_sql_stands_in_the_store_the_schema_and_the_door_only() -> None:
    statement = re.compile(r"[\"'](SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE TABLE) ")
    found = {
        path.parent.name
        for path in SOURCES
        if path.suffix == ".py" and statement.search(path.read_text("utf-8"))
    }
    assert found <= {"store", "schema", "core", "upgrade"}
