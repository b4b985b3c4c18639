"""Change files of the user: links kept, atomically, nothing replaced unseen.

The only door through which the engine changes targets; knows no manifest and no decision.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tfx.core.files import PRIVATE_FILE, digest, fsync_dir
from tfx.plan.actions import State
from tfx.plan.look import read_regular, state_of

READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM, errno.ETXTBSY})
NO_RENAME = READ_ONLY | {errno.EXDEV, errno.EBUSY, errno.ENOTSUP}


class Moved(Exception):
    """The target is no longer what the plan saw; plan this item again (S-46)."""


class ReadOnly(Exception):
    """The target can be changed neither by a rename nor in place (S-52)."""


class Unverified(Exception):
    """After the write the target does not hold what was written (S-74)."""


class Disk:
    """The system calls that change a target; tests derive from it to inject their failures."""

    def rename(self, source: Path, target: Path) -> None:
        """Replace `target` by `source` in one step."""
        source.replace(target)

    def link(self, source: Path, target: Path) -> None:
        """Give `source` the further name `target`; fails when that exists."""
        target.hardlink_to(source)

    def create(self, path: Path) -> int:
        """Create a file that must not exist and return its descriptor."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(path, flags, PRIVATE_FILE)

    def write(self, descriptor: int, data: bytes) -> None:
        """Write all the bytes."""
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]


@dataclass(frozen=True, slots=True)
class Write:
    """One target to be brought from `before` to `data` and `mode`; data None = delete it.

    `shared`: it is the file of somebody else, so a file that may not be written is not replaced
    by a rename either (S-107).
    """

    target: Path
    before: State | None
    data: bytes | None
    mode: int = 0o644
    shared: bool = False

    @property
    def after(self) -> State | None:
        """The state once it is done."""
        return None if self.data is None else State(digest(self.data), self.mode)


@dataclass(frozen=True, slots=True)
class Spare:
    """The two dot names beside a target that one write may use; the journal names them (S-48).

    `fresh` is the new file before it is published. `held` is a second name of the old file until
    it is certain that nobody wrote to it between the last look and the replacement.
    """

    fresh: Path
    held: Path

    @classmethod
    def beside(cls, target: Path, run: str, number: int) -> Spare:
        """Return the names for write `number` of a run."""
        stem = f".tfx-{run}-{number}"
        return cls(target.with_name(f"{stem}.new"), target.with_name(f"{stem}.old"))


