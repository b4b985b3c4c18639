"""File layers that fail: at the n-th operation, or by losing what was never synced."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import apsw

ERRORS: dict[str, type[Exception]] = {"disk-full": apsw.FullError, "io": apsw.IOError}
_numbers = itertools.count()


class Disk(apsw.VFS):
    """Counts writes, syncs, truncations and deletions; from the n-th on it fails or is gone.

    With `code` the n-th operation alone fails. Without, the power is lost at it: every later
    operation fails, and `lose` takes back what was not synced.
    """

    def __init__(self, fail_at: int | None = None, code: str | None = "io") -> None:
        self.fail_at = fail_at
        self.code = code
        self.count = 0
        self.files: dict[str, DiskFile] = {}
        self.label = f"disk-{next(_numbers)}"
        super().__init__(self.label, base="")

    @property
    def hit(self) -> bool:
        """True when the fault came."""
        return self.fail_at is not None and self.count >= self.fail_at

    def step(self) -> None:
        self.count += 1
        if self.fail_at is None:
            return
        if self.count == self.fail_at or (self.code is None and self.count > self.fail_at):
            raise ERRORS[self.code or "io"]

    def xOpen(  # noqa: N802
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> DiskFile:
        return DiskFile(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: FBT001, N802
        self.step()
        super().xDelete(filename, syncdir)
        self.files.pop(filename, None)

    def lose(self, seed: int) -> None:
        """Write every file as the disk may have it: what was synced, and some of the rest."""
        chance = random.Random(seed)
        for file in self.files.values():
            file.lose(chance)


class DiskFile(apsw.VFSFile):
    """One file; remembers its content at the last sync and what was done since."""

    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        self._since: list[tuple[int, bytes] | int] = []
        self._path: Path | None = None
        self._synced = b""
        super().__init__("", name, flags)
        text = name.filename() if isinstance(name, apsw.URIFilename) else name
        if text and disk.code is None:
            self._path = Path(text)
            known = disk.files.get(text)
            self._synced = known._synced if known else self._path.read_bytes()
            self._since = known._since if known else []
            disk.files[text] = self

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.step()
        super().xWrite(data, offset)
        self._since.append((offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._disk.step()
        super().xTruncate(newsize)
        self._since.append(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.step()
        super().xSync(flags)
        if self._path is not None:
            self._synced = self._path.read_bytes()
        self._since.clear()

    def xClose(self) -> None:  # noqa: N802
        super().xClose()
        # A backup is synced by its maker when SQLite has closed it.
        if self._path is not None and ".partial" in self._path.name:
            self._disk.files.pop(str(self._path), None)

    def lose(self, chance: random.Random) -> None:
        if self._path is None or not self._path.exists() or not self._since:
            return
        content = bytearray(self._synced)
        for each in self._since:
            if chance.random() < 0.5:
                continue
            if isinstance(each, int):
                del content[each:]
            else:
                offset, data = each
                content.extend(bytes(max(0, offset + len(data) - len(content))))
                content[offset : offset + len(data)] = data
        self._path.write_bytes(bytes(content))
