"""The logs of a run stay below their cap: beginning and end are kept, and it is said (R-5)."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.route.fakes import Bench, fields_of, output_of, wait_until
from tests.support import TFX
from tfx.route.logs import CappedLog, cut_in

MIB = 1024 * 1024
CHATTY = 'echo first; head -c 5000000 /dev/zero | tr "\\0" x; echo; echo "the answer"'
CUT = re.compile(rb"\n\[tfx: +(\d+) bytes are left out here; a log is kept to (\d+) bytes[^\n]*\n")


def capped(bench: Bench, mib: int = 1) -> None:
    bench.install("codex")
    bench.write(".config/tfx/config.toml", f"[route]\nlog_mib = {mib}\n")


def test_r5_a_chatty_agent_runs_on_and_its_answer_is_found_where_it_was_printed(
    bench: Bench,
) -> None:
    capped(bench)
    bench.behave(f"{CHATTY}; echo because >&2")
    data = bench.json("executor", "work")
    assert (data["status"], data["exit_code"]) == ("success", 0)
    log = Path(data["log"]).read_bytes()
    assert MIB // 2 < len(log) <= MIB
    assert data["output_bytes"] == len(log)
    assert log.startswith(b"first\nxxx")
    assert log.endswith(b"xxx\nthe answer\n")
    (cut,) = CUT.finditer(log)
    assert (int(cut[2]), len(log) - len(cut[0]) + int(cut[1])) == (MIB, 5_000_018)
    (notice,) = data["notices"]
    assert notice.startswith(f"the log lacks {int(cut[1])} bytes in its middle: it is kept to")
    assert "route.log_mib" in notice
    assert Path(data["error_log"]).read_bytes() == b"because\n"
    assert os.fsencode(bench.tfx("jobs", "logs", data["job"]).out) == log


def test_r5_each_of_the_two_logs_has_its_own_cap_and_tells_of_itself(bench: Bench) -> None:
    capped(bench)
    bench.behave(f"{{ {CHATTY}; }} >&2; echo fine; exit 7")
    ran = bench.route("executor", "work")
    assert ran.code == 1
    assert fields_of(ran)["notice"].startswith("the error log lacks ")
    assert output_of(ran) == b"fine\n"
    assert "codex:\nthe answer\nerror: " in ran.err


def test_r5_the_cap_of_the_caller_holds_for_a_run_in_the_background_too(bench: Bench) -> None:
    capped(bench)
    bench.behave(CHATTY)
    job = bench.route("executor", "work", "--background").out.strip()
    data = bench.tfx("jobs", "wait", job, "--json").data
    assert data["output_bytes"] <= MIB
    assert "lacks" in data["notices"][0]


def test_r5_who_follows_a_log_that_is_cut_sees_every_byte_once_or_that_it_is_gone(
    bench: Bench,
) -> None:
    capped(bench)
    numbers = "seq -f %015.0f"  # 16 bytes a line
    bench.behave(f"""
        {numbers} 1 50000; touch "$FAKE_DIR/one"; while [ ! -e "$FAKE_DIR/go" ]; do sleep 0.02; done
        {numbers} 50001 90000; echo done
    """)
    job = bench.route("executor", "p", "--background").out.strip()
    with bench.start("jobs", "logs", job, "--follow") as process:
        assert wait_until((bench.notes / "one").exists)
        assert process.stdout is not None
        seen = b""
        while not seen.endswith(b"000000000050000\n"):
            seen += os.read(process.stdout.fileno(), 65_536)
        (bench.notes / "go").touch()
        seen += process.communicate(timeout=60)[0]
    assert seen.endswith(b"done\n")
    lines = [int(line) for line in seen.split(b"\n") if re.fullmatch(rb"\d{15}", line)]
    assert lines[:50_000] == list(range(1, 50_001))
    assert lines == sorted(set(lines))
    assert len(lines) == 90_000 or CUT.search(seen)


def test_r5_what_a_successful_agent_left_running_may_go_on_printing(bench: Bench) -> None:
    capped(bench)
    bench.behave("""
        (while [ ! -e "$FAKE_DIR/go" ]; do sleep 0.02; done
         echo later; head -c 5000000 /dev/zero; touch "$FAKE_DIR/end") &
        echo now
    """)
    data = bench.json("executor", "work")
    assert data["output"] == "now\n"
    (bench.notes / "go").touch()
    assert wait_until((bench.notes / "end").exists)
    assert bench.all_gone()
    log = Path(data["log"])
    assert wait_until(lambda: log.stat().st_size == MIB)
    assert log.read_bytes().startswith(b"now\nlater\n\0")


def test_r5_output_that_cannot_be_written_is_no_success(bench: Bench) -> None:
    bench.install("codex")
    bench.behave('head -c 5000000 /dev/zero; touch "$FAKE_DIR/end"')
    document = json.loads(limited(bench, 100_000))
    assert (document["exit"], document["data"]["status"]) == (1, "failed")
    (issue,) = document["data"]["issues"]
    assert issue["code"] == "no-room"
    assert "File too large" in issue["remedy"]
    assert (bench.notes / "end").exists()  # the agent itself ran on to its end
    assert document["data"]["output_bytes"] == 100_000


def limited(bench: Bench, file_bytes: int) -> bytes:
    """Run a route that can write no file beyond so many bytes, as on a disk that is full."""
    return subprocess.run(
        ["prlimit", f"--fsize={file_bytes}", *TFX, "route", "executor", "work", "--json"],
        env=bench.env,
        cwd=bench.cwd,
        capture_output=True,
        check=False,
        timeout=90,
    ).stdout


@settings(max_examples=60, deadline=None)
@given(
    pieces=st.lists(
        st.text("aé漢\U0001f469\n", min_size=1, max_size=3_000).map(str.encode), max_size=12
    ),
    cap_bytes=st.integers(600, 6_000),
)
def test_r5_a_log_is_its_whole_text_or_its_beginning_a_mark_and_its_end(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], cap_bytes: int
) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    log = CappedLog(path, cap_bytes)
    for piece in pieces:
        log.write(piece)
    log.close()
    whole, kept = b"".join(pieces), path.read_bytes()
    assert len(kept) == log.size <= cap_bytes
    with path.open("rb") as stream:
        cut = cut_in(stream, cap_bytes)
    if len(whole) <= cap_bytes:
        assert (kept, cut, log.left_out) == (whole, None, 0)
        return
    assert cut is not None
    head, tail = kept[: cut.at], kept[cut.at + cut.mark_bytes :]
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert len(head) + cut.left_out + len(tail) == len(whole)
    assert cut.left_out == log.left_out
    assert len(kept) > cap_bytes // 2
    kept.decode()  # no character is cut in two
    assert cut.seen(len(kept)) == len(whole)
    for seen in (0, cut.at, cut.at + cut.left_out, len(whole) - len(tail) // 2, len(whole)):
        rest = kept[cut.file_offset(seen) :]
        assert rest.endswith(whole[max(seen, cut.at + cut.left_out) :])
