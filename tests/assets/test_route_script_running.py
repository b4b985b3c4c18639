"""The route script runs an agent: the prompt's way, the end of its processes, memory (R-4, R-5)."""

from __future__ import annotations

import signal
import stat
import time
from pathlib import Path

import pytest

from tests.assets.scripted import HELPS, Bench
from tests.clock import ASLEEP
from tests.prompts import PROMPTS


@pytest.mark.parametrize("name", PROMPTS)
def test_r4_a_prompt_arrives_byte_exact(bench: Bench, name: str) -> None:
    bench.install("codex")
    ended = bench.run("executor", PROMPTS[name])
    assert (ended.code, ended.stderr) == (0, "")
    assert bench.stdin("codex") == PROMPTS[name]
    assert list(bench.cwd.iterdir()) == []


@pytest.mark.parametrize("cli", HELPS)
def test_r4_every_cli_gets_the_prompt_by_stdin_and_not_in_its_arguments(
    plain: Bench, cli: str
) -> None:
    prompt = b"".join(PROMPTS.values())
    plain.install(cli)
    ended = plain.run("executor", prompt)
    assert (ended.code, ended.stderr) == (0, "")
    assert plain.stdin(cli) == prompt
    given = (plain.notes / f"{cli}.argv").read_bytes()
    assert not any(part in given for part in prompt.split() if len(part) > 3)


def test_r4_a_megabyte_on_standard_input_arrives_byte_exact(bench: Bench) -> None:
    bench.install("codex")
    prompt = ("'\"$(x)\\ \U0001f600\n" * 90_000).encode()
    assert len(prompt) > 1 << 20
    ended = bench.run("executor", "-", stdin=prompt)
    assert (ended.code, ended.stderr) == (0, "")
    assert bench.stdin("codex") == prompt


def test_r4_nul_is_refused_before_anything_runs(bench: Bench) -> None:
    bench.install("codex")
    ended = bench.run("executor", "-", stdin=b"before\0after")
    assert ended.code == 5
    assert "NUL" in ended.stderr
    assert bench.ran() == set()
    assert not bench.logs()


def test_r4_the_prompt_file_is_private_while_it_exists_and_then_gone(bench: Bench) -> None:
    bench.install("codex")
    bench.behave('ls -ln "$HOME/.local/state/tfx/route/"*/ >"$FAKE_DIR/seen"; exit 9')
    ended = bench.run("executor", "secret")
    assert ended.code == 1
    modes = [line.split()[0] for line in (bench.notes / "seen").read_text().splitlines()[1:]]
    assert modes
    assert set(modes) == {"-rw-------"}
    (log,) = bench.logs()
    assert ended.fields["log"] == str(log)
    assert sorted(entry.name for entry in log.iterdir()) == ["stderr", "stdout"]
    assert stat.S_IMODE(log.stat().st_mode) == 0o700


def test_r5_the_time_out_ends_the_group_and_what_left_it(bench: Bench) -> None:
    bench.install("codex")
    bench.behave("""
        sleep 300 & sh -c 'trap "" TERM; while :; do sleep 1; done' &
        setsid sleep 300 &
        echo partial; trap "" TERM; : >"$FAKE_DIR/late"; while :; do sleep 1; done
    """)
    bench.late_when_told()
    ended = bench.run("executor", "work", "", "1")
    assert bench.left() == []
    assert ended.code == 1
    assert ended.fields["status"] == "timeout"
    assert ended.fields["exit_code"] == "137"
    assert ended.fields["issue"] == "ended after the time-out of 1 s"
    assert ended.output == b"partial\n"


def test_r5_an_agent_that_obeys_term_ends_at_once_with_its_own_code(bench: Bench) -> None:
    bench.install("codex")
    bench.behave(f'trap "exit 3" TERM; sleep 300 & {ASLEEP}; : >"$FAKE_DIR/late"; wait')
    bench.late_when_told()
    ended = bench.run("executor", "work", "", "1")
    assert bench.left() == []
    assert ended.fields["status"] == "timeout"
    assert ended.fields["exit_code"] == "3"


