"""Hooks and status line in an agent's settings: each leads to a program, and stands there once.

Judges what stands there and repairs only what setup recorded; never runs a hook.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfx.doctor.checks.hook_commands import hook_problem, words_of
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
_SHAPES: Mapping[type, str] = {dict: "an object", list: "a list", str: "text"}
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
    yield from _misshapen(look, value)
    for event, elements in events.items() if isinstance(events, dict) else ():
        if isinstance(elements, list):
            yield from _of_event(look, event, elements)
    line = value.get(_STATUS_LINE)
    if isinstance(line, dict):
        ours = look.own.wrote((_STATUS_LINE,), line)
        yield from _program(look, _STATUS_LINE, (_STATUS_LINE,), line, ours=ours)


def _misshapen(look: _Look, value: Mapping[str, JsonValue]) -> Iterator[Finding]:
    """Yield each place below `hooks` that has another shape than the client reads (D-104)."""
    for place, found, shape in _shapes(value.get("hooks")):
        if found is not None and not isinstance(found, shape):
            yield Finding(
                look.at(place),
                Status.WARN,
                f"is not {_SHAPES[shape]}: {look.agent.label} runs nothing of it, and may ignore"
                " the whole file",
                {"agent": look.agent.name, "place": place},
                (Remedy(f"correct or delete {place}"),),
                MANUAL,
            )


def _shapes(events: JsonValue) -> Iterator[tuple[str, JsonValue, type]]:
    """Yield each place below `hooks`, what stands there, and what should."""
    yield "hooks", events, dict
    for event, elements in events.items() if isinstance(events, dict) else ():
        yield f"hooks.{event}", elements, list
        for number, element in enumerate(elements if isinstance(elements, list) else ()):
            place = f"hooks.{event}[{number}]"
            yield place, element, dict
            inner = element.get("hooks") if isinstance(element, dict) else None
            yield f"{place}.hooks", inner, list
            for index, hook in enumerate(inner if isinstance(inner, list) else ()):
                yield f"{place}.hooks[{index}]", hook, dict
                if isinstance(hook, dict):
                    yield f"{place}.hooks[{index}].command", hook.get("command"), str


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
    problem = hook_problem(look.facts, look.agent.name, hook)
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
