"""Processes that change a task and are killed at the n-th statement or disk operation."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import apsw

from tests.hub.driver import Bed, FakeClock, open_core
from tests.hub.work.crew import HOUR_MS, Crew, Worker
from tfx.hub.models import Durability

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["tests.hub.work.killing"])

Deed = Callable[[Crew, Worker, Worker], Awaitable[None]]


async def claim(_crew: Crew, _ann: Worker, bob: Worker) -> None:
    await bob.claim(2)


async def handoff(_crew: Crew, ann: Worker, _bob: Worker) -> None:
    await ann.handoff(1, "bob")


async def release(_crew: Crew, ann: Worker, _bob: Worker) -> None:
    await ann.release(1)


async def expiry(crew: Crew, _ann: Worker, _bob: Worker) -> None:
    crew.clock.pass_ms(HOUR_MS)
    await crew.bed.core.upkeep.tick()


async def takeover(crew: Crew, _ann: Worker, bob: Worker) -> None:
    """Claim what has expired: the old lease ends and the new one begins in one transaction."""
    crew.clock.pass_ms(HOUR_MS)
    await bob.claim(1)


async def force(crew: Crew, _ann: Worker, _bob: Worker) -> None:
    await crew.boss.force(1, (await crew.person.show(1)).lease)


async def finish(_crew: Crew, ann: Worker, _bob: Worker) -> None:
    await ann.update(1, status="done")


async def leave(_crew: Crew, ann: Worker, _bob: Worker) -> None:
    await ann.leave()


DEEDS: dict[str, Deed] = {
    each.__name__: each
    for each in (claim, handoff, release, expiry, takeover, force, finish, leave)
}


def prepare(path: Path) -> tuple[str, str]:
    """Make a file in which ann has leased task 1 and task 2 is ready; return the sessions."""

    async def story() -> tuple[str, str]:
        crew, close = _open(path)
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        for _ in range(2):
            await crew.person.ready()
        lease = await ann.claim(1, ttl_ms=HOUR_MS)
        await ann.update(1, lease, status="in_progress")
        await close()
        assert ann.session is not None
        assert bob.session is not None
        return ann.session, bob.session

    return asyncio.run(story())


def die_at(path: Path, sessions: tuple[str, str], deed: str, fault: str, number: int) -> bool:
    """Do a deed in a process that is killed at its n-th fault point; return if it was killed."""
    child = processes.Process(target=_do, args=(path, sessions, deed, fault, number))
    child.start()
    child.join(150)
    code = child.exitcode
    child.close()
    assert code in {0, -signal.SIGKILL}, code
    return code != 0


class Countdown:
    """Kills the process when it was called so many times; waits until it is armed."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.armed = False

    def step(self) -> None:
        if self.armed:
            self.left -= 1
            if not self.left:
                os.kill(os.getpid(), signal.SIGKILL)


class _File(apsw.VFSFile):
    def __init__(
        self, name: str | apsw.URIFilename | None, flags: list[int], countdown: Countdown
    ) -> None:
        self._countdown = countdown
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802  (names of SQLite)
        self._countdown.step()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._countdown.step()
        super().xSync(flags)


class _Vfs(apsw.VFS):
    def __init__(self, countdown: Countdown) -> None:
        self._countdown = countdown
        super().__init__("killing", base="")

    def xOpen(  # noqa: N802
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> _File:
        return _File(name, flags, self._countdown)


def _open(path: Path, vfs: str | None = None) -> tuple[Crew, Callable[[], Awaitable[None]]]:
    clock = FakeClock()
    core = open_core(path, clock, vfs=vfs, durability=Durability.FULL, instance=f"life-{vfs}")
    return Crew(Bed(path, core, clock)), core.store.close


def _do(path: Path, sessions: tuple[str, str], deed: str, fault: str, number: int) -> None:
    countdown = Countdown(number)
    vfs = _Vfs(countdown) if fault == "disk" else None

    async def story() -> None:
        crew, close = _open(path, None if vfs is None else "killing")
        if fault == "statement":

            def traced(*_: object) -> bool:
                countdown.step()
                return True

            await crew.bed.core.store.write(lambda tx: tx.connection.set_exec_trace(traced))
        ann, bob = (
            Worker(crew.bed, name, each)
            for name, each in zip(("ann", "bob"), sessions, strict=True)
        )
        countdown.armed = True
        await DEEDS[deed](crew, ann, bob)
        countdown.armed = False
        await close()

    asyncio.run(story())
