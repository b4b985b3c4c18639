"""One cell of the matrix: what one shell, started in one way, finds.

Frozen values and what follows from them; nothing here starts a process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from tfx.core.listen import End
from tfx.shells.flavours import Flavour, Mode
from tfx.shells.names import Kind
from tfx.shells.searchpath import Copy, Entry

SLOW_MS = 1000  # D-80: by design a start-up above this deserves a word


class Status(StrEnum):
    """Whether a shell could be asked. Unknown is never "missing" (D-50).

    ABSENT: a shell that nobody logs in with is not installed. SKIPPED: such a shell is of a kind
    that tfx does not question (D-53).
    """

    OK = "ok"
    UNKNOWN = "unknown"
    ABSENT = "absent"
    SKIPPED = "skipped"


class Reason(StrEnum):
    """Why a cell is not ok (D-50)."""

    NOT_INSTALLED = "not-installed"
    SPAWN_ERROR = "spawn-error"
    EXITED = "exited"
    REPLACED = "replaced"
    TIMEOUT = "timeout"
    FLOOD = "flood"
    NO_PATH = "no-path"
    DEADLINE = "deadline"
    CANCELLED = "cancelled"
    UNSUPPORTED = "unsupported-shell"


class Answer(StrEnum):
    """The three states of one name in one cell (D-50), FOUND split by who can use it.

    SHELL_ONLY: something to this shell and nothing on its PATH (an alias, a function, a file in
    a `~` entry that only bash expands), so scripts and other programs cannot start it (D-84).
    """

    FOUND = "found"
    SHELL_ONLY = "shell-only"
    NOT_FOUND = "not-found"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a name is in a cell: to the shell, and on its PATH.

    `target` is the program behind an alias, `target_copy` its file; `defined_in` the file that
    defined a function, where the shell tells it.
    """

    name: str
    kind: Kind
    copies: tuple[Copy, ...] = ()
    target: str | None = None
    target_copy: Copy | None = None
    defined_in: str | None = None

    @property
    def winner(self) -> Copy | None:
        """The copy that PATH gives: the first that a shell does not pass over."""
        return next((copy for copy in self.copies if copy.runnable), None)

    @property
    def path(self) -> Path | None:
        """The file that another program would start by this name."""
        return self.winner.path if self.winner else None

    @property
    def answer(self) -> Answer:
        """Whether other programs, this shell only, or nobody can start it."""
        if self.winner is not None:
            return Answer.FOUND
        if self.kind is Kind.UNCLEAR:
            return Answer.UNKNOWN
        return Answer.NOT_FOUND if self.kind is Kind.NONE else Answer.SHELL_ONLY


@dataclass(frozen=True, slots=True)
class Cell:
    """What became of one probe, or of a shell that could not be asked (`mode` None).

    `argv` is exactly what was run (D-52). `exit_code` goes with EXITED and REPLACED; -N is
    signal N. `end` is how the listening ended. `stderr` is a tail without the shell's own noise
    (D-51); on an ok cell it is the only sign of a broken start-up file (D-60). `startup_files`
    are the existing files of this mode. `edit_file` is where a PATH line takes effect, None
    where the shell reads no file of the user. `outlived`: a job of the start-up files still runs
    in a session of its own (D-69). `variables` are the asked-for ones that it exports.
    """

    label: str
    shell: str
    mode: Mode | None
    program: Path
    login_shell: bool
    status: Status
    reason: Reason | None = None
    flavour: Flavour | None = None
    exit_code: int | None = None
    end: End | None = None
    argv: tuple[str, ...] = ()
    duration_ms: int = 0
    stderr: tuple[str, ...] = ()
    outlived: bool = False
    startup_files: tuple[Path, ...] = ()
    edit_file: Path | None = None
    path_text: str | None = None
    entries: tuple[Entry, ...] = ()
    names: tuple[Resolution, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def slow(self) -> bool:
        """Whether the start-up files take long enough for a word (D-80)."""
        return self.status is Status.OK and self.duration_ms > SLOW_MS

    def resolution(self, name: str) -> Resolution | None:
        """Return what a name is here, or None when this cell does not know."""
        return next((found for found in self.names if found.name == name), None)

    def answer(self, name: str) -> Answer:
        """Return the state of a name here; a cell without an answer is unknown, never missing."""
        found = self.resolution(name)
        return found.answer if found else Answer.UNKNOWN
