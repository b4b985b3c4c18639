"""The hub's database from outside: the file and its place.

Only reads; never checkpoints, repairs, migrates or recreates anything (K-22).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tfx.doctor.facts import Facts
from tfx.doctor.model import MANUAL, Finding, FixClass, Remedy, Repair, Status
from tfx.doctor.words import command, listed
from tfx.errors import JsonValue

if TYPE_CHECKING:
    from tfx.hub.places import HubFiles

LARGE_WAL_BYTES = 64 * 1024 * 1024
LEAST_FREE_BYTES = 500 * 1024 * 1024
LEAST_FREE = 0.05
_MIB = 1024 * 1024
_PRIVATE_DIR = 0o700
_GROUP_OR_OTHERS = 0o077


def database_file(facts: Facts) -> Iterator[Finding]:
    """Yield what the file system says of the database (D-109)."""
    from tfx.hub.daemon import ground  # noqa: PLC0415  (start-up rule)

    files = facts.probe.files
    if not files.directory.exists() and not files.database.exists():
        yield Finding("database", Status.SKIP, "there is no hub database yet")
        return
    if files.directory.exists():
        yield from _directory(facts, files)
    yield from _link(facts, files.database)
    yield from _file(facts, files.database)
    yield from _write_ahead_log(facts, files)
    yield judge_file_system(files.database.parent, ground.file_system(files.database.parent))
    space = os.statvfs(files.database.parent)
    size = space.f_blocks * space.f_frsize
    free = space.f_bavail * space.f_frsize
    yield judge_space(files.database.parent, free, size, facts.paths.home)


def _directory(facts: Facts, files: HubFiles) -> Iterator[Finding]:
    from tfx.plan.actions import Action, ActionKind, Reason, State  # noqa: PLC0415

    info = files.directory.stat()
    mode = stat.S_IMODE(info.st_mode)
    target = facts.paths.display(files.directory)
    details: dict[str, JsonValue] = {"mode": f"{mode:04o}", "path": str(files.directory)}
    if info.st_uid != os.geteuid():
        yield _foreign(facts, files.directory, target)
    elif mode & _GROUP_OR_OTHERS:
        action = Action(
            ActionKind.UPDATE,
            Reason.LOOSE_MODE,
            str(files.directory),
            files.directory,
            disk=State("", mode),
            new=State("", _PRIVATE_DIR),
        )
        close = Remedy("close it", command(facts.paths.home, "chmod", "700", files.directory))
        yield Finding(
            target,
            Status.WARN,
            f"others can look into it (mode {mode:04o})",
            details,
            (close,),
            Repair(FixClass.AUTO, (action,)),
        )
    else:
        yield Finding(target, Status.OK, f"private (mode {mode:04o})", details)


def _file(facts: Facts, database: Path) -> Iterator[Finding]:
    target = facts.paths.display(database)
    try:
        info = database.lstat()
    except OSError:
        return
    mode = stat.S_IMODE(info.st_mode)
    details: dict[str, JsonValue] = {"mode": f"{mode:04o}", "bytes": info.st_size}
    if not stat.S_ISREG(info.st_mode):
        away = Remedy("look what it is, then move it away; the hub makes a new database",
                      command(facts.paths.home, "ls", "-ld", database))  # fmt: skip
        yield Finding(target, Status.FAIL, "is no file, so it is no database", details, (away,),
                      MANUAL)  # fmt: skip
    elif info.st_uid != os.geteuid():
        yield _foreign(facts, database, target)
    elif mode & _GROUP_OR_OTHERS:
        close = Remedy("close it", command(facts.paths.home, "chmod", "600", database))
        summary = f"others can read your messages (mode {mode:04o})"
        yield Finding(target, Status.WARN, summary, details, (close,), MANUAL)
    else:
        yield Finding(target, Status.OK, f"{info.st_size // 1024} KiB, private", details)


def _link(facts: Facts, database: Path) -> Iterator[Finding]:
    """Yield that the name of the database is a link; hub, lock and log stay beside the file."""
    named = facts.paths.variable("TFX_HUB_DB") or facts.paths.hub_dir / "hub.db"
    if named.is_symlink():
        leads = facts.paths.display(database)
        summary = f"is a symbolic link; the hub, its lock and its log use the file behind: {leads}"
        details: dict[str, JsonValue] = {"leads_to": str(database), "exists": database.exists()}
        yield Finding(f"{facts.paths.display(named)} (link)", Status.INFO, summary, details)


def _foreign(facts: Facts, path: Path, target: str) -> Finding:
    take = f'sudo chown -R "$(id -u):$(id -g)" {command(facts.paths.home, path)}'
    remedy = Remedy("take it back; tfx never runs sudo or chown", take)
    return Finding(target, Status.FAIL, "belongs to another user", {}, (remedy,), MANUAL)


def _write_ahead_log(facts: Facts, files: HubFiles) -> Iterator[Finding]:
    from tfx.hub.store.inspection import open_by  # noqa: PLC0415  (start-up rule)

    wal = files.database.with_name(f"{files.database.name}-wal")
    shm = files.database.with_name(f"{files.database.name}-shm")
    if not files.database.exists():
        orphans = [path for path in (wal, shm) if path.exists()]
        if orphans:
            yield _without_database(facts, orphans)
        return
    try:
        size, whole = wal.stat().st_size, files.database.stat().st_size
    except OSError:
        return
    details: dict[str, JsonValue] = {"bytes": size, "database_bytes": whole}
    target = facts.paths.display(wal)
    if size > LARGE_WAL_BYTES or size > max(whole, _MIB * 4):
        holders = [pid for pid in open_by(wal) if pid != os.getpid()]
        details["holders"] = list(holders)
        who = f"held open by pid {listed(map(str, holders))}" if holders else "nobody has it open"
        running = facts.probe.state.value == "running"
        next_step = "tfx hub restart" if running else "tfx hub start"
        yield Finding(
            target,
            Status.WARN,
            f"the write-ahead log has {size // _MIB} MiB; {who}",
            details,
            (Remedy("never delete it, it holds messages; the hub folds it in", next_step),),
            MANUAL,
        )
    else:
        yield Finding(target, Status.OK, f"{size // 1024} KiB", details)


def _without_database(facts: Facts, orphans: list[Path]) -> Finding:
    names = listed(facts.paths.display(path) for path in orphans)
    return Finding(
        names,
        Status.FAIL,
        "lies there without its database, which was moved or deleted",
        {"files": list(map(str, orphans))},
        (Remedy("put the database back beside it, or move it away; it may hold messages"),),
        MANUAL,
    )


def judge_file_system(place: Path, kind: str) -> Finding:
    """Return what the kind of a file system means for SQLite (K-45: a value, not a mount)."""
    from tfx.hub.daemon.ground import is_network  # noqa: PLC0415  (start-up rule)

    details: dict[str, JsonValue] = {"file_system": kind, "path": str(place)}
    if is_network(kind):
        return Finding(
            "file system",
            Status.FAIL,
            f"{kind} is a network file system: SQLite's locks do not hold there",
            details,
            (Remedy("set TFX_HUB_DB to a path on a local disk"),),
            MANUAL,
        )
    if kind in {"9p", "drvfs", "vboxsf", "virtiofs", "fuse", "fuseblk"}:
        summary = f"{kind} is shared with another system; locks may not hold there"
        return Finding("file system", Status.WARN, summary, details, repair=MANUAL)
    if kind == "zfs":
        summary = "zfs: sound, but a small recordsize makes the log faster"
        return Finding("file system", Status.INFO, summary, details)
    return Finding("file system", Status.OK, kind or "of an unknown kind", details)


def judge_space(place: Path, free_bytes: int, size_bytes: int, home: Path = Path("/")) -> Finding:
    """Return what the room that is left means (K-45: values, not a full disk)."""
    share = free_bytes / size_bytes if size_bytes else 1.0
    details: dict[str, JsonValue] = {"free_bytes": free_bytes, "size_bytes": size_bytes}
    summary = f"{free_bytes // _MIB} MiB free ({share:.0%})"
    if free_bytes < LEAST_FREE_BYTES or share < LEAST_FREE:
        remedy = Remedy("make room", command(home, "df", "-h", place))
        return Finding("free space", Status.WARN, f"only {summary}", details, (remedy,), MANUAL)
    return Finding("free space", Status.OK, summary, details)
