"""The SQL functions that steps need: pure, and the same rules as the hub's own.

Knows no table.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from tfx.core import canonical_json, database
from tfx.errors import InvalidRequest
from tfx.hub.store.events import encode_texts, event_id
from tfx.hub.store.humans import digest_of
from tfx.hub.store.kinds import Kind

if TYPE_CHECKING:
    from tfx.core.database import Connection


def add(connection: Connection) -> None:
    """Add every function that a step may call to a connection."""
    for name, function, arguments in (
        ("is_utf8", is_utf8, 1),
        ("event_id", imported_id, 2),
        ("json_texts", texts, 1),
        ("json_clean", clean, 1),
        ("human_digest", human_digest, 3),
    ):
        database.add_function(connection, name, function, arguments)


def is_utf8(data: bytes) -> int:
    """Return 1 for bytes that are UTF-8, else 0."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return 0
    return 1


def imported_id(stream: str, observed: int) -> bytes:
    """Return the id of an `imported` event (EV-L5)."""
    return event_id(stream, Kind.IMPORTED.value, observed)


def texts(data: bytes) -> str:
    """Return the strings of a JSON list, sorted and once each; `[]` for anything else."""
    try:
        value = canonical_json.parse(data)
    except InvalidRequest:
        return "[]"
    if not isinstance(value, list):
        return "[]"
    return encode_texts(sorted({each for each in value if isinstance(each, str)}))


def clean(data: bytes) -> str:
    """Return canonical JSON for an object that passes the hub's own check; else `{}`."""
    try:
        value = canonical_json.parse(data)
    except InvalidRequest:
        return "{}"
    return canonical_json.dump(value).decode() if isinstance(value, dict) else "{}"


def human_digest(kind: str, prompt: str, schema: bytes) -> bytes:
    """Return the digest of a question; a schema that is no text counts by its own digest."""
    if not is_utf8(schema):
        schema = hashlib.sha256(schema).hexdigest().encode()
    return digest_of(kind, prompt, schema)