def test_r5_an_agent_that_is_slow_to_lead_its_group_is_ended_at_its_time_out_too(
    bench: Bench,
) -> None:
    """It is not let run before that: here the program that makes the group waits."""
    bench.install("codex")
    bench.behave("echo never; sleep 300")
    setsid = bench.bin / "setsid"
    setsid.write_text(
        "#!/bin/sh\ncase $* in *tfx-route-watch*) ;; *) /bin/sleep 3 ;; esac\n"
        'exec /usr/bin/setsid "$@"\n'
    )
    setsid.chmod(0o755)
    ended = bench.run("executor", "work", "", "1")
    assert (ended.code, ended.fields["status"]) == (1, "timeout")
    assert bench.left() == []


def test_r5_nothing_of_the_script_outlives_a_run(bench: Bench) -> None:
    bench.install("codex")
    assert bench.run("executor", "work").code == 0
    assert bench.left() == []
    assert bench.logs() == []


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_r5_an_interrupt_ends_the_whole_group(bench: Bench, sent: signal.Signals) -> None:
    bench.install("codex")
    bench.behave('sleep 300 & : >"$FAKE_DIR/up"; wait')
    with bench.start("executor", "work") as process:
        wait_for(bench.notes / "up")
        process.send_signal(sent)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"interrupted" in err
    assert bench.left() == []
    assert bench.logs() == []


def test_r5_an_agent_does_not_outlive_a_killed_script(plain: Bench) -> None:
    plain.install("codex")
    plain.behave('sleep 300 & : >"$FAKE_DIR/up"; wait')
    with plain.start("executor", "work") as process:
        wait_for(plain.notes / "up")
        process.kill()
    deadline = time.monotonic() + 60
    while plain.processes():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_r5_what_a_failed_agent_left_is_ended_and_what_a_successful_one_left_stays(
    bench: Bench,
) -> None:
    bench.install("codex")
    bench.behave("sleep 300 & exit 1")
    assert bench.run("executor", "work").code == 1
    assert bench.left() == []
    bench.behave("sleep 300 & exit 0")
    assert bench.run("executor", "work").code == 0
    deadline = time.monotonic() + 60
    while [process.name() for process in bench.processes()] != ["sleep"]:
        assert time.monotonic() < deadline, bench.processes()
        time.sleep(0.05)


def test_r5_the_agent_leads_a_group_of_its_own_in_the_working_directory(bench: Bench) -> None:
    bench.install("codex")
    bench.behave('cut -d" " -f1,5,6 <"/proc/$$/stat"; pwd')
    ended = bench.run("executor", "work")
    ids, cwd = ended.output.decode().splitlines()
    assert len(set(ids.split())) == 1
    assert cwd == str(bench.cwd)


def test_the_agent_keeps_the_callers_umask(bench: Bench) -> None:
    bench.install("codex")
    bench.shell = ("sh", "-c", 'umask 022; exec "$@"', "sh", *bench.shell)
    assert bench.run("executor", "p").code == 0
    assert (bench.notes / "codex.umask").read_text().strip() == "0022"


def test_two_runs_at_once_do_not_mix(bench: Bench) -> None:
    bench.install("codex", "gemini")
    bench.behave('cat "$FAKE_DIR/${0##*/}.stdin"; exit 1')
    with bench.start("executor", "one") as first, bench.start("writer", "two") as second:
        one, _ = first.communicate(timeout=60)
        two, _ = second.communicate(timeout=60)
    assert one.endswith(b"=== OUTPUT ===\none")
    assert two.endswith(b"=== OUTPUT ===\ntwo")
    assert len(bench.logs()) == 2


def test_a_flood_of_output_is_cut_and_leaves_memory_flat(plain: Bench) -> None:
    plain.install("codex")
    plain.behave("head -c 100000000 /dev/zero | tr '\\0' x")
    with plain.start("executor", "p") as process:
        out, _ = process.communicate(timeout=150)
        assert process.returncode == 0
    assert out.endswith(b"=== OUTPUT ===\n" + b"x" * 51_200)
    (log,) = plain.logs()
    assert (log / "stdout").stat().st_size == 100_000_000