class Writer:
    """Carries out one Write at a time.

    `on_in_place` is called before a target is overwritten in place, the one way that a crash can
    tear: the caller makes the old and the new bytes durable elsewhere first (S-51).
    """

    def __init__(self, disk: Disk, on_in_place: Callable[[bytes], None]) -> None:
        self._disk = disk
        self._on_in_place = on_in_place

    def carry_out(self, write: Write, spare: Spare) -> None:
        """Bring the target to its new state and read it again (S-47 … S-52, S-74).

        Raises Moved when it is not as the plan saw it, ReadOnly, Unverified or OSError; in each
        of these cases the target is as somebody else left it and the spare names are gone.
        """
        _expect(write)
        if write.shared and write.before is not None:
            _respect_read_only(write.target, write.before)
        if write.data is None:
            self._delete(write, spare)
            return
        try:
            self._publish(write, write.data, spare)
        finally:
            with contextlib.suppress(OSError):
                spare.fresh.unlink()
        if state_of(write.target) != write.after:
            raise Unverified(f"{write.target} does not hold what was written to it")

    def _delete(self, write: Write, spare: Spare) -> None:
        try:
            self._disk.rename(write.target, spare.held)
        except OSError as error:
            if error.errno in READ_ONLY:
                raise ReadOnly(_why(write.target, error)) from error
            raise
        settle_held(write.target, write.before, write.after, spare.held)
        fsync_dir(write.target.parent)

    def _publish(self, write: Write, data: bytes, spare: Spare) -> None:
        try:
            self._fill(write, data, spare.fresh)
            _expect(write)
            if write.before is None:
                self._name_it(spare.fresh, write.target)
            else:
                self._exchange(write, spare)
        except FileExistsError as error:
            raise Moved(str(write.target)) from error
        except OSError as error:
            if error.errno not in NO_RENAME:
                raise
            self._in_place(write, data, error)
        else:
            fsync_dir(write.target.parent)

    def _exchange(self, write: Write, spare: Spare) -> None:
        with contextlib.suppress(OSError):  # no hard links here: the last look has to do
            self._disk.link(write.target, spare.held)
        try:
            self._disk.rename(spare.fresh, write.target)
        except OSError:
            with contextlib.suppress(OSError):
                spare.held.unlink()
            raise
        settle_held(write.target, write.before, write.after, spare.held)

    def _name_it(self, temporary: Path, target: Path) -> None:
        """Publish a new file; by a hard link, which unlike a rename never replaces a late comer."""
        try:
            self._disk.link(temporary, target)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            if target.is_symlink() or target.exists():
                raise FileExistsError(errno.EEXIST, "appeared meanwhile", str(target)) from None
            self._disk.rename(temporary, target)

    def _fill(self, write: Write, data: bytes, temporary: Path) -> None:
        descriptor = self._disk.create(temporary)
        try:
            self._disk.write(descriptor, data)
            if write.before is not None:
                _take_over(write.target, descriptor)
            os.fchmod(descriptor, write.mode)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _in_place(self, write: Write, data: bytes, cause: OSError) -> None:
        if write.before is None:
            raise ReadOnly(_why(write.target, cause)) from cause
        try:
            descriptor = os.open(write.target, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise ReadOnly(_why(write.target, error)) from error
        try:
            _expect(write)
            old, _ = read_regular(write.target)
            self._on_in_place(data)
            overwrite(descriptor, data, old, self._disk.write)
            with contextlib.suppress(PermissionError):  # not the owner: the mode stays
                os.fchmod(descriptor, write.mode)
        finally:
            os.close(descriptor)


def settle_held(target: Path, before: State | None, after: State | None, held: Path) -> None:
    """Let go of the old file, or put it back when somebody wrote to it at the last moment.

    Raises Moved in that case; `held` is still there when the target was rewritten as well.
    """
    state = state_of(held)
    if state is None:
        return
    if state == before:
        held.unlink()
        return
    now = state_of(target)
    if now is None:
        target.hardlink_to(held)
        held.unlink()
    elif now == after:
        held.replace(target)
    raise Moved(str(target))


def overwrite(
    descriptor: int, data: bytes, old: bytes, write: Callable[[int, bytes], None]
) -> None:
    """Replace the content of an open file; when that fails (disk full), put `old` back."""
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        write(descriptor, data)
        os.ftruncate(descriptor, len(data))
        os.fsync(descriptor)
    except OSError:
        os.lseek(descriptor, 0, os.SEEK_SET)
        write(descriptor, old)
        os.ftruncate(descriptor, len(old))
        os.fsync(descriptor)
        raise


def _respect_read_only(target: Path, before: State) -> None:
    if before.mode is not None and not before.mode & 0o222:
        raise ReadOnly(f"{target} cannot be written: it is read-only (mode {before.mode:o})")
    try:
        os.close(os.open(target, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC))
    except OSError as error:
        if error.errno in READ_ONLY:
            raise ReadOnly(_why(target, error)) from error
        raise Moved(str(target)) from error


def _expect(write: Write) -> None:
    if state_of(write.target) != write.before:
        raise Moved(str(write.target))


def _why(target: Path, error: OSError) -> str:
    return f"{target} cannot be written: {error.strerror or error}"


def _take_over(target: Path, descriptor: int) -> None:
    """Give a new file the owner and the extended attributes of an old one where permitted."""
    with contextlib.suppress(OSError):
        info = target.stat()
        if (info.st_uid, info.st_gid) != (os.geteuid(), os.getegid()):
            os.fchown(descriptor, info.st_uid, info.st_gid)
    if not hasattr(os, "listxattr"):
        return
    with contextlib.suppress(OSError):
        for name in os.listxattr(target):
            with contextlib.suppress(OSError):
                os.setxattr(descriptor, name, os.getxattr(target, name))
