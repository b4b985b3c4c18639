"""The agents' own configuration: does it parse, do hooks lead somewhere, is a skill seen once.

Reads only; shows places and names of programs, never values.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfx.doctor.checks.registration import registration
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
from tfx.doctor.words import command
from tfx.errors import JsonValue, UnparsableFile

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
        if agent.mcp is not None and agent.mcp.format.value != "yaml":
            of = Format(agent.mcp.format.value)
            for path in agent.mcp.existing(facts.paths):
                found.setdefault(path, Shared(agent, path, of))
        if agent.hooks is not None:
            path = agent.hooks.file.resolve(facts.paths)
            if path.exists():
                found.setdefault(path, Shared(agent, path, Format.JSON))
    return tuple(found.values())


def settings(facts: Facts) -> Iterator[Finding]:
    """Yield what is wrong inside each configuration file, with line and column (D-104)."""
    for shared in shared_files(facts):
        target = facts.paths.display(shared.path)
        try:
            data = shared.path.read_bytes()
            value = _parsed(shared.format, data)
        except OSError as error:
            summary = f"cannot be read: {error.strerror}"
            yield Finding(target, Status.FAIL, summary, repair=MANUAL)
            continue
        except UnparsableFile as error:
            yield _unparsable(facts, shared, error)
            continue
        findings = [*_doubled_keys(facts, shared, data), *_inside(facts, shared, value)]
        yield from findings
        if not findings:
            bom = "; it starts with a byte order mark" if data.startswith(_BOM) else ""
            yield Finding(target, Status.OK, f"parses{bom}", {"agent": shared.agent.name})


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


def _inside(facts: Facts, shared: Shared, value: JsonValue) -> Iterator[Finding]:
    hooks = shared.agent.hooks
    if hooks is None or shared.path != hooks.file.resolve(facts.paths):
        return
    if not isinstance(value, dict):
        return
    events = value.get("hooks")
    if isinstance(events, dict):
        for event, elements in events.items():
            if isinstance(elements, list):
                yield from _of_event(facts, shared, event, elements)
    status_line = value.get("statusLine")
    if isinstance(status_line, dict):
        yield from _program(facts, shared, "statusLine", status_line)


def _of_event(
    facts: Facts, shared: Shared, event: str, elements: Sequence[JsonValue]
) -> Iterator[Finding]:
    from tfx.config.keypath import canonical  # noqa: PLC0415  (start-up rule)

    seen: set[bytes] = set()
    if shared.agent.hooks is not None and event not in shared.agent.hooks.events:
        known = shared.agent.hooks.events_seen_on
        yield Finding(
            f"{facts.paths.display(shared.path)}:hooks.{event}",
            Status.INFO,
            f"{shared.agent.label} {known} does not know this event; the hook never runs",
        )
    for number, element in enumerate(elements):
        place = f"hooks.{event}[{number}]"
        text = canonical(element)
        if text in seen:
            yield _twice(facts, shared, place)
        seen.add(text)
        if isinstance(element, dict) and isinstance(inner := element.get("hooks"), list):
            for index, hook in enumerate(inner):
                if isinstance(hook, dict):
                    yield from _program(facts, shared, f"{place}.hooks[{index}]", hook)


def _twice(facts: Facts, shared: Shared, place: str) -> Finding:
    ours = any(
        record.file == str(shared.path.resolve()) and record.element
        for record in facts.manifest.entries.values()
    )
    whose = "; tfx has written one of them" if ours else ""
    return Finding(
        f"{facts.paths.display(shared.path)}:{place}",
        Status.WARN,
        f"the same hook stands there twice and runs twice{whose}",
        {"agent": shared.agent.name, "place": place},
        (
            Remedy(
                f"delete one of the two by hand ({place}); tfx deletes no element that it cannot"
                " tell from yours"
            ),
        ),
        MANUAL,
    )


def _program(
    facts: Facts, shared: Shared, place: str, hook: Mapping[str, JsonValue]
) -> Iterator[Finding]:
    """Yield a hook or status line whose program or script is not there or cannot run (D-164)."""
    problem = hook_problem(facts, hook)
    if problem is None:
        return
    effect = "" if place == "statusLine" else ", and may block every tool call"
    yield Finding(
        f"{facts.paths.display(shared.path)}:{place}",
        Status.FAIL,
        f"leads to {problem}: it fails each time{effect}",
        {"agent": shared.agent.name, "place": place, "problem": problem},
        (
            Remedy(
                f"correct or delete {place}; if it is of tfx, `tfx setup --restore` brings back"
                " its file"
            ),
        ),
        MANUAL,
    )


def hook_problem(facts: Facts, hook: Mapping[str, JsonValue]) -> str | None:
    """Say what a hook leads to that is not there, or None; a line of shell is not judged."""
    text = hook.get("command")
    if not isinstance(text, str) or hook.get("type", "command") != "command":
        return None
    arguments = hook.get("args")
    words = [text, *map(str, arguments)] if isinstance(arguments, list) else _words(text)
    if not words:
        return None
    home = str(facts.paths.home)
    for word in words:
        if _is_place(word) and not Path(_expanded(word, home)).exists():
            return f"a file that is not there ({_expanded(word, home)})"
    return _start_problem(facts, _expanded(words[0], home))


def _start_problem(facts: Facts, program: str) -> str | None:
    from tfx.shells.binaries import inspect, runnable  # noqa: PLC0415  (start-up rule)

    if not program.startswith("/"):
        known = "/" in program or facts.paths.program(program) is not None
        return None if known else f"a program that PATH does not have ({program})"
    if not runnable(Path(program)):
        return f"a file that cannot be run ({program})"
    bad = inspect(Path(program), search=facts.paths.program, host="")
    if bad is not None and bad.fault.value == "no-interpreter":
        return f"a script without its interpreter ({program} wants {bad.about})"
    return None


def _words(text: str) -> list[str]:
    if any(sign in text for sign in ("$(", "`", "&&", "||", ";", "|", ">")):
        return []  # a shell script of a line: what it starts only a shell can tell
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _is_place(word: str) -> bool:
    return word.startswith(("/", "~/", "$HOME/", "${HOME}/"))


def _expanded(word: str, home: str) -> str:
    for spelling in ("~/", "$HOME/", "${HOME}/"):
        if word.startswith(spelling):
            return f"{home}/{word.removeprefix(spelling)}"
    return word


CHECKS = (
    Check(
        "settings.json",
        Group.AGENTS,
        "configuration files parse; hooks lead to programs",
        Explanation(
            "Whether each configuration file of an agent in use parses, by line and column, and"
            " whether its hooks and status line name files that exist and can run, each once.",
            "Agents ignore a broken file silently; a hook to a removed file blocks every edit.",
            "The files of the catalogue: settings.json, .claude.json, config.toml and so on.",
            "Mend the place that the row names. tfx never resets or rewrites such a file.",
        ),
        settings,
    ),
    Check(
        "mcp.registration",
        Group.AGENTS,
        "the tfx-hub entry: present, unique, reachable",
        Explanation(
            "Whether the entry that `tfx setup --mcp-transport` wrote is still there, once and as"
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
