"""`skills`: skills that one agent would see twice, and copies that load as skills.

Lists directories; reads no skill.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tfx.doctor.facts import Facts
from tfx.doctor.model import MANUAL, Finding, Remedy, Status
from tfx.doctor.words import command, listed

if TYPE_CHECKING:
    from tfx.agents.model import Agent

_COPIES = (".bak", ".old", ".orig", ".backup", "~")


def skills(facts: Facts) -> Iterator[Finding]:
    """Yield skills that one agent would see twice, and copies that load as skills (S-27)."""
    for one in facts.in_use:
        agent = one.agent
        roots = [place.resolve(facts.paths) for place in agent.skills_read]
        distinct = list(dict.fromkeys(root.resolve() for root in roots if root.is_dir()))
        if not distinct:
            yield Finding(agent.name, Status.SKIP, "reads no skills directory that exists")
            continue
        seen: dict[str, list[Path]] = {}
        for root in distinct:
            for folder in sorted(root.iterdir()):
                if (folder / "SKILL.md").is_file():
                    seen.setdefault(folder.name, []).append(folder)
        findings = list(_doubled(facts, agent, seen))
        yield from findings
        if not findings:
            yield Finding(agent.name, Status.OK, f"{len(seen)} skills, each once")


def _doubled(facts: Facts, agent: Agent, seen: Mapping[str, Sequence[Path]]) -> Iterator[Finding]:
    for name, folders in seen.items():
        distinct = list(dict.fromkeys(folder.resolve() for folder in folders))
        if len(distinct) > 1:
            where = listed(facts.paths.display(folder) for folder in folders)
            yield Finding(
                f"{agent.name} {name}",
                Status.WARN,
                f"the skill is in two places that it reads: {where}",
                {"folders": [str(folder) for folder in folders]},
                (Remedy("keep one; `tfx list` says which one tfx wrote", "tfx list"),),
                MANUAL,
            )
        stem = next((name.removesuffix(end) for end in _COPIES if name.endswith(end)), None)
        if stem or name.startswith("."):
            folder = folders[0]
            yield Finding(
                f"{agent.name} {name}",
                Status.WARN,
                "a copy or hidden folder in a skills directory is a second skill",
                {"folder": str(folder)},
                (
                    Remedy(
                        "move it out of the skills directory",
                        command(facts.paths.home, "mv", folder, facts.paths.home),
                    ),
                ),
                MANUAL,
            )
