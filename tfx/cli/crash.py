"""Write the log of a bug: where it happened and in which versions, never with which values.

Knows nothing of the features; the log can be pasted into a public report.
"""

from __future__ import annotations

import platform
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from tfx import __version__
from tfx.core.files import PRIVATE_FILE, make_private_dir, write_new
from tfx.core.paths import Paths
from tfx.errors import TfxError

_PACKAGE = Path(__file__).resolve().parent.parent


def write_log(arguments: Sequence[str], error: BaseException) -> str:
    """Write the log to the crash directory and return its path, or say why there is none."""
    text = describe(arguments, error)
    try:
        directory = Paths.resolve().crash_dir
        make_private_dir(directory)
        path = directory / f"{time.strftime('%Y%m%dT%H%M%S')}-{time.time_ns() % 10**9:09d}.txt"
        write_new(path, text.encode(), PRIVATE_FILE)
    except (OSError, TfxError) as problem:
        sys.stderr.write(text)
        return f"(shown above; it could not be written: {type(problem).__name__})"
    return str(path)


def describe(arguments: Sequence[str], error: BaseException) -> str:
    """Return the log: versions, names of the options used, frames and exception types."""
    lines = [
        f"tfx {__version__}, Python {platform.python_version()}, {platform.system()}",
        "command: " + " ".join(_names_only(arguments)),
    ]
    chain: BaseException | None = error
    while chain is not None:
        lines.append(f"{type(chain).__module__}.{type(chain).__qualname__}")
        lines += [
            f"  {_place(frame.filename)}:{frame.lineno} in {frame.name}"
            for frame in traceback.extract_tb(chain.__traceback__)
        ]
        chain = chain.__cause__ or chain.__context__
    return "\n".join(lines) + "\n"


def _names_only(arguments: Sequence[str]) -> list[str]:
    """Keep leading command words and option names; values become `…`."""
    kept: list[str] = []
    for word in arguments:
        if word.startswith("-"):
            kept.append(word.partition("=")[0])
        elif not any(name.startswith("-") for name in kept) and word.isalpha() and len(kept) < 3:  # noqa: PLR2004  (group, command, verb)
            kept.append(word)
        else:
            kept.append("…")
    return kept


def _place(filename: str) -> str:
    try:
        return f"tfx/{Path(filename).resolve().relative_to(_PACKAGE)}"
    except ValueError:
        return Path(filename).name
