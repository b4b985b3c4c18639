"""Put the prompt of a run into a private file: the text, the context, the profile's advice.

The text stays as it came, byte for byte; what is added stands below it (R-4, R-7).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tfx.core.files import PRIVATE_FILE
from tfx.errors import InvalidRequest, RefusedText
from tfx.route.excerpt import first_bytes

CONTEXT_CAP_BYTES = 32 * 1024
_CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Text:
    """A prompt: bytes at hand, or a stream that is read once."""

    data: bytes = b""
    stream: IO[bytes] | None = None

    def chunks(self) -> Iterator[bytes]:
        """Yield it piece by piece."""
        if self.stream is None:
            yield self.data
            return
        while chunk := self.stream.read(_CHUNK_BYTES):
            yield chunk


def require_context(path: Path) -> None:
    """Raise InvalidRequest unless a context file is a regular file that can be read."""
    try:
        kind = path.stat().st_mode
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    if not stat.S_ISREG(kind):
        raise _unusable(path, "it is not a regular file")
    if not os.access(path, os.R_OK):
        raise _unusable(path, "it is not readable")


def write_prompt(
    file: Path, text: Text, context: Path | None, advice: Sequence[str]
) -> tuple[str, ...]:
    """Write the file and return what the result should mention.

    Raises InvalidRequest for an empty prompt, RefusedText for a NUL byte, OSError.
    """
    notices: tuple[str, ...] = ()
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, PRIVATE_FILE)
    with os.fdopen(descriptor, "wb") as out:
        size = 0
        for chunk in text.chunks():
            _require_text(chunk, "the prompt")
            size += out.write(chunk)
        if not size:
            raise InvalidRequest("the prompt is empty", code="empty-prompt")
        if context is not None:
            block, notices = _context_block(context)
            out.write(block)
        if advice:
            out.write(b"\n\n--- advice ---\n" + "\n".join(advice).encode() + b"\n")
    return notices


def _context_block(path: Path) -> tuple[bytes, tuple[str, ...]]:
    try:
        found = first_bytes(path, CONTEXT_CAP_BYTES)
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    _require_text(found.data, "the context file")
    label = _one_line(path)
    notices: tuple[str, ...] = ()
    if found.cut:
        kept = len(found.data)
        label += f", the first {kept} of {found.whole_bytes} bytes"
        notices = (f"context file has {found.whole_bytes} bytes, the first {kept} were passed on",)
    head = f"\n\n--- context: {label} ---\n".encode("utf-8", "surrogateescape")
    return head + found.data + b"\n--- end of context ---\n", notices


def _require_text(data: bytes, what: str) -> None:
    if b"\0" in data:
        raise RefusedText(f"{what} has a NUL byte", code="nul-byte")


def _unusable(path: Path, reason: str) -> InvalidRequest:
    return InvalidRequest(
        f"the context file {_one_line(path)} cannot be used: {reason}",
        code="bad-context",
        details={"path": str(path)},
    )


def _one_line(path: Path) -> str:
    return "".join(ch if ch >= " " and ch != "\x7f" else "?" for ch in str(path))
