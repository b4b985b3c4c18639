"""Every query has its index: what the planner says is the assertion (EV-Q1, EV-Q2, EV-J5)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import ModuleType

import pytest

from tfx.core import database
from tfx.hub.schema import registry
from tfx.hub.store import (
    agents,
    counters,
    humans,
    invocations,
    leases,
    message_sql,
    messages,
    occupancy,
    retention,
    reviews,
    task_story,
    tasks,
    twins,
    tx,
    views,
)

# Read whole by their nature: a singleton row, or a sum over a partial index at start.
WHOLE = {
    *("views.FORGOTTEN", "views.FIRST_EVENT", "views.LAST_EVENT", "retention.RUNS"),
    *("reviews.REVIEWS_OF_AGENT", "reviews.REVIEWS_OF_ROOM", "leases.HOLDERS"),
    *("tasks._LAST_NUMBER", "agents.BY_SESSION", "occupancy.OCCUPIED"),
}
# Sorted by their nature: the events of one trace, the requests of one correlation, the few edges
# and artifacts of one task, what one session or agent holds, the locks of one room.
SORTED = {
    *("views.TRACE", "message_sql.REQUEST_BY_CORRELATION"),
    *("tasks.OPEN_BLOCKERS", "tasks.BLOCKERS", "tasks.ARTIFACTS"),
    *("leases.OF_SESSION", "leases.OF_AGENT", "leases.HOLDERS"),
    *("reviews.REVIEWS_OF_SESSION", "reviews.REVIEWS_OF_AGENT", "reviews.REVIEWS_OF_ROOM"),
    "reviews.LOCKS_OF_ROOM",
    "twins.ATTACHED_TO",
}


def queries() -> Iterator[tuple[str, str]]:
    modules: tuple[ModuleType, ...] = (
        message_sql, messages, views, humans, agents, retention, tx, counters, tasks, twins, leases,
        reviews, occupancy, invocations, task_story,
    )  # fmt: skip
    for module in modules:
        for name, text in vars(module).items():
            if not isinstance(text, str) or "{" in text:  # a template is none yet
                continue
            if text.startswith("SELECT ") and " WHERE " in text:
                yield f"{module.__name__.rpartition('.')[2]}.{name}", text


def plan(text: str) -> list[str]:
    connection = database.open_memory()
    registry.create(connection)
    numbered = {int(number) for number in re.findall(r"\?(\d+)", text)}
    wanted = max(numbered) if numbered else text.count("?")
    rows = connection.execute(f"EXPLAIN QUERY PLAN {text}", (1,) * wanted).fetchall()
    connection.close()
    return [str(row[3]) for row in rows]


ALL = dict(queries())


@pytest.mark.parametrize("name", [name for name in ALL if not name.endswith("_COLUMNS")])
def test_ev_q2_each_query_searches_an_index(name: str) -> None:
    steps = plan(ALL[name])
    if name not in WHOLE:
        scans = [
            s for s in steps if s.startswith("SCAN") and "json_each" not in s and s != "SCAN s"
        ]
        assert scans == []
    if name not in SORTED:
        assert [s for s in steps if "TEMP B-TREE" in s] == []


def test_ev_q2_the_next_message_of_an_inbox_is_one_search_in_order() -> None:
    assert plan(message_sql.CANDIDATES) == [
        "SEARCH d USING INDEX deliveries_inbox (receiver=?)",
        "SEARCH m USING INTEGER PRIMARY KEY (rowid=?)",
        "SEARCH l USING INTEGER PRIMARY KEY (rowid=?)",
    ]


def test_what_is_due_is_one_search_in_order() -> None:
    assert plan(message_sql.DUE)[0].startswith("SEARCH d USING INDEX deliveries_due")
    assert plan(humans.DUE)[0].startswith("SEARCH h USING INDEX human_requests_deadline")


def test_pending_requests_do_not_walk_over_closed_ones() -> None:
    assert plan(humans.PENDING)[0].startswith("SEARCH h USING INDEX human_requests_pending")
