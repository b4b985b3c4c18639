"""How a run is carried out: the prompt's way, the end of its processes, memory, neighbours."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clock import ASLEEP, JUMP_S
from tests.prompts import PROMPTS
from tests.route.fakes import HELPS, Bench, fields_of, output_of, wait_until
from tests.support import TFX


@pytest.mark.parametrize("name", PROMPTS)
def test_r4_a_prompt_arrives_byte_exact_as_an_argument_and_on_stdin(
    bench: Bench, name: str
) -> None:
    bench.install("codex")
    for stdin, arguments in ((b"", ["--", PROMPTS[name]]), (PROMPTS[name], ["-"])):
        ran = bench.route("executor", *arguments, stdin=stdin)
        assert ran.code == 0, ran.err
        assert bench.stdin("codex") == PROMPTS[name]
    assert list(bench.cwd.iterdir()) == []


@pytest.mark.parametrize("cli", HELPS)
def test_r4_every_cli_gets_the_prompt_by_stdin_and_not_in_its_arguments(
    bench: Bench, cli: str
) -> None:
    prompt = b"".join(PROMPTS.values())
    bench.install(cli)
    assert bench.route("executor", stdin=prompt).code == 0
    assert bench.stdin(cli) == prompt
    given = "\0".join(bench.argv(cli)).encode()
    assert not any(part in given for part in prompt.split() if len(part) > 3)


def test_r4_a_megabyte_on_standard_input_arrives_byte_exact(bench: Bench) -> None:
    bench.install("codex")
    prompt = ("'\"$(x)\\ \U0001f600\n" * 90_000).encode()
    assert len(prompt) > 1 << 20
    assert bench.route("executor", "-", stdin=prompt).code == 0
    assert bench.stdin("codex") == prompt


def test_r4_nul_is_refused_before_anything_runs(bench: Bench) -> None:
    bench.install("codex")
    ran = bench.route("executor", "-", "--json", stdin=b"x" * 100_000 + b"\0after")
    assert ran.code == 5
    assert ran.document["status"] == "refused"
    assert ran.document["problems"][0]["code"] == "nul-byte"
    assert bench.ran() == set()
    assert list(bench.jobs.glob("2*")) == []


def test_r4_nul_in_a_context_file_is_refused(bench: Bench) -> None:
    bench.install("codex")
    (bench.cwd / "c").write_bytes(b"a\0b")
    assert bench.route("executor", "p", "--context", "c").code == 5
    assert bench.ran() == set()


def test_r4_the_prompt_is_in_no_record_and_in_no_process_list(bench: Bench) -> None:
    bench.install("codex")
    secret = f"secret of {bench.root}"  # so that no other worker's test has the same
    bench.behave('ps -A -o args= >"$FAKE_DIR/ps"; ls -l "$HOME/.local/state/tfx/jobs/"2*/ '
                 '>"$FAKE_DIR/files"')  # fmt: skip
    assert bench.route("executor", "-", stdin=secret.encode()).code == 0
    assert secret not in (bench.notes / "ps").read_text()
    modes = {line.split()[0] for line in (bench.notes / "files").read_text().splitlines()[1:]}
    assert modes == {"-rw-------"}
    kept = b"".join(path.read_bytes() for path in bench.home.rglob("*") if path.is_file())
    assert secret.encode() not in kept
    (job,) = bench.jobs.glob("2*")
    assert stat.S_IMODE(job.stat().st_mode) == 0o700
    assert {path.name for path in job.iterdir()} == {"job.json", "stdout", "stderr"}


@pytest.mark.parametrize("arguments", [["executor", ""], ["executor", "-"], ["executor"]])
def test_r4_an_empty_prompt_is_a_usage_error(bench: Bench, arguments: list[str]) -> None:
    bench.install("codex")
    ran = bench.route(*arguments)
    assert ran.code == 2
    assert "empty" in ran.err
    assert bench.ran() == set()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["executor", "p", "--timeout", "0"], "1 to 86400"),
        (["executor", "p", "--timeout", "86401"], "1 to 86400"),
        (["executor", "p", "--timeout", "soon"], "--timeout"),
        (["executor", "p", "--profile", "wild"], "auto, implement"),
        (["executor", "p", "--cwd", "no-such"], "--cwd"),
        (["executor", "p", "--context", "no-such"], "no-such"),
        (["executor", "p", "--context", "."], "not a regular file"),
    ],
)
def test_k9_wrong_usage_exits_two_and_runs_nothing(
    bench: Bench, arguments: list[str], named: str
) -> None:
    bench.install("codex")
    ran = bench.route(*arguments)
    assert ran.code == 2
    assert named in ran.err
    assert bench.ran() == set()
    assert list(bench.jobs.glob("2*")) == []


def test_r5_the_time_out_ends_the_group_and_what_left_it(bench: Bench) -> None:
    """Even a daemon that forked twice into a session of its own and ignores TERM."""
    bench.install("codex")
    bench.behave("""
        sleep 300 & sh -c 'trap "" TERM; while :; do sleep 1; done' &
        setsid sleep 300 &
        (setsid sh -c 'trap "" TERM; echo up >"$FAKE_DIR/daemon"; while :; do sleep 1; done' &) &
        while [ ! -e "$FAKE_DIR/daemon" ]; do sleep 0.05; done
        echo partial; trap "" TERM; : >"$FAKE_DIR/late"; while :; do sleep 1; done
    """)
    bench.late_when_told(goes_on=True)
    ran = bench.route("executor", "work", "--timeout", "2")
    assert bench.processes() == []
    assert ran.code == 1
    fields = fields_of(ran)
    assert (fields["status"], fields["exit_code"]) == ("timeout", "137")
    assert (
        fields["issue"] == "timeout: ended after the time-out of 2 s; --timeout S gives it longer"
    )
    assert output_of(ran) == b"partial\n"


def test_r5_an_agent_that_obeys_term_ends_at_once_with_its_own_code(bench: Bench) -> None:
    bench.install("codex")
    bench.behave(f'trap "exit 3" TERM; sleep 300 & {ASLEEP}; : >"$FAKE_DIR/late"; wait')
    bench.late_when_told()
    data = bench.json("executor", "work", "--timeout", "1")
    assert bench.processes() == []
    assert (data["status"], data["exit_code"]) == ("timeout", 3)
    assert data["seconds"] == JUMP_S  # and not a moment of the grace, for which time has to pass


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_r5_an_interrupt_ends_the_whole_group(bench: Bench, sent: signal.Signals) -> None:
    bench.install("codex")
    bench.behave('sleep 300 & setsid sleep 300 & : >"$FAKE_DIR/up"; wait')
    with bench.start("route", "executor", "work") as process:
        assert wait_until((bench.notes / "up").exists)
        process.send_signal(sent)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"interrupted" in err
    assert b"Traceback" not in err
    assert bench.processes() == []
    (job,) = bench.tfx("jobs", "list", "--json").data["jobs"]
    assert job["status"] == "cancelled"


@pytest.mark.parametrize(
    "stays", ["sleep 300 & wait", "trap '' TERM; while :; do sleep 1; done"], ids=["obeys", "stays"]
)
def test_r5_an_agent_does_not_outlive_a_killed_run(bench: Bench, stays: str) -> None:
    bench.install("codex")
    bench.behave(f': >"$FAKE_DIR/up"; {stays}')
    with bench.start("route", "executor", "work") as process:
        assert wait_until((bench.notes / "up").exists)
        process.kill()
    assert bench.all_gone()
    (job,) = bench.tfx("jobs", "list", "--json").data["jobs"]
    assert job["status"] == "lost"


def test_r5_what_a_failed_agent_left_is_ended_and_what_a_successful_one_left_stays(
    bench: Bench,
) -> None:
    bench.install("codex")
    bench.behave("setsid sleep 300 & echo; exit 1")
    assert bench.route("executor", "work").code == 1
    assert bench.processes() == []
    bench.behave("sleep 300 & exit 0")
    assert bench.route("executor", "work").code == 0
    assert wait_until(lambda: [each.name() for each in bench.processes()] == ["sleep"])


def test_r5_the_agent_leads_a_group_of_its_own_in_the_wanted_directory(bench: Bench) -> None:
    bench.install("codex")
    bench.behave('cut -d" " -f1,5,6 <"/proc/$$/stat"; pwd; umask')
    place = bench.root / "else where"
    place.mkdir()
    ran = bench.route("executor", "work", "--cwd", "../else where")
    ids, cwd, umask = output_of(ran).decode().splitlines()
    assert len(set(ids.split())) == 1
    assert cwd == str(place)
    assert int(umask, 8) == _umask()


def _umask() -> int:
    text = Path("/proc/self/status").read_text()
    found = re.search(r"^Umask:\s*(\d+)$", text, re.MULTILINE)
    assert found
    return int(found[1], 8)


def test_r5_a_callers_path_comes_first_and_keeps_its_order(bench: Bench) -> None:
    bench.install("codex")
    bench.program(bench.home / ".local/bin/codex")
    bench.extra["PATH"] = f"/no/such:{bench.bin}:/usr/bin:/bin"
    bench.extra["TFX_ROUTE_DIRS"] = str(bench.home / ".local/bin")
    data = bench.json("executor", "work")
    assert data["program"] == str(bench.bin / "codex")
    given = (bench.notes / "codex.path").read_text()
    assert given.startswith(f"/no/such:{bench.bin}:/usr/bin:/bin:{bench.home}/.local/bin")


MEASURED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.mark.timeout(600)
def test_r5_a_flood_of_a_gigabyte_costs_less_than_50_mb(bench: Bench) -> None:
    bench.install("codex")
    bench.behave("head -c 1073741824 /dev/zero; echo end >&2")
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *TFX, "route", "executor", "work"],
        env=bench.env,
        capture_output=True,
        text=True,
        check=True,
        timeout=500,
    )
    code, peak_kib = map(int, done.stdout.split())
    assert code == 0
    assert peak_kib < 50 * 1024
    (job,) = bench.tfx("jobs", "list", "--json").data["jobs"]
    shown = bench.tfx("jobs", "show", job["job"], "--json").data
    kept = Path(shown["log"]).stat().st_size
    assert shown["output_bytes"] == kept <= 256 << 20
    assert shown["output_cut"] is True
    Path(shown["log"]).unlink()


def test_r5_two_routes_at_once_do_not_mix(bench: Bench) -> None:
    bench.install("codex")
    bench.behave("""
        me=$(cat "$note.stdin" 2>/dev/null)
        i=0; while [ $i -lt 200 ]; do echo "$$"; i=$((i + 1)); done
    """)
    started = [bench.start("route", "executor", "-", "--json") for _ in range(2)]
    done = [process.communicate(f"prompt {n}".encode(), 60) for n, process in enumerate(started)]
    outputs = []
    for out, err in done:
        assert err == b""
        ids = re.findall(r'"output": "([^"]*)"', out.decode())[0].replace("\\n", " ").split()
        assert len(ids) == 200
        outputs.append(set(ids))
    assert [len(one) for one in outputs] == [1, 1]
    assert outputs[0] != outputs[1]
    assert len(list(bench.jobs.glob("2*"))) == 2


def test_r6_a_cli_that_dies_silently_is_started_once_more(bench: Bench) -> None:
    bench.install("gemini")
    bench.late_when_told()  # which nobody does: it dies at once, whatever the machine does
    bench.behave('[ "$(wc -l <"$note.runs")" -gt 1 ] || exit 7; echo fine')
    data = bench.json("writer", "p")
    assert (data["status"], data["attempts"], data["output"]) == ("success", 2, "fine\n")
    assert "started once more" in data["notices"][0]
    assert bench.stdin("gemini") == b"p"


def test_r6_it_is_started_no_more_than_twice(bench: Bench) -> None:
    bench.install("gemini")
    bench.late_when_told()  # which nobody does: it dies at once, whatever the machine does
    bench.behave("kill -SEGV $$")
    data = bench.json("writer", "p")
    assert (data["status"], data["attempts"], data["exit_code"]) == ("crashed", 2, 139)
    assert bench.runs("gemini") == 2


@pytest.mark.parametrize("said", ["echo half", "echo because >&2"])
def test_r6_never_after_output(bench: Bench, said: str) -> None:
    bench.install("gemini")
    bench.behave(f"{said}; exit 7")
    data = bench.json("writer", "p")
    assert (data["status"], data["attempts"], data["exit_code"]) == ("failed", 1, 7)
    assert bench.runs("gemini") == 1


def test_r7_a_context_file_follows_the_prompt_in_a_marked_block(bench: Bench) -> None:
    bench.install("codex")
    (bench.cwd / "notes.md").write_bytes(b"# Notes\n\xff$(x)\n")
    ran = bench.route("executor", "prompt", "--context", "notes.md")
    assert ran.code == 0
    label = os.fsencode(bench.cwd / "notes.md")
    assert bench.stdin("codex") == (
        b"prompt\n\n--- context: " + label + b" ---\n# Notes\n\xff$(x)\n\n--- end of context ---\n"
    )
    assert "notice" not in fields_of(ran)


def test_r7_a_long_context_file_is_capped_on_a_character_boundary_with_a_notice(
    bench: Bench,
) -> None:
    bench.install("codex")
    (bench.cwd / "c").write_text("x" * 32_767 + "é" * 100)
    ran = bench.route("executor", "prompt", "--context", "c")
    assert (
        fields_of(ran)["notice"] == "context file has 32967 bytes, the first 32767 were passed on"
    )
    assert bench.stdin("codex").endswith(b"x\n--- end of context ---\n")
