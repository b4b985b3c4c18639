"""The SQL of each change that events of occupancy and invocations make.

Knows no event and no rule. A slice is cleared by its own id only, so that nothing late touches a
successor (EV-B8).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tfx.hub.store.changes import Change

if TYPE_CHECKING:
    from collections.abc import Mapping

OCCUPANCY_SQL: Final[Mapping[Change, str]] = MappingProxyType(
    {
        Change.SHIFT_HOLDS: (
            "UPDATE occupancy SET hold_until_ms = hold_until_ms + ?, last_seq = ? "
            "WHERE hold IS NOT NULL"
        ),
        Change.HOLD_SET: (
            "INSERT INTO occupancy (agent, stream, generation, hold, hold_holder, hold_message, "
            "hold_at_ms, hold_until_ms, last_seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (agent) DO UPDATE SET generation = excluded.generation, "
            "hold = excluded.hold, hold_holder = excluded.hold_holder, "
            "hold_message = excluded.hold_message, hold_at_ms = excluded.hold_at_ms, "
            "hold_until_ms = excluded.hold_until_ms, last_seq = excluded.last_seq"
        ),
        Change.HOLD_CLEAR: (
            "UPDATE occupancy SET hold = NULL, hold_holder = NULL, hold_message = NULL, "
            "hold_at_ms = NULL, hold_until_ms = NULL, last_seq = ? WHERE agent = ? AND hold = ?"
        ),
        Change.TERMINAL_SET: (
            "INSERT INTO occupancy (agent, stream, generation, terminal, terminal_holder, "
            "terminal_at_ms, last_seq) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (agent) DO UPDATE SET generation = excluded.generation, "
            "terminal = excluded.terminal, terminal_holder = excluded.terminal_holder, "
            "terminal_at_ms = excluded.terminal_at_ms, last_seq = excluded.last_seq"
        ),
        Change.TERMINAL_CLEAR: (
            "UPDATE occupancy SET terminal = NULL, terminal_holder = NULL, terminal_at_ms = NULL, "
            "last_seq = ? WHERE agent = ? AND terminal = ?"
        ),
        Change.BUSY_SET: (
            "INSERT INTO occupancy (agent, stream, generation, invocation, invocation_holder, "
            "invocation_at_ms, last_seq) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (agent) DO UPDATE SET generation = excluded.generation, "
            "invocation = excluded.invocation, invocation_holder = excluded.invocation_holder, "
            "invocation_at_ms = excluded.invocation_at_ms, last_seq = excluded.last_seq"
        ),
        Change.BUSY_CLEAR: (
            "UPDATE occupancy SET invocation = NULL, invocation_holder = NULL, "
            "invocation_at_ms = NULL, last_seq = ? WHERE agent = ? AND invocation = ?"
        ),
        Change.INVOCATION_ADD: (
            "INSERT INTO invocations (stream, id, kind, agent, state, holder, task, title, "
            "trace_id, started_at_ms, last_seq) VALUES (?, ?, ?, ?, 'running', ?, ?, ?, ?, ?, ?)"
        ),
        Change.INVOCATION_FINISH: (
            "UPDATE invocations SET state = 'finished', ended_at_ms = ?, is_late = ?, "
            "outcome = ?, summary = ?, error = ?, last_seq = ? WHERE stream = ?"
        ),
        Change.INVOCATION_LOSE: (
            "UPDATE invocations SET state = 'lost', ended_at_ms = ?, evidence = ?, last_seq = ? "
            "WHERE stream = ?"
        ),
        Change.INVOCATION_NOTIFY: (
            "UPDATE invocations SET notified_by = ?, notified_at_ms = ?, last_seq = ? "
            "WHERE stream = ?"
        ),
    }
)
