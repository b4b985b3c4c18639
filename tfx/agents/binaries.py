"""Find a program on a PATH and the package its real file belongs to.

Starts nothing, writes nothing and knows no agent; doctor walks the PATH of other shells with it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_MANIFEST_LIMIT_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class PackageFile:
    """A package.json above a program: what it is called and which version it states."""

    path: Path
    name: str
    version: str

    @property
    def is_installed(self) -> bool:
        """True when a package manager put it there, in a `node_modules` directory."""
        return "node_modules" in self.path.parent.parts[:-1]


def on_path(names: Sequence[str], path: str) -> tuple[Path, ...]:
    """Return every executable file of these names, in the order in which a shell finds them.

    The order is that of the names, then of the directories. Relative and empty entries,
    directories and files without an execute bit are passed over (D-81, D-82).
    """
    directories = dict.fromkeys(entry for entry in path.split(":") if entry.startswith("/"))
    hits = (Path(directory, name) for name in names for directory in directories)
    return tuple(hit for hit in hits if _is_program(hit))


def _is_program(path: Path) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113  (Path.is_file raises where a directory may not be entered)


def packages_above(program: Path) -> Iterator[PackageFile]:
    """Yield the package.json files above the real file of a program, the nearest first."""
    for directory in Path(os.path.realpath(program)).parents:
        found = _read(directory / "package.json")
        if found is not None:
            yield found


def _read(path: Path) -> PackageFile | None:
    if not os.path.isfile(path):  # noqa: PTH113  (and never a FIFO, which would block)
        return None
    try:
        with path.open("rb") as file:
            data = file.read(_MANIFEST_LIMIT_BYTES)
        manifest = json.loads(data)
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(manifest, dict):
        return None
    name, version = manifest.get("name"), manifest.get("version")
    if not isinstance(name, str):
        return None
    return PackageFile(path, name, version if isinstance(version, str) else "")
