"""Counts kept in memory: what waits for whom, and totals of everything that ever happened.

Knows no SQL; the writer applies effects after their commit, so a count never runs ahead (H-24).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from tfx.hub.models import URGENT_PRIORITY, AgentId, MessageType, Unread
from tfx.hub.store.events import Claimed, Dead, HumanClosed, Posted
from tfx.hub.store.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfx.core.database import Connection
    from tfx.hub.store.events import Event

_OPEN: Final = (
    "SELECT m.sender, d.receiver, d.priority, d.state, count(*) "
    "FROM deliveries d JOIN messages m ON m.stream = d.message WHERE d.due_at_ms IS NOT NULL "
    "GROUP BY 1, 2, 3, 4"
)
_DEAD: Final = "SELECT count(*) FROM deliveries WHERE state = 'dead'"
_PENDING: Final = "SELECT count(*) FROM human_requests WHERE state = 'pending'"
_OWED: Final = (
    "SELECT count(*) FROM messages WHERE settled IS NULL AND type IN ('request', 'handoff')"
)


@dataclass(frozen=True, slots=True)
class Moved:
    """A delivery changed its state; None stands for not existing."""

    sender: str
    receiver: str
    priority: int
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Counted:
    """Other counts changed by so many."""

    owed: int = 0
    pending_humans: int = 0
    dead: int = 0


@dataclass(slots=True)
class _Inbox:
    queued: int = 0
    urgent: int = 0
    claimed: int = 0


@dataclass(slots=True)
class Tally:
    """The counts; read it from the event loop's thread only."""

    inboxes: dict[str, _Inbox] = field(default_factory=dict)
    lanes: Counter[tuple[str, str]] = field(default_factory=Counter)
    queued: int = 0
    claimed: int = 0
    dead: int = 0
    pending_humans: int = 0
    owed: int = 0

    @classmethod
    def load(cls, connection: Connection) -> Tally:
        """Count what is open and dead now; reads open items, not history."""
        tally = cls()
        for sender, receiver, priority, state, number in connection.execute(_OPEN):
            moved = Moved(str(sender), str(receiver), int(priority), None, str(state))
            tally.apply(moved, int(number))
        for (number,) in connection.execute(_DEAD):
            tally.dead = int(number)
        for (number,) in connection.execute(_PENDING):
            tally.pending_humans = int(number)
        for (number,) in connection.execute(_OWED):
            tally.owed = int(number)
        return tally

    def unread(self, agent: AgentId) -> Unread:
        """Return what is queued for an agent (H-38)."""
        inbox = self.inboxes.get(agent)
        return Unread(0, 0) if inbox is None else Unread(inbox.queued, inbox.urgent)

    def open_for(self, receiver: str) -> int:
        """Return how many deliveries of a receiver are queued or claimed (EV-Q9)."""
        inbox = self.inboxes.get(receiver)
        return 0 if inbox is None else inbox.queued + inbox.claimed

    def apply(self, effect: Moved | Counted, times: int = 1) -> None:
        """Take one change into account."""
        if isinstance(effect, Counted):
            self.owed += effect.owed
            self.pending_humans += effect.pending_humans
            self.dead += effect.dead
            return
        if effect.before is not None:
            self._add(effect, effect.before, -times)
        if effect.after is not None:
            self._add(effect, effect.after, times)

    def _add(self, effect: Moved, state: str, amount: int) -> None:
        if state == "dead":
            self.dead += amount
            return
        if state not in {"queued", "claimed"}:
            return
        inbox = self.inboxes.get(effect.receiver)
        if inbox is None:
            inbox = self.inboxes[effect.receiver] = _Inbox()
        lane = (effect.sender, effect.receiver)
        left = self.lanes[lane] + amount
        if left:
            self.lanes[lane] = left
        else:
            del self.lanes[lane]
        if state == "queued":
            self.queued += amount
            inbox.queued += amount
            if effect.priority >= URGENT_PRIORITY:
                inbox.urgent += amount
        else:
            self.claimed += amount
            inbox.claimed += amount
        if not inbox.queued and not inbox.claimed:
            del self.inboxes[effect.receiver]


Effect: TypeAlias = Moved | Counted | Tally
"""What follows from a command in memory; a whole tally replaces the one there is."""


def counted(event: Event) -> Iterator[str]:
    """Yield the names of the totals that an event raises; pure, so totals survive a crash."""
    body = event.body
    yield f"events.{event.kind}"
    if isinstance(body, Posted):
        yield "messages"
        if body.type in {MessageType.REQUEST, MessageType.HANDOFF}:
            yield f"asks.{body.type}"
        if body.dead_reason is not None:
            yield f"dead.{body.dead_reason}"
        for _ in body.receivers:
            yield "deliveries"
    elif isinstance(body, Claimed):
        if body.attempt > 1:
            yield "redeliveries"
    elif isinstance(body, Dead):
        yield f"dead.{body.reason}"
    elif isinstance(body, HumanClosed):
        yield f"human.{body.state}"
    elif event.kind == Kind.DELIVERY_ACKED:
        yield "acked"
