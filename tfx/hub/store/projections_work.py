"""The SQL of each change that events of tasks, leases, reviews and locks make.

Knows no event and no rule.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tfx.hub.store.changes import Change

if TYPE_CHECKING:
    from collections.abc import Mapping

WORK_SQL: Final[Mapping[Change, str]] = MappingProxyType(
    {
        Change.SHIFT_LEASES: (
            "UPDATE work_leases SET expires_at_ms = expires_at_ms + ?, last_seq = ? "
            "WHERE status = 'active' AND expires_at_ms IS NOT NULL"
        ),
        Change.TASK_ADD: (
            "INSERT INTO tasks (stream, room, number, status, title, detail, priority, author, "
            "client_key, parent, exclusive, source_message, source_task, branch, pr, output, "
            "trace_id, created_at_ms, changed_at_ms, last_seq) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        ),
        Change.TASK_EDIT: (
            "UPDATE tasks SET title = ?, detail = ?, priority = ?, parent = ?, exclusive = ?, "
            "branch = ?, pr = ?, output = ?, note = ?, changed_at_ms = ?, last_seq = ? "
            "WHERE stream = ?"
        ),
        Change.TASK_MOVE: (
            "UPDATE tasks SET status = ?, label = ?, assignee = ?, instance = ?, session = ?, "
            "note = ?, rounds = ?, changed_at_ms = ?, closed_at_ms = ?, last_seq = ? "
            "WHERE stream = ?"
        ),
        Change.TASK_OWN: (
            "UPDATE tasks SET status = ?, label = ?, assignee = ?, instance = ?, session = ?, "
            "changed_at_ms = ?, last_seq = ? WHERE stream = ?"
        ),
        Change.TASK_FREE: (
            "UPDATE tasks SET status = ?, label = NULL, assignee = NULL, instance = NULL, "
            "session = NULL, changed_at_ms = ?, closed_at_ms = NULL, last_seq = ? WHERE stream = ?"
        ),
        Change.TASK_LINK: (
            "UPDATE tasks SET branch = coalesce(?, branch), pr = coalesce(?, pr), "
            "changed_at_ms = ?, last_seq = ? WHERE stream = ?"
        ),
        Change.TASK_TOUCH: "UPDATE tasks SET last_seq = ? WHERE stream = ?",
        Change.TASK_BURY: (
            "UPDATE tasks SET deleted_at_ms = ?, changed_at_ms = ?, last_seq = ? WHERE stream = ?"
        ),
        Change.BLOCKER_ADD: "INSERT INTO blockers (task, blocker, last_seq) VALUES (?, ?, ?)",
        Change.BLOCKERS_CLEAR: "DELETE FROM blockers WHERE task = ?",
        Change.ARTIFACT_ADD: (
            "INSERT INTO artifacts (task, identity, kind, attached_by, attached_at_ms, last_seq) "
            "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (task, identity) DO UPDATE SET "
            "kind = excluded.kind, attached_by = excluded.attached_by, "
            "attached_at_ms = excluded.attached_at_ms, last_seq = excluded.last_seq"
        ),
        Change.ARTIFACTS_DROP: "DELETE FROM artifacts WHERE task = ?",
        Change.LEASE_ADD: (
            "INSERT INTO work_leases (id, task, status, epoch, agent, session, instance, label, "
            "worktree, created_at_ms, updated_at_ms, ttl_ms, expires_at_ms, last_seq) "
            "VALUES (?, ?, 'active', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        ),
        Change.LEASE_RENEW: (
            "UPDATE work_leases SET ttl_ms = ?, expires_at_ms = ?, warned_at_ms = NULL, "
            "updated_at_ms = ?, last_seq = ? WHERE id = ?"
        ),
        Change.LEASE_WARN: "UPDATE work_leases SET warned_at_ms = ?, last_seq = ? WHERE id = ?",
        Change.LEASE_END: (
            "UPDATE work_leases SET status = ?, updated_at_ms = ?, ended_at_ms = ?, reason = ?, "
            "successor = ?, last_seq = ? WHERE id = ?"
        ),
        Change.REVIEW_ADD: (
            "INSERT INTO review_leases (id, task, status, agent, session, created_at_ms, last_seq) "
            "VALUES (?, ?, 'active', ?, ?, ?, ?)"
        ),
        Change.REVIEW_END: (
            "UPDATE review_leases SET status = ?, ended_at_ms = ?, reason = ?, last_seq = ? "
            "WHERE id = ?"
        ),
        Change.LOCK_ADD: (
            "INSERT INTO locks (stream, id, room, task, reason, note, set_by, set_at_ms, last_seq) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        ),
        Change.LOCK_CLEAR: (
            "UPDATE locks SET cleared_by = ?, cleared_at_ms = ?, last_seq = ? WHERE stream = ?"
        ),
    }
)
