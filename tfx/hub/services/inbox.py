"""Receiving: poll, ack, wait.

Knows no SQL and no transport; a wait holds neither thread nor transaction (H-57).
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from tfx.core import canonical_json
from tfx.errors import AgentUnavailable, StateConflict
from tfx.hub.models import (
    AgentId,
    MessageId,
    MessageType,
    NotAckedReason,
    Topic,
    agent_id,
    topic_name,
)
from tfx.hub.services.shapes import OWED_SHOWN, cut, message_of, owed_of
from tfx.hub.store import messages, views
from tfx.hub.store.ids import new_id
from tfx.hub.store.ops import op_of
from tfx.hub.store.wakeups import Inbox as InboxSignal
from tfx.hub.wire.messages import (
    AckRequest,
    AckResult,
    Message,
    NotAcked,
    NoticesRequest,
    NoticesResult,
    PollRequest,
    PollResult,
    Waiting,
    WaitRequest,
    WaitResult,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfx.core.database import Row
    from tfx.hub.models import Caller, Limits
    from tfx.hub.services.metrics import Metrics
    from tfx.hub.services.vault import Vault
    from tfx.hub.store.candidate import Candidate
    from tfx.hub.store.reader import Reader
    from tfx.hub.store.store import Store
    from tfx.hub.store.tx import Tx

SUMMARY = 10


class Inbox:
    """The receiving half of the bus."""

    def __init__(self, store: Store, limits: Limits, metrics: Metrics, vault: Vault) -> None:
        self._store = store
        self._vault = vault
        self._limits = limits
        self._metrics = metrics

    async def poll_messages(self, caller: Caller, request: PollRequest) -> PollResult:
        """Ack `ack_ids`, then claim; without mail wait up to `wait_ms`, woken by the commit.

        Claimed messages are invisible for the visibility time and come again unless acked
        (H-51). Messages that do not fit into `max_bytes` stay unclaimed (H-31).
        """
        del caller
        agent = agent_id(request.agent_id, "agent_id")
        claim_id = _claim_id(request, self._store.clock.now_ms())
        topics = _topics(request.include_topics)
        self._store.beats.touch(agent, self._store.clock.now_ms())
        until = monotonic() + request.wait_ms / 1000
        if request.wait_ms and self._store.wakeups.open_waits >= self._limits.open_waits:
            raise AgentUnavailable(
                f"{self._limits.open_waits} calls wait already", code="too-many-waits"
            )
        acks: tuple[str, ...] = request.ack_ids
        acked: list[MessageId] = []
        refused: list[NotAcked] = []

        def command(tx: Tx) -> PollResult:
            done, left = _ack(tx, agent, acks)
            owes = owed_of(views.owed(tx, agent, OWED_SHOWN))
            awaits = owed_of(views.awaited(tx, agent, OWED_SHOWN))
            empty = PollResult(
                messages=(),
                acked_ids=(*acked, *done),
                not_acked=(*refused, *left),
                more=False,
                owes=owes,
                awaits=awaits,
                next_poll_after_ms=1_000,
                server_time_ms=tx.now_ms,
            )
            return self._claim(tx, request, claim_id, topics, empty)

        with self._store.wakeups.listen(InboxSignal(agent), counted=request.wait_ms > 0) as waiter:
            if not acks and request.op_id is None and not self._store.tally.unread(agent).total:
                # Memory knows of no mail: the writer need not look before the wait, only after.
                await waiter.wait(until - monotonic())
            while True:
                result = await self._store.write(command)
                self._vault.drop(result.acked_ids)
                if result.messages:
                    self._sample(result)
                    if request.auto_ack:
                        self._vault.drop(each.message_id for each in result.messages)
                    return result
                # The acks are done: another round must not report them as unknown.
                acked, refused, acks = list(result.acked_ids), list(result.not_acked), ()
                if not await waiter.wait(until - monotonic()):
                    return result

    async def ack(self, caller: Caller, request: AckRequest) -> AckResult:
        """Confirm messages; an id that is unknown, foreign or dead is in `not_acked` (H-86)."""
        del caller
        agent = agent_id(request.agent_id, "agent_id")
        self._store.beats.touch(agent, self._store.clock.now_ms())
        done, left = await self._store.write(lambda tx: _ack(tx, agent, request.message_ids))
        self._vault.drop(done)
        return AckResult(acked_ids=tuple(done), not_acked=tuple(left))

    async def wait(self, caller: Caller, request: WaitRequest) -> WaitResult:
        """Wait until something is claimable; claim nothing (H-71)."""
        del caller
        agent = agent_id(request.agent_id, "agent_id")
        until = monotonic() + request.wait_ms / 1000
        with self._store.wakeups.listen(InboxSignal(agent), counted=request.wait_ms > 0) as waiter:
            while True:
                first = await self._store.read(lambda reader: _summary(reader, agent))
                unread = self._store.tally.unread(agent)
                if first or not await waiter.wait(until - monotonic()):
                    return WaitResult(
                        total=max(unread.total, len(first)),
                        urgent=unread.urgent,
                        first=first,
                        server_time_ms=self._store.clock.now_ms(),
                    )

    async def notices(self, caller: Caller, request: NoticesRequest) -> NoticesResult:
        """Tell what has come since the last call, each message once; claim nothing (H-70)."""
        del caller
        agent = agent_id(request.agent_id, "agent_id")
        beats = self._store.beats
        told = beats.notified(agent)

        def query(reader: Reader) -> tuple[int, int, tuple[Waiting, ...]]:
            row = reader.one(views.FRESH, (agent, reader.now_ms, told))
            if row is None or not row[0]:
                return 0, told, ()
            rows = reader.all(views.FRESH_FIRST, (agent, reader.now_ms, told, SUMMARY))
            return int(row[0]), int(row[1] or told), _waiting(rows)

        fresh, last, first = await self._store.read(query)
        beats.notify(agent, last)
        total = self._store.tally.unread(agent).total
        return NoticesResult(fresh=fresh, total=max(total, fresh), first=first)

    def _claim(
        self,
        tx: Tx,
        request: PollRequest,
        claim_id: str,
        topics: str | None,
        empty: PollResult,
    ) -> PollResult:
        agent = AgentId(request.agent_id)
        held = _held(tx, agent, claim_id) if request.op_id is not None else []
        room = request.max_bytes - len(msgspec.json.encode(empty))
        if held:
            shown = [self._vault.revealed(message_of(each, each.attempts)) for each in held]
            fitting = tuple(_fitting(shown, room))
            return _with(empty, fitting, more=False)
        wanted = request.max_messages
        found = messages.candidates(tx, agent, topics, wanted + 1)
        shown = [
            self._vault.revealed(message_of(each, each.attempts + 1)) for each in found[:wanted]
        ]
        fitting = tuple(_fitting(shown, room))
        for each in found[: len(fitting)]:
            messages.claim(tx, each, agent, claim_id, self._limits.visibility_ms)
        if request.auto_ack:
            _ack(tx, agent, tuple(each.message_id for each in fitting))
        return _with(empty, fitting, more=len(found) > len(fitting))

    def _sample(self, result: PollResult) -> None:
        for message in result.messages:
            if message.attempt == 1:
                self._metrics.delivery.add(result.server_time_ms - message.created_at_ms)


def _claim_id(request: PollRequest, now_ms: int) -> str:
    op = op_of("poll_messages", request)
    return new_id(now_ms) if op is None else f"{op.digest.hex()}:{op.op_id}"


def _held(tx: Tx, agent: AgentId, claim_id: str) -> list[Candidate]:
    """Return what a poll with this key claimed before and still can see (H-30)."""
    digest, _, key = claim_id.partition(":")
    same = []
    for found, claim in messages.held_by(tx, agent):
        its_digest, colon, its_key = claim.partition(":")
        if not colon or its_key != key:
            continue
        if its_digest != digest:
            raise StateConflict(
                f"the key {key!r} was used for another poll", code="idempotency-conflict"
            )
        same.append(found)
    return same


def _topics(names: tuple[str, ...]) -> str | None:
    if not names:
        return None
    return canonical_json.dump([topic_name(each, "include_topics") for each in names]).decode()


def _ack(tx: Tx, agent: AgentId, ids: Iterable[str]) -> tuple[list[MessageId], list[NotAcked]]:
    """Ack what is this agent's; a claim that ran out does not matter (K-25)."""
    done: list[MessageId] = []
    left: list[NotAcked] = []
    for each in dict.fromkeys(ids):
        found = messages.find_for_ack(tx, agent, each)
        if found is None:
            left.append(NotAcked(message_id=each, reason=NotAckedReason.UNKNOWN))
        elif found.state is None:
            left.append(NotAcked(message_id=each, reason=NotAckedReason.FOREIGN))
        elif found.state == "purged" or (found.state == "dead" and not _late(found)):
            left.append(NotAcked(message_id=each, reason=NotAckedReason.DEAD))
        else:
            if found.state != "acked":
                messages.ack(tx, found, agent, each)
            done.append(MessageId(each))
    return done, left


def _late(found: messages.Acking) -> bool:
    """Return True when only its last visibility time-out made a letter dead."""
    return found.reason == "max-attempts" and found.replayed_as is None


def _fitting(shown: list[Message], room: int) -> Iterable[Message]:
    for at, message in enumerate(shown):
        size = len(msgspec.json.encode(message)) + 1
        if size <= room:
            room -= size
            yield message
        else:
            if at == 0:
                yield cut(message, room - 1)
            return


def _with(empty: PollResult, found: tuple[Message, ...], *, more: bool) -> PollResult:
    return msgspec.structs.replace(
        empty, messages=found, more=more, next_poll_after_ms=0 if found else 1_000
    )


def _summary(reader: Reader, agent: AgentId) -> tuple[Waiting, ...]:
    return _waiting(reader.all(views.WAITING, (agent, reader.now_ms, SUMMARY)))


def _waiting(rows: list[Row]) -> tuple[Waiting, ...]:
    return tuple(
        Waiting(
            message_id=MessageId(str(identity)),
            type=MessageType(str(kind)),
            sender=AgentId(str(sender)),
            topic=Topic(str(topic)),
            priority=int(priority),  # type: ignore[arg-type]
        )
        for identity, kind, sender, topic, priority in rows
    )
