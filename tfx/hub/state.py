"""The state file of a running hub: a hint where it is, never proof that it lives (H-13).

Knows neither HTTP nor processes; the probe compares it with what answers.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from tfx.core.files import is_file, replace_atomically
from tfx.core.identity import boot_id, start_token
from tfx.core.locks import Holder

FORMAT = 1
_MOST_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class RunWishes:
    """What the user asked of this run, so that `restart` asks the same again (H-4)."""

    port: int | None = None
    idle_exit_s: int | None = None


@dataclass(frozen=True, slots=True)
class HubState:
    """Facts about one run of the hub."""

    instance: str
    pid: int
    start_token: str
    boot_id: str
    host: str
    url: str
    port: int
    version: str
    database: str
    started_at_ms: int
    wishes: RunWishes = RunWishes()

    def is_of(self, holder: Holder) -> bool:
        """Say whether the process that holds the lock wrote this file."""
        return (self.pid, self.start_token, self.boot_id) == (
            holder.pid,
            holder.start_token,
            holder.boot_id,
        )

    @property
    def lives(self) -> bool:
        """True when the very process that wrote this file runs: pid, start token and boot fit."""
        try:
            return self.boot_id == boot_id() and start_token(self.pid) == self.start_token
        except OSError:  # of another user: not our hub
            return False


def read(path: Path) -> HubState | None:
    """Return what the state file says, or None for a missing, torn or foreign one."""
    if not is_file(path):  # a pipe in its place would be waited for
        return None
    try:
        with path.open("rb") as file:
            document = json.loads(file.read(_MOST_BYTES))
        if document.pop("format") != FORMAT:
            return None
        wishes = RunWishes(**document.pop("wishes"))
        state = HubState(wishes=wishes, **document)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return state if _well_typed(state) else None


def write(path: Path, state: HubState) -> None:
    """Replace the state file atomically, readable by the user only."""
    document = {"format": FORMAT, **dataclasses.asdict(state)}
    replace_atomically(path, json.dumps(document, indent=1).encode() + b"\n")


def remove(path: Path) -> None:
    """Remove the state file; a missing one is fine."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()


def _well_typed(state: HubState) -> bool:
    numbers = (state.pid, state.port, state.started_at_ms)
    texts = (state.instance, state.start_token, state.boot_id, state.url, state.version)
    wishes = (state.wishes.port, state.wishes.idle_exit_s)
    return (
        all(type(number) is int for number in numbers)
        and all(type(text) is str for text in texts)
        and all(wish is None or type(wish) is int for wish in wishes)
    )
