"""`cli.duplicates`: several copies of one agent, and which of them wins in which shell.

Tells copies apart by their real path, never by the name of a directory (D-83).
"""

from __future__ import annotations

from collections.abc import Iterator

from tfx.doctor.facts import Facts, InUse, Program
from tfx.doctor.model import MANUAL, Finding, Remedy, Status
from tfx.doctor.words import listed
from tfx.errors import JsonValue

_UNKNOWN = "unknown version"


def duplicates(facts: Facts) -> Iterator[Finding]:
    """Yield where several copies of one agent compete (D-83)."""
    from tfx.shells.installations import installations  # noqa: PLC0415  (start-up rule)

    for one in facts.in_use:
        copies = installations(facts.matrix, one.binary)
        winning = one.programs
        details: dict[str, JsonValue] = {
            str(copy.real): {
                "paths": [str(path) for path in copy.paths],
                "wins_in": list(copy.wins_in),
                "shadowed_in": list(copy.shadowed_in),
                "aliased_in": list(copy.aliased_in),
            }
            for copy in copies
        }
        name = one.agent.name
        if len(copies) == 1:
            yield Finding(name, Status.OK, f"one copy: {copies[0].real}", details)
        elif len(winning) > 1:
            yield _differing(facts, one, details)
        else:
            yield _shadowing(facts, one, len(copies), details)


def _differing(facts: Facts, one: InUse, details: dict[str, JsonValue]) -> Finding:
    shown = []
    for program in one.programs:
        copy = program.installation
        where = listed((*copy.wins_in, *copy.aliased_in), 2)
        shown.append(f"{_version_text(facts, program)} in {where}")
    versions = {_version_text(facts, program) for program in one.programs}
    if len(versions) == 1 and _UNKNOWN not in versions:
        summary = f"{len(one.programs)} copies of one version: {'; '.join(shown)}"
        return Finding(one.agent.name, Status.INFO, summary, details)
    return Finding(
        one.agent.name,
        Status.WARN,
        f"different copies in different shells: {'; '.join(shown)}",
        details,
        (
            Remedy("put the directory you want first in the PATH of every shell"),
            Remedy("a shell that is open already remembers the old one", "hash -r", "bash"),
        ),
        MANUAL,
    )


def _shadowing(facts: Facts, one: InUse, copies: int, details: dict[str, JsonValue]) -> Finding:
    from tfx.agents.versions import AgentVersion  # noqa: PLC0415  (start-up rule)

    winner = one.programs[0]
    wins = facts.version(winner)
    for program in _others(facts, one, winner):
        other = facts.version(program)
        newer = isinstance(wins, AgentVersion) and isinstance(other, AgentVersion)
        if newer and isinstance(other, AgentVersion) and isinstance(wins, AgentVersion):
            if not other.is_newer_than(wins):
                continue
            return Finding(
                one.agent.name,
                Status.WARN,
                f"an older copy wins: {wins.text} hides {other.text}"
                f" ({winner.installation.paths[0]})",
                details,
                (Remedy(f"put {program.installation.paths[0].parent} before it in PATH"),),
                MANUAL,
            )
    path = winner.installation.paths[0]
    return Finding(one.agent.name, Status.INFO, f"{copies} copies; {path} wins everywhere", details)


def _others(facts: Facts, one: InUse, winner: Program) -> Iterator[Program]:
    from tfx.agents.detect import identify  # noqa: PLC0415  (start-up rule)
    from tfx.shells.installations import installations  # noqa: PLC0415

    for copy in installations(facts.matrix, one.binary):
        if copy.real != winner.installation.real and copy.runnable:
            paths = facts.paths_in(winner.cell)
            yield Program(copy, identify(paths, one.agent, copy.paths[0]), winner.cell)


def _version_text(facts: Facts, program: Program) -> str:
    from tfx.agents.versions import AgentVersion  # noqa: PLC0415  (start-up rule)

    version = facts.version(program)
    return version.text if isinstance(version, AgentVersion) else _UNKNOWN
