"""Which skills root serves which agents, and which directories are anybody's skills root.

Knows no skill and touches no file but to follow links.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tfx.agents.model import Agent
from tfx.core.paths import Paths


@dataclass(frozen=True, slots=True)
class SkillsRoot:
    """One directory that tfx writes skills to, with the names of the agents that read it."""

    directory: Path
    agents: tuple[str, ...]


def written_roots(paths: Paths, agents: Iterable[Agent]) -> tuple[SkillsRoot, ...]:
    """Return the skills roots of these agents, each directory once (S-27, S-28, S-29).

    Roots that lead to one directory are one root, under the spelling of its first agent.
    """
    spelled: dict[str, Path] = {}
    readers: dict[str, list[str]] = {}
    for agent in agents:
        if agent.skills is None or not agent.writes.skills:
            continue
        root = agent.skills.resolve(paths)
        real = os.path.realpath(root)
        spelled.setdefault(real, root)
        readers.setdefault(real, []).append(agent.name)
    return tuple(SkillsRoot(spelled[real], tuple(names)) for real, names in readers.items())


def known_roots(paths: Paths, agents: Iterable[Agent]) -> tuple[Path, ...]:
    """Return every directory that one of these agents may read skills from (S-30)."""
    roots = (place.resolve(paths) for agent in agents for place in agent.skills_read)
    return tuple(dict.fromkeys(roots))
