"""`manifest.json` of a backup: what it holds, whence, and how far its run came (U-75).

Knows no database; the file is replaced atomically each time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from tfx.core import files
from tfx.core.identity import boot_id, start_token

NAME: Final = "manifest.json"
FORMAT: Final = 1
_MOST_BYTES: Final = 1_000_000


class Stage(StrEnum):
    """How far the run came that made a backup."""

    PENDING = "pending"
    BACKED_UP = "backed-up"
    DONE = "done"


class Reason(StrEnum):
    """Why a backup was made."""

    UPGRADE = "upgrade"
    ADOPT = "adopt"
    PRE_RESTORE = "pre-restore"
    REPLACED = "replaced"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is known of one backup; nothing in it is a secret (U-5)."""

    stage: Stage
    reason: Reason
    made_at_ms: int
    pid: int
    start_token: str
    boot_id: str
    tfx: str
    sqlite: str
    source: str
    file: str
    from_version: int | None
    to_version: int | None
    from_schema_hash: str
    to_schema_hash: str | None
    fold_version: int | None
    journal_mode: str
    page_size: int
    pages: int
    encoding: str
    application_id: int
    user_version: int
    rows: dict[str, int] = field(default_factory=dict)
    size: int | None = None
    sha256: str | None = None
    last_phase: str | None = None
    format: int = FORMAT

    @property
    def maker_lives(self) -> bool:
        """True while the process that made it still runs."""
        if self.boot_id != boot_id():
            return False
        return start_token(self.pid) == self.start_token


def read(directory: Path) -> Manifest | None:
    """Return the manifest of a backup directory, or None for a missing or unreadable one."""
    try:
        data = files.read_plain(directory / NAME, _MOST_BYTES)
        found = msgspec.json.decode(data, type=Manifest)
    except (OSError, msgspec.DecodeError):
        return None
    plain = found.file == Path(found.file).name and found.file not in {"", ".", ".."}
    return found if found.format == FORMAT and plain else None


def write(directory: Path, manifest: Manifest) -> None:
    """Replace the manifest: temporary file, fsync, rename, fsync of the directory."""
    data = msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
    files.replace_atomically(directory / NAME, data)
