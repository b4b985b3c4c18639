"""What a feature hands to the CLI: one frozen result, shown to people or put into the envelope.

Knows neither typer nor rich; the two renderers read the same object, so they tell one story.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum, StrEnum
from pathlib import PurePath
from typing import Generic, TypeVar

from tfx.errors import Exit, JsonValue, Kind, TfxError

ENVELOPE_VERSION = 1

T_co = TypeVar("T_co", covariant=True)


class Status(StrEnum):
    """The word for the outcome (K-8)."""

    OK = "ok"
    WARNING = "warning"
    CONFLICT = "conflict"
    FAILED = "failed"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"
    INTERNAL = "internal"


EXIT_OF: Mapping[Status, Exit] = {
    Status.OK: Exit.OK,
    Status.WARNING: Exit.OK,
    Status.CONFLICT: Exit.FAILED,
    Status.FAILED: Exit.FAILED,
    Status.REFUSED: Exit.REFUSED,
    Status.UNAVAILABLE: Exit.UNAVAILABLE,
    Status.INTERNAL: Exit.INTERNAL,
}

STATUS_OF: Mapping[Exit, Status] = {
    Exit.OK: Status.OK,
    Exit.FAILED: Status.FAILED,
    Exit.USAGE: Status.FAILED,
    Exit.INTERNAL: Status.INTERNAL,
    Exit.UNAVAILABLE: Status.UNAVAILABLE,
    Exit.REFUSED: Status.REFUSED,
    Exit.INTERRUPTED: Status.FAILED,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is not as it should be: {code, kind, message, hint, details}."""

    code: str
    kind: Kind
    message: str
    hint: str | None = None
    details: Mapping[str, JsonValue] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, error: TfxError) -> Problem:
        """Return the problem that an error describes."""
        return cls(error.reason, error.kind, error.message, error.hint, error.details)


@dataclasses.dataclass(frozen=True, slots=True)
class Result(Generic[T_co]):
    """The outcome of one command: data for both renderers and the problems met."""

    data: T_co
    status: Status = Status.OK
    problems: tuple[Problem, ...] = ()
    exit_override: Exit | None = None

    @property
    def exit(self) -> Exit:
        """The exit status: that of the status word unless the command has its own rule."""
        return EXIT_OF[self.status] if self.exit_override is None else self.exit_override


def to_json(value: object) -> JsonValue:
    """Return plain JSON for dataclasses, enums, paths, mappings and sequences.

    Bytes that are not UTF-8 in a path become U+FFFD, so that the document stays valid (S-109).
    Raises TypeError for anything else: a renderer must not guess.
    """
    if isinstance(value, Enum):
        return to_json(value.value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str | PurePath):
        return printable(str(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(to_json(key)): to_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        items = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        return [to_json(item) for item in items]
    raise TypeError(f"no JSON form for {type(value).__name__}")


def printable(text: str) -> str:
    """Return text with the lone surrogates of undecodable file names replaced by U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def envelope(command: str, result: Result[object]) -> dict[str, JsonValue]:
    """Return the one JSON document of a command (K-8)."""
    return {
        "tfx": ENVELOPE_VERSION,
        "command": command,
        "status": result.status.value,
        "exit": int(result.exit),
        "data": to_json(result.data),
        "problems": [to_json(problem) for problem in result.problems],
    }


def failure(error: TfxError) -> Result[None]:
    """Return the result of a command that ended with an error."""
    return Result(None, STATUS_OF[error.exit], (Problem.of(error),), error.exit)
