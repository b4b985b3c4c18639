"""The words of the plan engine as frozen data: what is wanted, what is to be done, how it went.

Knows neither the disk nor how anything is decided; computing a Plan has no side effect (S-1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from tfx.config.keypath import KeyPath
from tfx.errors import JsonValue


class Format(StrEnum):
    """The format of a shared file; JSON is strict, JSONC allows comments (S-67)."""

    JSON = "json"
    JSONC = "jsonc"
    TOML = "toml"


@dataclass(frozen=True, slots=True)
class Rival:
    """A program known to put things at our names, and words that give its things away (K-14)."""

    owner: str
    words: tuple[str, ...]

    def made(self, text: str) -> bool:
        """Say whether a file's text or an entry's JSON holds one of the words, in any case."""
        folded = text.casefold()
        return any(word in folded for word in self.words)


@dataclass(frozen=True, slots=True)
class WantedFile:
    """A bundled file that shall lie at `root`/`path`.

    `root` is absolute and may be a link; `path` is relative, `/`-separated and stays inside the
    root (S-53). `data` is rendered, `mode` the permission bits. `asset` names the bundled source,
    `agents` those that read it. A file called SKILL.md is written last in its folder (S-31).
    """

    root: Path
    path: str
    data: bytes = field(repr=False)
    mode: int
    asset: str
    agents: tuple[str, ...]
    rivals: tuple[Rival, ...] = ()


@dataclass(frozen=True, slots=True)
class WantedEntry:
    """A value that shall stand at `key` in the shared file `file`.

    `element`: append the value to the array at `key` and own it by its recorded value; `asset`
    then tells which element replaces an older one, so give each a name of its own.
    `secret`: the value holds a token, so only its hash is recorded and nothing of it is shown
    (S-22, S-38).
    `by_variable`: the same entry with the name of a variable for the token, to be offered (S-23).
    `activates`: assets that do nothing until this entry stands (S-52).
    """

    agent: str
    file: Path
    format: Format
    key: KeyPath
    value: JsonValue = field(repr=False)
    element: bool = False
    secret: bool = False
    by_variable: JsonValue = None
    asset: str = ""
    activates: tuple[str, ...] = ()
    rivals: tuple[Rival, ...] = ()


@dataclass(frozen=True, slots=True)
class Desired:
    """The whole wanted state of one run.

    `agents_in_scope`: the agents that are installed and selected; what is recorded for others is
    left as it is (K-13). `places`: roots and shared files that this run looks after even when it
    wants nothing there; a recorded item is retired only in a place of this run, so a config
    directory that moved never loses anything (S-17). Places of `files` and `entries` count anyway.
    `renames`: asset → its successor, for the message of a retired asset (S-35).
    `searched`: directories in which some client looks for skills; STATE may be in none (S-30).
    """

    files: tuple[WantedFile, ...] = ()
    entries: tuple[WantedEntry, ...] = ()
    agents_in_scope: frozenset[str] = frozenset()
    places: frozenset[Path] = frozenset()
    renames: Mapping[str, str] = field(default_factory=dict)
    searched: frozenset[Path] = frozenset()


@dataclass(frozen=True, slots=True)
class Flags:
    """The user's word on conflicts; `take_new` and `keep_mine` exclude each other (S-8)."""

    take_new: bool = False
    keep_mine: bool = False
    restore: bool = False


class ActionKind(StrEnum):
    """What an action does."""

    CREATE = "create"
    UPDATE = "update"
    RECORD = "record"  # nothing changes on disk, the manifest does (adoption, release)
    DELETE = "delete"
    RESTORE = "restore"  # recreate what the user deleted, or give back what --take-new replaced
    KEEP = "keep"  # keep the user's state and note that (--keep-mine; drifted and retired)
    CONFLICT = "conflict"
    REFUSED = "refused"
    # only in Plan.settled:
    UNCHANGED = "unchanged"
    KEPT = "kept"  # --keep-mine was said earlier for this very version
    SKIPPED = "skipped"  # its agent is absent or left out


