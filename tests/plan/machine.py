"""A HOME with a STATE beside it, and what a small tfx would want there."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from tests.support import listing
from tfx.config.keypath import KeyPath
from tfx.errors import JsonValue
from tfx.plan.actions import (
    Desired,
    Flags,
    Format,
    Outcome,
    OutcomeStatus,
    Plan,
    Report,
    WantedEntry,
    WantedFile,
)
from tfx.plan.disk import Disk
from tfx.plan.engine import Engine

TAKE_NEW = Flags(take_new=True)
KEEP_MINE = Flags(keep_mine=True)
RESTORE = Flags(restore=True)
HUB: KeyPath = ("mcpServers", "tfx-hub")
AGENTS = frozenset({"claude", "codex", "copilot"})

Snapshot: TypeAlias = dict[str, tuple[int, int, bytes | str | None]]


class FixedClock:
    """The time of a test: it rises by one second each time it is asked."""

    def __init__(self) -> None:
        self._now_ms = 1_796_000_000_000

    def now_ms(self) -> int:
        self._now_ms += 1000
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self.now_ms()


@dataclass
class Machine:
    """One user: `home` is theirs, `state` is ours."""

    top: Path
    disk: Disk | None = None
    checkpoint: Callable[[str], None] | None = None
    sleeps: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)

    @property
    def home(self) -> Path:
        return self.top / "home"

    @property
    def state(self) -> Path:
        return self.top / "state"

    @property
    def skills(self) -> Path:
        return self.home / ".claude" / "skills"

    @property
    def skill(self) -> Path:
        return self.skills / "tfx-a" / "SKILL.md"

    @property
    def script(self) -> Path:
        return self.home / ".claude" / "scripts" / "route.sh"

    @property
    def settings(self) -> Path:
        return self.home / ".claude" / "settings.json"

    @property
    def codex(self) -> Path:
        return self.home / ".codex" / "config.toml"

    def engine(self, lock_timeout_s: float = 60) -> Engine:
        return Engine(
            self.state,
            FixedClock(),
            lock_timeout_s=lock_timeout_s,
            sleep=self.sleeps.append,
            disk=self.disk,
            checkpoint=self.checkpoint,
        )

    def apply(self, desired: Desired, flags: Flags | None = None) -> Report:
        return self.engine().apply(desired, flags)

    def plan(self, desired: Desired, flags: Flags | None = None) -> Plan:
        return self.engine().plan(desired, flags)

    def remove(self, agents: frozenset[str] | None = None) -> Report:
        return self.engine().remove(agents)

    def snapshot(self) -> Snapshot:
        return listing(self.top)

    def contents(self) -> dict[str, tuple[int, bytes | str | None]]:
        """Everything in HOME but the times."""
        return {name: (mode, data) for name, (mode, _, data) in listing(self.home).items()}

    def backups(self) -> set[bytes]:
        """The bytes of every backup and every file of the HOME: what is not lost."""
        everywhere = [*self.home.rglob("*"), *(self.state / "backup").rglob("*")]
        return {path.read_bytes() for path in everywhere if path.is_file()}

    # What a small tfx wants

    def file(
        self, path: Path, data: bytes, mode: int = 0o644, agents: tuple[str, ...] = ("claude",)
    ) -> WantedFile:
        root = self.skills if path.is_relative_to(self.skills) else path.parent
        name = str(path.relative_to(root))
        return WantedFile(root, name, data, mode, name, agents)

    def json_entry(self, value: JsonValue, *, secret: bool = False) -> WantedEntry:
        return WantedEntry(
            "claude", self.settings, Format.JSON, HUB, value, secret=secret, asset="hub"
        )

    def toml_entry(self, value: JsonValue) -> WantedEntry:
        return WantedEntry(
            "codex", self.codex, Format.TOML, ("mcp_servers", "tfx-hub"), value, asset="hub"
        )

    def hook(self, value: JsonValue, asset: str = "hook") -> WantedEntry:
        key = ("hooks", "SessionStart")
        return WantedEntry(
            "claude", self.settings, Format.JSON, key, value, element=True, asset=asset
        )

    def desired(self, version: str = "1") -> Desired:
        """A skill of two files, a script, two entries and a hook."""
        text = f"version {version}\n".encode()
        command: dict[str, JsonValue] = {"command": f"tfx-{version}", "args": ["hub", "bridge"]}
        script = str(self.script)
        return Desired(
            files=(
                self.file(self.skill, b"skill " + text),
                self.file(self.skill.with_name("more.md"), b"more " + text),
                self.file(self.script, b"script " + text, 0o755),
            ),
            entries=(
                self.json_entry(command),
                self.hook({"hooks": [{"type": "command", "command": script, "v": version}]}),
                self.toml_entry(command),
            ),
            agents_in_scope=AGENTS,
        )


def only_files(desired: Desired) -> Desired:
    return replace(desired, entries=())


def statuses(report: Report) -> dict[str, OutcomeStatus]:
    return {outcome.action.target: outcome.status for outcome in report.outcomes}


def one(report: Report, path: Path) -> Outcome:
    """The only outcome for a path."""
    found = [outcome for outcome in report.outcomes if outcome.action.path == path]
    assert len(found) == 1, found
    return found[0]


def write(path: Path, data: bytes | str, mode: int = 0o644) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = data.encode() if isinstance(data, str) else data
    path.write_bytes(content)
    path.chmod(mode)
    return content


def value(path: Path) -> Any:  # noqa: ANN401  (the JSON of a file under test)
    return json.loads(path.read_bytes())


ORIGINAL = '{\n  "theme": "dark"\n}\n'


def hub_only(machine: Machine) -> Desired:
    return Desired((), (machine.json_entry({"command": "tfx"}),), AGENTS)
