"""Follow the event log across restarts of the hub, each event once (H-26)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from tfx.errors import AgentUnavailable, JsonValue
from tfx.hub.client import HubClient
from tfx.hub.models import Cursor
from tfx.hub.wire.views import EventsResult, EventView

if TYPE_CHECKING:
    from tfx.core.paths import Paths

_AWAY_S = 30.0
_PAUSE_S = 0.2


def follow_events(
    paths: Paths, after: str | None
) -> Iterator[tuple[EventView, dict[str, JsonValue]]]:
    """Yield events for ever, from a cursor or from now on, typed and as plain JSON.

    Raises AgentUnavailable when the hub is not there at first or stays away for 30 s.
    """
    cursor = Cursor(after) if after else _end_of_log(paths)
    away_since: float | None = None
    while True:
        try:
            with HubClient.of(paths) as client:
                for event in client.events(cursor):
                    away_since, cursor = None, event.cursor
                    yield event, json.loads(msgspec.json.encode(event))
        except AgentUnavailable:
            now = time.monotonic()
            away_since = away_since or now
            if now - away_since > _AWAY_S:
                raise
            time.sleep(_PAUSE_S)


def _end_of_log(paths: Paths) -> Cursor:
    with HubClient.of(paths) as client:
        return client.call_with("events", {"tail": True, "limit": 1}, EventsResult).next_cursor
