"""Can a file be started on this machine: permission, `#!` line, ELF header.

Judges one file by its bytes, never by its name; which PATH led to it is the caller's knowledge.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tfx.core.files import read_plain


class Fault(StrEnum):
    """Why a file that a name led to cannot be started. NO_HEADER: only a shell can start it."""

    DANGLING = "dangling-link"
    LOOP = "link-loop"
    NOT_A_FILE = "not-a-file"
    NOT_EXECUTABLE = "not-executable"
    EMPTY = "empty"
    NO_HEADER = "no-header"
    NO_INTERPRETER = "no-interpreter"
    NO_LOADER = "no-loader"
    WRONG_ARCHITECTURE = "wrong-architecture"
    BROKEN_SHIM = "broken-shim"


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault and what it is about: the missing interpreter, the foreign architecture."""

    fault: Fault
    about: str


@dataclass(frozen=True, slots=True)
class Header:
    """What the first bytes say: the interpreter a script asks for, or a binary's machine."""

    interpreter: str | None = None
    machine: str | None = None
    loader: str | None = None
    text: bytes = b""


_READ = 8192
_MACHINES = {
    3: "i386",
    8: "mips",
    20: "ppc",
    21: "ppc64",
    22: "s390x",
    40: "arm",
    62: "x86_64",
    183: "aarch64",
    243: "riscv",
    258: "loongarch",
}
# What a kernel runs, by `uname -m`; a 32-bit program then still needs its loader.
_RUNS = {
    "x86_64": {"x86_64", "i386"},
    "amd64": {"x86_64", "i386"},
    "i386": {"i386"},
    "i686": {"i386"},
    "aarch64": {"aarch64", "arm"},
    "arm64": {"aarch64", "arm"},
    "armv6l": {"arm"},
    "armv7l": {"arm"},
    "armv8l": {"arm"},
    "ppc64le": {"ppc64"},
    "ppc64": {"ppc64", "ppc"},
    "s390x": {"s390x"},
    "riscv64": {"riscv"},
    "loongarch64": {"loongarch"},
}
_PT_INTERP = 3
_HEADER_64 = 64
_HEADER_32 = 52


def host_machine() -> str:
    """Return what `uname -m` says."""
    return os.uname().machine


def real_path(path: Path) -> Path:
    """Return the file at the end of all links; a link loop ends where it began."""
    return Path(os.path.realpath(path))


def runnable(path: Path) -> bool:
    """Say whether a shell that walks PATH would stop at this file: regular and executable."""
    try:
        return stat.S_ISREG(path.stat().st_mode) and os.access(path, os.X_OK)
    except OSError:
        return False


def unreachable(path: Path) -> Problem | None:
    """Say why a directory entry cannot be run, before its content is looked at."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return Problem(Fault.DANGLING, str(real_path(path)))
    except OSError as error:
        fault = Fault.LOOP if error.errno == errno.ELOOP else Fault.NOT_EXECUTABLE
        return Problem(fault, error.strerror or str(error))
    if not stat.S_ISREG(mode):
        return Problem(Fault.NOT_A_FILE, "a directory" if stat.S_ISDIR(mode) else "a special file")
    if os.access(path, os.X_OK):
        return None
    why = "its file system is mounted noexec, or it is for another user"
    return Problem(Fault.NOT_EXECUTABLE, why if mode & 0o111 else f"mode {stat.S_IMODE(mode):04o}")


def inspect(path: Path, *, search: Callable[[str], Path | None], host: str) -> Problem | None:
    """Say why an executable file would fail to start, as far as its first bytes tell.

    `search` finds a program on the PATH in question: a script that starts with
    `#!/usr/bin/env node` runs only where that PATH has node. `host` is a `uname -m` value.
    """
    header = read_header(path)
    if header is None:
        return None  # not readable for us: nothing can be said
    if not header.text:
        return Problem(Fault.EMPTY, "no bytes")
    if header.interpreter is not None:
        return _interpreter_problem(header.interpreter, header.text, search)
    if header.machine is None:
        return Problem(Fault.NO_HEADER, "neither a #! line nor an ELF header")
    return _binary_problem(header.machine, header.loader, host)


def _binary_problem(machine: str, loader: str | None, host: str) -> Problem | None:
    if machine not in _RUNS.get(host, {machine}):
        return Problem(Fault.WRONG_ARCHITECTURE, f"{machine} on {host}")
    if loader and not Path(loader).exists():
        return Problem(Fault.NO_LOADER, loader)
    return None


def read_header(path: Path) -> Header | None:
    """Read the first bytes of a file, or None when it is not readable."""
    try:
        head = read_plain(path, _READ)
    except OSError:
        return None
    if head.startswith(b"#!"):
        return Header(interpreter=next(iter(_shebang(head)), ""), text=head)
    if head.startswith(b"\x7fELF") and len(head) >= _HEADER_32:
        return _elf(head)
    return Header(text=head)


def _elf(head: bytes) -> Header:
    order = "<" if head[5] == 1 else ">"
    wide = head[4] == 2  # noqa: PLR2004  (ELFCLASS64)
    number = struct.unpack_from(f"{order}H", head, 18)[0]
    machine = _MACHINES.get(number, f"machine {number}")
    try:
        loader = _loader(head, order, wide=wide)
    except (struct.error, OverflowError):  # a header that is cut short or lies
        loader = None
    return Header(machine=machine, loader=loader, text=head)


def _loader(head: bytes, order: str, *, wide: bool) -> str | None:
    if wide:
        table = struct.unpack_from(f"{order}Q", head, 32)[0]
        size, count = struct.unpack_from(f"{order}HH", head, 54)
    else:
        table = struct.unpack_from(f"{order}I", head, 28)[0]
        size, count = struct.unpack_from(f"{order}HH", head, 42)
    for index in range(count):
        at = table + index * size
        if struct.unpack_from(f"{order}I", head, at)[0] != _PT_INTERP:
            continue
        if wide:
            start, length = struct.unpack_from(f"{order}Q16xQ", head, at + 8)
        else:
            start, length = struct.unpack_from(f"{order}I8xI", head, at + 4)
        return os.fsdecode(head[start : start + length].rstrip(b"\0")) or None
    return None


def _interpreter_problem(
    interpreter: str, text: bytes, search: Callable[[str], Path | None]
) -> Problem | None:
    program = Path(interpreter)
    if not program.is_absolute() or not runnable(program):
        return Problem(Fault.NO_INTERPRETER, interpreter or "an empty #! line")
    if program.name != "env":
        return None
    wanted = env_program(text)
    if wanted and search(wanted) is None:
        return Problem(Fault.NO_INTERPRETER, wanted)
    return None


def _shebang(text: bytes) -> list[str]:
    """Split as the kernel does: a carriage return at the end belongs to the last word."""
    line = os.fsdecode(text[2:].split(b"\n", 1)[0])
    return [word for word in re.split("[ \t]+", line) if word]


def env_program(text: bytes) -> str | None:
    """Return the program that a `#!/usr/bin/env` line starts."""
    for word in _shebang(text)[1:]:
        if word.startswith("-S") and len(word) > len("-S"):
            return word.removeprefix("-S")
        if not word.startswith("-") and "=" not in word:
            return word
    return None
