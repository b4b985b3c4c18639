"""What the route script says at the end: codes, output, what a context file became (K-9, R-7)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.assets.scripted import Bench


def test_k9_the_childs_own_code_is_in_the_result_and_ours_is_one(bench: Bench) -> None:
    bench.install("codex")
    bench.behave("echo half; echo because >&2; exit 7")
    ended = bench.run("executor", "work")
    assert ended.code == 1
    assert (ended.fields["exit_code"], ended.fields["status"]) == ("7", "failed")
    assert ended.output == b"half\n"
    assert ended.stderr.endswith("because\n")


def test_k9_a_crash_is_told_from_a_failure(bench: Bench) -> None:
    bench.install("codex")
    bench.behave("kill -SEGV $$")
    ended = bench.run("executor", "work")
    assert ended.code == 1
    assert (ended.fields["exit_code"], ended.fields["status"]) == ("139", "crashed")
    assert ended.stderr == ""


def test_a_cli_whose_interpreter_is_missing_fails_with_a_hint(bench: Bench) -> None:
    bench.install("codex")
    (bench.bin / "codex").write_text("#!/usr/bin/env no-such-interpreter\n")
    ended = bench.run("executor", "work")
    assert ended.code == 1
    assert "interpreter" in ended.fields["issue"]
    assert "no-such-interpreter" in ended.stderr


def test_only_the_end_of_a_long_error_output_is_repeated(bench: Bench) -> None:
    bench.install("codex")
    bench.behave('i=0; while [ $i -lt 2000 ]; do echo "line $i" >&2; i=$((i+1)); done; exit 1')
    ended = bench.run("executor", "work")
    assert len(ended.stderr) < 9000
    assert ended.stderr.endswith("line 1999\n")
    assert ended.stderr.splitlines()[1].startswith("line ")
    (log,) = bench.logs()
    assert len((log / "stderr").read_text().splitlines()) == 2000


@pytest.mark.parametrize(
    ("before", "char"), [(51198, "€"), (51199, "é"), (51197, "\U0001f600"), (51200, "é")]
)
def test_output_is_capped_on_a_character_boundary_and_kept_whole(
    bench: Bench, before: int, char: str
) -> None:
    bench.install("codex")
    whole = ("x" * before + char * 20).encode()
    (bench.notes / "long").write_bytes(whole)
    bench.behave('cat "$FAKE_DIR/long"')
    ended = bench.run("executor", "work")
    assert ended.code == 0
    assert ended.output == b"x" * before
    assert ended.fields["notice"] == f"output has {len(whole)} bytes, the first {before} are below"
    assert (Path(ended.fields["log"]) / "stdout").read_bytes() == whole


def test_output_that_is_no_text_is_cut_at_the_cap(bench: Bench) -> None:
    bench.install("codex")
    (bench.notes / "long").write_bytes(b"\x80" * 60_000)
    bench.behave('cat "$FAKE_DIR/long"')
    assert bench.run("executor", "work").output == b"\x80" * 51_200


def test_r7_a_context_file_follows_the_prompt_in_a_marked_block(bench: Bench) -> None:
    bench.install("codex")
    (bench.cwd / "-notes.md").write_bytes(b"# Notes\n\xff$(x)\n")
    ended = bench.run("executor", "prompt", "", "", "-notes.md")
    assert ended.code == 0
    assert bench.stdin("codex") == (
        b"prompt\n\n--- context: -notes.md ---\n# Notes\n\xff$(x)\n\n--- end of context ---\n"
    )
    assert "notice" not in ended.fields


def test_r7_a_long_context_file_is_capped_on_a_character_boundary_with_a_notice(
    bench: Bench,
) -> None:
    bench.install("codex")
    text = "x" * 32_767 + "é" * 100
    (bench.cwd / "c").write_text(text)
    ended = bench.run("executor", "prompt", "", "", "c")
    assert ended.fields["notice"] == "context file has 32967 bytes, the first 32767 were passed on"
    given = bench.stdin("codex").decode()
    assert given.endswith("x\n--- end of context ---\n")
    assert given.count("x") == 32_767 + "context".count("x") * 2
    assert "first 32767 of 32967 bytes" in given


def test_r7_an_empty_context_file_is_no_error(bench: Bench) -> None:
    bench.install("codex")
    (bench.cwd / "c").touch()
    assert bench.run("executor", "prompt", "", "", "c").code == 0


@pytest.mark.parametrize("kind", ["missing", "directory", "fifo"])
def test_r7_what_is_not_a_readable_file_is_a_usage_error(bench: Bench, kind: str) -> None:
    bench.install("codex")
    path = bench.cwd / "c"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    ended = bench.run("executor", "prompt", "", "", str(path))
    assert ended.code == 2
    assert str(path) in ended.stderr
    assert bench.ran() == set()


def test_r4_nul_in_a_context_file_is_refused(bench: Bench) -> None:
    bench.install("codex")
    (bench.cwd / "c").write_bytes(b"a\0b")
    assert bench.run("executor", "prompt", "", "", "c").code == 5
    assert bench.ran() == set()
