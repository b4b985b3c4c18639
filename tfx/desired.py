"""The one description of the machine as it shall be: files and entries for the agents found.

Pure data in, pure data out: the only disk it reads is the bundled assets. setup applies it,
`--check` and doctor compare with it, `--remove` takes it back.
"""

from __future__ import annotations

import json
import shlex
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from tfx.agents.catalogue import AGENTS
from tfx.agents.detect import Detected
from tfx.agents.entries import entry_by_variable, entry_or_refusal
from tfx.agents.model import HUB_ENTRY, Agent, Http, McpTarget, Stdio
from tfx.agents.roots import known_roots, written_roots
from tfx.config import jsonc
from tfx.config.keypath import MISSING
from tfx.config.settings_model import Settings
from tfx.core.files import is_file, read_plain
from tfx.core.paths import Paths
from tfx.errors import JsonValue, TfxError
from tfx.hub.places import TRIFLUX_DATABASE
from tfx.plan.actions import Desired, Format, Rival, WantedEntry, WantedFile

PLACEHOLDER = b"@TFX@"
DEFAULT_PORT = 27888
BUS_VARIABLE = "TFX_HUB_TOKEN"
HOOK_EVENTS = ("SessionStart", "UserPromptSubmit")
"""When an agent is told of new mail: the events that may add to its context (H-70)."""
HOOK_LIMIT_S = 5
USUAL_TOOLS = ("bus",)

# What triflux leaves at our names (K-14): its files name it, its status line is one script, and
# its MCP entry is a bare address of this machine.
RIVAL_FILES = (Rival("triflux", ("triflux",)),)
RIVAL_STATUS_LINES = (Rival("triflux", ("hud-qos-status.mjs", "triflux")),)
RIVAL_ENTRIES = (Rival("triflux", ("http://127.0.0.1:", "http://localhost:", "triflux")),)

Link: TypeAlias = Stdio | Http


class Transport(StrEnum):
    """The form of the `tfx-hub` MCP entry."""

    STDIO = "stdio"
    HTTP = "http"


@dataclass(frozen=True, slots=True)
class Asset:
    """One bundled file: its name below the assets directory, rendered bytes and mode."""

    name: str
    data: bytes
    mode: int


def installation() -> tuple[str, ...]:
    """Return the absolute command of this installation (K-18)."""
    script = Path(sysconfig.get_path("scripts")) / "tfx"
    return (str(script),) if is_file(script) else (interpreter(), "-I", "-m", "tfx")


def interpreter() -> str:
    """Return the absolute interpreter of this installation, the same however tfx was started.

    `sys.executable` is `python` or `python3` as typed; entries that differ so would flip (S-4).
    """
    script = Path(sysconfig.get_path("scripts")) / "python3"
    return str(script) if is_file(script) else sys.executable


def bundled(paths: Paths, folder: str) -> tuple[Asset, ...]:
    """Return the assets below a folder of the bundle, rendered; none if there is no such folder.

    Scripts are executable whatever the checkout or the archive made of their mode.
    """
    root = paths.assets_dir
    command = shlex.join(installation()).encode("utf-8", "surrogateescape")
    return tuple(
        Asset(
            str(path.relative_to(root)),
            path.read_bytes().replace(PLACEHOLDER, command),
            0o755 if path.suffix in {".sh", ".py"} else 0o644,
        )
        for path in sorted((root / folder).rglob("*"))
        if path.is_file() and not path.name.startswith(".") and "__pycache__" not in path.parts
    )


def renames(paths: Paths) -> Mapping[str, str]:
    """Return the rename map that ships with the assets: old asset name → new one (S-35)."""
    path = paths.assets_dir / "renames.json"
    return dict(json.loads(path.read_bytes())) if path.is_file() else {}


def skill_names(paths: Paths) -> frozenset[str]:
    """Return the names of the bundled skills."""
    return frozenset(asset.name.split("/")[1] for asset in bundled(paths, "skills"))


def desired(
    paths: Paths,
    scope: tuple[Detected, ...],
    settings: Settings,
    links: Mapping[str, Link],
) -> Desired:
    """Return the wanted state for the agents in scope; `links` by the agent's name.

    The `tfx-hub` entry of an agent without a link stays as it is: neither written nor retired.
    So does one that the client would change when it reads it.
    """
    agents = tuple(one.agent for one in scope)
    files = (*_claude_files(paths, agents, settings), *_skills(paths, agents, settings))
    entries = (
        *_status_line(paths, agents, settings),
        *_hooks(paths, agents, settings),
        *_mcp_entries(paths, agents, links),
    )
    return Desired(
        files=files,
        entries=entries,
        agents_in_scope=frozenset(agent.name for agent in agents),
        places=frozenset(_places(paths, agents)),
        renames=renames(paths),
        searched=frozenset(known_roots(paths, AGENTS)),
    )


def _claude_files(
    paths: Paths, agents: tuple[Agent, ...], settings: Settings
) -> Iterator[WantedFile]:
    for agent, home in _with_hooks(paths, agents):
        for folder in _folders(settings):
            for asset in bundled(paths, folder):
                yield WantedFile(
                    root=home / folder,
                    path=asset.name.removeprefix(f"{folder}/"),
                    data=asset.data,
                    mode=asset.mode,
                    asset=asset.name,
                    agents=(agent.name,),
                    rivals=RIVAL_FILES,
                )


def _with_hooks(paths: Paths, agents: tuple[Agent, ...]) -> Iterator[tuple[Agent, Path]]:
    """Yield the agents whose config directory takes scripts, hooks and a status line (K-17)."""
    for agent in agents:
        if agent.writes.hooks and agent.config is not None:
            yield agent, agent.config.resolve(paths)


def _folders(settings: Settings) -> tuple[str, ...]:
    left_out = {"hooks": settings.setup.skip_hooks, "hud": settings.setup.skip_status_line}
    return tuple(name for name in ("scripts", "hooks", "hud") if not left_out.get(name))


def _skills(paths: Paths, agents: tuple[Agent, ...], settings: Settings) -> Iterator[WantedFile]:
    assets = bundled(paths, "skills")
    for root in written_roots(paths, agents):
        for asset in assets:
            path = asset.name.removeprefix("skills/")
            if path.partition("/")[0] in settings.setup.skip_skills:
                continue
            yield WantedFile(root.directory, path, asset.data, asset.mode, asset.name, root.agents)


def _status_line(
    paths: Paths, agents: tuple[Agent, ...], settings: Settings
) -> Iterator[WantedEntry]:
    asset = next(iter(bundled(paths, "hud")), None)
    if asset is None or settings.setup.skip_status_line:
        return
    for agent, home in _with_hooks(paths, agents):
        if agent.hooks is None:
            continue
        command = shlex.join([interpreter(), "-I", str(home / asset.name)])
        yield WantedEntry(
            agent=agent.name,
            file=agent.hooks.file.resolve(paths),
            format=Format.JSON,
            key=("statusLine",),
            value={"type": "command", "command": command},
            asset="statusline",
            activates=(asset.name,),
            rivals=RIVAL_STATUS_LINES,
        )


def _hooks(paths: Paths, agents: tuple[Agent, ...], settings: Settings) -> Iterator[WantedEntry]:
    """Yield the registrations of our hook, one element for each event it is run at (S-68)."""
    asset = next(iter(bundled(paths, "hooks")), None)
    if asset is None or settings.setup.skip_hooks:
        return
    for agent, home in _with_hooks(paths, agents):
        if agent.hooks is None:
            continue
        command = shlex.join([interpreter(), "-I", str(home / asset.name)])
        run: JsonValue = {"type": "command", "command": command, "timeout": HOOK_LIMIT_S}
        for event in HOOK_EVENTS:
            if event in agent.hooks.events:
                yield WantedEntry(
                    agent=agent.name,
                    file=agent.hooks.file.resolve(paths),
                    format=Format.JSON,
                    key=(*agent.hooks.key, event),
                    value={"hooks": [run]},
                    element=True,
                    asset=f"{asset.name}#{event}",
                    activates=(asset.name,),
                )


def _mcp_entries(
    paths: Paths, agents: tuple[Agent, ...], links: Mapping[str, Link]
) -> Iterator[WantedEntry]:
    for agent, target, link in linked(agents, links):
        value = entry_or_refusal(agent, link, env=paths.env)
        if isinstance(value, TfxError):
            continue
        yield WantedEntry(
            agent=agent.name,
            file=mcp_file(paths, target),
            format=Format(target.format.value),
            key=target.entry_key,
            value=value,
            secret=isinstance(link, Http),
            by_variable=entry_by_variable(agent, link.url, BUS_VARIABLE)
            if isinstance(link, Http)
            else None,
            asset=HUB_ENTRY,
            rivals=RIVAL_ENTRIES,
        )


def linked(
    agents: Iterable[Agent], links: Mapping[str, Link]
) -> Iterator[tuple[Agent, McpTarget, Link]]:
    """Yield the agents whose entry is to be written: where it stands and what it leads to."""
    for agent in agents:
        link = links.get(agent.name)
        if link is not None and agent.writes.mcp and agent.mcp is not None:
            yield agent, agent.mcp, link


def mcp_file(paths: Paths, target: McpTarget) -> Path:
    """Return the file our entry belongs in; an entry stays where it is (S-19)."""

    def holds_entry(path: Path) -> bool:
        try:
            return jsonc.get(read_plain(path), target.entry_key) is not MISSING
        except (OSError, TfxError):
            return False

    return target.choose(paths, holds_entry)


def _places(paths: Paths, agents: tuple[Agent, ...]) -> Iterator[Path]:
    """Yield what a run looks after even when nothing is wanted there (S-17)."""
    yield from (root.directory for root in written_roots(paths, agents))
    for agent, home in _with_hooks(paths, agents):
        yield from (home / folder for folder in ("scripts", "hooks", "hud"))
        if agent.hooks is not None:
            yield agent.hooks.file.resolve(paths)


def stdio_link(settings: Settings) -> Stdio:
    """Return the bridge of this installation as the entry's command, with the tools asked for.

    The usual toolset is not named, so that an entry written before it could be stays as it is.
    """
    program, *before = installation()
    tools = _tools(settings)
    return Stdio(program, (*before, "hub", "bridge", *(("--tools", tools) if tools else ())), {})


def http_link(settings: Settings, token: str) -> Http:
    """Return the hub's address on the configured port; a substitute port goes nowhere (K-29)."""
    tools = _tools(settings)
    query = f"?tools={tools}" if tools else ""
    return Http(f"http://127.0.0.1:{settings.hub.port or DEFAULT_PORT}/mcp{query}", token)


def _tools(settings: Settings) -> str:
    """Return the toolsets of the entry; none when they are the usual one (H-36, H-37)."""
    tools = tuple(sorted(settings.setup.tools))
    return "" if tools == USUAL_TOOLS else ",".join(tools)


def other_hub_note(paths: Paths) -> tuple[str, ...]:
    """Return a remark on a triflux hub database that is there (S-6, K-34)."""
    database = paths.home / TRIFLUX_DATABASE
    if not is_file(database):
        return ()
    place = paths.display(database)
    return (f"a triflux hub database lies at {place}; tfx upgrade --adopt auto takes it over",)
