"""The journal of one run: a durable line before and after each change (S-42).

Knows how lines are written and read; recovery and undo decide what they mean.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from tfx.core.files import PRIVATE_FILE, fsync_dir, make_private_dir, read_plain
from tfx.errors import JsonValue, StateConflict
from tfx.plan.actions import State
from tfx.plan.manifest import change_from_json, change_to_json
from tfx.plan.records import Change, EntryRecord, FileRecord

_COMMIT = b'{"op":"commit"}\n'


class Fate(StrEnum):
    """How an intent ended; OPEN is all that a crash leaves."""

    OPEN = "open"
    DONE = "done"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Intent:
    """One change of one target, written down before it is made.

    `backup` names the bytes before it in the backup of the run, `dirs` the directories that were
    not there. `torn` names the bytes after it while they are written in place (S-51).
    """

    number: int
    target: Path
    before: State | None
    after: State | None
    backup: str | None
    dirs: tuple[str, ...]
    changes: tuple[Change, ...]
    torn: str | None = None
    fate: Fate = Fate.OPEN


@dataclass(frozen=True, slots=True)
class ModeChange:
    """Permission bits of a file or directory of ours, changed in place."""

    target: Path
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Story:
    """A journal as read: `records` changed the manifest alone, `modes` permission bits alone.

    A mode is written down before it is changed; whether it was is told by the disk.
    """

    run: str
    operation: str
    at_ms: int
    intents: tuple[Intent, ...]
    records: tuple[Change, ...]
    committed: bool
    modes: tuple[ModeChange, ...] = ()

    @property
    def done(self) -> tuple[Intent, ...]:
        """The intents that were carried out, in their order."""
        return tuple(intent for intent in self.intents if intent.fate is Fate.DONE)

    @property
    def items(self) -> int:
        """How many files and entries it changed, counted as the run's own report did.

        A file that was changed without an item of its own, a repeated hook taken out, is one.
        """
        return _items(self.records) + sum(max(1, _items(each.changes)) for each in self.done)

    @property
    def edited_shared_files(self) -> bool:
        """True when it edited a shared file that was there before."""
        return any(
            intent.before is not None
            and any(isinstance(change.record, EntryRecord) for change in intent.changes)
            for intent in self.done
        )


def _items(changes: Sequence[Change]) -> int:
    return sum(isinstance(change.record, FileRecord | EntryRecord) for change in changes)


class Journal:
    """Writes the journal of a run; every line is on the disk when its method returns."""

    def __init__(self, path: Path, checkpoint: Callable[[str], None]) -> None:
        make_private_dir(path.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(path, flags, PRIVATE_FILE)
        self._checkpoint = checkpoint
        fsync_dir(path.parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)

    def begin(self, operation: str, version: str, at_ms: int) -> None:
        """Write the first line."""
        self._line("begin", {"operation": operation, "tfx": version, "at_ms": at_ms})

    def intend(self, intent: Intent) -> None:
        """Write what is about to be done."""
        self._line(
            "intent",
            {
                "n": intent.number,
                "target": str(intent.target),
                "before": _state_to_json(intent.before),
                "after": _state_to_json(intent.after),
                "backup": intent.backup,
                "dirs": list(intent.dirs),
                "changes": [change_to_json(change) for change in intent.changes],
            },
        )

    def change_mode(self, change: ModeChange) -> None:
        """Write which permission bits are about to be changed."""
        content: dict[str, JsonValue] = {
            "target": str(change.target),
            "mode_before": change.before,
            "mode_after": change.after,
        }
        self._line("mode", content)

    def tear(self, number: int, name: str) -> None:
        """Write that the target is being overwritten in place with the backed-up `name`."""
        self._line("in-place", {"n": number, "after": name})

    def end(self, number: int, fate: Fate) -> None:
        """Write how an intent ended."""
        self._line(fate.value, {"n": number})

    def record(self, changes: tuple[Change, ...]) -> None:
        """Write changes of the manifest that touch no target."""
        self._line("records", {"changes": [change_to_json(change) for change in changes]})

    def commit(self) -> None:
        """Write the last line; the manifest is on the disk by now (S-40)."""
        self._line("commit", {})

    def _line(self, word: str, content: dict[str, JsonValue]) -> None:
        line = json.dumps({"op": word, **content}, separators=(",", ":")).encode() + b"\n"
        start = os.fstat(self._descriptor).st_size
        try:
            view = memoryview(line)
            while view:
                view = view[os.write(self._descriptor, view) :]
            os.fsync(self._descriptor)
        except OSError:  # a full disk: half a line must not stand before the next one
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, start)
            raise
        self._checkpoint(word)


def _state_to_json(state: State | None) -> JsonValue:
    return None if state is None else {"sha256": state.sha256, "mode": state.mode}


@dataclass(frozen=True, slots=True)
class _Line:
    """Every key that some line has."""

    op: str
    n: int = 0
    operation: str = ""
    at_ms: int = 0
    target: str = ""
    before: State | None = None
    after: State | str | None = None
    backup: str | None = None
    dirs: tuple[str, ...] = ()
    changes: tuple[dict[str, object], ...] = ()
    mode_before: int = 0
    mode_after: int = 0


def is_committed(path: Path) -> bool:
    """Say whether a run came to its end. Raises StateConflict when that cannot be read."""
    try:
        return read_plain(path).endswith(_COMMIT)
    except OSError as error:
        raise _unreadable(path, 0, error.strerror or str(error)) from error


def read(path: Path) -> Story:
    """Read a journal; a torn last line was never acted on and is left out.

    Raises StateConflict when the file or another line of it cannot be read.
    """
    try:
        complete = read_plain(path).split(b"\n")[:-1]
    except OSError as error:
        raise _unreadable(path, 0, error.strerror or str(error)) from error
    story = Story(path.stem, "", 0, (), (), committed=False)
    for number, raw in enumerate(complete, 1):
        try:
            story = _continued(story, msgspec.convert(json.loads(raw), type=_Line))
        except (ValueError, KeyError, TypeError) as error:
            raise _unreadable(path, number, str(error)) from error
    return story


def _unreadable(path: Path, line: int, why: str) -> StateConflict:
    where = f"line {line} of the journal {path}" if line else f"the journal {path}"
    return StateConflict(
        f"{where} cannot be read: {why}",
        code="journal-unreadable",
        hint=f"move {path} away; what it was doing is then judged by the manifest alone",
        details={"path": str(path), "line": line},
    )


def _continued(story: Story, line: _Line) -> Story:
    match line.op:
        case "begin":
            story = replace(story, operation=line.operation, at_ms=line.at_ms)
        case "intent":
            story = replace(story, intents=(*story.intents, _intent(line)))
        case "in-place":
            story = _updated(story, line.n, torn=str(line.after))
        case "done" | "dropped":
            story = _updated(story, line.n, fate=Fate(line.op))
        case "records":
            story = replace(story, records=(*story.records, *_changes(line)))
        case "mode":
            change = ModeChange(Path(line.target), line.mode_before, line.mode_after)
            story = replace(story, modes=(*story.modes, change))
        case "commit":
            story = replace(story, committed=True)
        case _:
            raise ValueError(f"unknown word {line.op!r}")
    return story


def _intent(line: _Line) -> Intent:
    after = line.after if isinstance(line.after, State) else None
    return Intent(
        line.n,
        Path(line.target),
        line.before,
        after,
        line.backup,
        line.dirs,
        tuple(_changes(line)),
    )


def _changes(line: _Line) -> list[Change]:
    return [change_from_json(change) for change in line.changes]


def _updated(
    story: Story, number: int, *, torn: str | None = None, fate: Fate | None = None
) -> Story:
    intents = tuple(
        replace(intent, torn=torn or intent.torn, fate=fate or intent.fate)
        if intent.number == number
        else intent
        for intent in story.intents
    )
    return replace(story, intents=intents)
