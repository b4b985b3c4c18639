"""`db.backups`: the verified copies of the hub's database, each whole, the newest not too old.

Reads names, manifests and sizes; every byte only with --deep. Makes and deletes no backup.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from tfx.core.clock import SystemClock
from tfx.doctor.facts import Facts
from tfx.doctor.model import MANUAL, Finding, FixClass, Remedy, Repair, Status
from tfx.doctor.words import DAY_MS, age, command
from tfx.errors import JsonValue, TfxError

if TYPE_CHECKING:
    from tfx.hub.store.inspection import Traffic
    from tfx.upgrade.model import Progress
    from tfx.upgrade.shelf import Row

OLD_DAYS = 30
_PRIVATE_DIR = 0o700
_GROUP_OR_OTHERS = 0o077
_NO_ANSWER = ("worker-", "spawn-")  # codes of a reader that ended before it had an answer
_CREATE = Remedy("make one; the hub may run", "tfx backup create")


def backups(facts: Facts) -> Iterator[Finding]:
    """Yield what is wrong with a backup, then whether the newest one would do (U-76, U-77)."""
    from tfx.upgrade import shelf, stores  # noqa: PLC0415  (start-up rule)
    from tfx.upgrade.shelf import Health  # noqa: PLC0415

    places = (facts.paths.backup_dir, *stores.others(facts.paths))
    listed = [row for place in places for row in shelf.listed(place).data.backups]
    listed.sort(key=lambda row: row.made_at_ms or 0, reverse=True)
    for row in listed:
        yield from _open_to_others(facts, Path(row.directory))
    seen = _read_whole(facts, listed) if facts.options.deep else [(row, None) for row in listed]
    rows = [row for row, _ in seen]
    for row, unread in seen:
        if unread is not None:
            yield Finding(facts.paths.display(Path(row.directory)), Status.UNKNOWN, unread)
        elif row.health is Health.DAMAGED:
            yield _damaged(facts, row)
        elif row.health is Health.UNVERIFIED:
            yield _unfinished(facts, row)
    database = facts.probe.files.database
    ours = [r for r in rows if r.health is Health.SOUND and r.source == str(database)]
    if ours:
        yield _newest(facts, ours, _traffic(database))
    elif database.exists():
        yield none_yet(_traffic(database))
    elif not rows:
        yield Finding("backups", Status.SKIP, "there is no hub database yet")


def _traffic(database: Path) -> Traffic | None:
    """Return what would be lost, or None where it cannot be told: `db.integrity` says why."""
    from tfx.hub.store import inspection  # noqa: PLC0415  (start-up rule)

    try:
        return inspection.traffic(database)
    except TfxError:
        return None


def _open_to_others(facts: Facts, directory: Path) -> Iterator[Finding]:
    """Yield a backup that others can look into; it holds the messages (U-4)."""
    from tfx.plan.actions import Action, ActionKind, Reason, State  # noqa: PLC0415

    mode = stat.S_IMODE(directory.stat().st_mode)
    if not mode & _GROUP_OR_OTHERS:
        return
    action = Action(
        ActionKind.UPDATE,
        Reason.LOOSE_MODE,
        str(directory),
        directory,
        disk=State("", mode),
        new=State("", _PRIVATE_DIR),
    )
    yield Finding(
        f"{facts.paths.display(directory)} (mode)",
        Status.WARN,
        f"others can look into it (mode {mode:04o}); it holds your messages",
        {"mode": f"{mode:04o}", "path": str(directory)},
        (Remedy("close it", command(facts.paths.home, "chmod", "700", directory)),),
        Repair(FixClass.AUTO, (action,)),
    )


def _damaged(facts: Facts, row: Row) -> Finding:
    target = facts.paths.display(Path(row.directory))
    away = command(facts.paths.home, "mv", row.directory, facts.paths.home)
    return Finding(
        target,
        Status.WARN,
        f"cannot be restored: {row.why}",
        {"path": row.directory, "why": row.why, "made_for": row.reason},
        (_CREATE, Remedy("take what is left of it out of the store", away)),
        MANUAL,
    )


def _unfinished(facts: Facts, row: Row) -> Finding:
    from tfx.upgrade import manifest  # noqa: PLC0415  (start-up rule)

    target = facts.paths.display(Path(row.directory))
    found = manifest.read(Path(row.directory))
    if found is not None and found.maker_lives:
        return Finding(target, Status.INFO, f"is being made by process {found.pid}")
    return Finding(
        target,
        Status.INFO,
        "was never finished: its run died; the database itself lost nothing",
        {"path": row.directory},
        (Remedy("remove what dead runs left", _prune(facts, Path(row.directory).parent)),),
    )


def _prune(facts: Facts, store: Path) -> str:
    where = () if store == facts.paths.backup_dir else ("--backup-dir", store)
    return command(facts.paths.home, "tfx", "backup", "prune", *where)


def _newest(facts: Facts, rows: Sequence[Row], lost: Traffic | None) -> Finding:
    newest = rows[0]
    finding = judge_age(newest.made_at_ms or 0, SystemClock().now_ms(), lost)
    proven = "read to the last byte" if facts.options.deep else "of the right size"
    details: dict[str, JsonValue] = {
        "path": newest.directory,
        "made_at_ms": newest.made_at_ms,
        "schema_version": newest.version,
        "sound": len(rows),
        "proof": proven,
        **finding.details,
    }
    summary = finding.summary
    if finding.status is Status.OK:
        summary += f"; {len(rows)} kept, {proven}"
    return Finding("newest backup", finding.status, summary, details, finding.remedies)


def judge_age(made_at_ms: int, now_ms: int, lost: Traffic | None) -> Finding:
    """Return what the age of the newest backup means (K-45: values, no waiting).

    Old is only what misses something: no message since means that nothing would be lost.
    """
    age_ms = max(0, now_ms - made_at_ms)
    missing = lost is None or (lost.last_posted_at_ms or 0) > made_at_ms
    details: dict[str, JsonValue] = {"age_s": age_ms // 1000, "misses_messages": missing}
    made = f"made {age(age_ms)} ago"
    if missing and age_ms > OLD_DAYS * DAY_MS:
        since = "" if lost is None else ", and messages came since"
        return Finding("newest backup", Status.INFO, made + since, details, (_CREATE,))
    return Finding("newest backup", Status.OK, made, details)


def none_yet(lost: Traffic | None) -> Finding:
    """Return what it means that no sound backup is there: tfx makes one before each upgrade."""
    if lost is not None and not lost.messages:
        return Finding("backups", Status.OK, "none, and no message that could be lost")
    summary = "there is no sound backup of the hub's database"
    if lost is not None:
        summary += f" and its {lost.messages} messages"
    return Finding("backups", Status.INFO, summary, remedies=(_CREATE,))


class _Ended(Exception):
    """The look as a whole was ended."""


def _read_whole(facts: Facts, rows: Sequence[Row]) -> list[tuple[Row, str | None]]:
    """Read every sound backup from its digest to its last index; with a reason if that failed.

    In a pool, so that an interrupt still ends the worker: the interpreter waits for a pool.
    """
    with ThreadPoolExecutor(1, "tfx-backup") as pool:
        return list(pool.map(lambda row: _verified(facts, row), rows))


def _verified(facts: Facts, row: Row) -> tuple[Row, str | None]:
    from tfx.upgrade import shelf  # noqa: PLC0415  (start-up rule)

    if row.health is not shelf.Health.SOUND:
        return row, None

    def told(_: Progress) -> None:
        if facts.cancel.is_set():
            raise _Ended

    found = shelf.verify(facts.paths, Path(row.directory).parent, [row.directory], told)
    lost = next((p for p in found.problems if p.code.startswith(_NO_ANSWER)), None)
    if lost is not None:
        return row, lost.message
    return found.data.backups[0], None
