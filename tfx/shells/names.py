"""What a shell says a name is, read out of the words it uses.

Knows nothing of files: whether a program is really there is found by walking PATH.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a name is to a shell. UNCLEAR: the shell spoke, and we did not understand it."""

    FILE = "file"
    ALIAS = "alias"
    FUNCTION = "function"
    BUILTIN = "builtin"
    KEYWORD = "keyword"
    NONE = "none"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Said:
    """A shell's answer: the kind, the command word behind an alias, the file that defined it.

    Nothing else of an alias or a function is kept: its text may hold a secret.
    """

    kind: Kind
    target: str | None = None
    defined_in: str | None = None


_NOTHING = Said(Kind.NONE)
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_BEFORE_A_COMMAND = frozenset(
    {"builtin", "command", "env", "exec", "nice", "nocorrect", "noglob", "nohup", "sudo", "time"}
)
_OPTIONS_WITH_A_VALUE = frozenset({"-C", "-a", "-g", "-n", "-u"})
_ALIAS = re.compile(r" is (?:an? (?:[a-z]+ )?alias for|aliased to) (?P<text>.*)", re.DOTALL)
_BASH_KINDS = {
    "alias": Kind.ALIAS,
    "function": Kind.FUNCTION,
    "builtin": Kind.BUILTIN,
    "keyword": Kind.KEYWORD,
    "file": Kind.FILE,
    "": Kind.NONE,
}
_ZSH_KINDS = {
    "alias": Kind.ALIAS,
    "function": Kind.FUNCTION,
    "builtin": Kind.BUILTIN,
    "reserved": Kind.KEYWORD,
    "command": Kind.FILE,
    "hashed": Kind.FILE,
    "none": Kind.NONE,
    "": Kind.NONE,
}


def read_bash(text: str) -> Said:
    """Read `type -t` and `command -v` (D-32)."""
    word, _, rest = text.strip("\n").partition("\n")
    kind = _BASH_KINDS.get(word, Kind.UNCLEAR)
    if kind is not Kind.ALIAS:
        return Said(kind)
    definition = _words(rest)  # alias ll='ls -l'
    value = definition[1].partition("=")[2] if len(definition) > 1 else ""
    return Said(kind, command_word(value))


def read_zsh(text: str) -> Said:
    """Read `whence -w` and `whence -v` (D-33)."""
    line, _, rest = text.strip("\n").partition("\n")
    kind = _ZSH_KINDS.get(line.rpartition(": ")[2], Kind.UNCLEAR)
    if kind is Kind.ALIAS and (match := _ALIAS.search(rest)):
        return Said(kind, command_word(match["text"]))
    if kind is Kind.FUNCTION:
        return Said(kind, defined_in=rest.partition(" from ")[2].strip() or None)
    return Said(kind)


def read_fish(text: str) -> Said:
    """Read `type -t` and `functions` (D-34): an alias is a function that wraps a command."""
    word, _, body = text.strip("\n").partition("\n")
    kind = _BASH_KINDS.get(word, Kind.UNCLEAR)
    if kind is not Kind.FUNCTION:
        return Said(kind)
    wraps = description = source = None
    for line in body.splitlines():
        if line.startswith("# Defined in "):
            source = line.removeprefix("# Defined in ").partition(" @ ")[0]
        if line.startswith("function "):
            wraps, description = _fish_options(line)
            break
    if description is None or not description.startswith("alias "):
        return Said(kind, defined_in=source)
    aliased = re.sub(r"^alias \S+?[ =]", "", description)
    return Said(Kind.ALIAS, command_word(wraps or aliased), source)


def read_sentence(text: str) -> Said:
    """Read the one sentence of `command -V` or ksh's `whence -v` (D-35, D-36)."""
    line = text.strip("\n")
    if not line or "not found" in line:
        return _NOTHING
    sentence = line.partition("\n")[0]
    alias = _ALIAS.search(line)
    if alias and alias.start() < len(sentence) and "tracked alias" not in sentence:
        return Said(Kind.ALIAS, command_word(_unquoted(alias["text"])))
    first = sentence.partition(" is ")[2]
    for words, kind in (
        (("function",), Kind.FUNCTION),
        (("keyword", "reserved word"), Kind.KEYWORD),
        (("builtin",), Kind.BUILTIN),
        (("/", "tracked alias", "hashed"), Kind.FILE),
    ):
        if any(word in first for word in words):
            return Said(kind)
    return Said(Kind.UNCLEAR)


def command_word(text: str) -> str | None:
    """Return the program that a command line starts, without what goes before and after it.

    Assignments are skipped, never returned: `KEY=secret claude --fast` is `claude`.
    """
    words = iter(_words(text))
    before = False
    for word in words:
        if word in _BEFORE_A_COMMAND:
            before = True
        elif before and word.startswith("-"):
            if word in _OPTIONS_WITH_A_VALUE:
                next(words, None)
        elif not _ASSIGNMENT.match(word):
            return word
    return None


def _words(text: str) -> Sequence[str]:
    try:
        return shlex.split(text)
    except ValueError:  # an unclosed quote: a function of a line, or another shell's quoting
        return text.split()


def _unquoted(text: str) -> str:
    """Undo the quotes that ksh ('…' or $'…') and bash's `command -V` (`…') put around an alias."""
    stripped = text.strip().removeprefix("$")
    if len(stripped) > 1 and stripped[0] in "'`" and stripped[-1] == "'":
        return stripped[1:-1]
    return stripped


def _fish_options(line: str) -> tuple[str | None, str | None]:
    wraps = description = None
    words = list(_words(line))
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else ""
        if word in {"-w", "--wraps"}:
            wraps = following
        elif word in {"-d", "--description"}:
            description = following
        elif word.startswith("--wraps="):
            wraps = word.removeprefix("--wraps=")
        elif word.startswith("--description="):
            description = word.removeprefix("--description=")
    return wraps, description
