"""The directories outside the usual one that backups were made in, so that they are found again.

A record for looking only: no backup depends on it, and a record that is lost costs nothing else.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tfx.core import files

if TYPE_CHECKING:
    from tfx.core.paths import Paths

_MOST: Final = 50
_MOST_BYTES: Final = 1 << 20


def remember(paths: Paths, backup: object) -> None:
    """Note the store of a backup directory (a path as text, or nothing), if it is another one."""
    if not isinstance(backup, str) or (store := Path(backup).parent) == paths.backup_dir:
        return
    known = [each for each in _known(paths) if each != str(store)]
    text = json.dumps([str(store), *known][:_MOST], indent=1) + "\n"
    with contextlib.suppress(OSError):  # the backup is made; a receipt names it too
        files.make_store(paths.state_dir)
        files.replace_atomically(paths.backup_stores, text.encode())


def others(paths: Paths) -> tuple[Path, ...]:
    """Return the noted stores that are still there, the last one used first."""
    return tuple(Path(each) for each in _known(paths) if files.is_dir(Path(each)))


def _known(paths: Paths) -> list[str]:
    try:
        found = json.loads(files.read_plain(paths.backup_stores, _MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return []
    names = found if isinstance(found, list) else []
    return [each for each in names if isinstance(each, str) and each.startswith("/")]
