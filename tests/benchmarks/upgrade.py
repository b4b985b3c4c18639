"""An upgrade of a generated database beside the physical floor of the same run.

    python -m tests.benchmarks.upgrade [--from VERSION] [--rounds N] [MEGABYTES]...

Prints seconds and peak memory of each phase, the longest silence of the progress, and the floor:
a plain backup with fsync, each check once, the comparison of the rows that stay, and
INSERT…SELECT of the changed tables with their indexes. From version 2 on the run must stay within
1.5 times of it (U-11); adoption is linear (K-40).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import apsw

from tests.upgrade.scenes import BASE, LAST_MS, Site, empty_v1
from tests.upgrade.version2 import filled_v2
from tfx.core import database
from tfx.core.paths import Paths
from tfx.hub.schema import kept, registry, steps
from tfx.upgrade import functions, run
from tfx.upgrade.model import Progress, Receipt, Task

PAYLOAD_BYTES = 620
BATCH = 5_000
BYTES_A_MESSAGE = 1_480
"""Of a database of version 2 with payloads of that size: log, projections and indexes."""


def generate(path: Path, megabytes: int) -> None:
    """Fill a database of version 1 with messages, inbox rows, requests and dead letters."""
    chance = random.Random(7)
    connection = apsw.Connection(str(empty_v1(path)))
    connection.pragma("synchronous", "OFF")
    for number in range(50):
        connection.execute(
            "INSERT INTO agents VALUES (?, 'codex', 7, '[]', '[\"news\"]', ?, ?, 'online', '{}')",
            (f"agent-{number}", LAST_MS, LAST_MS + 60_000),
        )
    done = 0
    text = "".join(chance.choice("abcdefghij {}한") for _ in range(4_000))
    states = ("queued", "delivered", "acked", "expired", "dead_letter")
    kinds = ("event", "request", "response", "handoff")
    while path.stat().st_size < megabytes * 1_000_000:
        with connection:
            for number in range(done, done + BATCH):
                start = chance.randrange(3_000)
                payload = text[start : start + PAYLOAD_BYTES].replace('"', "")
                status = states[number % 5]
                name = f"{number:08x}-{chance.getrandbits(64):016x}"
                connection.execute(
                    "INSERT INTO messages VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
                    (
                        name, kinds[number % 4], f"agent-{number % 50}", f"agent-{number % 37}",
                        "news", 1 + number % 9, 3_600_000, LAST_MS - number, LAST_MS + 60_000,
                        f"c-{number // 3}", f"t-{number // 7}", '{"text":"' + payload + '"}',
                        status,
                    ),
                )  # fmt: skip
                if number % 2:
                    acked = LAST_MS if status == "acked" else None
                    connection.execute(
                        "INSERT INTO message_inbox VALUES (NULL, ?, ?, ?, ?, 1)",
                        (name, f"agent-{number % 37}", LAST_MS, acked),
                    )
                if status == "dead_letter":
                    connection.execute(
                        "INSERT INTO dead_letters VALUES (?, 'ttl_expired', ?, NULL)",
                        (name, LAST_MS),
                    )
        done += BATCH
    connection.close()
    path.chmod(0o600)


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return wall and CPU seconds of some work."""
    wall, cpu = time.monotonic(), time.process_time()
    work()
    return time.monotonic() - wall, time.process_time() - cpu


def back_up(path: Path, copy: Path) -> None:
    """Copy by the backup API and sync once."""
    source, target = apsw.Connection(str(path)), apsw.Connection(str(copy))
    target.pragma("journal_mode", "OFF")
    target.pragma("synchronous", "OFF")
    with target.backup("main", source, "main") as copying:
        while not copying.done:
            copying.step(2_048)
    source.close()
    target.close()
    sync(copy)


def digest(copy: Path) -> None:
    """Read a file through SHA-256."""
    with copy.open("rb") as file:
        hashlib.file_digest(file, "sha256")


def check(copy: Path, what: str) -> None:
    """Run one of SQLite's checks."""
    connection = apsw.Connection(str(copy))
    connection.pragma("cache_size", -65_536)
    connection.execute(f"PRAGMA {what}").fetchall()
    connection.close()


def rebuild(copy: Path, rebuilt: Path) -> None:
    """Write every row of the changed tables once, and their indexes after them."""
    connection = apsw.Connection(str(rebuilt))
    connection.pragma("journal_mode", "OFF")
    connection.pragma("synchronous", "OFF")
    connection.pragma("cache_size", -65_536)
    connection.execute("ATTACH ? AS old", (str(copy),))
    made = registry.objects_of(1)
    for each in made:
        if each.type == "table":
            connection.execute(each.sql)
    for table in BASE:
        connection.execute(f"INSERT INTO main.{table} SELECT * FROM old.{table}")
    for each in made:
        if each.type == "index":
            connection.execute(each.sql)
    connection.close()
    sync(rebuilt)


