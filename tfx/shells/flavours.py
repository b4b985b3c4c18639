"""The shells tfx can question: one row each, and what a new row needs.

A row says how a shell is asked and what it reads at start; running it is probe.py's work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

from tfx.shells.names import Said, read_bash, read_fish, read_sentence, read_zsh


class Mode(StrEnum):
    """How a shell is started with a command: neither, login, interactive, or both."""

    PLAIN = "c"
    LOGIN = "lc"
    INTERACTIVE = "ic"
    LOGIN_INTERACTIVE = "lic"

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags, each an argument of its own."""
        return tuple(f"-{letter}" for letter in self.value)

    @property
    def login(self) -> bool:
        """Whether the login files are read."""
        return "l" in self.value

    @property
    def interactive(self) -> bool:
        """Whether the interactive files are read."""
        return "i" in self.value


MODES = tuple(Mode)

# A start-up file is given as alternatives, the first that exists is read. `~` is the home
# directory, `@` the directory a shell keeps its files in (zsh: ZDOTDIR, fish: its config).
Alternatives = tuple[str, ...]
Files = tuple[Alternatives, ...]

_PRELUDE = r"\set +eux; \unset -f unset builtin type whence command alias 2>/dev/null || :; "


@dataclass(frozen=True, slots=True)
class Flavour:
    """One kind of shell.

    `programs` are the file names it goes by; `real` are the names its resolved file may have
    (any, when empty). `query` asks what {name} is and `read` understands the answer. `startup`
    are the files it reads, by mode. `edit` is the file in which a PATH line takes effect, by
    mode; in a mode without one the shell reads no file of the user. `directory` is a word that
    expands to what `@` stands for, where a start-up file may have moved it. `noise` are its own
    complaints about having no terminal, or about starting twice at the same moment.
    """

    name: str
    programs: frozenset[str]
    query: str
    read: Callable[[str], Said]
    startup: Mapping[Mode, Files]
    edit: Mapping[Mode, Alternatives]
    prelude: str = _PRELUDE
    real: frozenset[str] = frozenset()
    directory: str = ""
    noise: tuple[str, ...] = ()

    def path_line(self, directory: str, home: str) -> str:
        """Return the line that puts a directory on PATH, ready to paste (D-20)."""
        special = '\\"$' if self.name == "fish" else '\\"$`'
        shown = _escaped(directory, special)
        if directory.startswith(f"{home}/"):
            shown = "$HOME" + _escaped(directory[len(home) :], special)
        if self.name == "fish":
            return f'fish_add_path "{shown}"'
        return f'export PATH="{shown}:$PATH"'


def _escaped(text: str, special: str) -> str:
    for character in special:  # the backslash first
        text = text.replace(character, f"\\{character}")
    return text


def _by_mode(always: Files, login: Files, interactive: Files) -> Mapping[Mode, Files]:
    return {
        mode: always + (login if mode.login else ()) + (interactive if mode.interactive else ())
        for mode in MODES
    }


_BASH_LOGIN: Files = (("/etc/profile",), ("~/.bash_profile", "~/.bash_login", "~/.profile"))
_BOURNE_LOGIN: Files = (("/etc/profile",), ("~/.profile",))

BASH = Flavour(
    name="bash",
    programs=frozenset({"bash"}),
    query=r"\builtin type -t {name} 2>/dev/null || :; \builtin command -v {name}",
    read=read_bash,
    startup={
        Mode.PLAIN: (),
        Mode.LOGIN: _BASH_LOGIN,
        Mode.INTERACTIVE: (("/etc/bash.bashrc",), ("~/.bashrc",)),
        Mode.LOGIN_INTERACTIVE: _BASH_LOGIN,  # .bashrc only where one of these sources it
    },
    edit={
        Mode.LOGIN: _BASH_LOGIN[1],
        Mode.INTERACTIVE: ("~/.bashrc",),
        Mode.LOGIN_INTERACTIVE: _BASH_LOGIN[1],
    },
    noise=("cannot set terminal process group", "no job control in this shell"),
)
ZSH = Flavour(
    name="zsh",
    programs=frozenset({"zsh"}),
    query=r"\builtin whence -w {name} 2>/dev/null || :; \builtin whence -v {name}",
    read=read_zsh,
    startup=_by_mode(
        (("/etc/zsh/zshenv", "/etc/zshenv"), ("~/.zshenv",)),
        (("/etc/zsh/zprofile", "/etc/zprofile"), ("@/.zprofile",)),
        (("/etc/zsh/zshrc", "/etc/zshrc"), ("@/.zshrc",)),
    ),
    edit={
        Mode.PLAIN: ("~/.zshenv",),
        Mode.LOGIN: ("@/.zprofile",),
        Mode.INTERACTIVE: ("@/.zshrc",),
        Mode.LOGIN_INTERACTIVE: ("@/.zprofile",),
    },
    directory='"${ZDOTDIR-}"',
)
FISH = Flavour(
    name="fish",
    programs=frozenset({"fish"}),
    query="builtin type -t {name} 2>/dev/null || :; builtin functions {name}",
    read=read_fish,
    startup=_by_mode((("/etc/fish/config.fish",), ("@/conf.d",), ("@/config.fish",)), (), ()),
    edit=dict.fromkeys(MODES, ("@/config.fish",)),
    prelude="",
    noise=("warning-path:", "can not save universal variables", "can not save history"),
)
DASH = Flavour(
    name="dash",
    programs=frozenset({"dash"}),
    query=r"\command -V {name}",
    read=read_sentence,
    startup=_by_mode((), _BOURNE_LOGIN, ()),  # and $ENV when interactive, if a profile set it
    edit=dict.fromkeys((Mode.LOGIN, Mode.LOGIN_INTERACTIVE), ("~/.profile",)),
    noise=("can't access tty",),
)
SH = Flavour(
    name="sh",
    programs=frozenset({"sh"}),
    real=frozenset({"dash", "bash", "busybox", "sh"}),
    query=DASH.query,
    read=read_sentence,
    startup=DASH.startup,
    edit=DASH.edit,
    noise=(*DASH.noise, *BASH.noise),
)
KSH = Flavour(
    name="ksh",
    # An interactive ksh writes each line that it reads into the history file, if its start-up
    # files named one; this line is then the only one of ours in it.
    prelude=f"\\unset HISTFILE 2>/dev/null || :\n{_PRELUDE}",
    programs=frozenset({"ksh", "ksh93"}),
    real=frozenset({"ksh", "ksh93"}),
    query=r"\whence -v {name}",
    read=read_sentence,
    startup=_by_mode((), _BOURNE_LOGIN, (("/etc/ksh.kshrc",), ("~/.kshrc",))),
    edit={
        Mode.LOGIN: ("~/.profile",),
        Mode.INTERACTIVE: ("~/.kshrc",),
        Mode.LOGIN_INTERACTIVE: ("~/.profile",),
    },
)

FLAVOURS = (BASH, ZSH, FISH, DASH, SH, KSH)


def flavour_of(program: str, real: str) -> Flavour | None:
    """Return the row for a shell by its file name and its resolved file name, or None."""
    called, resolved = PurePosixPath(program).name, PurePosixPath(real).name
    for flavour in FLAVOURS:
        if called in flavour.programs:
            return flavour if not flavour.real or resolved in flavour.real else None
    return None
