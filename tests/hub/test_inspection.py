"""A look into the database changes no byte of it (K-22)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hub.running import RunningHub
from tests.support import listing
from tfx.errors import NotFound
from tfx.hub.schema.registry import Verdict
from tfx.hub.store.inspection import disagreements, inspect, open_by


def test_k_22_a_database_at_rest_is_read_immutably(hub: RunningHub) -> None:
    hub.register("agent-1")
    hub.end()
    before = listing(hub.home)
    seen = inspect(hub.files.database, deep=True)
    assert (seen.judgement.verdict, seen.damage, seen.orphans) == (Verdict.CURRENT, (), ())
    assert (seen.journal_mode, seen.sqlite_is_old) == ("wal", False)
    assert seen.last_event_at_ms is not None
    assert disagreements(hub.files.database) == ()
    assert listing(hub.home) == before


def test_k_22_a_running_hubs_database_can_be_looked_at(hub: RunningHub) -> None:
    hub.register("agent-1")
    assert inspect(hub.files.database).judgement.verdict is Verdict.CURRENT
    assert hub.pid in open_by(hub.files.database)


def test_a_missing_database_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        inspect(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []
