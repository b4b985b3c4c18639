"""MCP servers of one project: those the user gave it in the client, those its own file asks for.

Reads only. A project's file is a stranger's until the user approved each server in the client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfx.core.files import read_plain
from tfx.doctor.facts import Facts
from tfx.errors import JsonValue, TfxError

if TYPE_CHECKING:
    from tfx.agents.model import Agent, McpTarget

Entry = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class ProjectServer:
    """A server of the project that doctor runs in: where it stands, and who said yes to it."""

    name: str
    entry: Entry
    place: str
    approved: bool


def working_project() -> tuple[Path, ...]:
    """Return the working directory and the root of the repository it lies in, if any."""
    try:
        here = Path.cwd()
    except OSError:  # it was removed
        return ()
    root = next((each for each in (here, *here.parents) if (each / ".git").exists()), None)
    return (here,) if root is None or root == here else (here, root)


def document_of(target: McpTarget, path: Path) -> JsonValue:
    """Return what a configuration file holds, null for one that cannot be read or parsed."""
    from tfx.plan.actions import Format  # noqa: PLC0415  (start-up rule)
    from tfx.plan.documents import editor  # noqa: PLC0415

    try:
        data = read_plain(path)
        if target.format.value == "yaml":
            from tfx.config import yaml  # noqa: PLC0415

            return yaml.parse(data)
        return editor(Format(target.format.value)).parse(data) if data.strip() else {}
    except (OSError, TfxError):
        return None


def at(document: JsonValue, key: tuple[str, ...]) -> JsonValue:
    """Return what stands at a key, null for nothing."""
    here = document
    for step in key:
        here = here.get(step) if isinstance(here, dict) else None
    return here


def entries_in(document: JsonValue, key: tuple[str, ...]) -> dict[str, Entry]:
    """Return the servers in the object at a key, by name."""
    found = at(document, key)
    items = found.items() if isinstance(found, dict) else ()
    return {name: entry for name, entry in items if isinstance(entry, dict)}


def kept_for_projects(facts: Facts, agent: Agent) -> Iterator[tuple[str, Entry]]:
    """Yield each directory with a hub entry of its own: there it beats the user's (D-105)."""
    from tfx.agents.model import HUB_ENTRY  # noqa: PLC0415  (start-up rule)

    target = agent.mcp
    if target is None or not target.projects:
        return
    for path in target.existing(facts.paths)[:1]:
        projects = at(document_of(target, path), target.projects)
        for directory, project in projects.items() if isinstance(projects, dict) else ():
            entry = entries_in(project, target.key).get(HUB_ENTRY)
            if entry is not None and Path(directory).is_dir():
                yield directory, entry


def of_this_project(facts: Facts, agent: Agent) -> Iterator[ProjectServer]:
    """Yield the servers that the client would start here beside those of the user."""
    from tfx.agents.model import HUB_ENTRY  # noqa: PLC0415  (start-up rule)

    target = agent.mcp
    if target is None or not target.projects:
        return
    own = [document_of(target, path) for path in target.existing(facts.paths)[:1]]
    known = at(own[0], target.projects) if own else None
    places = working_project()
    records = [at(known, (str(place),)) for place in places]
    for record in records:
        for name, entry in entries_in(record, target.key).items():
            if name != HUB_ENTRY:
                yield ProjectServer(name, entry, "this project", approved=True)
    everything = _approves_all(facts, agent)
    for place in places[-1:]:
        shared = document_of(target, place / target.project_file)
        for name, entry in entries_in(shared, target.key).items():
            said = [_answer(record, name) for record in records]
            approved = False not in said and (True in said or everything)
            yield ProjectServer(name, entry, target.project_file, approved)


def _answer(record: JsonValue, name: str) -> bool | None:
    """Return what the user answered in the client when it asked about a server of the project."""
    for key, answer in (("disabledMcpjsonServers", False), ("enabledMcpjsonServers", True)):
        names = at(record, (key,))
        if isinstance(names, list) and name in names:
            return answer
    return None


def _approves_all(facts: Facts, agent: Agent) -> bool:
    """Say whether the user's own settings approve the servers of every project."""
    if agent.hooks is None or agent.mcp is None:
        return False
    settings = document_of(agent.mcp, agent.hooks.file.resolve(facts.paths))
    return at(settings, ("enableAllProjectMcpServers",)) is True
