"""One place of a bundled file: what is wanted there, what is recorded, what lies there.

Decides nothing; file_steps.py asks the decision table.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tfx.core.files import digest
from tfx.plan.actions import Reason, State, WantedFile
from tfx.plan.look import Found, Obstacle, look
from tfx.plan.records import FileRecord


@dataclass(frozen=True, slots=True)
class FileItem:
    """One place below a resolved root: what is wanted there and what is recorded."""

    root: Path
    path: str
    wanted: WantedFile | None
    record: FileRecord | None
    foreign_folder: bool = False

    @property
    def place(self) -> Path:
        """The file as wanted, links in its root resolved."""
        return self.root / self.path

    @property
    def new(self) -> State | None:
        """N of the decision table."""
        return None if self.wanted is None else State(digest(self.wanted.data), self.wanted.mode)

    @property
    def asset(self) -> str:
        """The bundled source."""
        if self.wanted is not None:
            return self.wanted.asset
        return "" if self.record is None else self.record.asset


def look_at(item: FileItem) -> tuple[Found | None, Reason | None]:
    """Return what lies at the place, and what forbids to replace it (S-32, S-53).

    Raises Obstacle when no file can be read or written there.
    """
    _check_inside(item)
    for parent in reversed(PurePosixPath(item.path).parents[:-1]):
        if os.path.islink(item.root / parent):  # noqa: PTH114  (Path.is_symlink raises where a directory may not be entered; `look` says it then)
            return None, Reason.LINK
    found = look(item.place)
    if found.linked and not found.target.is_relative_to(item.root):
        raise Obstacle(
            Reason.OUTSIDE, f"{item.place} is a link to {found.target}, outside {item.root}"
        )
    written_through = item.record.target if item.record else None
    if item.wanted is None and found.linked and written_through != str(found.target):
        return found, Reason.LINK
    if item.foreign_folder and found.state is None:
        return found, Reason.FOREIGN
    return found, None


def _check_inside(item: FileItem) -> None:
    parts = item.path.split("/")
    if any(part in {"", ".", ".."} for part in parts) or "\0" in item.path:
        raise Obstacle(Reason.OUTSIDE, f"{item.path!r} is not a plain path inside {item.root}")
