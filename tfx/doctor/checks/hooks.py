"""Hooks and status line in an agent's settings: each leads to a program, and stands there once.

Judges what stands there and repairs only what setup recorded; never runs a hook.
"""

from __future__ import annotations

import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfx.doctor.facts import Facts
from tfx.doctor.model import MANUAL, Finding, FixClass, Remedy, Repair, Status
from tfx.doctor.modes import writers
from tfx.doctor.words import command
from tfx.errors import JsonValue, TfxError

if TYPE_CHECKING:
    from tfx.agents.model import Agent
    from tfx.config.keypath import KeyPath
    from tfx.plan.actions import Action
    from tfx.plan.records import EntryRecord

_STATUS_LINE = "statusLine"
_TWICE = "stands-there-twice"
# What a hook that fails stops, by the event it is run at.
_EFFECTS = {
    "PreToolUse": ", and may block every tool call",
    "UserPromptSubmit": ", and may block every prompt",
}


@dataclass(frozen=True, slots=True)
class _Own:
    """What setup wrote into one settings file, the files it installed, and its plan for them."""

    records: tuple[EntryRecord, ...]
    scripts: frozenset[Path]
    actions: tuple[Action, ...]

    def wrote(self, key: KeyPath, value: JsonValue) -> bool:
        """Say whether a value is one that setup wrote at this key."""
        from tfx.config.keypath import value_digest  # noqa: PLC0415  (start-up rule)

        digest = value_digest(value)
        return any(r.key == key and r.value_sha256 == digest for r in self.records)

    def repairs(self, key: KeyPath) -> tuple[Action, ...]:
        """Return what setup would do by itself at this key."""
        automatic = {"create", "update"}
        return tuple(a for a in self.actions if a.key == key and a.kind.value in automatic)

    def lost(self, words: Sequence[str]) -> bool:
        """Say whether a command names a file that setup installed and that is gone."""
        return any(Path(word) in self.scripts and not Path(word).exists() for word in words)


@dataclass(frozen=True, slots=True)
class _Look:
    """One settings file of one agent, while its hooks are looked at."""

    facts: Facts
    agent: Agent
    path: Path
    own: _Own

    def at(self, place: str) -> str:
        """Return the target of a finding about one place in the file."""
        return f"{self.facts.paths.display(self.path)}:{place}"


def hooks_of(facts: Facts, agent: Agent, path: Path, value: JsonValue) -> Iterator[Finding]:
    """Yield what is wrong with the hooks and the status line of a settings file (D-104)."""
    if agent.hooks is None or path != agent.hooks.file.resolve(facts.paths):
        return
    if not isinstance(value, dict):
        return
    look = _Look(facts, agent, path, _own(facts, agent, path))
    events = value.get("hooks")
    if isinstance(events, dict):
        for event, elements in events.items():
            if isinstance(elements, list):
                yield from _of_event(look, event, elements)
    line = value.get(_STATUS_LINE)
    if isinstance(line, dict):
        ours = look.own.wrote((_STATUS_LINE,), line)
        yield from _program(look, _STATUS_LINE, (_STATUS_LINE,), line, ours=ours)


def _own(facts: Facts, agent: Agent, path: Path) -> _Own:
    try:
        manifest, plan = facts.manifest, facts.wanted.plan
    except TfxError:  # a row of its own elsewhere; here nothing is then known to be ours
        return _Own((), frozenset(), ())
    file = str(path.resolve())
    return _Own(
        tuple(r for r in manifest.entries.values() if r.file == file and r.agent == agent.name),
        frozenset(Path(record.root) / record.path for record in manifest.files.values()),
        tuple(a for a in plan.actions if a.is_entry and str(a.path.resolve()) == file),
    )


def _of_event(look: _Look, event: str, elements: Sequence[JsonValue]) -> Iterator[Finding]:
    from tfx.config.keypath import canonical  # noqa: PLC0415  (start-up rule)

    hooks = look.agent.hooks
    if hooks is not None and event not in hooks.events:
        yield Finding(
            look.at(f"hooks.{event}"),
            Status.INFO,
            f"{look.agent.label} {hooks.events_seen_on} does not know this event; the hook"
            " never runs",
        )
    key = ("hooks", event)
    own = [element for element in elements if look.own.wrote(key, element)]
    seen: set[bytes] = set()
    for number, element in enumerate(elements):
        place = f"hooks.{event}[{number}]"
        ours = element in own
        text = canonical(element)
        if text in seen:
            yield _twice(look, place, key, ours=ours)
        elif own and not ours and _runs_ours(look, element):
            yield _in_another_form(look, place)
        seen.add(text)
        for index, hook in enumerate(_inner(element)):
            yield from _program(look, f"{place}.hooks[{index}]", key, hook, ours=ours)


