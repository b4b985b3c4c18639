"""What a constraint of the schema means to the caller whose command it refused.

Knows no command; the schema's triggers and indexes speak here.
"""

from __future__ import annotations

from typing import Final

from tfx.core import database
from tfx.errors import OperationFailed, StateConflict, TfxError


def refusal_of(error: database.ConstraintError) -> TfxError:
    """Return the typed error of a constraint that a command ran into."""
    text = str(error)
    for sign, code, what in _CONSTRAINTS:
        if sign in text:
            return StateConflict(what, code=code)
    return OperationFailed(f"the database forbids it: {text}", code="constraint")


_CONSTRAINTS: Final = (
    ("log.stream, log.previous", "stale", "the stream has moved; read it again"),
    ("log.actor, log.op_id", "idempotency-conflict", "the key was used for another request"),
    ("log.answers", "already-answered", "the request has its answer"),
    ("log_answers", "already-answered", "the request has its answer"),
)
