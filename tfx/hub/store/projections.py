"""The SQL of each change that the fold makes, and the one function that applies them.

Knows no event and no rule.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tfx.hub.store.changes import Change
from tfx.hub.store.projections_occupancy import OCCUPANCY_SQL
from tfx.hub.store.projections_work import WORK_SQL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfx.core.database import Connection
    from tfx.hub.store.changes import Changes

SQL: Final[Mapping[Change, str]] = MappingProxyType(
    {
        Change.RUN_OPEN: (
            "INSERT INTO runs (stream, epoch, program, fold_version, started_at_ms, last_seq) "
            "VALUES (?, ?, ?, ?, ?, ?)"
        ),
        Change.RUN_STOP: "UPDATE runs SET stopped_at_ms = ?, last_seq = ? WHERE stream = ?",
        Change.RUN_JUMP: (
            "UPDATE runs SET jumped_ms = jumped_ms + ?, last_seq = ? WHERE stream = ?"
        ),
        Change.SHIFT_DELIVERIES: (
            "UPDATE deliveries SET due_at_ms = due_at_ms + ?, expires_at_ms = expires_at_ms + ?, "
            "last_seq = ? WHERE due_at_ms IS NOT NULL"
        ),
        Change.SHIFT_HUMANS: (
            "UPDATE human_requests SET deadline_ms = deadline_ms + ?, last_seq = ? "
            "WHERE state = 'pending'"
        ),
        Change.AGENT_PUT: (
            "INSERT INTO agents (stream, id, client, workspace, capabilities, metadata, session, "
            "ttl_ms, pid, start_token, boot_id, host, pid_namespace, registered_at_ms, last_seq) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (stream) DO UPDATE SET client = excluded.client, "
            "workspace = excluded.workspace, capabilities = excluded.capabilities, "
            "metadata = excluded.metadata, session = excluded.session, ttl_ms = excluded.ttl_ms, "
            "pid = excluded.pid, start_token = excluded.start_token, boot_id = excluded.boot_id, "
            "host = excluded.host, pid_namespace = excluded.pid_namespace, "
            "ended_at_ms = NULL, retired_at_ms = NULL, "
            "last_seq = excluded.last_seq"
        ),
        Change.AGENT_END: (
            "UPDATE agents SET session = NULL, ended_at_ms = ?, last_seq = ? WHERE stream = ?"
        ),
        Change.AGENT_RETIRE: (
            "UPDATE agents SET session = NULL, ended_at_ms = coalesce(ended_at_ms, ?), "
            "retired_at_ms = ?, last_seq = ? WHERE stream = ?"
        ),
        Change.TOPICS_CLEAR: "DELETE FROM subscriptions WHERE agent = ?",
        Change.TOPIC_ADD: "INSERT INTO subscriptions (topic, agent, last_seq) VALUES (?, ?, ?)",
        Change.MESSAGE_ADD: (
            "INSERT INTO messages (stream, id, type, sender, recipient, topic, priority, "
            "posted_at_ms, expires_at_ms, correlation_id, trace_id, cause, last_seq) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        ),
        Change.MESSAGE_SETTLE: (
            "UPDATE messages SET answer = ?, settled = ?, last_seq = ? WHERE stream = ?"
        ),
        Change.MESSAGE_GIVE_UP: (
            "UPDATE messages SET settled = 'dead', last_seq = ? "
            "WHERE stream = ? AND settled IS NULL"
        ),
        Change.DELIVERY_ADD: (
            "INSERT INTO deliveries (message, receiver, state, priority, attempts, expires_at_ms, "
            "due_at_ms, last_seq) VALUES (?, ?, 'queued', ?, 0, ?, ?, ?)"
        ),
        Change.DELIVERY_ADD_DEAD: (
            "INSERT INTO deliveries (message, receiver, state, priority, attempts, expires_at_ms, "
            "closed_at_ms, closed_seq, reason, last_seq) VALUES (?, ?, 'dead', ?, 0, ?, ?, ?, ?, ?)"
        ),
        Change.DELIVERY_REDIRECT: (
            "UPDATE deliveries SET receiver = ?, last_seq = ? WHERE message = ? AND receiver = ?"
        ),
        Change.DELIVERY_CLAIM: (
            "UPDATE deliveries SET state = 'claimed', attempts = ?, claim = ?, due_at_ms = ?, "
            "last_seq = ? WHERE message = ? AND receiver = ?"
        ),
        Change.DELIVERY_RETURN: (
            "UPDATE deliveries SET state = 'queued', claim = NULL, due_at_ms = expires_at_ms, "
            "last_seq = ? WHERE message = ? AND receiver = ?"
        ),
        Change.DELIVERY_CLOSE: (
            "UPDATE deliveries SET state = ?, claim = NULL, due_at_ms = NULL, closed_at_ms = ?, "
            "closed_seq = ?, reason = ?, last_error = ?, last_seq = ? "
            "WHERE message = ? AND receiver = ?"
        ),
        Change.DELIVERY_REPLAY: (
            "UPDATE deliveries SET replayed_as = ?, last_seq = ? WHERE message = ? AND receiver = ?"
        ),
        Change.HUMAN_OPEN: (
            "INSERT INTO human_requests (stream, id, requester, kind, state, default_action, "
            "channel, digest, correlation_id, trace_id, opened_at_ms, deadline_ms, last_seq) "
            "VALUES (?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?)"
        ),
        Change.HUMAN_CLOSE: (
            "UPDATE human_requests SET state = ?, closed_at_ms = ?, closed_seq = ?, "
            "answered_by = ?, response = ?, last_seq = ? WHERE stream = ?"
        ),
        Change.AGENT_IMPORT: (
            "INSERT INTO agents (stream, id, client, capabilities, metadata, ttl_ms, "
            "registered_at_ms, ended_at_ms, last_seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        ),
        Change.MESSAGE_IMPORT: (
            "INSERT INTO messages (stream, id, type, sender, recipient, topic, priority, "
            "posted_at_ms, expires_at_ms, correlation_id, trace_id, answer, settled, last_seq) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        ),
        Change.DELIVERY_IMPORT: (
            "INSERT INTO deliveries (message, receiver, state, priority, attempts, expires_at_ms, "
            "due_at_ms, closed_at_ms, closed_seq, reason, last_error, last_seq) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        ),
        **WORK_SQL,
        **OCCUPANCY_SQL,
    }
)


def apply(connection: Connection, changes: Changes) -> None:
    """Run the statements of changes inside the caller's transaction."""
    for change, row in changes:
        connection.execute(SQL[change], row)
