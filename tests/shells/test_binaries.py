from __future__ import annotations

import itertools
import struct
import sys
from pathlib import Path

import pytest

from tfx.shells.binaries import (
    Fault,
    Problem,
    host_machine,
    inspect,
    read_header,
    runnable,
    unreachable,
)


def nowhere(_: str) -> Path | None:
    return None


def everywhere(program: str) -> Path | None:
    return Path("/usr/bin", program)


def made(path: Path, content: bytes | str, mode: int = 0o755) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)
    return path


def elf(machine: int, *, wide: bool = True, little: bool = True, loader: str = "") -> bytes:
    order = "<" if little else ">"
    start = b"\x7fELF" + bytes([2 if wide else 1, 1 if little else 2, 1]) + bytes(9)
    text = loader.encode() + b"\0"
    if wide:
        head = struct.pack(f"{order}HHIQQQIHHHHHH", 2, machine, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
        row = struct.pack(f"{order}IIQQQQQQ", 3, 4, 120, 0, 0, len(text), len(text), 1)
    else:
        head = struct.pack(f"{order}HHIIIIIHHHHHH", 2, machine, 1, 0, 52, 0, 0, 52, 32, 1, 0, 0, 0)
        row = struct.pack(f"{order}IIIIIIII", 3, 84, 0, 0, len(text), len(text), 4, 1)
    return start + head + row + text


def test_this_interpreter_can_be_started() -> None:
    real = Path(sys.executable).resolve()
    assert runnable(real)
    assert inspect(real, search=nowhere, host=host_machine()) is None
    header = read_header(real)
    assert header is not None
    assert header.loader is None or Path(header.loader).exists()


@pytest.mark.parametrize(
    ("machine", "host", "about"),
    [
        (183, "x86_64", "aarch64 on x86_64"),
        (62, "aarch64", "x86_64 on aarch64"),
        (183, "armv7l", "aarch64 on armv7l"),
        (40, "x86_64", "arm on x86_64"),
        (9999, "x86_64", "machine 9999 on x86_64"),
        (62, "x86_64", None),
        (3, "x86_64", None),
        (183, "arm64", None),
        (40, "aarch64", None),
        (62, "a-machine-of-tomorrow", None),
    ],
)
def test_d98_d159_the_architecture_is_read_from_the_header(
    tmp_path: Path, machine: int, host: str, about: str | None
) -> None:
    path = made(tmp_path / "aarch64-tool", elf(machine))
    problem = inspect(path, search=nowhere, host=host)
    assert problem == (Problem(Fault.WRONG_ARCHITECTURE, about) if about else None)


def test_d81_a_loader_that_is_not_there_is_told(tmp_path: Path) -> None:
    for wide, little in itertools.product((True, False), repeat=2):
        loader = "/lib/ld-musl-none.so.1"
        path = made(tmp_path / "x", elf(62, wide=wide, little=little, loader=loader))
        problem = inspect(path, search=nowhere, host="x86_64")
        assert problem == Problem(Fault.NO_LOADER, loader)


def test_a_cut_or_lying_header_is_no_crash(tmp_path: Path) -> None:
    whole = elf(62, loader="/bin/sh")
    for length in range(len(whole)):
        problem = inspect(made(tmp_path / "x", whole[:length]), search=nowhere, host="x86_64")
        assert problem is None or problem.fault in {Fault.EMPTY, Fault.NO_HEADER, Fault.NO_LOADER}
    lying = whole[:32] + struct.pack("<Q", 2**63) + whole[40:]
    assert inspect(made(tmp_path / "x", lying), search=nowhere, host="x86_64") is None


@pytest.mark.parametrize(
    ("first", "about"),
    [
        ("#!/bin/sh", None),
        ("#! /bin/sh -e", None),
        ("#!/no/such/node", "/no/such/node"),
        ("#!/bin/sh\r", "/bin/sh\r"),
        ("#!", "an empty #! line"),
        ("#!node", "node"),
    ],
)
def test_d81_the_interpreter_of_a_script_exists(
    tmp_path: Path, first: str, about: str | None
) -> None:
    path = made(tmp_path / "x", f"{first}\necho\n")
    problem = inspect(path, search=nowhere, host="x86_64")
    assert problem == (Problem(Fault.NO_INTERPRETER, about) if about else None)


@pytest.mark.parametrize(
    ("first", "program"),
    [
        ("#!/usr/bin/env node", "node"),
        ("#!/usr/bin/env -S node --flag", "node"),
        ("#!/usr/bin/env -Snode", "node"),
        ("#!/usr/bin/env -S A=1 node", "node"),
        ("#!/usr/bin/env node\r", "node\r"),
    ],
)
def test_d81_what_env_starts_must_be_on_that_path(tmp_path: Path, first: str, program: str) -> None:
    path = made(tmp_path / "x", f"{first}\n")
    assert inspect(path, search=everywhere, host="x86_64") is None
    assert inspect(path, search=nowhere, host="x86_64") == Problem(Fault.NO_INTERPRETER, program)


def test_d81_bytes_that_no_kernel_starts_are_told(tmp_path: Path) -> None:
    assert inspect(made(tmp_path / "a", ""), search=nowhere, host="x86_64") == Problem(
        Fault.EMPTY, "no bytes"
    )
    problem = inspect(made(tmp_path / "b", "echo hi\n"), search=nowhere, host="x86_64")
    assert problem is not None
    assert problem.fault is Fault.NO_HEADER


def test_d81_what_cannot_be_run_says_why(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to("gone")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "directory").mkdir()
    made(tmp_path / "plain", "#!/bin/sh\n", 0o644)
    faults = {
        name: problem.fault
        for name in ("dangling", "loop", "directory", "plain")
        if (problem := unreachable(tmp_path / name))
    }
    assert faults == {
        "dangling": Fault.DANGLING,
        "loop": Fault.LOOP,
        "directory": Fault.NOT_A_FILE,
        "plain": Fault.NOT_EXECUTABLE,
    }
    assert not any(runnable(tmp_path / name) for name in faults)
    assert unreachable(made(tmp_path / "good", "#!/bin/sh\n")) is None
