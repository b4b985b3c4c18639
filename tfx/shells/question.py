"""What a shell is asked, as the text it runs, and how its answer is read.

Starts nothing; D-43, D-44, D-46 and D-47 are here.
"""

from __future__ import annotations

import os
import pwd
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tfx.core.paths import Paths
from tfx.errors import InvalidRequest
from tfx.shells.flavours import Flavour
from tfx.shells.names import Kind, Said
from tfx.shells.selection import MINIMAL_PATH, find_program

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*")
_PASSED_ON = frozenset({"USER", "LOGNAME", "LANG", "TMPDIR"})

# What dotfiles already look for, so that they do not update, ask or start something (D-44).
_QUIET = {
    "DISABLE_AUTO_UPDATE": "true",
    "DISABLE_UPDATE_PROMPT": "true",
    "ZSH_TMUX_AUTOSTART": "false",
    "ZSH_TMUX_AUTOSTARTED": "true",
    "VSCODE_RESOLVING_ENVIRONMENT": "1",
    "TFX_RESOLVING_ENVIRONMENT": "1",
    "HISTFILE": "",
}

# Where printf or env is missing an interpreter does its work. No single quote and no backslash
# is in the text, so that every shell reads it alike.
_PYTHON_PRINTF = (
    "import sys; b=chr(92); "
    "f=sys.argv[1].replace(b+chr(110),chr(10)).replace(b+chr(48),chr(0)); "
    "sys.stdout.write(f % tuple(sys.argv[2:]))"
)
_PYTHON_ENV = (
    "import os,sys; "
    "sys.stdout.buffer.write(bytes().join("
    "k+bytes([61])+v+bytes(1) for k,v in os.environb.items()))"
)


# The status of a shell that a signal ended is that signal for us, too.
_KEEP = (
    'unset SHLVL PWD OLDPWD; "$@"; code=$?; [ "$code" -le 128 ] || kill -"$((code - 128))" "$$"'
    '; exit "$code"'
)


def check_names(names: Sequence[str]) -> None:
    """Refuse a name that is no plain program name; raises InvalidRequest."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise InvalidRequest(f"not the name of a program: {name!r}")


def base_environment(paths: Paths) -> dict[str, str]:
    """Return what a new session starts with, and nothing of tfx's own environment (D-43, D-44).

    LC_MESSAGES is C so that a shell complains of its missing terminal in words we know (D-51).
    """
    passed_on = {
        name: value
        for name, value in paths.env.items()
        if name in _PASSED_ON or name.startswith("XDG_")
    }
    try:
        user = passed_on.get("USER") or pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        user = ""
    who = {"USER": user, "LOGNAME": user} if user else {}
    fixed = {"HOME": str(paths.home), "TERM": "dumb", "PATH": MINIMAL_PATH, "LC_MESSAGES": "C"}
    return {**who, **passed_on, **fixed, **_QUIET}


@dataclass(frozen=True, slots=True)
class Words:
    """The two commands that print, as a shell is given them: absolute, so nothing shadows them.

    `keeper` are the words that start a shell as the child of a process in between, so that a
    start-up file with `kill $PPID` ends that one and not us; it adds nothing to the environment.
    """

    printf: str
    env: str
    keeper: tuple[str, ...] = ()

    @classmethod
    def of(cls, printf: str | None, env: str | None) -> Words:
        """Return them for two programs, this interpreter in the place of a missing one (D-47)."""
        return cls(
            printf=shlex.quote(printf) if printf else _python(_PYTHON_PRINTF),
            env=f"{shlex.quote(env)} -0" if env else _python(_PYTHON_ENV),
        )

    @classmethod
    def found(cls, paths: Paths) -> Words:
        """Return them as this machine has them."""
        printf, env = find_program("printf", paths), find_program("env", paths)
        found = cls.of(str(printf) if printf else None, str(env) if env else None)
        sh = find_program("sh", paths)
        return replace(found, keeper=(str(sh), "-c", _KEEP, "sh")) if sh else found


def _python(code: str) -> str:
    return f"{shlex.quote(sys.executable)} -I -S -c {shlex.quote(code)}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What lay between the marks.

    `path` is None when the shell does not export PATH; `directory` is where it keeps its files.
    `variables` are those that were asked for; the rest of its environment is not kept: it may
    hold secrets.
    """

    path: str | None = None
    directory: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, Said] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Question:
    """One question to one kind of shell, marked with a nonce of 16 characters of its own."""

    flavour: Flavour
    names: tuple[str, ...]
    nonce: str
    variables: tuple[str, ...] = ()

    @property
    def begin(self) -> bytes:
        """The bytes before the answer."""
        return f"\n{self.nonce}B\0".encode()

    @property
    def end(self) -> bytes:
        """The bytes behind the answer."""
        return f"\n{self.nonce}E\0".encode()

    def text(self, words: Words) -> str:
        """Return what the shell runs; with the nonce in halves no echo of it is a mark (D-46)."""
        mark = rf"{words.printf} '\n%s%s%s\0' {self.nonce[:8]} {self.nonce[8:]}"
        steps = [f"{self.flavour.prelude}{mark} B", words.env]
        if self.flavour.directory:
            steps.append(rf"{words.printf} '\0D:=%s' {self.flavour.directory}")
        for name in self.names:
            query = self.flavour.query.format(name=name)
            steps.append(rf"{words.printf} '\0K:{name}='; {query} 2>/dev/null || :")
        steps += [rf"{words.printf} '\0'", f"{mark} E"]
        return "; ".join(steps)

    def read(self, output: bytes) -> Answer:
        """Read the answer out of everything the shell printed."""
        start = output.find(self.begin)
        inside = output[start + len(self.begin) : output.find(self.end, start)]
        records = dict(
            os.fsdecode(record).partition("=")[::2] for record in inside.split(b"\0") if record
        )
        unclear = Said(Kind.UNCLEAR)
        return Answer(
            path=records.get("PATH"),
            directory=records.get("D:") or None,
            variables={name: records[name] for name in self.variables if name in records},
            names={
                name: self.flavour.read(text) if text is not None else unclear
                for name in self.names
                for text in [records.get(f"K:{name}")]
            },
        )
