"""Tell agents what became of their work: a lost lease is never silent (WK-D8).

A notice is a message of the hub in the holder's inbox, in the task's trace.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from tfx.core import canonical_json
from tfx.hub.models import HUB, MessageId, MessageType
from tfx.hub.store import messages
from tfx.hub.store.ids import new_id

if TYPE_CHECKING:
    from tfx.errors import JsonValue
    from tfx.hub.store.leases import LeaseRow
    from tfx.hub.store.reviews import ReviewRow
    from tfx.hub.store.tasks import TaskRow
    from tfx.hub.store.tx import Tx

TOPIC: Final = "work.lease"
PRIORITY: Final = 7
TTL_MS: Final = 7 * 86_400_000


def lost(tx: Tx, task: TaskRow, lease: LeaseRow, reason: str, successor: str | None = None) -> None:
    """Tell the holder that its lease has ended, why, and who has the task now."""
    _tell(tx, lease.agent, task, {"event": "lease-lost", **_of(lease), "reason": reason,
                                  "successor": successor})  # fmt: skip


def review_lost(tx: Tx, task: TaskRow, review: ReviewRow, reason: str) -> None:
    """Tell the reviewer that its review has ended, and why."""
    told: dict[str, JsonValue] = {
        "event": "review-lost",
        "review_id": review.id,
        "session": review.session,
        "reason": reason,
    }
    _tell(tx, review.agent, task, told)


def ending(tx: Tx, task: TaskRow, lease: LeaseRow) -> None:
    """Tell the holder that its lease ends soon (WK-D3)."""
    told = {"event": "lease-ending", **_of(lease), "expires_at_ms": lease.expires_at_ms}
    _tell(tx, lease.agent, task, told)


def handed(  # noqa: PLR0917  (one notice)
    tx: Tx, task: TaskRow, to: str, lease_id: str, epoch: int, reason: str | None
) -> None:
    """Tell an agent that a task was handed to it."""
    told: dict[str, JsonValue] = {
        "event": "handed-off",
        "lease_id": lease_id,
        "epoch": epoch,
        "reason": reason,
    }
    _tell(tx, to, task, told)


def proposed(  # noqa: PLR0917  (who proposed what to whom)
    tx: Tx, task: TaskRow, to: str, proposer: str, matches: str, title: str
) -> None:
    """Tell who has a task that somebody proposed the same work (WK-K5): once for each proposer.

    The id of the notice says who and about what, so that the next attempt finds it.
    """
    about = "\0".join(("proposed", task.room, str(task.stream), proposer, to))
    known = hashlib.blake2b(about.encode(), digest_size=16).hexdigest()
    if messages.is_there(tx, known):
        return
    told: dict[str, JsonValue] = {
        "event": "duplicate-proposed",
        "by": proposer,
        "matches": matches,
        "proposed": title,
    }
    _tell(tx, to, task, told, known)


def _of(lease: LeaseRow) -> dict[str, JsonValue]:
    return {"lease_id": lease.id, "epoch": lease.epoch, "session": lease.session}


def _tell(
    tx: Tx, agent: str, task: TaskRow, told: dict[str, JsonValue], known_as: str | None = None
) -> None:
    payload = {"room": task.room, "task": task.number, "title": task.title, **told}
    draft = messages.Draft(
        id=MessageId(known_as or new_id(tx.now_ms)),
        type=MessageType.SYSTEM,
        sender=HUB,
        recipient=agent,
        topic=TOPIC,
        priority=PRIORITY,
        ttl_ms=TTL_MS,
        payload=canonical_json.dump(payload),
        trace_id=task.trace_id,
    )
    messages.post(tx, draft, [agent], None)
