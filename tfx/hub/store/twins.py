"""Which open task has a mark: a source, a branch, a PR, an output, an artifact (WK-K5).

SQL only; what counts as the same mark is decided by the services.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tfx.hub.store.tasks import COLUMNS, IS_OPEN, row_of

if TYPE_CHECKING:
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Tx

_SAME: Final = "{0} IS NOT NULL AND {0} COLLATE NOCASE IN (?2, ?4, ?5)"
_EXACT: Final = _SAME + " AND {0} IN (?2, ?4, ?5)"
_REST: Final = f"AND t.stream <> ?3 AND {IS_OPEN.format('t')} ORDER BY t.number LIMIT 1"

# Left to itself the planner reads all open tasks in the order of their numbers instead.
_BY_FIELD: Final = (
    f"SELECT {COLUMNS} FROM tasks t INDEXED BY tasks_{{0}} "  # noqa: S608  (names of this module)
    f"WHERE t.room = ?1 AND {{1}} {_REST}"
)
_BY_ARTIFACT: Final = (
    f"SELECT {COLUMNS} FROM artifacts a INDEXED BY artifacts_identity "  # noqa: S608
    "CROSS JOIN tasks t ON t.stream = a.task "
    f"WHERE a.kind = '{{0}}' AND {{1}} AND t.room = ?1 {_REST}"
)
_SOURCES: Final = ("source_message", "source_task")
_FIELDS: Final = ("branch", "pr", "output")
_KINDS: Final = ("branch", "pr", "commit")
_RULES: Final = (("", _SAME), ("!", _EXACT))

TWINS: Final = {
    **{each: _BY_FIELD.format(each, f"t.{each} = ?2") for each in _SOURCES},
    **{
        each + mark: _BY_FIELD.format(each, rule.format(f"t.{each}"))
        for each in _FIELDS
        for mark, rule in _RULES
    },
    **{
        f"artifact {each}{mark}": _BY_ARTIFACT.format(each, rule.format("a.identity"))
        for each in _KINDS
        for mark, rule in _RULES
    },
}
"""The query for each place where a mark can stand; with `!` its case counts."""

ATTACHED_TO: Final = (
    f"SELECT {COLUMNS} FROM artifacts a INDEXED BY artifacts_identity "  # noqa: S608
    "CROSS JOIN tasks t ON t.stream = a.task "
    "WHERE a.identity COLLATE NOCASE = ?2 AND a.identity = ?2 AND t.room = ?1 "
    f"AND {IS_OPEN.format('t')} ORDER BY t.number LIMIT 2"
)


def twin(
    source: Tx | Reader, room: str, place: str, texts: tuple[str, str, str], except_for: int = 0
) -> TaskRow | None:
    """Return an open task of the room that has one of these texts in a place of `TWINS`."""
    values = (room, texts[0], except_for)
    if place in _SOURCES:
        row = source.one(TWINS[place], values)
    else:
        row = source.one(TWINS[place], (*values, texts[1], texts[2]))
    return None if row is None else row_of(row)


def attached_to(source: Tx | Reader, room: str, identity: str) -> list[TaskRow]:
    """Return the open tasks that have an artifact, two at most."""
    return [row_of(row) for row in source.all(ATTACHED_TO, (room, identity))]
