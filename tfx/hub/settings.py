"""What the user wants of the hub: the checked configuration and the flags of one start (K-19).

Knows nothing of a running hub; reading and checking config.toml is `tfx.config.settings`'.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tfx.config import settings as configuration
from tfx.core.paths import Paths
from tfx.errors import InvalidRequest, JsonValue
from tfx.hub.models import Durability, Limits, Retention

DEFAULT_PORT = 27888
_MOST_PORT = 65_535
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class HubSettings:
    """The wishes for one hub. `port_asked` makes the port strict (K-29)."""

    port: int = DEFAULT_PORT
    port_asked: bool = False
    idle_exit_s: int | None = None
    allow_hosts: tuple[str, ...] = ()
    durability: Durability = Durability.NORMAL
    retention: Retention = field(default_factory=Retention)
    notify: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)


def resolve(
    paths: Paths, *, port: int | None = None, idle_exit_s: int | None = None
) -> HubSettings:
    """Return the settings of an environment, with the flags given.

    Raises InvalidRequest for a flag out of range, BadSettings for a variable or config.toml.
    """
    flags: dict[str, JsonValue] = {}
    if port is not None:
        flags["hub.port"] = _checked_port(port)
    if idle_exit_s is not None and idle_exit_s <= 0:
        raise InvalidRequest(f"--idle-exit must be at least 1 second, not {idle_exit_s}")
    wanted = configuration.load(paths, flags).hub
    keep = wanted.retention
    return HubSettings(
        port=DEFAULT_PORT if wanted.port is None else wanted.port,
        port_asked=wanted.port is not None,
        idle_exit_s=idle_exit_s,
        allow_hosts=wanted.allow_hosts,
        durability=Durability(wanted.durability.value),
        retention=Retention(
            keep.messages_days * _DAY_MS,
            keep.dead_letters_days * _DAY_MS,
            keep.human_requests_days * _DAY_MS,
            keep.agents_days * _DAY_MS,
            keep.tasks_days * _DAY_MS,
        ),
        notify=wanted.notify,
        limits=Limits(review_rounds=wanted.review_rounds, turns=wanted.turns),
    )


def _checked_port(port: int) -> int:
    """Return a port number; raises InvalidRequest outside 0 to 65535 (H-1, H-98)."""
    if 0 <= port <= _MOST_PORT:
        return port
    raise InvalidRequest(
        f"--port: {port} is not a port; ports are 0 to {_MOST_PORT}",
        code="bad-port",
        hint="tfx hub start --port 0 takes any free port",
    )
