"""The agents' own configuration: does it parse, do hooks lead somewhere, is a skill seen once.

Reads only; shows places and names of programs, never values.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfx.core.files import read_plain
from tfx.doctor.checks.hooks import hooks_of
from tfx.doctor.checks.presence import reads_files
from tfx.doctor.checks.registration import registration
from tfx.doctor.checks.servers import servers
from tfx.doctor.checks.skills import skills
from tfx.doctor.facts import Facts
from tfx.doctor.model import (
    MANUAL,
    Check,
    Explanation,
    Finding,
    FixClass,
    Group,
    Remedy,
    Status,
)
from tfx.doctor.modes import writers
from tfx.doctor.words import command, listed
from tfx.errors import BeyondLimits, JsonValue, UnparsableFile

if TYPE_CHECKING:
    from tfx.agents.model import Agent
    from tfx.plan.actions import Format

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Shared:
    """One configuration file of an agent that is there, and its dialect."""

    agent: Agent
    path: Path
    format: Format


def shared_files(facts: Facts) -> tuple[Shared, ...]:
    """Return the configuration files of the agents in use that exist, each once."""
    from tfx.plan.actions import Format  # noqa: PLC0415  (start-up rule)

    found: dict[Path, Shared] = {}
    for one in facts.in_use:
        agent = one.agent
        elsewhere = (facts.live_paths(agent, program.cell) for program in one.programs)
        for paths in (facts.paths, *elsewhere):
            if agent.mcp is not None and agent.mcp.format.value != "yaml":
                of = Format(agent.mcp.format.value)
                for path in agent.mcp.existing(paths):
                    found.setdefault(path, Shared(agent, path, of))
            if agent.hooks is not None:
                path = agent.hooks.file.resolve(paths)
                if path.exists():
                    found.setdefault(path, Shared(agent, path, Format.JSON))
    return tuple(found.values())


def _moved(facts: Facts) -> Iterator[Finding]:
    """Yield variables by which an agent started in a shell has other settings than tfx sees."""
    for one in facts.in_use:
        for name in one.agent.variables:
            told = facts.paths.env.get(name, "")
            other: dict[str, list[str]] = {}
            for cell in facts.matrix.cells:
                value = cell.variables.get(name, "")
                if cell.path_text is not None and reads_files(cell) and value != told:
                    other.setdefault(value, []).append(cell.label)
            if other:
                yield _elsewhere(facts, one.agent, name, told, other)


def _elsewhere(
    facts: Facts, agent: Agent, name: str, told: str, other: Mapping[str, list[str]]
) -> Finding:
    values = {value: cells for value, cells in other.items() if value}
    details: dict[str, JsonValue] = {
        "tfx": told or None,
        "shells": {v: [*c] for v, c in other.items()},
    }
    target = f"{agent.name} {name}"
    if not values:
        summary = f"only this session sets it: from a new shell {agent.label} has other settings"
        return Finding(target, Status.INFO, summary, details)
    value, cells = next(iter(values.items()))
    seen = f"tfx looks at {told}" if told else "tfx does not see it"
    return Finding(
        target,
        Status.WARN,
        f"is {value} in {listed(cells, 2)}; {seen}",
        details,
        (
            Remedy(
                "run tfx in that shell, or set it here too",
                f"export {name}={command(facts.paths.home, value)}",
                "bash",
            ),
        ),
        MANUAL,
    )


def settings(facts: Facts) -> Iterator[Finding]:
    """Yield what is wrong inside each configuration file, with line and column (D-104)."""
    yield from _moved(facts)
    shared_ones = shared_files(facts)
    yield from _writable_by_others(facts, shared_ones)
    for shared in shared_ones:
        target = facts.paths.display(shared.path)
        try:
            data = read_plain(shared.path)
            value = _parsed(shared.format, data)
        except OSError as error:
            summary = f"cannot be read: {error.strerror}"
            details: dict[str, JsonValue] = {"agent": shared.agent.name}
            yield Finding(target, Status.FAIL, summary, details, repair=MANUAL)
            continue
        except BeyondLimits as error:
            yield _not_read(facts, shared, error)
            continue
        except UnparsableFile as error:
            yield _unparsable(facts, shared, error)
            continue
        if not isinstance(value, dict):
            yield _no_object(facts, shared, value)
            continue
        findings = [
            *_doubled_keys(facts, shared, data),
            *hooks_of(facts, shared.agent, shared.path, value),
        ]
        yield from findings
        if not findings:
            bom = "; it starts with a byte order mark" if data.startswith(_BOM) else ""
            yield Finding(target, Status.OK, f"parses{bom}", {"agent": shared.agent.name})


def _writable_by_others(facts: Facts, files: Sequence[Shared]) -> Iterator[Finding]:
    """Yield files and directories in which others could tell an agent what to run."""
    agents: dict[Path, str] = {}
    for shared in files:
        home = facts.paths.home
        above = [each for each in shared.path.parents if home in each.parents]
        for path in (shared.path, *above):
            agents.setdefault(path, shared.agent.label)
    for path, label in agents.items():
        try:
            info = path.stat()
        except OSError:
            continue
        who = writers(info)
        if not who:
            continue
        mode = f"{stat.S_IMODE(info.st_mode):04o}"
        yield Finding(
            f"{facts.paths.display(path)} (mode)",
            Status.WARN,
            f"{who} can write here (mode {mode}), and so choose what {label} runs",
            {"path": str(path), "mode": mode},
            (
                Remedy(
                    "close it; tfx changes no mode of an agent's files",
                    command(facts.paths.home, "chmod", "go-w", path),
                ),
            ),
            MANUAL,
        )


def _parsed(of: Format, data: bytes) -> JsonValue:
    from tfx.plan.documents import editor  # noqa: PLC0415  (start-up rule)

    if not data.removeprefix(_BOM).strip():
        return {}
    return editor(of).parse(data)


def _unparsable(facts: Facts, shared: Shared, error: UnparsableFile) -> Finding:
    line, column = error.details.get("line"), error.details.get("column")
    place = f"{shared.path}:{line}:{column}" if line else str(shared.path)
    return Finding(
        facts.paths.display(shared.path),
        Status.FAIL,
        f"{error.message}; {shared.agent.label} ignores the whole file or does not start",
        {"agent": shared.agent.name, "line": line, "column": column, "place": place},
        (
            Remedy(
                "mend it by hand; tfx leaves a file that it cannot parse exactly as it is",
                command(facts.paths.home, "less", shared.path),
            ),
        ),
        MANUAL,
    )


def _not_read(facts: Facts, shared: Shared, error: BeyondLimits) -> Finding:
    """Return what a limit of tfx means: nothing is known of the file, nor wrong with it (D-166)."""
    return Finding(
        facts.paths.display(shared.path),
        Status.UNKNOWN,
        f"larger than tfx reads: {error.message}; {shared.agent.label} itself may read it",
        {"agent": shared.agent.name, "reason": "beyond-limits"},
        (Remedy("look at it by hand; tfx writes nothing into it"),),
        MANUAL,
    )


def _no_object(facts: Facts, shared: Shared, value: JsonValue) -> Finding:
    what = "a list" if isinstance(value, list) else "a single value"
    return Finding(
        facts.paths.display(shared.path),
        Status.FAIL,
        f"parses, but is {what} and no object; {shared.agent.label} ignores the whole file or"
        " does not start",
        {"agent": shared.agent.name, "line": 1, "column": 1},
        (Remedy("mend it by hand", command(facts.paths.home, "less", shared.path)),),
        MANUAL,
    )


def _doubled_keys(facts: Facts, shared: Shared, data: bytes) -> Iterator[Finding]:
    """Yield objects that hold a key twice; TOML refuses them by itself."""
    from tfx.config import jsonc  # noqa: PLC0415  (start-up rule)

    if shared.format.value == "toml":
        return
    for line, column in jsonc.doubled(data):
        yield Finding(
            f"{facts.paths.display(shared.path)}:{line}:{column}",
            Status.WARN,
            f"the object at line {line}, column {column} holds a key twice; the last one counts",
            {"agent": shared.agent.name, "line": line, "column": column},
            (Remedy("delete one of the two by hand"),),
            MANUAL,
        )


CHECKS = (
    Check(
        "settings.json",
        Group.AGENTS,
        "configuration files parse; hooks lead to programs",
        Explanation(
            "Whether each configuration file of an agent in use parses, by line and column, and"
            " whether its hooks and status line name files that exist and can run, each once;"
            " whether somebody else may write it or its directory.",
            "Agents ignore a broken file silently; a hook to a removed file blocks every edit.",
            "The files of the catalogue: settings.json, .claude.json, config.toml and so on.",
            "Mend the place that the row names. tfx never resets or rewrites such a file; `--fix`"
            " mends only the hooks that tfx wrote.",
        ),
        settings,
        least_s=45,
        fix=FixClass.AUTO,
    ),
    Check(
        "mcp.registration",
        Group.AGENTS,
        "the tfx-hub entry: present, unique, reachable",
        Explanation(
            "Whether the entry that `tfx setup` wrote is still there, once and as"
            " written; then, as separate states, whether its command runs or its port listens,"
            " speaks HTTP and answers `initialize`.",
            "An agent shows a server as connected or not for reasons of its own.",
            "The agents' MCP files; one loopback connection to our own hub.",
            "`tfx setup --restore`, `--take-new` or `--keep-mine`; `tfx hub start`.",
        ),
        registration,
        least_s=45,
        fix=FixClass.AUTO,
    ),
    Check(
        "mcp.servers",
        Group.AGENTS,
        "the stdio MCP servers of others start (--deep)",
        Explanation(
            "Whether each stdio server in an agent's own MCP file starts and answers"
            " `initialize`. It runs in an empty scratch home with the variables of its entry, and"
            " is ended after one answer with all its children but those in sessions of their own.",
            "One server that does not start can hold up or break every session of its agent.",
            "The agents' MCP files; the server itself, which may do what it likes. One that npx,"
            " uvx, docker or the like would fetch is started with --network only.",
            "Mend or delete the entry in the agent; start the server by hand to see what it says.",
        ),
        servers,
        slow=True,
        deep=True,
        least_s=150,
    ),
    Check(
        "skills",
        Group.AGENTS,
        "each skill is seen once",
        Explanation(
            "Whether an agent reads one skill from two directories, or a backup as a skill.",
            "Some agents list both, others take one silently.",
            "The directories that each agent in use reads skills from.",
            "Keep one copy; move backups out of the directory.",
        ),
        skills,
    ),
)