def sync(path: Path) -> None:
    """Make a file durable."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def scan(copy: Path, step: steps.Step) -> None:
    """Look once for the rows that the next version cannot represent."""
    connection = apsw.Connection(str(copy))
    connection.pragma("cache_size", -65_536)
    functions.add(connection)
    step.scan(connection)
    connection.close()


def compare(path: Path, copy: Path, tables: tuple[str, ...]) -> None:
    """Compare the rows that a step keeps with those of a copy, once."""
    connection = apsw.Connection(
        database.uri(path, "mode=ro"), flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    )
    connection.pragma("cache_size", -65_536)
    connection.execute("ATTACH ? AS old", (database.uri(copy, "mode=ro&immutable=1"),))
    assert kept.differences(connection, tables, lambda *_: None) == []
    connection.close()


def floor_of(path: Path, place: Path, version: int) -> dict[str, tuple[float, float]]:
    """Measure what cannot be avoided: backup, digest, checks, rows compared or written once."""
    copy, rebuilt = place / "copy.db", place / "rebuilt.db"
    step = steps.STEPS[version]
    found = {
        "backup + fsync": timed(lambda: back_up(path, copy)),
        "SHA-256": timed(lambda: digest(copy)),
        "integrity_check": timed(lambda: check(copy, "integrity_check")),
        "foreign_key_check": timed(lambda: check(copy, "foreign_key_check")),
        "quick_check": timed(lambda: check(copy, "quick_check")),
        "rows scanned": timed(lambda: scan(copy, step)),
    }
    if step.rebuilt:
        found["INSERT...SELECT, indexes"] = timed(lambda: rebuild(copy, rebuilt))
    if step.kept:
        found["rows compared"] = timed(lambda: compare(path, copy, step.kept))
    copy.unlink()
    rebuilt.unlink(missing_ok=True)
    return found


def upgraded(site: Site) -> tuple[Receipt, float, float, float]:
    """Return the receipt, wall and CPU seconds, and the longest silence."""
    last = 0.0
    silence = 0.0

    def told(progress: Progress) -> None:
        nonlocal last, silence
        del progress
        now = time.monotonic()
        silence = max(silence, now - last) if last else 0.0
        last = now

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = time.monotonic()
    receipt = run.run(Paths.resolve(site.env), site.request(Task.UPGRADE), told)
    wall = time.monotonic() - wall
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return receipt, wall, cpu, silence


def report(megabytes: int, version: int, rounds: int) -> None:
    """Generate, measure and print one size; of several rounds the median ratio."""
    ratios: list[tuple[float, float]] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as name:
            site = Site(Path(name) / "home")
            site.database.parent.mkdir(parents=True, mode=0o700)
            if version == 1:
                generate(site.database, megabytes)
            else:
                filled_v2(site.database, megabytes * 1_000_000 // BYTES_A_MESSAGE, PAYLOAD_BYTES)
            size = site.database.stat().st_size
            floor = floor_of(site.database, Path(name), version)
            receipt, wall, cpu, silence = upgraded(site)
        floor_wall = sum(each[0] for each in floor.values())
        floor_cpu = sum(each[1] for each in floor.values())
        ratios.append((wall / floor_wall, cpu / floor_cpu))
        print(f"\n{size / 1e6:.0f} MB, {receipt.rows['messages'].before:,} messages, "
              f"version {receipt.from_version} to {receipt.to_version}")  # fmt: skip
        for title, (seconds, used) in floor.items():
            print(f"  floor  {title:28} {seconds:8.2f} s wall {used:8.2f} s CPU")
        for each in receipt.phases:
            print(f"  phase  {each.phase.value:28} {each.seconds:8.2f} s wall "
                  f"{each.peak_bytes / 1e6:8.0f} MB peak")  # fmt: skip
        print(f"  floor  {'all':28} {floor_wall:8.2f} s wall {floor_cpu:8.2f} s CPU")
        print(f"  run    {'all':28} {wall:8.2f} s wall {cpu:8.2f} s CPU = "
              f"{wall / floor_wall:.2f} x wall, {cpu / floor_cpu:.2f} x CPU; "
              f"longest silence {silence:.2f} s")  # fmt: skip
    walls, cpus = zip(*ratios, strict=True)
    print(f"  median of {rounds}: {statistics.median(walls):.2f} x wall, "
          f"{statistics.median(cpus):.2f} x CPU")  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="version", type=int, default=1, choices=sorted(steps.STEPS))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("megabytes", type=int, nargs="*", default=[100])
    wanted = parser.parse_args()
    for each_size in wanted.megabytes:
        report(each_size, wanted.version, wanted.rounds)
