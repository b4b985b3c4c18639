"""`cli.method`: who installed the copy that wins, and whether npm would update that one.

Told by the real file and its package.json, never by the name of a directory (D-85).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tfx.doctor.checks.presence import path_lines, reads_files
from tfx.doctor.facts import Facts, InUse, Program
from tfx.doctor.model import MANUAL, Finding, Remedy, Status
from tfx.doctor.words import listed
from tfx.errors import JsonValue

if TYPE_CHECKING:
    from tfx.shells.cell import Cell


def method(facts: Facts) -> Iterator[Finding]:
    """Yield how each agent in use was installed (D-100), and whether npm's place is on PATH."""
    yield from _npm_place(facts)
    for one in facts.in_use:
        program = one.programs[0]
        how, root = told_by_files(program)
        details: dict[str, JsonValue] = {
            "method": how,
            "real": str(program.installation.real),
            "root": str(root) if root is not None else None,
        }
        yield (
            _of_npm(facts, one, program, root, details)
            if how == "npm" and root
            else Finding(one.agent.name, Status.OK, f"{how}: {program.installation.real}", details)
        )


def _npm_place(facts: Facts) -> Iterator[Finding]:
    """Yield whether what npm installs with -g is found: its prefix against each cell (D-143).

    Only a prefix that the user chose; npm's own place is beside the node that a shell finds.
    """
    from tfx.shells.managers import npm_prefix  # noqa: PLC0415  (start-up rule)

    prefix = npm_prefix(facts.paths)
    if prefix is None:
        return
    place = prefix / "bin"
    asked = [
        cell for cell in facts.matrix.cells if cell.path_text is not None and reads_files(cell)
    ]
    away = [cell for cell in asked if not _has(cell, place)]
    target = f"npm prefix {facts.paths.display(prefix)}"
    details: dict[str, JsonValue] = {"bin": str(place), "not_in": [cell.label for cell in away]}
    if not away:
        yield Finding(target, Status.OK, "its bin is on the PATH of every shell", details)
        return
    lost = _lost(place, away)
    details["lost"] = [*lost]
    what = f"{listed(lost)} there" if lost else "what npm installs with -g"
    where = listed((cell.label for cell in away), 3)
    yield Finding(
        target,
        Status.WARN if lost else Status.INFO,
        f"its bin is not on PATH in {where}: {what} cannot be found",
        details,
        path_lines(facts, away, place),
        MANUAL,
    )


def _has(cell: Cell, place: Path) -> bool:
    real = Path(os.path.realpath(place))
    return any(entry.real == real for entry in cell.entries)


def _lost(place: Path, away: list[Cell]) -> list[str]:
    """Return the agents in npm's bin that one of these cells finds nowhere."""
    from tfx.agents.catalogue import AGENTS  # noqa: PLC0415  (start-up rule)
    from tfx.shells.binaries import runnable  # noqa: PLC0415

    names = [name for agent in AGENTS for name in agent.binaries if runnable(place / name)]
    return [
        name
        for name in dict.fromkeys(names)
        if any(cell.answer(name).value in {"not-found", "shell-only"} for cell in away)
    ]


def told_by_files(program: Program) -> tuple[str, Path | None]:
    """Return the method and, for npm, the `node_modules` directory that holds the package."""
    real = program.installation.real
    package = program.detected.package
    parts = real.parts
    if package is not None and package.is_installed:
        return _package_manager(program), _node_modules(package.path)
    if "Cellar" in parts or "Caskroom" in parts:
        return "brew", None
    if program.installation.manager in {"asdf", "mise", "nodenv", "volta"}:
        return f"{program.installation.manager} shim", None
    if _is_native(real):
        return "native installer", None
    return "a file of its own", None


def _package_manager(program: Program) -> str:
    parts = program.installation.real.parts
    if program.installation.manager == "pnpm" or ".pnpm" in parts:
        return "pnpm"
    return "bun" if ".bun" in parts else "npm"


def _is_native(real: Path) -> bool:
    """Say whether a file lies in a directory of versions, as the agents' own installers keep it."""
    return "versions" in real.parts or real.parent.name == "versions"


def _node_modules(package: Path) -> Path | None:
    for parent in package.parents:
        if parent.name == "node_modules":
            return parent
    return None


def _of_npm(
    facts: Facts, one: InUse, program: Program, root: Path, details: dict[str, JsonValue]
) -> Finding:
    other = _other_root(facts, program, root)
    name = one.agent.name
    if other is not None:
        details["npm_root"] = str(other)
        return Finding(
            name,
            Status.WARN,
            f"npm of {program.cell.label} installs into {other}, another place than this copy",
            details,
            (Remedy(f"update the copy in {root}, or take its directory out of PATH"),),
            MANUAL,
        )
    if not os.access(root, os.W_OK):
        return Finding(
            name,
            Status.WARN,
            f"npm: {root} cannot be written, so updates would need root",
            details,
            (Remedy("give npm a prefix of your own", "npm config set prefix ~/.local"),),
            MANUAL,
        )
    return Finding(name, Status.OK, f"npm: {root}", details)


def _other_root(facts: Facts, program: Program, root: Path) -> Path | None:
    """Return where npm keeps global packages, if that is elsewhere (D-152).

    Told by its configured prefix, else by npm's own place; it is not run, as it would write its
    log and clean its cache (D-92).
    """
    from tfx.shells.managers import npm_prefix  # noqa: PLC0415  (start-up rule)

    resolution = program.cell.resolution("npm")
    winner = resolution.winner if resolution is not None else None
    if winner is None:
        return None
    prefix = npm_prefix(facts.paths)
    own = prefix / "lib" / "node_modules" if prefix is not None else _node_modules(winner.real)
    return own if own is not None and own.resolve() != root.resolve() else None
