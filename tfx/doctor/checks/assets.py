"""tfx's own part: what it installed against what it recorded, runs, locks, backups, caches.

Judges by the plan engine's own words and never looks past what manifest and journal name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tfx.doctor.checks.drift import differs
from tfx.doctor.checks.itself import configuration, itself
from tfx.doctor.checks.leftovers import files_below, leftovers, owners
from tfx.doctor.facts import Facts
from tfx.doctor.model import (
    MANUAL,
    Check,
    Explanation,
    Finding,
    FixClass,
    Group,
    Remedy,
    Repair,
    Status,
)
from tfx.doctor.words import command
from tfx.errors import JsonValue, StateConflict

if TYPE_CHECKING:
    from tfx.core.locks import Holder
    from tfx.plan.actions import Action


def manifest(facts: Facts) -> Iterator[Finding]:
    """Yield each file and entry that is not as described (D-103, D-179)."""
    from tfx.plan.outcomes import outcome_of  # noqa: PLC0415  (start-up rule)

    try:
        wanted = facts.wanted
    except StateConflict as error:
        if error.reason != "manifest-unreadable":
            raise
        yield _damaged(facts, "manifest", facts.paths.setup_dir / "manifest.json", error)
        return
    if not wanted.was_set_up:
        ready = Remedy("install them", "tfx setup")
        number = len(wanted.plan.actions)
        details: dict[str, JsonValue] = {"wanted": number}
        yield Finding(
            "assets",
            Status.INFO,
            "tfx setup was never run here",
            details,
            (ready,) if number else (),
        )
        return
    yield from _moved_home(facts)
    actions = [action for action in wanted.plan.actions if not _is_told_elsewhere(action)]
    for action in actions:
        yield differs(facts, action)
    kept = [action for action in wanted.plan.settled if action.kind.value == "kept"]
    for action in kept:
        words = outcome_of(action, removing=False).reason
        yield Finding(facts.paths.display(action.path), Status.INFO, words, {"state": "edited"})
    fine = sum(action.kind.value == "unchanged" for action in wanted.plan.settled)
    if not actions:
        yield Finding("assets", Status.OK, f"{fine} files and entries as installed", {"ok": fine})


def _moved_home(facts: Facts) -> Iterator[Finding]:
    """Yield that what is recorded lies in another home, which is gone: HOME was moved (S-108)."""
    records = facts.manifest
    places = {Path(record.root) for record in records.files.values()}
    places |= {Path(record.file).parent for record in records.shared.values()}
    homes = {facts.paths.home, facts.paths.home.resolve()}
    lost = [place for place in places if not place.exists() and not homes & {*place.parents}]
    if not lost:
        return
    old = Path(os.path.commonpath(lost))
    if old.exists():
        return
    yield Finding(
        "home",
        Status.WARN,
        f"setup was run in another home, which is gone: what it recorded lies below {old}",
        {"recorded": [str(place) for place in sorted(lost)], "home": str(facts.paths.home)},
        (
            Remedy(
                "if HOME is right now, install it here; hooks and a status line that name the old"
                " place are then yours to delete",
                "tfx setup",
            ),
            Remedy("else set HOME to the old directory and look again"),
        ),
        MANUAL,
    )


def _is_told_elsewhere(action: Action) -> bool:
    """Say whether `mcp.registration` or `settings.json` has a row for it."""
    from tfx.agents.model import HUB_ENTRY  # noqa: PLC0415  (start-up rule)

    return action.asset == HUB_ENTRY or action.reason.value == "stands-there-twice"


def journal(facts: Facts) -> Iterator[Finding]:
    """Yield runs that were interrupted, and journals that cannot be read (S-43)."""
    from tfx.plan.journal import read  # noqa: PLC0415  (start-up rule)
    from tfx.plan.state import StateDir  # noqa: PLC0415

    state = StateDir(facts.paths.setup_dir)
    try:
        runs = state.journals()
    except StateConflict as error:
        yield _damaged(facts, "journals", facts.paths.setup_dir / "journal", error)
        return
    sound = True
    for run in runs:
        path = state.journal(run)
        try:
            story = read(path)
        except StateConflict as error:
            sound = False
            yield _damaged(facts, run, path, error)
            continue
        if not story.committed:
            sound = False
            yield _interrupted(run, path)
    if sound:
        yield Finding(
            "runs", Status.OK, f"none of {len(runs)} was interrupted", {"runs": len(runs)}
        )


def _interrupted(run: str, path: Path) -> Finding:
    from tfx.plan.actions import Action, ActionKind, Reason  # noqa: PLC0415  (start-up rule)

    action = Action(ActionKind.RECORD, Reason.INTERRUPTED, run, path)
    return Finding(
        run,
        Status.WARN,
        "this run of setup was interrupted; the next writing run finishes or drops it",
        {"journal": str(path)},
        (Remedy("finish it", "tfx doctor --fix"),),
        Repair(FixClass.AUTO, (action,)),
    )


def _damaged(facts: Facts, target: str, path: Path, error: StateConflict) -> Finding:
    """Return the finding of a file of setup's state that stops every run of setup (K-9, S-39)."""
    away = facts.paths.home / f"damaged-{path.name}"
    return Finding(
        target,
        Status.FAIL,
        f"{error.message}; setup refuses to run (exit 5)",
        {"reason": error.reason, **error.details},
        (
            Remedy(_AFTER.get(error.reason, error.hint or "")),
            Remedy("move it away", command(facts.paths.home, "mv", path, away)),
        ),
        MANUAL,
    )


def lock(facts: Facts) -> Iterator[Finding]:
    """Yield who holds setup's lock; a name that a dead process left means nothing (H-10)."""
    from tfx.core import locks  # noqa: PLC0415  (start-up rule)

    path = facts.paths.setup_dir / "lock"
    yield lock_finding(locks.holder(path), held=locks.is_held(path), there=path.exists())


