"""`cli.version`: whether an agent is new enough, and whether an old Node kept it old.

Knows no installer; compares what is there with the catalogue row.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tfx.doctor.facts import Facts, InUse, Program
from tfx.doctor.model import MANUAL, Finding, Remedy, Status
from tfx.errors import JsonValue

if TYPE_CHECKING:
    from tfx.agents.model import NodeEngine
    from tfx.agents.versions import AgentVersion


def versions(facts: Facts) -> Iterator[Finding]:
    """Yield the version of each agent in use against its minimums (D-90, S-16)."""
    from tfx.agents.versions import AgentVersion  # noqa: PLC0415  (start-up rule)

    for one in facts.in_use:
        program = one.programs[0]
        found = facts.version(program)
        details: dict[str, JsonValue] = {"program": str(program.installation.paths[0])}
        if not isinstance(found, AgentVersion):
            details |= {"reason": found.reason, "output": found.tail}
            summary = f"version unknown: {found.reason}"
            yield Finding(one.agent.name, Status.UNKNOWN, summary, details, repair=MANUAL)
            continue
        details["version"] = found.text
        yield _judged(facts, one, program, found, details)


def _judged(
    facts: Facts,
    one: InUse,
    program: Program,
    found: AgentVersion,
    details: dict[str, JsonValue],
) -> Finding:
    short = [each for each in one.agent.minimums if not found.is_at_least(each.version)]
    node = node_problem(facts, one, program, found)
    remedies: tuple[Remedy, ...] = (Remedy("update it with the program that installed it"),)
    if node is not None:
        details["node"] = node[0]
        remedies = (Remedy(node[1]), *remedies)
    if short:
        details["minimums"] = {each.ability: each.version for each in short}
        lost = [each for each in short if not each.conditional]
        last = (lost or short)[-1]
        missing = f"{last.ability} needs {last.version}"
        if not lost and node is None:
            summary = f"{found.text}; if you use it, {missing}"
            return Finding(one.agent.name, Status.INFO, summary, details, remedies)
        cause = "; npm chose an old release because Node is old" if node else ""
        return Finding(
            one.agent.name,
            Status.WARN,
            f"{found.text} is old: {missing}{cause}",
            details,
            remedies,
            MANUAL,
        )
    if node is not None:
        summary = f"{found.text}, and {node[0]}"
        return Finding(one.agent.name, Status.WARN, summary, details, remedies, MANUAL)
    return Finding(one.agent.name, Status.OK, found.text, details)


def node_problem(
    facts: Facts, one: InUse, program: Program, found: AgentVersion
) -> tuple[str, str] | None:
    """Return what is wrong with Node and what helps, or None (S-16).

    Either the agent runs on a Node that is too old for it, or npm left an old release because
    newer ones ask for a newer Node.
    """
    engine = one.agent.engine
    if engine is None or program.detected.package is None:
        return None
    resolution = program.cell.resolution("node")
    winner = resolution.winner if resolution is not None else None
    if winner is None:
        return None
    path = program.cell.path_text or ""
    node = facts.shared(
        f"node {winner.path}", lambda: _node_version(winner.path, path, facts.cancel)
    )
    if node is None or _satisfies(node, engine):
        return None
    wanted = f"Node {engine.minimum}"
    upgrade = f"upgrade Node ({winner.path}) to {engine.minimum}, then install the agent again"
    if engine.since is not None and not found.is_at_least(engine.since):
        told = f"npm chose this old release: Node is {node}, newer ones need {wanted}"
        return told, upgrade
    if not _runs_on_node(program):
        return None
    return f"it runs on Node {node} and asks for {wanted}", upgrade


def _satisfies(node: str, engine: NodeEngine) -> bool:
    from packaging.version import Version  # noqa: PLC0415  (start-up rule)

    return Version(node) >= Version(engine.minimum.removeprefix(">="))


def _runs_on_node(program: Program) -> bool:
    from tfx.shells.binaries import env_program, read_header  # noqa: PLC0415  (start-up rule)

    header = read_header(program.installation.real)
    if header is None or header.interpreter is None:
        return False
    return "node" in {Path(header.interpreter).name, env_program(header.text)}


def _node_version(node: Path, path: str, cancel: threading.Event) -> str | None:
    from tfx.doctor.checks.runtime import version_of  # noqa: PLC0415  (start-up rule)

    return version_of(node, path, cancel)
