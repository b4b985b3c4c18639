"""`perm` and `cache`: files of another user, remains of interrupted writes, logs and caches.

Looks only into tfx's own places, at the agents' files that tfx writes and at the names that the
journal gives.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tfx.doctor.facts import Facts
from tfx.doctor.model import MANUAL, Finding, Remedy, Status
from tfx.doctor.words import command, listed
from tfx.errors import JsonValue, StateConflict, TfxError

if TYPE_CHECKING:
    from tfx.plan.journal import Intent

_MANY_LOGS = 20
_MIB = 1024 * 1024


def owners(facts: Facts) -> Iterator[Finding]:
    """Yield files in our places that another user owns, as sudo leaves them (D-114)."""
    own = facts.paths.home.stat().st_uid
    places = [facts.paths.config_dir, facts.paths.state_dir, facts.paths.cache_dir]
    places += [facts.paths.data_dir, *_recorded_roots(facts)]
    told: set[Path] = set()
    for place in dict.fromkeys(places):
        foreign = list(_foreign(place, own))
        if not foreign:
            continue
        told |= {place, *foreign}
        shown = command(facts.paths.home, place)
        yield Finding(
            facts.paths.display(place),
            Status.FAIL if _blocks(foreign) else Status.WARN,
            f"{len(foreign)} files belong to another user: "
            + listed((facts.paths.display(path) for path in foreign), 2),
            {"files": [str(path) for path in foreign[:20]], "count": len(foreign)},
            (
                Remedy(
                    "take them back; tfx never runs sudo or chown",
                    f'sudo chown -R "$(id -u):$(id -g)" {shown}',
                ),
            ),
            MANUAL,
        )
    single = [path for path in _agents_files(facts) if path not in told and _is_foreign(path, own)]
    for path in single:
        yield _of_another(facts, path)
    if not told and not single:
        words = "every file in tfx's places, and every agents' file it writes, is yours"
        yield Finding("owners", Status.OK, words)
    yield from _closed(facts)


def _agents_files(facts: Facts) -> list[Path]:
    """Return the shared files, written or to be written, and their directories in the home."""
    from tfx.doctor.checks.configs import shared_files  # noqa: PLC0415  (both are in the registry)

    files = [shared.path for shared in shared_files(facts)]
    with contextlib.suppress(TfxError):
        files += [Path(record.file) for record in facts.manifest.shared.values()]
    home = facts.paths.home
    starts = [*files, *_recorded_roots(facts)]
    above = [parent for path in starts for parent in path.parents if home in parent.parents]
    return sorted({*files, *above})


def _is_foreign(path: Path, own: int) -> bool:
    """Say whether a path, or what it leads to, is there and of another user than `own`."""
    with contextlib.suppress(OSError):
        return path.lstat().st_uid != own or path.stat().st_uid != own
    return False


def _of_another(facts: Facts, path: Path) -> Finding:
    is_directory = path.is_dir()
    usable = os.access(path, os.W_OK | (os.X_OK if is_directory else os.R_OK))
    lost = "its agent and tfx cannot write there" if is_directory else "its agent cannot save it"
    who = command(facts.paths.home, path)
    return Finding(
        facts.paths.display(path),
        Status.WARN if usable else Status.FAIL,
        "belongs to another user" + ("" if usable else f"; {lost}"),
        {"path": str(path), "uid": path.stat().st_uid},
        (
            Remedy(
                "take it back; tfx never runs sudo or chown",
                f'sudo chown {"-R " if is_directory else ""}"$(id -u):$(id -g)" {who}',
            ),
        ),
        MANUAL,
    )


def _closed(facts: Facts) -> Iterator[Finding]:
    """Yield places in which nothing can be made: there setup, the hub and backups fail."""
    places = (facts.paths.state_dir, facts.paths.data_dir, facts.paths.cache_dir)
    stops: dict[Path, list[Path]] = {}
    for place in places:
        stands = next((each for each in (place, *place.parents) if os.path.lexists(each)), place)
        if not (stands.is_dir() and os.access(stands, os.W_OK | os.X_OK)):
            stops.setdefault(stands, []).append(place)
    for stands, lost in stops.items():
        yield Finding(
            facts.paths.display(stands),
            Status.FAIL,
            "nothing can be written there; setup, the hub and its backups need it",
            {"places": [str(place) for place in lost]},
            (
                Remedy(
                    "see what it is and who may write there",
                    command(facts.paths.home, "ls", "-ld", stands),
                ),
            ),
            MANUAL,
        )


def _recorded_roots(facts: Facts) -> list[Path]:
    try:
        return sorted({Path(record.root) for record in facts.manifest.files.values()})
    except TfxError:
        return []


def _foreign(place: Path, own: int) -> Iterator[Path]:
    for directory, _, names in os.walk(place):
        for path in (Path(directory), *(Path(directory, name) for name in names)):
            try:
                if path.lstat().st_uid != own:
                    yield path
            except OSError:
                continue


def _blocks(foreign: list[Path]) -> bool:
    return any(path.is_dir() and not os.access(path, os.W_OK) for path in foreign)


def leftovers(facts: Facts) -> Iterator[Finding]:
    """Yield temporary files of crashed writes that the journal names, logs and caches (D-115)."""
    spares = list(_spares(facts))
    for path in spares:
        yield Finding(
            facts.paths.display(path),
            Status.WARN,
            "a temporary file of a write that was cut off",
            {"path": str(path)},
            (Remedy("`tfx doctor --fix` finishes that run", "tfx doctor setup.journal --fix"),),
            MANUAL,
        )
    large = list(_large_logs(facts))
    yield from large
    logs = files_below(facts.paths.crash_dir)
    if len(logs) > _MANY_LOGS:
        yield Finding(
            "crash logs",
            Status.INFO,
            f"{len(logs)} logs of bugs in tfx",
            {"directory": str(facts.paths.crash_dir), "count": len(logs)},
            (
                Remedy(
                    "report and delete them", command(facts.paths.home, "ls", facts.paths.crash_dir)
                ),
            ),
        )
    cache = files_below(facts.paths.cache_dir)
    size = sum(cache.values())
    details: dict[str, JsonValue] = {"files": len(cache), "bytes": size, "logs": len(logs)}
    if not spares and not large:
        yield Finding("leftovers", Status.OK, f"none; {len(cache)} cached files", details)


def _large_logs(facts: Facts) -> Iterator[Finding]:
    """Yield logs of the hub above the limit that it keeps: something else wrote there (D-115)."""
    from tfx.hub.daemon.logs import MAX_BYTES  # noqa: PLC0415  (start-up rule)

    for path, size in files_below(facts.paths.hub_dir).items():
        if ".log" not in path.suffixes or size <= 2 * MAX_BYTES:
            continue
        yield Finding(
            facts.paths.display(path),
            Status.WARN,
            f"this log has {size // _MIB} MiB; the hub keeps one to {MAX_BYTES // _MIB} MiB",
            {"path": str(path), "bytes": size, "limit_bytes": MAX_BYTES},
            (
                Remedy("see what fills it", "tfx hub logs"),
                Remedy("then delete it while the hub is stopped", "tfx hub stop"),
            ),
            MANUAL,
        )


def _spares(facts: Facts) -> Iterator[Path]:
    from tfx.plan.disk import Spare  # noqa: PLC0415  (start-up rule)
    from tfx.plan.journal import read  # noqa: PLC0415
    from tfx.plan.state import StateDir  # noqa: PLC0415

    def beside(run: str, intent: Intent) -> Iterator[Path]:
        spare = Spare.beside(intent.target, run, intent.number)
        yield from (path for path in (spare.fresh, spare.held) if os.path.lexists(path))

    state = StateDir(facts.paths.setup_dir)
    for run in state.journals():
        with contextlib.suppress(StateConflict):  # setup.journal tells of one that is damaged
            story = read(state.journal(run))
            for intent in () if story.committed else story.intents:
                yield from beside(run, intent)


def files_below(place: Path) -> dict[Path, int]:
    """Return the regular files below a directory of ours and their sizes in bytes.

    Links are not followed; what is no directory, is gone meanwhile or may not be looked at is
    left out.
    """
    found: dict[Path, int] = {}
    for directory, _, names in os.walk(place):
        for name in names:
            path = Path(directory, name)
            with contextlib.suppress(OSError):
                info = path.lstat()
                if stat.S_ISREG(info.st_mode):
                    found[path] = info.st_size
    return found
