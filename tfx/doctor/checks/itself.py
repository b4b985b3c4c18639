"""`self` and `config`: this installation of tfx, others of its name, its own configuration.

Never downgrades or rewrites anything that a newer tfx wrote.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tfx import __version__
from tfx.core.files import read_plain
from tfx.doctor.facts import Facts
from tfx.doctor.model import MANUAL, Finding, Remedy, Status
from tfx.doctor.words import command, listed
from tfx.errors import JsonValue

if TYPE_CHECKING:
    from tfx.shells.installations import Installation

_HEAD_BYTES = 65_536


def itself(facts: Facts) -> Iterator[Finding]:
    """Yield which tfx runs where, who shares its environment, and newer writers (D-117)."""
    yield from _copies(facts)
    yield _environment()
    yield _writer(facts)


def _copies(facts: Facts) -> Iterator[Finding]:
    from tfx.desired import installation  # noqa: PLC0415  (start-up rule)
    from tfx.shells.installations import installations  # noqa: PLC0415

    own = {Path(word).resolve() for word in installation() if word.startswith("/")}
    copies = installations(facts.matrix, "tfx")
    others = [copy for copy in copies if copy.real not in own]
    ours = [copy for copy in copies if copy.real in own]
    details: dict[str, JsonValue] = {"version": __version__, "command": list(installation())}
    if ours:
        cells = listed(ours[0].wins_in, 3) or "no shell first"
        yield Finding("tfx", Status.OK, f"tfx {__version__}, found by {cells}", details)
    else:
        by_path = command(facts.paths.home, *installation())
        remedy = Remedy("call it by its path, or put its directory into PATH", by_path)
        summary = f"tfx {__version__} is on no new shell's PATH"
        yield Finding("tfx", Status.INFO, summary, details, (remedy,), MANUAL)
    for copy in others:
        yield _other(facts, copy)


def _other(facts: Facts, copy: Installation) -> Finding:
    owner = owner_of(copy.real)
    wins = bool(copy.wins_in)
    where = f" and is what `tfx` means in {listed(copy.wins_in, 2)}" if wins else ""
    return Finding(
        facts.paths.display(copy.paths[0]),
        Status.WARN if wins else Status.INFO,
        f"another tfx, of {owner}{where}",
        {"real": str(copy.real), "owner": owner, "wins_in": list(copy.wins_in)},
        (Remedy("call this one by its path, or put its directory first in PATH"),),
        MANUAL,
    )


def owner_of(program: Path) -> str:
    """Return whose `tfx` a file is, by its text and its neighbours; never runs it."""
    from tfx.agents.binaries import packages_above  # noqa: PLC0415  (start-up rule)

    for package in packages_above(program):
        return f"the npm package {package.name}"
    try:
        text = read_plain(program, _HEAD_BYTES).decode("utf-8", "replace").casefold()
    except OSError:
        return "an unknown program"
    if "tfx.tools.cli" in text or "tensorflow" in text:
        return "TensorFlow Extended"
    return "another installation of this tfx" if "tfx.__main__" in text else "an unknown program"


def _environment() -> Finding:
    place = Path(sysconfig.get_path("purelib"))
    return judge_environment(sorted(path.name for path in place.glob("tfx*-*.dist-info")))


def judge_environment(names: list[str]) -> Finding:
    """Return what the distributions with our import name in one environment mean."""
    extended = [name for name in names if name.startswith("tfx-")]
    details: dict[str, JsonValue] = {"distributions": list(names)}
    if not extended:
        return Finding("environment", Status.OK, "nobody else has the import name tfx", details)
    return Finding(
        "environment",
        Status.FAIL,
        "TensorFlow Extended is in the same environment and uses the same import name",
        details,
        (Remedy("install tfx-cli in an environment of its own", "pipx install tfx-cli"),),
        MANUAL,
    )


def _writer(facts: Facts) -> Finding:
    newer = newer_writer(facts)
    if newer is None:
        return Finding("state", Status.OK, "nothing here was written by a newer tfx")
    return Finding(
        "state",
        Status.FAIL,
        f"{newer}: every fix is off, nothing is downgraded",
        {"installed": __version__},
        (Remedy("update this tfx", "tfx update"),),
        MANUAL,
    )


def newer_writer(facts: Facts) -> str | None:
    """Say what was written by a newer tfx, or None (D-117, D-130)."""
    from tfx.errors import StateConflict  # noqa: PLC0415  (start-up rule)
    from tfx.plan.manifest import written_by  # noqa: PLC0415

    try:
        facts.manifest  # noqa: B018  (the engine judges its schema)
    except StateConflict as error:  # one that is damaged is no newer one (D-125)
        if error.reason == "manifest-newer":
            return error.message
    version = written_by(facts.paths.setup_dir / "manifest.json")
    if version is not None and _is_newer(version, __version__):
        return f"the state of setup was written by tfx {version}"
    return None


def _is_newer(version: str, than: str) -> bool:
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415  (start-up rule)

    try:
        return Version(version) > Version(than)
    except InvalidVersion:
        return False


def configuration(facts: Facts) -> Iterator[Finding]:
    """Yield what is wrong with config.toml, by line and column (K-19)."""
    from tfx.config import settings  # noqa: PLC0415  (start-up rule)

    shown = facts.paths.display(facts.paths.config_file)
    found = settings.problems(facts.paths)
    for number, error in enumerate(found):
        place = error.details.get("key") or number
        yield Finding(
            f"{shown}:{place}",
            Status.FAIL,
            error.message,
            {**error.details},
            (Remedy(error.hint or "correct it"), Remedy("see them all", "tfx config check")),
            MANUAL,
        )
    if not found:
        there = facts.paths.config_file.exists()
        yield Finding(shown, Status.OK, "is right" if there else "is not there; defaults hold")
