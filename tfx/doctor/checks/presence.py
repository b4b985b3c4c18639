"""`cli.matrix`: what the cells together say of one agent, and the line that would help.

Judges by D-87 and K-47: only an agent that some shell finds can fail.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tfx.doctor.facts import Facts
from tfx.doctor.model import MANUAL, Finding, Remedy, Status
from tfx.doctor.words import at_home, listed
from tfx.errors import JsonValue, TfxError

if TYPE_CHECKING:
    from tfx.agents.model import Agent
    from tfx.plan.records import Manifest
    from tfx.shells.cell import Cell
    from tfx.shells.managers import Stray
    from tfx.shells.matrix import Presence

# The start of an agent's tool call that forgets the PATH which the agent has: a login shell
# begins anew from its profile.
_TOOL_CALL = "bash -lc"


def places(facts: Facts) -> Iterator[Finding]:
    """Yield one row for each agent of the catalogue: where it can be started from."""
    from tfx.agents.catalogue import AGENTS  # noqa: PLC0415  (start-up rule)

    in_use = {one.agent.name: one.binary for one in facts.in_use}
    manifest = _manifest(facts)
    rows = [
        _used(facts, agent, in_use[agent.name], manifest)
        if agent.name in in_use
        else _unused(facts, agent, manifest)
        for agent in AGENTS
    ]
    if all(row.status is Status.SKIP for row in rows):
        summary = f"none of the {len(rows)} agents that tfx knows is here"
        yield Finding("agents", Status.INFO, summary, {"known": [row.target for row in rows]})
    yield from rows


def _manifest(facts: Facts) -> Manifest | None:
    try:
        return facts.manifest
    except TfxError:
        return None  # assets.manifest reports it


def _used(facts: Facts, agent: Agent, binary: str, manifest: Manifest | None) -> Finding:
    seen = facts.matrix.presence(binary)
    details = cells_of(facts, binary)
    missing = [cell for cell in (*seen.not_found, *seen.shell_only) if not _is_plain(cell)]
    plain = [cell for cell in (*seen.not_found, *seen.shell_only) if _is_plain(cell)]
    if plain:
        details["by_design"] = (
            f"{listed(cell.label for cell in plain)} read no start-up file of yours; there"
            f" {facts.paths.display(_directory(seen) / binary)} works"
        )
    lost = _lost_to_the_route_script(facts, agent, binary, manifest)
    if missing or lost:
        return _partly(facts, agent, seen, missing=missing, lost=lost, details=details)
    if seen.unknown:
        labels = listed(cell.label for cell in seen.unknown)
        return Finding(
            agent.name,
            Status.UNKNOWN,
            f"found by every shell that answered; {labels} did not: {_reasons(seen.unknown)}",
            details,
            (Remedy("see what stops them", "tfx doctor shell.rc"),),
            MANUAL,
        )
    versions = f"found in {len(seen.found)} of {len(seen.found) + len(plain)} starts"
    note = f"; not in a bare {plain[0].label}, which reads no file of yours" if plain else ""
    return Finding(agent.name, Status.OK, versions + note, details)


def _partly(
    facts: Facts,
    agent: Agent,
    seen: Presence,
    *,
    missing: list[Cell],
    lost: list[Cell],
    details: dict[str, JsonValue],
) -> Finding:
    away = [*missing, *(cell for cell in lost if cell not in missing)]
    if only := _read_only_where_found(facts, seen.found, missing):
        details["read only where it is found"] = only
    found = listed((cell.label for cell in seen.found), 3)
    only_here = {cell.label for cell in seen.shell_only}
    nowhere = [cell.label for cell in away if cell.label not in only_here]
    summary = f"found in {found}"
    if nowhere:
        summary = f"not found in {listed(nowhere, 3)}; {summary}"
    if only_here:
        what = f"alias or function in {listed(sorted(only_here), 2)}"
        summary = f"{what}: scripts and other programs cannot use it; {summary}"
    if lost:
        summary = f"{summary}; the route script needs it"
        details["route script"] = (
            "started from " + listed(cell.label for cell in lost) + ", it finds no " + seen.name
        )
    return Finding(
        agent.name,
        Status.FAIL if lost else Status.WARN,
        summary,
        details,
        path_lines(facts, missing or lost, _directory(seen)),
        MANUAL,
    )


def _read_only_where_found(
    facts: Facts, found: Iterable[Cell], missing: Iterable[Cell]
) -> list[JsonValue]:
    """Return the start-up files that only the starts which find it read (D-138)."""
    elsewhere = {file for cell in missing for file in cell.startup_files}
    files = dict.fromkeys(file for cell in found for file in cell.startup_files)
    return [facts.paths.display(file) for file in files if file not in elsewhere]


def _lost_to_the_route_script(
    facts: Facts, agent: Agent, binary: str, manifest: Manifest | None
) -> list[Cell]:
    """Return the shells of tool calls from which the route script would not find the CLI."""
    from tfx.doctor import routes  # noqa: PLC0415  (start-up rule)

    if manifest is None or not routes.is_needed(agent.name, manifest):
        return []
    return [
        cell
        for cell in facts.matrix.cells
        if cell.label == _TOOL_CALL
        and cell.path_text is not None
        and not routes.finds(binary, facts.paths, cell.path_text)
    ]


def _unused(facts: Facts, agent: Agent, manifest: Manifest | None) -> Finding:
    """Return the row of an agent that no shell finds; it can never fail (K-47)."""
    ours = manifest is not None and agent.name in manifest.agents
    own = next((one for one in facts.detected if one.agent is agent), None)
    seen = [facts.matrix.presence(binary) for binary in agent.binaries]
    shell_only = [cell for each in seen for cell in each.shell_only]
    unknown = [cell for each in seen for cell in each.unknown]
    if own is not None and own.program is not None:
        if own.note:
            return Finding(agent.name, Status.SKIP, f"not {agent.label}: {own.note}")
        return _only_here(facts, agent, own.program, unknown)
    if shell_only:
        return _only_alias(facts, agent, shell_only)
    if found := _strays(facts, agent):
        return _stray(facts, agent, found)
    return _gone(facts, agent, unknown) if ours else Finding(agent.name, Status.SKIP, "not here")


def _gone(facts: Facts, agent: Agent, unknown: list[Cell]) -> Finding:
    """Return the row of an agent that tfx has written for and that no shell finds."""
    if unknown:
        reasons = _reasons(unknown)
        summary = f"no shell that answered finds it; the others did not: {reasons}"
        remedy = Remedy("see what stops them", "tfx doctor shell.rc")
        details = cells_of(facts, agent.binaries[0])
        return Finding(agent.name, Status.UNKNOWN, summary, details, (remedy,), MANUAL)
    kept = Remedy("take them back", f"tfx setup --remove --agent {agent.name}")
    summary = "no shell finds it; what tfx wrote for it stays as it is"
    return Finding(agent.name, Status.INFO, summary, remedies=(kept,))


def _only_here(facts: Facts, agent: Agent, program: Path, unknown: list[Cell]) -> Finding:
    shown = facts.paths.display(program)
    details = cells_of(facts, program.name)
    if unknown:
        summary = f"{shown} is on the PATH of this session; some shells did not answer"
        return Finding(agent.name, Status.UNKNOWN, summary, details, repair=MANUAL)
    away = [cell for cell in facts.matrix.cells if not _is_plain(cell)]
    return Finding(
        agent.name,
        Status.WARN,
        f"no new shell finds it; only this session has it on its PATH: {shown}",
        details,
        path_lines(facts, away, program.parent),
        MANUAL,
    )


def _only_alias(facts: Facts, agent: Agent, cells: list[Cell]) -> Finding:
    names = {name for cell in cells for name in agent.binaries if cell.resolution(name)}
    found = [r for cell in cells for n in sorted(names) if (r := cell.resolution(n))]
    target = next((one.target_copy for one in found if one.target_copy is not None), None)
    kind = found[0].kind.value if found else "alias"
    where = listed(cell.label for cell in cells)
    summary = f"{kind} only, in {where}: scripts and other programs cannot use it"
    details = cells_of(facts, found[0].name if found else agent.binaries[0])
    remedies: tuple[Remedy, ...] = ()
    if target is not None:
        details["target"] = str(target.path)
        remedies = path_lines(facts, cells, target.path.parent)
    return Finding(agent.name, Status.WARN, summary, details, remedies, MANUAL)


def _strays(facts: Facts, agent: Agent) -> tuple[Stray, ...]:
    from tfx.shells.managers import strays  # noqa: PLC0415  (start-up rule)

    if agent.has_namesakes:
        return ()
    return tuple(one for binary in agent.binaries for one in strays(binary, facts.paths))


def _stray(facts: Facts, agent: Agent, found: tuple[Stray, ...]) -> Finding:
    first = found[0]
    version = f" {first.version}" if first.version else ""
    default = f"; default is {first.default_version}" if first.default_version else ""
    details: dict[str, JsonValue] = {"found": [str(one.path) for one in found]}
    cells = [cell for cell in facts.matrix.cells if not _is_plain(cell)]
    return Finding(
        agent.name,
        Status.INFO,
        f"present under {first.manager}{version}, on no PATH{default}",
        details,
        path_lines(facts, cells, first.path.parent),
        MANUAL,
    )


def path_lines(facts: Facts, cells: Iterable[Cell], directory: Path) -> tuple[Remedy, ...]:
    """Return one line for each file that has to learn the directory, in its shell's own words."""
    lines: dict[tuple[Path, str | None], Remedy] = {}
    plain: list[str] = []
    for cell in cells:
        if cell.flavour is None:
            continue
        if cell.edit_file is None:
            plain.append(cell.label)
            continue
        place = facts.paths.display(cell.edit_file)
        line = _line(facts, cell, directory, place)
        lines.setdefault((cell.edit_file, line.command), line)
    if plain:
        text = f"{listed(plain)}: reads no file of yours; set PATH where it is started"
        return (*lines.values(), Remedy(text))
    return tuple(lines.values())


