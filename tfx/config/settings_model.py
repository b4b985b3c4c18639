"""The settings of one call as typed values, for those who act on them.

Knows neither the file nor the keys that they are read from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

MIB = 1024 * 1024
DEFAULT_LOG_MIB = 256
DEFAULT_HUB_ANSWER_S = 1


class Durability(StrEnum):
    """What an answer of the hub means after a power loss (EV-D1)."""

    NORMAL = "normal"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Retention:
    """How many days closed things stay; 0 keeps them for ever (H-72)."""

    messages_days: int
    dead_letters_days: int
    human_requests_days: int
    agents_days: int
    tasks_days: int


@dataclass(frozen=True, slots=True)
class HubSettings:
    """`port` is None when nobody asked for one: then the default port is only preferred (K-29).

    `notify` is an argument list, empty for none. `review_rounds` and `turns` bound what agents do
    with a task without a person, 0 for no limit.
    """

    port: int | None
    allow_hosts: tuple[str, ...]
    durability: Durability
    retention: Retention
    notify: tuple[str, ...]
    review_rounds: int
    turns: int


@dataclass(frozen=True, slots=True)
class SetupSettings:
    """What `tfx setup` leaves out, and the toolsets that the hub entry offers (H-36).

    Whether such a skill or agent exists is setup's to say.
    """

    skip_status_line: bool
    skip_hooks: bool
    skip_skills: tuple[str, ...]
    skip_agents: tuple[str, ...]
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RoleOverride:
    """What the user changed of one role; None leaves the route table's own value (R-1)."""

    cli: str | None = None
    effort: str | None = None
    timeout_s: int | None = None
    profile: str | None = None


@dataclass(frozen=True, slots=True)
class RouteSettings:
    """`cli` is "auto" or the one CLI that every role uses (R-2); `roles` by name.

    `log_mib` is how much is kept of each of the two logs of a run (R-5), `hub_answer_s` how long
    the hub may take for each answer before a run goes on without it (R-9).
    """

    cli: str = "auto"
    allow_skip_approvals: bool = False
    log_mib: int = DEFAULT_LOG_MIB
    hub_answer_s: int = DEFAULT_HUB_ANSWER_S
    roles: Mapping[str, RoleOverride] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one call. `[doctor]` is a known table without keys so far."""

    hub: HubSettings
    setup: SetupSettings
    route: RouteSettings = RouteSettings()