def _inner(element: JsonValue) -> list[Mapping[str, JsonValue]]:
    inner = element.get("hooks") if isinstance(element, dict) else None
    return [hook for hook in inner if isinstance(hook, dict)] if isinstance(inner, list) else []


def _runs_ours(look: _Look, element: JsonValue) -> bool:
    return any(
        Path(word) in look.own.scripts
        for hook in _inner(element)
        for word in words_of(look.facts, hook)
    )


def _twice(look: _Look, place: str, key: KeyPath, *, ours: bool) -> Finding:
    """Return the finding of an element that stands there again; ours goes by `--fix` (D-104)."""
    actions = tuple(a for a in look.own.repairs(key) if a.reason.value == _TWICE) if ours else ()
    whose = "; it is the hook of tfx" if ours else ""
    by_hand = f"delete one of the two by hand ({place}); tfx deletes no element that it did not"
    return Finding(
        look.at(place),
        Status.WARN,
        f"the same hook stands there twice and runs twice{whose}",
        {"agent": look.agent.name, "place": place},
        (Remedy("leave one", "tfx doctor --fix") if actions else Remedy(f"{by_hand} write"),),
        Repair(FixClass.AUTO, actions) if actions else MANUAL,
    )


def _in_another_form(look: _Look, place: str) -> Finding:
    return Finding(
        look.at(place),
        Status.WARN,
        "runs the hook of tfx a second time, in a form that tfx did not write",
        {"agent": look.agent.name, "place": place},
        (
            Remedy(
                f"delete {place} by hand, if you do not need it; tfx keeps what it did not write"
            ),
        ),
        MANUAL,
    )


def _program(
    look: _Look, place: str, key: KeyPath, hook: Mapping[str, JsonValue], *, ours: bool
) -> Iterator[Finding]:
    """Yield a hook or status line whose program or script is not there or cannot run (D-164)."""
    problem = hook_problem(look.facts, hook)
    if problem is None:
        yield from _writable(look, place, hook)
        return
    actions = look.own.repairs(key) if ours else ()
    if actions:
        remedy = Remedy("it is of tfx; write it anew", "tfx doctor --fix")
    elif ours and look.own.lost(words_of(look.facts, hook)):
        remedy = Remedy("it is of tfx; bring its file back", "tfx setup --restore")
    else:
        remedy = Remedy(f"correct or delete {place}")
    yield Finding(
        look.at(place),
        Status.FAIL,
        f"leads to {problem}: it fails each time{_EFFECTS.get(key[-1], '')}",
        {"agent": look.agent.name, "place": place, "problem": problem, "ours": ours},
        (remedy,),
        Repair(FixClass.AUTO, actions) if actions else MANUAL,
    )


def _writable(look: _Look, place: str, hook: Mapping[str, JsonValue]) -> Iterator[Finding]:
    """Yield a script that others may change; of one that setup installed its own row tells."""
    for word in words_of(look.facts, hook):
        path = Path(word)
        if not path.is_absolute() or path in look.own.scripts:
            continue
        try:
            info = path.stat()
        except OSError:
            continue
        if not stat.S_ISREG(info.st_mode) or not (who := writers(info)):
            continue
        mode = f"{stat.S_IMODE(info.st_mode):04o}"
        shown = look.facts.paths.display(path)
        yield Finding(
            look.at(f"{place} (mode)"),
            Status.WARN,
            f"{who} can change what it runs: {shown} has mode {mode}",
            {"agent": look.agent.name, "path": str(path), "mode": mode},
            (Remedy("close it", command(look.facts.paths.home, "chmod", "go-w", path)),),
            MANUAL,
        )


def words_of(facts: Facts, hook: Mapping[str, JsonValue]) -> list[str]:
    """Return the words of a hook's command, `~` and `$HOME` replaced; none for a line of shell."""
    text = hook.get("command")
    if not isinstance(text, str) or hook.get("type", "command") != "command":
        return []
    arguments = hook.get("args")
    words = [text, *map(str, arguments)] if isinstance(arguments, list) else _split(text)
    return [_expanded(word, str(facts.paths.home)) for word in words]


def hook_problem(facts: Facts, hook: Mapping[str, JsonValue]) -> str | None:
    """Say what a hook leads to that is not there, or None; a line of shell is not judged."""
    words = words_of(facts, hook)
    if not words:
        return None
    for word in words:
        if word.startswith("/") and not Path(word).exists():
            return f"a file that is not there ({word})"
    return _start_problem(facts, words[0])


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


def _split(text: str) -> list[str]:
    if any(sign in text for sign in ("$(", "`", "&&", "||", ";", "|", ">")):
        return []  # a shell script of a line: what it starts only a shell can tell
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _expanded(word: str, home: str) -> str:
    for spelling in ("~/", "$HOME/", "${HOME}/"):
        if word.startswith(spelling):
            return f"{home}/{word.removeprefix(spelling)}"
    return word
