from __future__ import annotations

import os
from pathlib import Path

from tests.agents.fakes import npm_package, script
from tfx.agents.binaries import on_path, packages_above


def test_d81_programs_are_found_in_the_order_of_path(tmp_path: Path) -> None:
    first, second = (script(tmp_path / d, "claude", "exit 0") for d in ("a", "b"))
    path = f"{tmp_path}/a:{tmp_path}/b:{tmp_path}/a"
    assert on_path(["claude"], path) == (first, second)


def test_d81_the_first_name_comes_before_the_first_directory(tmp_path: Path) -> None:
    old = script(tmp_path / "a", "cursor-agent", "exit 0")
    new = script(tmp_path / "b", "agent", "exit 0")
    assert on_path(["agent", "cursor-agent"], f"{tmp_path}/a:{tmp_path}/b") == (new, old)


def test_d82_relative_and_empty_entries_are_passed_over(tmp_path: Path) -> None:
    script(tmp_path / "a", "claude", "exit 0")
    relative = os.path.relpath(tmp_path / "a")
    assert on_path(["claude"], f"{relative}::.:~/bin") == ()


def test_d81_what_is_not_an_executable_file_is_no_program(tmp_path: Path) -> None:
    script(tmp_path / "plain", "claude", "exit 0", mode=0o644)
    (tmp_path / "directory" / "claude").mkdir(parents=True)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "claude").symlink_to("nowhere")
    (tmp_path / "fifo").mkdir()
    os.mkfifo(tmp_path / "fifo" / "claude", 0o755)
    (tmp_path / "file").touch()
    good = script(tmp_path / "good", "claude", "exit 0")
    places = ("plain", "directory", "broken", "fifo", "file", "missing", "good")
    assert on_path(["claude"], ":".join(str(tmp_path / place) for place in places)) == (good,)


def test_s14_the_packages_above_the_real_file_are_found_nearest_first(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"name": "outer"}', "utf-8")
    link = npm_package(tmp_path / "prefix", "@scope/inner", "1.2.3", "inner")
    above = list(packages_above(link))
    assert [(p.name, p.version, p.is_installed) for p in above] == [
        ("@scope/inner", "1.2.3", True),
        ("outer", "", False),
    ]


def test_s14_a_package_json_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    program = script(tmp_path / "a" / "b" / "c" / "d" / "e", "claude", "exit 0")
    os.mkfifo(tmp_path / "a/b/c/d/package.json")
    (tmp_path / "a/b/c/package.json").write_bytes(b'{"name": "cut off')
    (tmp_path / "a/b/package.json").write_bytes(b'{"name": 7}')
    (tmp_path / "a/package.json").write_bytes(b"[]")
    (tmp_path / "package.json").write_bytes(b"[" * 100_000)
    assert list(packages_above(program)) == []
