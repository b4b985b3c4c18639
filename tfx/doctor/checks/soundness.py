"""The hub's database from inside: sound, of this schema, its log and what is folded from it agree.

Only reads; never checkpoints, repairs, migrates or recreates anything (K-22).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tfx.doctor.facts import Facts
from tfx.doctor.model import MANUAL, Finding, Remedy, Status
from tfx.doctor.words import command
from tfx.errors import JsonValue, TfxError

if TYPE_CHECKING:
    from tfx.hub.store.inspection import Inspection


def integrity(facts: Facts) -> Iterator[Finding]:
    """Yield whether the database is sound and of this program's schema (D-110)."""
    files = facts.probe.files
    if not files.database.exists():
        yield Finding("database", Status.SKIP, "there is no hub database yet")
        return
    try:
        seen = facts.inspection
    except TfxError as error:
        yield _unreadable(facts, error)
        return
    yield _schema(facts, seen)
    yield from judge_journal(seen.journal_mode, running=facts.probe.state.value == "running")
    yield _soundness(facts, seen)
    yield _library(seen)


def _unreadable(facts: Facts, error: TfxError) -> Finding:
    database = facts.probe.files.database
    busy = error.reason == "busy"
    return Finding(
        "database",
        Status.UNKNOWN if busy else Status.FAIL,
        error.message,
        {"reason": error.reason},
        _keep(facts, database),
        MANUAL,
    )


def _keep(facts: Facts, database: Path) -> tuple[Remedy, ...]:
    """Return the way out of damage: a copy first, then the last verified backup."""
    copy = database.with_name(f"{database.name}.damaged")
    return (
        Remedy("stop the hub and keep a copy first", "tfx hub stop"),
        Remedy("then", command(facts.paths.home, "cp", "-a", database, copy)),
        Remedy("restore the last verified backup", "tfx backup list"),
    )


_SCHEMA_WORDS = {
    "older": ("has an older schema", Status.WARN, "tfx upgrade"),
    "other-fold": ("was folded by an older program", Status.WARN, "tfx upgrade"),
    "newer": ("was written by a newer tfx", Status.FAIL, "tfx update"),
    "tampered": ("has a schema that its stamp does not name", Status.FAIL, "tfx backup list"),
    "unknown": ("is of another program or an unknown version", Status.FAIL, "tfx backup list"),
    "empty": ("holds no schema", Status.WARN, "tfx hub start"),
}


def _schema(facts: Facts, seen: Inspection) -> Finding:
    judgement = seen.judgement
    details: dict[str, JsonValue] = {
        "verdict": judgement.verdict.value,
        "version": judgement.version,
        "fold_version": seen.stamp.fold_version if seen.stamp else None,
        "journal_mode": seen.journal_mode,
        "differences": list(judgement.differences[:20]),
    }
    if judgement.verdict.value == "current":
        summary = f"schema version {judgement.version}, as its stamp says"
        return Finding("schema", Status.OK, summary, details)
    words, status, remedy = _SCHEMA_WORDS[judgement.verdict.value]
    named = f" (version {judgement.version})" if judgement.version is not None else ""
    differs = f": {judgement.differences[0]}" if judgement.differences else ""
    remedies: tuple[Remedy, ...] = (Remedy("keep the file; then", remedy),)
    if status is Status.FAIL and judgement.verdict.value != "newer":
        remedies = _keep(facts, facts.probe.files.database)
    return Finding("schema", status, f"{words}{named}{differs}", details, remedies, MANUAL)


def judge_journal(mode: str, *, running: bool) -> Iterator[Finding]:
    """Yield a journal mode that is not the hub's: readers then wait for the writer (D-110).

    A stopped hub may well have none: a restored backup gets it at the next start.
    """
    if mode == "wal":
        return
    details: dict[str, JsonValue] = {"journal_mode": mode}
    if running:
        summary = f"the journal mode is {mode}, not wal: something changed it under the hub"
        remedy = Remedy("the hub sets it when it starts", "tfx hub restart")
        yield Finding("journal", Status.WARN, summary, details, (remedy,), MANUAL)
    else:
        summary = f"the journal mode is {mode}; the hub sets wal at its next start"
        yield Finding("journal", Status.INFO, summary, details)


def _soundness(facts: Facts, seen: Inspection) -> Finding:
    found = (*seen.damage, *seen.orphans)
    details: dict[str, JsonValue] = {"deep": facts.options.deep, "findings": list(found)}
    if not found:
        depth = "integrity_check" if facts.options.deep else "quick_check"
        return Finding("database", Status.OK, f"{depth} and foreign keys: sound", details)
    return Finding(
        "database",
        Status.FAIL,
        f"damaged: {found[0]}",
        details,
        _keep(facts, facts.probe.files.database),
        MANUAL,
    )


def _library(seen: Inspection) -> Finding:
    details: dict[str, JsonValue] = {"sqlite": seen.sqlite}
    if seen.sqlite_is_old:
        summary = f"SQLite {seen.sqlite} may corrupt a write-ahead log"
        remedy = Remedy("update it", "python -m pip install --upgrade apsw")
        return Finding("SQLite", Status.FAIL, summary, details, (remedy,), MANUAL)
    return Finding("SQLite", Status.OK, f"SQLite {seen.sqlite}", details)


def agreement(facts: Facts) -> Iterator[Finding]:
    """Yield whether log and projections agree; a running hub compares them itself (--deep)."""
    files = facts.probe.files
    if not files.database.exists():
        yield Finding("log", Status.SKIP, "there is no hub database yet")
        return
    if facts.probe.state.value != "running" and facts.inspection.counts is None:
        yield Finding("log", Status.SKIP, "the schema is not this program's")
        return
    found = _differences(facts)
    if not found:
        yield Finding("log", Status.OK, "every folded row is as the log says")
        return
    yield Finding(
        "log",
        Status.FAIL,
        f"{len(found)} rows are not as the log says: {found[0]}",
        {"rows": list(found)},
        (Remedy("keep a copy, then fold the log again", "tfx hub rebuild"),),
        MANUAL,
    )


def _differences(facts: Facts) -> tuple[str, ...]:
    from tfx.hub.store.inspection import disagreements  # noqa: PLC0415  (start-up rule)

    if facts.probe.state.value != "running":
        return disagreements(facts.probe.files.database)
    from tfx.hub.client import HubClient  # noqa: PLC0415
    from tfx.hub.wire.admin import RebuildCheckRequest, RebuildCheckResult  # noqa: PLC0415

    with HubClient.of(facts.paths, operator=True) as client:
        result = client.call("rebuild_check", RebuildCheckRequest(), RebuildCheckResult)
    return tuple(f"{each.table} {each.key}: {each.what}" for each in result.differences)
