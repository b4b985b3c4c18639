"""The bus token and the operator credential: read, make once, renew on request.

Never shows a value: no representation, message or log holds one (H-42, H-46).
"""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tfx.core.files import PRIVATE_FILE, replace_atomically, write_new
from tfx.core.paths import Paths
from tfx.errors import OperationFailed, StateConflict
from tfx.hub.places import HubFiles

_BYTES = 32
_SHORTEST = 16
_LONGEST = 4096


class Credential(StrEnum):
    """Which of the two (K-28)."""

    BUS = "bus"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """Both values of a running hub."""

    bus: str
    operator: str

    def __repr__(self) -> str:
        return "Credentials(<hidden>)"


def new_secret() -> str:
    """Return 32 random bytes in URL-safe text."""
    return secrets.token_urlsafe(_BYTES)


def bus_override(paths: Paths) -> str | None:
    """Return the bus token that the environment sets, or None.

    `TFX_HUB_TOKEN` wins over `TFX_HUB_TOKEN_FILE` (H-9). Raises OperationFailed when the named
    file cannot be read or holds no token.
    """
    value = paths.env.get("TFX_HUB_TOKEN", "").strip()
    if value:
        return _sound(value, "TFX_HUB_TOKEN")
    named = paths.variable("TFX_HUB_TOKEN_FILE")
    if named is None:
        return None
    found = read_secret(named)
    if found is None:
        raise OperationFailed(
            f"TFX_HUB_TOKEN_FILE names a file that is not there: {named}",
            code="token-unreadable",
            hint="name an existing file or unset the variable",
        )
    return found


def read_bus(paths: Paths, files: HubFiles) -> str | None:
    """Return the bus token for a client, or None before the first start."""
    return bus_override(paths) or read_secret(files.token)


def read_operator(files: HubFiles) -> str | None:
    """Return the operator credential, or None before the first start; no variable sets it."""
    return read_secret(files.operator)


def ensure(paths: Paths, files: HubFiles) -> tuple[Credentials, tuple[Path, ...]]:
    """Return both credentials, making the files that are missing, and the files made.

    An existing file is never rewritten (H-42).
    """
    made: list[Path] = []
    bus = bus_override(paths) or _read_or_make(files.token, made)
    return Credentials(bus, _read_or_make(files.operator, made)), tuple(made)


def renew(paths: Paths, files: HubFiles, which: Credential) -> str:
    """Replace one credential and return the new value (`tfx hub token rotate`).

    Raises StateConflict when the environment sets the bus token: a new file would change nothing.
    """
    if which is Credential.BUS and bus_override(paths) is not None:
        raise StateConflict(
            "the bus token comes from the environment, so a new file would change nothing",
            code="token-from-environment",
            hint="change or unset TFX_HUB_TOKEN (TFX_HUB_TOKEN_FILE) and restart the hub",
        )
    value = new_secret()
    path = files.token if which is Credential.BUS else files.operator
    replace_atomically(path, value.encode() + b"\n", PRIVATE_FILE)
    return value


def read_secret(path: Path) -> str | None:
    """Return the secret in a file, or None when there is no such file.

    Raises OperationFailed when the file cannot be read or holds no usable secret.
    """
    if path.exists() and not path.is_file():
        raise OperationFailed(
            f"the credential in {path} cannot be read: it is not a file",
            code="token-unreadable",
            hint=f"ls -l {path}",
        )
    try:
        with path.open("rb") as file:
            data = file.read(_LONGEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OperationFailed(
            f"the credential in {path} cannot be read: {error.strerror}",
            code="token-unreadable",
            hint=f"ls -l {path}",
        ) from error
    return _sound(data.decode("ascii", "replace").strip(), str(path))


def _sound(value: str, where: str) -> str:
    if len(value) >= _SHORTEST and value.isascii() and value.isprintable() and " " not in value:
        return value
    raise OperationFailed(
        f"{where} holds no usable credential: at least {_SHORTEST} printable ASCII characters",
        code="token-unreadable",
        hint="tfx hub token rotate",
    )


def _read_or_make(path: Path, made: list[Path]) -> str:
    found = read_secret(path)
    if found is None:
        with contextlib.suppress(FileExistsError):
            write_new(path, new_secret().encode() + b"\n", PRIVATE_FILE)
            made.append(path)
        found = read_secret(path)
    if found is None:
        raise OperationFailed(f"the credential in {path} vanished", code="token-unreadable")
    return found