class Reason(StrEnum):
    """Why; `Action.detail` adds the particulars in words."""

    IDENTICAL = "identical"
    NEW = "new"
    NEW_VERSION = "new-version"
    DOUBLED = "stands-there-twice"
    EXEC_BIT = "exec-bit-lost"
    RETIRED = "retired"
    GONE = "already-gone"
    REPLACED = "gives-back-replaced"
    RELEASED = "released-by-agent"
    TAKE_NEW = "take-new"
    KEEP_MINE = "keep-mine"
    RESTORE = "restore"
    UNDO = "undo"
    FOREIGN = "foreign"
    EDITED = "edited"
    DIVERGED = "edited-and-new-version"
    DELETED = "deleted-by-user"
    DRIFTED = "retired-but-edited"
    LINK = "symlink-in-the-way"
    MOVING = "keeps-changing"
    AGENT_ABSENT = "agent-absent-or-left-out"
    UNPARSABLE = "unparsable"
    BEYOND_LIMITS = "beyond-limits"
    UNEDITABLE = "cannot-be-edited-exactly"
    NOT_A_FILE = "not-a-regular-file"
    LOOP = "symlink-loop"
    OUTSIDE = "leads-out-of-its-root"
    UNREADABLE = "unreadable"
    NO_DIRECTORY = "directory-missing"
    # only in repairs of doctor:
    INTERRUPTED = "interrupted-run"
    LOOSE_MODE = "too-open-for-others"
    LEFT_BEHIND = "left-by-a-dead-process"


@dataclass(frozen=True, slots=True)
class State:
    """Content and permission bits of one item; `mode` is None for an entry of a shared file."""

    sha256: str
    mode: int | None = None

    def token(self) -> str:
        """Return one string for both, as `kept` records it."""
        return self.sha256 if self.mode is None else f"{self.sha256}:{self.mode:o}"


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that is not so yet, or that needs the user's word.

    `path` is the shared file as wanted, or the bundled file with the links of its root resolved.
    `target` is what people are shown: the path, for an entry with its key behind a colon.
    `base`, `disk` and `new` are the three states, None = absent. `hint` names the option that
    resolves a conflict. `line` and `column` are 1-based or 0.
    """

    kind: ActionKind
    reason: Reason
    target: str
    path: Path
    agents: tuple[str, ...] = ()
    key: KeyPath = ()
    asset: str = ""
    base: State | None = None
    disk: State | None = None
    new: State | None = None
    detail: str = ""
    hint: str | None = None
    warning: str | None = None
    line: int = 0
    column: int = 0

    @property
    def is_entry(self) -> bool:
        """True for an entry of a shared file."""
        return bool(self.key)


CHANGES = frozenset({ActionKind.CREATE, ActionKind.UPDATE, ActionKind.DELETE, ActionKind.RESTORE})


@dataclass(frozen=True, slots=True)
class Plan:
    """What is not so yet, in the order of execution; empty when the desired state holds.

    `settled` lists what needs nothing: unchanged, kept by an earlier --keep-mine, skipped.
    """

    actions: tuple[Action, ...] = ()
    settled: tuple[Action, ...] = ()

    @property
    def changes_shared_files(self) -> bool:
        """True when an existing shared file would be edited (the question of K-5)."""
        return any(
            action.is_entry and action.kind in CHANGES and action.path.exists()
            for action in self.actions
        )


class OutcomeStatus(StrEnum):
    """How an action went, judged by re-reading (S-6)."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    CONFLICT = "conflict"
    FAILED = "failed"
    REFUSED = "refused"
    PARTIAL = "partial"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Outcome:
    """An action and how it went; `snippet` is what to add by hand when the file is read-only."""

    action: Action
    status: OutcomeStatus
    reason: str
    hint: str | None = None
    snippet: str | None = None
    backup: Path | None = None
    staged: Path | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """The re-read result of one run; `run` is None when nothing had to be written (S-4).

    `recovered` names the interrupted runs that were finished first (S-43).
    """

    run: str | None
    outcomes: tuple[Outcome, ...]
    recovered: tuple[str, ...] = ()

    def count(self, status: OutcomeStatus) -> int:
        """Return how many outcomes have this status."""
        return sum(outcome.status is status for outcome in self.outcomes)


@dataclass(frozen=True, slots=True)
class Run:
    """One earlier run that `--undo` can take back."""

    run: str
    operation: str  # setup, remove, undo <run>
    at_ms: int
    changes: int
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Diff:
    """The three versions of a conflict; None = absent or (base of an entry) not kept.

    `text` is a unified diff disk → new, without a token of tfx but with the user's own words;
    `outline` is the same without them, for what may be pasted (D-27). `merge_command` is there
    when git is.
    """

    base: bytes | None
    disk: bytes | None
    new: bytes | None
    text: str
    merge_command: str | None = None
    outline: str = ""


Progress: TypeAlias = Callable[[Action], None]
Marks: TypeAlias = frozenset[tuple[object, ...]]
"""Actions chosen from a plan, as `mark_of` tells them apart."""
