"""A log that loses its middle when it has grown to its cap, and where to read on in one that did.

Knows no agent. The beginning says what was asked, the end holds the answer; both stay (R-5).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from tfx.core.files import PRIVATE_FILE
from tfx.route.excerpt import boundary

_COPY_BYTES: Final = 256 * 1024
_EDGE_BYTES: Final = 3  # what a cut can leave of a UTF-8 character
_MARK: Final = re.compile(rb"\n\[tfx: +(\d+) bytes are left out here; [^\]\n]*\]\n")


@dataclass(frozen=True, slots=True)
class Cut:
    """Where the mark stands in a file, how long it is, and how many bytes are missing there."""

    at: int
    mark_bytes: int
    left_out: int

    def file_offset(self, seen: int) -> int:
        """Return where to go on behind so many bytes of output: at the mark if they are gone."""
        if seen <= self.at:
            return seen
        return max(self.at, seen - self.left_out + self.mark_bytes)

    def seen(self, file_offset: int) -> int:
        """Return how many bytes of output lie before an offset behind the mark."""
        return file_offset - self.mark_bytes + self.left_out


class CappedLog:
    """One private log file with one writer.

    In the moment of a cut a reader may find pieces of the end twice; never one of another time.
    """

    def __init__(self, path: Path, cap_bytes: int) -> None:
        """Open it empty; raises OSError."""
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(path, flags, PRIVATE_FILE)
        self.path = path
        self.cap_bytes = cap_bytes
        self.size = 0
        self.left_out = 0
        self.failure = ""
        """Why nothing more is written, once writing has failed."""
        self._head = 0

    def write(self, data: bytes) -> None:
        """Append; what does not fit pushes out the middle, what cannot be written is dropped."""
        rest = memoryview(data)
        try:
            while rest and not self.failure:
                if self.size >= self.cap_bytes:
                    self._cut()
                written = os.pwrite(self._fd, rest[: self.cap_bytes - self.size], self.size)
                self.size += written
                rest = rest[written:]
        except OSError as error:
            self.failure = error.strerror or str(error)

    def close(self) -> None:
        """Close the file; nothing is written afterwards."""
        os.close(self._fd)

    def _cut(self) -> None:
        """Keep the first half and half of the rest, the newest; say in between what is gone."""
        behind = self._head + len(self._mark())
        if not self.left_out:
            half = self.cap_bytes // 2
            near = os.pread(self._fd, 2 * _EDGE_BYTES, half - _EDGE_BYTES)
            behind = self._head = half - _EDGE_BYTES + boundary(near, _EDGE_BYTES)
        start = self.size - (self.size - self._head - len(self._mark())) // 2
        near = os.pread(self._fd, _EDGE_BYTES, start)
        start += len(near) - len(near.lstrip(bytes(range(0x80, 0xC0))))
        self.left_out += start - behind
        target = self._head + len(self._mark())
        while data := os.pread(self._fd, _COPY_BYTES, start):
            os.pwrite(self._fd, data, target)
            start += len(data)
            target += len(data)
        os.ftruncate(self._fd, target)
        os.pwrite(self._fd, self._mark(), self._head)
        self.size = target

    def _mark(self) -> bytes:
        return (
            b"\n[tfx: %15d bytes are left out here; a log is kept to %d bytes (route.log_mib)]\n"
            % (self.left_out, self.cap_bytes)
        )


def cut_in(log: IO[bytes], cap_bytes: int) -> Cut | None:
    """Return where a log of this cap was cut, or None for one that is whole."""
    begin = cap_bytes // 2 - _EDGE_BYTES
    log.seek(begin)
    found = _MARK.search(log.read(256))
    if found is None:
        return None
    return Cut(begin + found.start(), len(found[0]), int(found[1]))
