"""The disk fails at the n-th operation: typed errors, nothing acknowledged that is not stored."""

from __future__ import annotations

import asyncio
import itertools
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.hub.driver import Bed, FakeClock, open_core
from tests.hub.store.test_rebuild import refolds_to_itself
from tfx.core import database
from tfx.errors import TfxError
from tfx.hub.models import Durability

ERRORS: dict[str, type[Exception]] = {"disk-full": apsw.FullError, "io": apsw.IOError}
_names = itertools.count()


class Faults:
    """Counts writes, syncs and truncations; fails from the n-th on while it is armed."""

    def __init__(self) -> None:
        self.count = 0
        self.fail_at: int | None = None
        self.last = 0
        self.code = "io"

    def step(self) -> None:
        self.count += 1
        if self.fail_at is not None and self.fail_at <= self.count <= self.last:
            raise ERRORS[self.code]


class FaultyFile(apsw.VFSFile):
    def __init__(
        self, name: str | apsw.URIFilename | None, flags: list[int], faults: Faults
    ) -> None:
        self._faults = faults
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802  (names of SQLite)
        self._faults.step()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._faults.step()
        super().xSync(flags)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._faults.step()
        super().xTruncate(newsize)


class FaultyVfs(apsw.VFS):
    def __init__(self) -> None:
        self.faults = Faults()
        self.label = f"faulty-{next(_names)}"
        super().__init__(self.label, base="")

    def xOpen(  # noqa: N802
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> FaultyFile:
        return FaultyFile(name, flags, self.faults)


@pytest.fixture
def vfs() -> Iterator[FaultyVfs]:
    made = FaultyVfs()
    yield made
    made.unregister()


async def traffic(bed: Bed, acknowledged: dict[str, str], codes: set[str]) -> None:
    """Publish, poll, ack and sync; note what was acknowledged and what was refused."""

    async def send(number: int) -> None:
        try:
            sent = await bed.publish("ann", "bob", f'{{"n":{number}}}', op_id=f"op-{number}")
            acknowledged[f"op-{number}"] = sent.message_id
        except TfxError as error:
            codes.add(error.reason)

    for round_number in range(6):
        await asyncio.gather(*(send(round_number * 4 + each) for each in range(4)))
        try:
            polled = await bed.poll("bob", most=3)
            await bed.ack("bob", *(m.message_id for m in polled.messages or ()))
        except TfxError as error:
            codes.add(error.reason)
        except AssertionError:
            raise


def check(path: Path, acknowledged: dict[str, str]) -> None:
    refolds_to_itself(path)
    connection = database.open_reader(path)
    rows = connection.execute(
        "SELECT l.op_id, m.id FROM messages m JOIN log l ON l.seq = m.stream "
        "WHERE l.op_id IS NOT NULL"
    )
    stored = {str(op_id): str(message) for op_id, message in rows}
    connection.close()
    assert acknowledged.items() <= stored.items()


def run(
    path: Path, vfs: FaultyVfs, fail_at: int | None, width: int, code: str
) -> tuple[int, set[str]]:
    """Return how many disk operations a run has, and with which codes it was refused."""
    acknowledged: dict[str, str] = {}
    codes: set[str] = set()
    faults = vfs.faults

    async def story() -> int:
        clock = FakeClock()
        core = open_core(path, clock, vfs=vfs.label, durability=Durability.FULL)
        bed = Bed(path, core, clock)
        await bed.register("bob")
        start = faults.count
        faults.code = code
        if fail_at is not None:
            faults.fail_at, faults.last = start + fail_at, start + fail_at + width - 1
        await traffic(bed, acknowledged, codes)
        used = faults.count - start
        faults.fail_at = None
        # The disk is well again: the same hub goes on, and a retry of each key is one message.
        for number in range(24):
            sent = await bed.publish("ann", "bob", f'{{"n":{number}}}', op_id=f"op-{number}")
            assert acknowledged.setdefault(f"op-{number}", sent.message_id) == sent.message_id
        await core.store.close()
        return used

    used = asyncio.run(story())
    check(path, acknowledged)
    assert len(acknowledged) == 24
    return used, codes


@pytest.mark.parametrize("code", ERRORS)
@pytest.mark.parametrize("width", [1, 5])
def test_injected_disk_errors_are_typed_and_lose_nothing(
    tmp_path: Path, vfs: FaultyVfs, code: str, width: int
) -> None:
    seen: set[str] = set()
    for fail_at in (1, 2, 5, 11):
        path = tmp_path / f"{fail_at}" / "hub.db"
        path.parent.mkdir()
        seen |= run(path, vfs, fail_at, width, code)[1]
    assert seen == {code}


@pytest.mark.faults
@pytest.mark.parametrize("code", ERRORS)
def test_every_disk_operation_may_fail_once(tmp_path: Path, vfs: FaultyVfs, code: str) -> None:
    path = tmp_path / "none" / "hub.db"
    path.parent.mkdir()
    total, codes = run(path, vfs, None, 1, code)
    assert codes == set()
    for fail_at in range(1, total + 1):
        path = tmp_path / f"{fail_at}" / "hub.db"
        path.parent.mkdir()
        assert run(path, vfs, fail_at, 1, code)[1] <= {code}
        shutil.rmtree(path.parent)


@pytest.mark.parametrize("code", ERRORS)
def test_a_failed_creation_leaves_nothing_behind(tmp_path: Path, vfs: FaultyVfs, code: str) -> None:
    for fail_at in (1, 3, 6):
        vfs.faults.code = code
        vfs.faults.fail_at, vfs.faults.last = vfs.faults.count + fail_at, sys.maxsize
        with pytest.raises(TfxError) as refused:
            open_core(tmp_path / "hub.db", FakeClock(), vfs=vfs.label)
        assert refused.value.reason == code
        assert list(tmp_path.iterdir()) == []


TRACED = """
import asyncio, pathlib, sys
sys.path.insert(0, sys.argv[2])
from tests.hub.driver import Bed, FakeClock, open_core
from tfx.core import database

async def story():
    core = open_core(pathlib.Path(sys.argv[1]), FakeClock())
    bed = Bed(pathlib.Path(sys.argv[1]), core, core.store.clock)
    await bed.register("bob")
    reader = None
    if sys.argv[3] == "pinned":
        reader = database.open_reader(pathlib.Path(sys.argv[1]))
        reader.execute("BEGIN").fetchall()
        reader.execute("SELECT count(*) FROM log").fetchall()
    for _ in range(30):
        await bed.publish("ann", "bob")
        await asyncio.sleep(0.1)
    await asyncio.sleep(1.5)
    import os
    os._exit(0)

asyncio.run(story())
"""


@pytest.mark.faults
@pytest.mark.parametrize("mode", ["free", "pinned"])
def test_ev_d4_ev_d2_every_commit_is_synced_within_a_second(tmp_path: Path, mode: str) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    root = Path(__file__).parents[3]
    trace = tmp_path / "trace"
    subprocess.run(
        ["strace", "-f", "-y", "-ttt", "-e", "trace=pwrite64,fdatasync,fsync", "-o", str(trace),
         sys.executable, "-c", TRACED, str(tmp_path / "hub.db"), str(root), mode],
        check=True, timeout=120,
    )  # fmt: skip
    writes: list[float] = []
    syncs: list[float] = []
    for line in trace.read_text().splitlines():
        match = re.match(r"\d+\s+(\d+\.\d+) (\w+)\(\d+<[^>]*hub\.db-wal>", line)
        if match is not None:
            (writes if match[2] == "pwrite64" else syncs).append(float(match[1]))
    assert len(writes) > 60
    late = [at for at in writes if not any(at <= sync <= at + 1.2 for sync in syncs)]
    assert late == []