def lock_finding(who: Holder | None, *, held: bool, there: bool) -> Finding:
    """Return what a lock file means, held or left."""
    details: dict[str, JsonValue] = {"held": held}
    if who is not None:
        details |= {"pid": who.pid, "purpose": who.purpose, "alive": who.alive}
    if held:
        name = f" (pid {who.pid}, {who.purpose})" if who else ""
        wait = Remedy("wait until it has ended; tfx ends no process")
        return Finding("setup", Status.WARN, f"a run of setup is going on{name}", details, (wait,))
    if who is not None:
        summary = f"free; process {who.pid}, which is gone, left its name in it"
        return Finding("setup", Status.OK, summary, details)
    return Finding("setup", Status.OK, "free" if there else "free, never taken", details)


def backups(facts: Facts) -> Iterator[Finding]:
    """Yield backups that a record still needs and that are gone or changed."""
    from tfx.plan.state import StateDir  # noqa: PLC0415  (start-up rule)

    state = StateDir(facts.paths.setup_dir)
    replaced = [record.replaced for record in facts.manifest.files.values()]
    replaced += [record.replaced for record in facts.manifest.entries.values()]
    pointers = {each.backup for each in replaced if each is not None}
    pointers |= {r.original for r in facts.manifest.shared.values() if r.original}
    missing = sorted(each for each in pointers if not state.backup(each).is_file())
    for each in missing:
        yield Finding(
            each,
            Status.WARN,
            "the backup of what tfx replaced is gone; it cannot be given back",
            {"path": str(state.backup(each))},
            (Remedy("put it back from a copy of your own, if you have one"),),
            MANUAL,
        )
    kept = files_below(facts.paths.setup_dir / "backup")
    size = sum(kept.values())
    runs = {path.parent.name for path in kept}
    details: dict[str, JsonValue] = {"runs": len(runs), "bytes": size, "needed": len(pointers)}
    if not missing:
        summary = f"{size // 1024} KiB; all that are needed are there"
        yield Finding("backups", Status.OK, summary, details)


_AFTER = {
    "manifest-unreadable": "put it back from a copy if you have one; without one, the next"
    " `tfx setup` records again what is as it wrote it, and takes all else for yours",
    "journal-unreadable": "what it was doing is then judged by the manifest alone",
}

CHECKS = (
    Check(
        "self",
        Group.SETUP,
        "this tfx, others of the name, its environment",
        Explanation(
            "Which `tfx` each shell finds, whether that is this one, whether TensorFlow Extended"
            " shares its environment, and whether what lies here was written by a newer tfx.",
            "Two programs of one name, or an older tfx over newer files, do damage quietly.",
            "The PATHs of the probed shells, the names in site-packages, manifest.json.",
            "Install tfx isolated (pipx or uv); `tfx update`.",
        ),
        itself,
    ),
    Check(
        "config",
        Group.SETUP,
        "tfx's own config.toml",
        Explanation(
            "Whether config.toml parses and has only known keys with values of the right type.",
            "Commands refuse to guess what a wrong setting means.",
            "config.toml and the variables that override it.",
            "Correct the line that the row names; `tfx config show` lists all keys.",
        ),
        configuration,
    ),
    Check(
        "assets.manifest",
        Group.SETUP,
        "installed files and entries against what was written",
        Explanation(
            "Each file and entry that tfx wrote: pristine, edited, deleted, stale or foreign.",
            "A stale script or a lost exec bit breaks hooks; an edit of yours must survive.",
            "The files and entries that the manifest records, by hash.",
            "`tfx setup --take-new`, `--restore` or `--keep-mine`.",
        ),
        manifest,
        least_s=45,
        fix=FixClass.CONSENT,
    ),
    Check(
        "setup.journal",
        Group.SETUP,
        "runs of setup came to their end",
        Explanation(
            "Whether each run of setup wrote its last line.",
            "A run that was killed left some targets new and some old.",
            "The journals in tfx's state directory.",
            "Run `tfx setup` again: it finishes or drops what was begun.",
        ),
        journal,
        fix=FixClass.AUTO,
    ),
    Check(
        "setup.lock",
        Group.SETUP,
        "the lock of setup",
        Explanation(
            "Whether a run of setup holds the lock now.",
            "A second run waits, then refuses.",
            "The lock file; the operating system says whether it is held, not its text.",
            "Wait for the run. A file that is left behind holds nothing and may stay.",
        ),
        lock,
    ),
    Check(
        "setup.backups",
        Group.SETUP,
        "backups that are still needed",
        Explanation(
            "Whether the bytes that tfx replaced are still in its backup.",
            "Without them `--remove` and `--undo` cannot give them back.",
            "The backup directory in tfx's state.",
            "Keep the state directory in your own backups.",
        ),
        backups,
    ),
    Check(
        "perm",
        Group.SETUP,
        "files of another user, places that cannot be written",
        Explanation(
            "Whether files in tfx's places, or the agents' files that tfx writes and their"
            " directories, belong to somebody else, or nothing can be made there.",
            "A run under sudo leaves files that you can no longer change.",
            "Owners and modes of the files in tfx's own and managed directories.",
            "Run the line that the row prints.",
        ),
        owners,
        least_s=45,
    ),
    Check(
        "cache",
        Group.SETUP,
        "leftovers and caches",
        Explanation(
            "Temporary files of interrupted writes, logs of bugs, caches.",
            "They are harmless but take room.",
            "Names that the journal gives; tfx's own log and cache directories.",
            "`tfx doctor --reset` clears the caches.",
        ),
        leftovers,
    ),
)
