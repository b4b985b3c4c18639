"""What the hub does by itself: deadlines, redelivery, the clock, forgetting, rebuild.

Knows no SQL and no transport; a fault in one chore is counted and ends nothing (H-19).
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

from tfx.errors import InvalidRequest
from tfx.hub.models import AgentId, DeadReason, StreamNo
from tfx.hub.schema import registry
from tfx.hub.services import endings
from tfx.hub.store import humans, leases, messages, rebuild, retention, runs, views
from tfx.hub.store.wakeups import DEADLINE, Inbox, Settled
from tfx.hub.wire.admin import (
    Difference,
    PruneRequest,
    PruneResult,
    RebuildCheckRequest,
    RebuildCheckResult,
    RebuildRequest,
    RebuildResult,
    SnapshotRequest,
    SnapshotResult,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from tfx.hub.models import Caller, Limits, Retention
    from tfx.hub.services.life import Life
    from tfx.hub.services.metrics import Metrics
    from tfx.hub.services.vault import Vault
    from tfx.hub.store.store import Store
    from tfx.hub.store.tx import Tx

BATCH: Final = 200
TICK_S: Final = 1.0
FALLBACK_S: Final = 5.0
"""A wake-up that was lost is made up for within this time (EV-S13)."""
RETENTION_S: Final = 600.0
PULSES_KEPT_MS: Final = 7 * 86_400_000

_log = logging.getLogger(__name__)


class Upkeep:
    """The hub's own chores; `run` does them in time, each can be called by itself."""

    def __init__(  # noqa: PLR0917  (what it keeps up)
        self,
        store: Store,
        limits: Limits,
        keep: Retention,
        metrics: Metrics,
        vault: Vault,
        life: Life,
        *,
        program: str,
        probes: Mapping[str, Callable[[], Awaitable[object]]],
    ) -> None:
        self._store = store
        self._vault = vault
        self._life = life
        self._limits = limits
        self._keep = keep
        self._metrics = metrics
        self._program = program
        self._probes = probes
        self._run = StreamNo(0)
        self._fallback_at = monotonic() + FALLBACK_S
        self._forget_at = monotonic() + RETENTION_S
        self._walked = 0

    async def begin(self, epoch: str) -> None:
        """Record that this life of the hub begins, and give leases that ran out a grace."""

        def command(tx: Tx) -> StreamNo:
            run = runs.start(tx, epoch, self._program, registry.FOLD)
            endings.give_grace(tx)
            return run

        self._run = await self._store.write(command)

    async def end(self) -> None:
        """Record that it ends in order."""
        await self._store.write(lambda tx: runs.stop(tx, self._run))

    async def run(self) -> None:
        """Do every chore in time until cancelled."""
        self._store.clock.watch()
        while True:
            await self.tick()
            with self._store.wakeups.listen(DEADLINE, counted=False) as waiter:
                await waiter.wait(await self._pause_s())
            if self._store.wakeups.draining:
                await asyncio.sleep(TICK_S)

    async def tick(self) -> None:
        """Do what is due now."""
        await self._chore("clock", self.follow_clock)
        await self._chore("deliveries", self.sweep_deliveries)
        await self._chore("human-deadlines", self.sweep_humans)
        await self._chore("leases", self.sweep_leases)
        self._vault.sweep()
        now = monotonic()
        if now >= self._fallback_at:
            self._fallback_at = now + FALLBACK_S
            await self._chore("fallback", self.wake_the_forgotten)
            await self._chore("dead-sessions", self.end_dead_sessions)
            for name, probe in self._probes.items():
                await self._chore(name, probe)
        if now >= self._forget_at:
            self._forget_at = now + RETENTION_S
            await self._chore("retention", self.forget)

    async def follow_clock(self) -> int:
        """Move every open deadline with a jump of the clock, before anything is reaped."""
        jump = self._store.clock.jump_ms()
        if jump:
            await endings.follow(self._store, self._run, jump)
        return jump

    async def sweep_deliveries(self) -> int:
        """Expire what is over its TTL; give back or bury what was not acked (H-51, H-53)."""
        swept = 0
        while True:
            count = await self._store.write(self._sweep_some)
            swept += count
            if count < BATCH:
                return swept

    async def sweep_humans(self) -> int:
        """Apply the default action of requests whose deadline has passed (H-64, H-65)."""
        swept = 0
        while True:
            count = await self._store.write(_expire_humans)
            swept += count
            if count < BATCH:
                return swept

    async def sweep_leases(self) -> int:
        """Warn of leases that end soon and expire those that are over (WK-D3)."""
        swept = 0
        while True:
            count = await self._store.write(lambda tx: endings.sweep(tx, BATCH))
            swept += count
            if count < BATCH:
                return swept

    async def end_dead_sessions(self) -> int:
        """End the sessions of lease holders whose process is proven dead (EV-B4, WK-L24)."""
        names = await self._store.read(leases.holders)
        ended = 0
        for name in names:
            ended += await self._store.write(partial(self._life.end_if_dead, name=AgentId(name)))
        return ended

    async def wake_the_forgotten(self) -> None:
        """Wake waits whose reason is in the database, whatever happened to the wake-up."""
        wakeups = self._store.wakeups
        receivers = {signal.receiver for signal in wakeups.waiting(Inbox)}
        streams = {signal.stream for signal in wakeups.waiting(Settled)}
        if receivers or streams:
            found = await self._store.read(
                lambda reader: views.what_happened(reader, receivers, streams)
            )
            wakeups.fire([Inbox(each) for each in found[0]])
            wakeups.fire([Settled(each) for each in found[1]])

    async def forget(self) -> PruneResult:
        """Forget what is past its keep time, in small batches (H-73)."""
        self._store.pulses.forget_before(self._store.clock.now_ms() - PULSES_KEPT_MS)
        return await self._prune(dry_run=False)

    async def prune(self, caller: Caller, request: PruneRequest) -> PruneResult:
        """Forget what is past its keep time, or only say what would go (H-72)."""
        del caller
        return await self._prune(dry_run=request.dry_run)

    async def rebuild(self, caller: Caller, request: RebuildRequest) -> RebuildResult:
        """Discard and refold the projections; other writes wait meanwhile (EV-P6)."""
        del caller, request
        began = monotonic()
        done = await self._store.write(rebuild.refold)
        return RebuildResult(
            events=done.events,
            skipped=done.skipped,
            rows=done.rows,
            seconds=round(monotonic() - began, 3),
        )

    async def snapshot(self, caller: Caller, request: SnapshotRequest) -> SnapshotResult:
        """Copy the database into an empty file; writes go on meanwhile (U-76)."""
        del caller
        path = Path(request.path)
        if not path.is_absolute():
            raise InvalidRequest("path must be absolute", details={"field": "path"})
        copied, seq = await self._store.snapshot(path)
        return SnapshotResult(bytes=copied, seq=seq)

    async def rebuild_check(
        self, caller: Caller, request: RebuildCheckRequest
    ) -> RebuildCheckResult:
        """Fold the log beside the hub and compare every row; writes nothing."""
        del caller, request
        began = monotonic()
        work = rebuild.Refold()
        try:
            while True:
                while await self._store.read(work.take_page):
                    pass
                found = await self._store.read(work.compare)
                if found is not None:
                    break
            done = work.result()
        finally:
            work.close()
        return RebuildCheckResult(
            equal=not found,
            events=done.events,
            skipped=done.skipped,
            rows=done.rows,
            differences=tuple(
                Difference(table=each.table, key=each.key, what=each.what) for each in found
            ),
            seconds=round(monotonic() - began, 3),
        )

    async def _prune(self, *, dry_run: bool) -> PruneResult:
        store, keep = self._store, self._keep
        messages_gone = dead_gone = humans_gone = agents_gone = 0
        tasks_gone = ended_gone = events = 0
        after: int | None = 0
        while after is not None:
            walk = await store.read(partial(retention.closed_messages, keep=keep, after=after))
            messages_gone += len(walk.messages)
            dead_gone += len(walk.dead_letters)
            events += await self._forget(walk.messages + walk.dead_letters, dry_run=dry_run)
            after = walk.after
        while True:
            others = await store.read(
                lambda reader: retention.closed_others(reader, keep, self._run)
            )
            humans_gone += len(others.humans)
            agents_gone += len(others.agents)
            tasks_gone += len(others.tasks)
            ended_gone += len(others.invocations)
            gone = await self._forget(others.streams, dry_run=dry_run)
            events += gone
            if dry_run or not gone:
                break
        return PruneResult(
            messages=messages_gone,
            dead_letters=dead_gone,
            human_requests=humans_gone,
            agents=agents_gone,
            tasks=tasks_gone,
            invocations=ended_gone,
            events=events,
            dry_run=dry_run,
        )

    async def _forget(self, streams: tuple[int, ...], *, dry_run: bool) -> int:
        if not streams:
            return 0
        store = self._store
        if dry_run:
            return await store.read(lambda reader: retention.count_events(reader, streams))
        gone = 0
        for at in range(0, len(streams), retention.BATCH):
            some = streams[at : at + retention.BATCH]
            gone += await store.write(store.forgetting(some))
        return gone

    def _sweep_some(self, tx: Tx) -> int:
        found = messages.due(tx, BATCH)
        for each in found:
            if each.expires_at_ms <= tx.now_ms:
                messages.bury(tx, each, DeadReason.TTL_EXPIRED, None)
            elif each.attempts >= self._limits.max_attempts:
                error = f"claimed {each.attempts} times and never acked"
                messages.bury(tx, each, DeadReason.MAX_ATTEMPTS, error)
            else:
                messages.give_back(tx, each)
        return len(found)

    async def _chore(self, name: str, chore: Callable[[], Awaitable[object]]) -> None:
        failing = self._metrics.failing
        try:
            await chore()
        except Exception:  # noqa: BLE001  (whatever fails in a chore ends nothing: H-19)
            self._metrics.sweep_errors[name] += 1
            if name not in failing:  # a chore that fails each second does not fill the log
                failing.add(name)
                _log.exception("incident %s: the chore %s fails", secrets.token_hex(6), name)
        else:
            if name in failing:
                failing.discard(name)
                _log.info("the chore %s works again", name)

    async def _pause_s(self) -> float:
        pause_s = TICK_S

        async def look() -> None:
            nonlocal pause_s
            nearest = await self._store.read(views.next_deadline)
            if nearest is not None:
                left_s = (nearest - self._store.clock.now_ms()) / 1000
                pause_s = min(TICK_S, max(0.0, left_s))

        await self._chore("next-deadline", look)
        return pause_s


def _expire_humans(tx: Tx) -> int:
    found = humans.due(tx, BATCH)
    for each in found:
        humans.expire(tx, each)
    return len(found)
