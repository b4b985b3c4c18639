"""Cut long text for people and prompts: by bytes, never through a character.

Knows nothing of what the text is about; what is not UTF-8 is cut at the byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_LONGEST_CHARACTER = 4


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The beginning of a file and the size of the whole, both in bytes."""

    data: bytes
    whole_bytes: int

    @property
    def cut(self) -> bool:
        """True when the file goes on."""
        return len(self.data) < self.whole_bytes


def first_bytes(path: Path, cap_bytes: int) -> Excerpt:
    """Return at most `cap_bytes` of the beginning of a file; raises OSError."""
    with path.open("rb") as file:
        data = file.read(cap_bytes + 1)
        whole = file.seek(0, 2)
    if len(data) <= cap_bytes:
        return Excerpt(data, len(data))
    return Excerpt(data[: boundary(data, cap_bytes)], whole)


def boundary(data: bytes, cap_bytes: int) -> int:
    """Return the largest count up to the cap that does not cut a UTF-8 character."""
    for start in range(cap_bytes, max(cap_bytes - _LONGEST_CHARACTER, -1), -1):
        byte = data[start]
        if byte & 0xC0 == 0x80:  # noqa: PLR2004  (a continuation byte of UTF-8)
            continue
        return start if start == cap_bytes or _length(byte) > cap_bytes - start else cap_bytes
    return cap_bytes


def _length(lead: int) -> int:
    """Return how long the character is that a byte begins."""
    for length, low, high in ((2, 0xC2, 0xDF), (3, 0xE0, 0xEF), (4, 0xF0, 0xF4)):
        if low <= lead <= high:
            return length
    return 1


def last_lines(path: Path, cap_bytes: int) -> bytes:
    """Return the end of a file, whole lines of at most `cap_bytes`; raises OSError."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - cap_bytes))
        data = file.read(cap_bytes)
    if size <= cap_bytes:
        return data
    _, newline, rest = data.partition(b"\n")
    return rest if newline else data
