"""What a hook's command starts, as far as no shell is needed to tell it, and is it there.

Runs nothing; what only a shell can tell is not judged (D-104, D-164).
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from tfx.doctor.facts import Facts
from tfx.errors import JsonValue

# Between or around commands: what is started then depends on what ran before.
_OPERATORS = re.compile(r"[\n;&|<>`()]|\$\(")
# In a word: what it becomes is known at the start only.
_EXPANDED = re.compile(r"[$*?\[{}!#~]")
_ASSIGNMENT = re.compile(r"\w+\+?=")
_OF_THE_SHELL = frozenset(
    [
        ".",
        ":",
        "[",
        "[[",
        "{",
        "}",
        "!",
        "alias",
        "bg",
        "break",
        "builtin",
        "case",
        "cd",
        "command",
        "continue",
        "declare",
        "do",
        "done",
        "echo",
        "elif",
        "else",
        "esac",
        "eval",
        "exec",
        "exit",
        "export",
        "false",
        "fc",
        "fg",
        "fi",
        "for",
        "function",
        "getopts",
        "hash",
        "help",
        "history",
        "if",
        "jobs",
        "kill",
        "let",
        "local",
        "logout",
        "popd",
        "printf",
        "pushd",
        "pwd",
        "read",
        "readonly",
        "return",
        "select",
        "set",
        "shift",
        "shopt",
        "source",
        "test",
        "then",
        "time",
        "times",
        "trap",
        "true",
        "type",
        "typeset",
        "ulimit",
        "umask",
        "unalias",
        "unset",
        "until",
        "wait",
        "while",
    ]
)
_INTERPRETERS = re.compile(
    r"(?:ba|z|da|k|mk|fi|a)?sh|node(?:js)?|bun|python[\d.]*|pypy[\d.]*|ruby|perl|php|lua|tsx"
)
_INLINE = re.compile(r"-[A-Za-z]*[cemp]|--eval|--print|--version|--help|-")


def words_of(facts: Facts, hook: Mapping[str, JsonValue]) -> list[str]:
    """Return the words of a hook's command, `~` and `$HOME` replaced; none for a line of shell."""
    from tfx.shells.probe import expand_home  # noqa: PLC0415  (start-up rule)

    text = hook.get("command")
    if not isinstance(text, str) or hook.get("type", "command") != "command":
        return []
    arguments = hook.get("args")
    words = [text, *map(str, arguments)] if isinstance(arguments, list) else _split(text)
    return [expand_home(word, facts.paths.home) for word in words]


def hook_problem(facts: Facts, agent: str, hook: Mapping[str, JsonValue]) -> str | None:
    """Say what a hook leads to that is not there, or None.

    Judged are its first word and, behind an interpreter, the script: any other word may be a file
    that the command makes, or no file at all.
    """
    words = words_of(facts, hook)
    if not words:
        return None
    in_shell = not isinstance(hook.get("args"), list)
    if in_shell and (words[0] in _OF_THE_SHELL or _ASSIGNMENT.match(words[0])):
        return None
    if not words[0] or _EXPANDED.search(words[0]):
        return None
    return _start_problem(facts, agent, words[0]) or _script_problem(words)


def _script_problem(words: list[str]) -> str | None:
    """Say whether the script of an interpreter is missing; only an absolute one is known."""
    if not _INTERPRETERS.fullmatch(Path(words[0]).name):
        return None
    for word in words[1:]:
        if _INLINE.fullmatch(word):
            return None
        if not word.startswith("-"):
            missing = word.startswith("/") and not _EXPANDED.search(word)
            missing = missing and not os.path.lexists(word)
            return f"a file that is not there ({word})" if missing else None
    return None


def _start_problem(facts: Facts, agent: str, program: str) -> str | None:
    from tfx.shells.binaries import inspect, runnable  # noqa: PLC0415  (start-up rule)

    def search(name: str) -> Path | None:
        return _found(facts, agent, name)

    if "/" not in program:
        known = not _directories(facts, agent) or search(program) is not None
        return None if known else f"a program that its PATH does not have ({program})"
    if not program.startswith("/"):
        return None  # from the directory that the agent works in
    path = Path(program)
    if not path.exists():
        return f"a file that is not there ({program})"
    if not runnable(path):
        return f"a file that cannot be run ({program})"
    bad = inspect(path, search=search, host="")
    if bad is not None and bad.fault.value == "no-interpreter":
        return f"a script without its interpreter ({program} wants {bad.about})"
    return None


def _directories(facts: Facts, agent: str) -> list[str]:
    """Return the PATHs of the shells that start an agent: its hooks are run with one of them."""
    texts = [
        program.cell.path_text or ""
        for one in facts.in_use
        if one.agent.name == agent
        for program in one.programs
    ]
    entries = (entry for text in texts for entry in text.split(os.pathsep))
    return [entry for entry in dict.fromkeys(entries) if entry.startswith("/")]


def _found(facts: Facts, agent: str, name: str) -> Path | None:
    from tfx.shells.binaries import runnable  # noqa: PLC0415  (start-up rule)

    places = (Path(entry, name) for entry in _directories(facts, agent))
    return next((path for path in places if runnable(path)), None)


def _split(text: str) -> list[str]:
    if _OPERATORS.search(text.strip()):
        return []  # a shell script of a line: what it starts only a shell can tell
    try:
        return shlex.split(text)
    except ValueError:
        return []