def _line(facts: Facts, cell: Cell, directory: Path, place: str) -> Remedy:
    """Return the line for one file, or only words where no line can say the directory (D-20)."""
    home = facts.paths.home
    inside = str(at_home(home, directory))
    if cell.flavour is None or ":" in inside or not inside.isprintable():
        shown = facts.paths.display(directory)
        return Remedy(f"{place} ({cell.label}) has to put {shown} on PATH; give it a plain name")
    line = cell.flavour.path_line(inside, str(home))
    return Remedy(f"add to {place} ({cell.label})", line, cell.shell)


def cells_of(facts: Facts, name: str) -> dict[str, JsonValue]:
    """Return what each cell says of a name, in the order of the matrix (D-52 for the unknown)."""
    shown: dict[str, JsonValue] = {}
    for cell in facts.matrix.cells:
        if cell.status.value in {"absent", "skipped"}:
            continue
        resolution = cell.resolution(name)
        if resolution is None:
            shown[cell.label] = {"answer": "unknown", **evidence(cell)}
            continue
        answer: dict[str, JsonValue] = {"answer": resolution.answer.value}
        if resolution.path is not None:
            answer["path"] = str(resolution.path)
        if resolution.kind.value not in {"file", "none"}:
            answer["kind"] = resolution.kind.value
            answer["target"] = resolution.target
        shown[cell.label] = answer
    return {"name": name, "cells": shown}


def evidence(cell: Cell) -> dict[str, JsonValue]:
    """Return what was run and said, for a cell that did not answer (D-52)."""
    return {
        "reason": cell.reason.value if cell.reason else None,
        "exit_code": cell.exit_code,
        "argv": shlex.join(cell.argv),
        "files": [str(file) for file in cell.startup_files],
        "duration_ms": cell.duration_ms,
        "stderr": list(cell.stderr),
    }


def _directory(seen: Presence) -> Path:
    path = seen.found[0].resolution(seen.name)
    winner = path.path if path is not None else None
    return winner.parent if winner is not None else Path("/")


def reads_files(cell: Cell) -> bool:
    """Say whether this start of a shell reads a file of the user, so that one can mend it."""
    return cell.mode is not None and cell.edit_file is not None


def _is_plain(cell: Cell) -> bool:
    return cell.mode is None or cell.mode.value == "c"


def _reasons(cells: Iterable[Cell]) -> str:
    return listed(dict.fromkeys(cell.reason.value for cell in cells if cell.reason))
