"""What was once asked of a program, kept until its file changes: its version and its help.

Knows no CLI by name; a cache that cannot be read or written only costs time.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path

from tfx.core.files import digest, make_private_dir, replace_atomically
from tfx.core.paths import Paths

_FORMAT = 1
_MOST_BYTES = 512 * 1024


def remembered(paths: Paths, program: Path, question: str, ask: Callable[[], str]) -> str:
    """Return the answer of a program to a question, asking only when its file is a new one."""
    real = Path(os.path.realpath(program))
    try:
        status = real.stat()
    except OSError:
        return ask()
    seen = [_FORMAT, str(real), status.st_size, status.st_mtime_ns, status.st_ino]
    name = digest(os.fsencode(f"{real}\0{question}"))[:24]
    file = paths.cache_dir / "route" / f"{name}.json"
    known = _read(file)
    if known is not None and known.get("of") == seen and isinstance(known.get("answer"), str):
        return str(known["answer"])
    answer = ask()
    with contextlib.suppress(OSError):
        make_private_dir(file.parent)
        replace_atomically(file, json.dumps({"of": seen, "answer": answer}).encode())
    return answer


def _read(file: Path) -> dict[str, object] | None:
    try:
        with file.open("rb") as stream:
            loaded = json.loads(stream.read(_MOST_BYTES))
    except (OSError, ValueError):
        return None
    return loaded if isinstance(loaded, dict) else None
