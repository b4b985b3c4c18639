"""The error tree: every failure tfx can name, with its code, kind and exit status.

Knows nothing of the rest of the program; everything else may import it.

    TfxError
    ├── InvalidRequest            2  invalid-request
    ├── UnparsableFile            5  invalid-request    a shared file cannot be read as its format
    │   └── BeyondLimits              it is larger or deeper than tfx reads
    ├── RefusedText               5  invalid-request    a text that cannot be passed on whole
    ├── BadSettings               2  invalid-request    tfx's own config.toml
    ├── AuthenticationRequired    5  authentication-required
    │   └── ActorMissing              nobody in particular asks what an agent has to ask
    ├── AccessDenied              5  access-denied
    ├── NotFound                  1  not-found
    │   └── UnknownAgent          4  not-found          the hub knows no agent of that name
    │       └── UnknownRecipient      a message is for a name that nobody registered
    ├── StateConflict             5  state-conflict     lock held, hub running, newer schema …
    │   └── LockHeld
    ├── UnsafeEnvironment         5  access-denied      no HOME, sudo with a foreign HOME
    ├── AgentUnavailable          4  agent-unavailable  hub or agent not reachable or not there
    └── OperationFailed           1  operation-failed

The kinds are the seven of the error table in the design; the exit statuses are K-9.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import ClassVar, TypeAlias, Union

JsonValue: TypeAlias = Union[  # noqa: UP007  (a recursive alias needs the string form)
    bool, int, float, str, list["JsonValue"], dict[str, "JsonValue"], None
]


class Exit(IntEnum):
    """Exit statuses of every command; docs/commands.md has the table."""

    OK = 0
    FAILED = 1
    USAGE = 2
    INTERNAL = 3
    UNAVAILABLE = 4
    REFUSED = 5
    INTERRUPTED = 130


class Kind(StrEnum):
    """The seven error kinds, the same on the command line, over HTTP and over MCP."""

    INVALID_REQUEST = "invalid-request"
    AUTHENTICATION_REQUIRED = "authentication-required"
    ACCESS_DENIED = "access-denied"
    NOT_FOUND = "not-found"
    STATE_CONFLICT = "state-conflict"
    AGENT_UNAVAILABLE = "agent-unavailable"
    OPERATION_FAILED = "operation-failed"


class TfxError(Exception):
    """A failure with a stable code; the message says what happened, the hint what helps.

    `details` holds JSON values for programs; neither it nor the message ever holds a secret.
    `code` may be narrowed per instance (for example `already-answered` on a StateConflict).
    """

    code: ClassVar[str] = "operation-failed"
    kind: ClassVar[Kind] = Kind.OPERATION_FAILED
    exit: ClassVar[Exit] = Exit.FAILED

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        hint: str | None = None,
        details: dict[str, JsonValue] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details: dict[str, JsonValue] = details or {}
        self.reason = code or self.code


class InvalidRequest(TfxError):
    """The caller asked for something malformed; the same request never succeeds."""

    code = "invalid-request"
    kind = Kind.INVALID_REQUEST
    exit = Exit.USAGE


class BadSettings(InvalidRequest):
    """config.toml has an unknown key, a wrong type or cannot be parsed (K-19)."""

    code = "bad-settings"


class UnparsableFile(TfxError):
    """A shared file is not what its format says; it is left byte-identical (S-54).

    `details` has `path`, and `line` and `column` (1-based) where they are known.
    """

    code = "unparsable-file"
    kind = Kind.INVALID_REQUEST
    exit = Exit.REFUSED


class BeyondLimits(UnparsableFile):
    """A shared file is larger or deeper than tfx reads; others may well read it (S-66, D-166)."""


class RefusedText(TfxError):
    """A text holds what its receiver cannot take unchanged, a NUL byte for one (R-4)."""

    code = "refused-text"
    kind = Kind.INVALID_REQUEST
    exit = Exit.REFUSED


class AuthenticationRequired(TfxError):
    """No or a wrong credential."""

    code = "authentication-required"
    kind = Kind.AUTHENTICATION_REQUIRED
    exit = Exit.REFUSED


class ActorMissing(AuthenticationRequired):
    """It takes an agent and its session, or the operator credential (WK-A1, WK-L13, K-28)."""

    code = "actor-missing"


class AccessDenied(TfxError):
    """A known actor without the right."""

    code = "access-denied"
    kind = Kind.ACCESS_DENIED
    exit = Exit.REFUSED


class UnsafeEnvironment(AccessDenied):
    """No home directory, or sudo with somebody else's (K-9, S-103, S-108)."""

    code = "unsafe-environment"


class NotFound(TfxError):
    """The named thing does not exist."""

    code = "not-found"
    kind = Kind.NOT_FOUND


class UnknownAgent(NotFound):
    """No agent of the hub has that name (K-9: a named agent that is not there)."""

    code = "unknown-agent"
    exit = Exit.UNAVAILABLE


class UnknownRecipient(UnknownAgent):
    """A message is for a name that nobody registered (H-55)."""

    code = "unknown-recipient"


class StateConflict(TfxError):
    """The state moved or forbids it: re-read, then decide."""

    code = "state-conflict"
    kind = Kind.STATE_CONFLICT
    exit = Exit.REFUSED


class LockHeld(StateConflict):
    """Another process holds the lock; `details` names the holder where it is known."""

    code = "lock-held"


class AgentUnavailable(TfxError):
    """The hub or a named agent is not reachable or not there."""

    code = "agent-unavailable"
    kind = Kind.AGENT_UNAVAILABLE
    exit = Exit.UNAVAILABLE


class OperationFailed(TfxError):
    """The effect or the storage failed."""
