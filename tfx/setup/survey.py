"""Who is here and whom this run looks after: agents found, settings read, scope decided.

Writes nothing; both setup and the inventory start from it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tfx.agents.catalogue import AGENTS, nearest_names
from tfx.agents.detect import Detected, Proof, confirm, detect
from tfx.agents.model import Writes
from tfx.config.settings import load
from tfx.config.settings_model import Settings
from tfx.core.paths import Paths
from tfx.desired import skill_names
from tfx.errors import BadSettings
from tfx.plan.engine import Engine


@dataclass(frozen=True, slots=True)
class Survey:
    """The agents in catalogue order, and those of them that this run looks after."""

    settings: Settings
    found: tuple[Detected, ...]
    scope: tuple[Detected, ...]


def survey(
    paths: Paths, engine: Engine, named: tuple[str, ...] = (), *, probe: bool = False
) -> Survey:
    """Return who is here; with `probe` every version is asked for.

    An agent known by nothing but its program's name is asked who it is before tfx writes for it
    the first time (S-15). Raises BadSettings for a name in `[setup] skip` that does not exist.
    """
    settings = load(paths)
    for error in unknown_skips(paths, settings):
        raise error
    recorded = engine.manifest().agents
    found = tuple(
        confirm(paths, one)
        if one.proof is Proof.NAME
        and one.agent.writes != Writes()
        and one.agent.name not in recorded
        else one
        for one in detect(paths, AGENTS, probe=probe)
    )
    return Survey(settings, found, _scope(found, settings, named))


def _scope(
    found: tuple[Detected, ...], settings: Settings, named: tuple[str, ...]
) -> tuple[Detected, ...]:
    """Return the agents that are here, tested and not left out (S-10 … S-12)."""
    return tuple(
        one
        for one in found
        if one.is_installed
        and one.agent.writes != Writes()
        and one.agent.name not in settings.setup.skip_agents
        and (not named or one.agent.name in named)
    )


def unknown_skips(paths: Paths, settings: Settings) -> tuple[BadSettings, ...]:
    """Return an error for each name in `[setup] skip` that is no agent or no skill of ours."""
    file = paths.display(paths.config_file)
    agents = {agent.name for agent in AGENTS}
    skills = skill_names(paths)
    return (
        *(
            BadSettings(
                f"{file}: setup.skip names an unknown agent {name!r}",
                hint=f"did you mean agent:{nearest_names(name)[0]}?",
            )
            for name in settings.setup.skip_agents
            if name not in agents
        ),
        *(
            BadSettings(
                f"{file}: setup.skip names a skill that tfx does not bring: {name!r}",
                hint=f"its skills are {', '.join(sorted(skills))}",
            )
            for name in settings.setup.skip_skills
            if name not in skills
        ),
    )
