"""Background runs and `tfx jobs`: found again by process identity, waited for, ended, removed."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.route.fakes import Bench, wait_until

FOREVER = 'sleep 300 & : >"$FAKE_DIR/up"; echo begun; wait'


@pytest.fixture
def running(bench: Bench) -> str:
    """A background run that does not end by itself."""
    bench.install("codex")
    bench.behave(FOREVER)
    job = bench.route("executor", "work", "--background").out.strip()
    assert wait_until((bench.notes / "up").exists)
    return job


def shown(bench: Bench, job: str) -> Any:  # noqa: ANN401  (JSON)
    return bench.tfx("jobs", "show", job, "--json").data


def test_r8_a_background_run_returns_its_id_at_once_and_outlives_the_caller(
    bench: Bench, running: str
) -> None:
    assert re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{6}", running)
    (job,) = bench.tfx("jobs", "list", "--running", "--json").data["jobs"]
    assert (job["job"], job["status"], job["background"]) == (running, "running", True)
    assert wait_until(lambda: shown(bench, running)["output"] != "")
    assert shown(bench, running)["output"] == "begun\n"


def test_r8_wait_ends_as_route_would_have(bench: Bench) -> None:
    bench.install("codex")
    bench.behave('[ "$(cat "$note.stdin")" = good ] || { echo half; exit 7; }; echo whole')
    good = bench.route("executor", "good", "--background").out.strip()
    bad = bench.route("executor", "bad", "--background").out.strip()
    ran = bench.tfx("jobs", "wait", good)
    assert (ran.code, ran.out.partition("=== OUTPUT ===\n")[2]) == (0, "whole\n")
    ran = bench.tfx("jobs", "wait", bad, "--json")
    assert (ran.code, ran.data["exit_code"], ran.data["output"]) == (1, 7, "half\n")
    assert not list(bench.jobs.glob("*/prompt"))


def test_r8_wait_gives_up_after_its_own_time_out(bench: Bench, running: str) -> None:
    ran = bench.tfx("jobs", "wait", running, "--timeout", "0.2", "--json")
    assert ran.code == 1
    assert ran.document["problems"][0]["code"] == "still-running"
    assert shown(bench, running)["status"] == "running"


def test_r8_cancel_ends_everything_the_run_started(bench: Bench, running: str) -> None:
    worker = json.loads((bench.jobs / running / "job.json").read_bytes())["worker"]["pid"]
    assert bench.tfx("jobs", "cancel", running).code == 0
    assert {process.pid for process in bench.processes()} <= {worker}  # which ends by itself
    assert bench.all_gone()
    assert shown(bench, running)["status"] == "cancelled"
    ran = bench.tfx("jobs", "cancel", running, "--json")
    assert ran.code == 5
    assert ran.document["problems"][0]["code"] == "job-over"
    assert bench.tfx("jobs", "wait", running).code == 1


def test_r8_a_run_whose_worker_was_killed_is_lost_and_its_agent_is_ended(
    bench: Bench, running: str
) -> None:
    record = json.loads((bench.jobs / running / "job.json").read_bytes())
    os.kill(record["worker"]["pid"], signal.SIGKILL)
    assert bench.all_gone()
    assert shown(bench, running)["status"] == "lost"
    assert bench.tfx("jobs", "wait", running).code == 1


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"boot_id": "00000000-0000-0000-0000-000000000000"}, "lost"),
        ({"start_token": "1"}, "lost"),
        ({"host": "elsewhere"}, "running"),
        ({}, "running"),
    ],
)
def test_r8_identity_decides_also_after_a_reboot_and_only_on_proof(
    bench: Bench, running: str, changed: dict[str, str], status: str
) -> None:
    file = bench.jobs / running / "job.json"
    record = json.loads(file.read_bytes())
    file.write_text(json.dumps({**record, "worker": record["worker"] | changed}))
    assert shown(bench, running)["status"] == status
    file.write_text(json.dumps(record))


def test_r8_a_recycled_pid_is_never_signalled(bench: Bench, running: str) -> None:
    """The record names a process that is not the worker: cancel leaves it alone."""
    file = bench.jobs / running / "job.json"
    record = json.loads(file.read_bytes())
    stranger = {**record["worker"], "pid": os.getpid(), "start_token": "1"}
    file.write_text(json.dumps({**record, "worker": stranger}))
    assert bench.tfx("jobs", "cancel", running).code == 5
    file.write_text(json.dumps(record))
    assert bench.tfx("jobs", "cancel", running).code == 0


def test_r8_logs_are_whole_and_byte_exact(bench: Bench) -> None:
    bench.install("codex")
    whole = ("é" * 40_000).encode() + b"\xff\x00tail"
    (bench.notes / "long").write_bytes(whole)
    bench.behave('cat "$FAKE_DIR/long"; echo because >&2')
    job = bench.json("executor", "p")["job"]
    assert os.fsencode(bench.tfx("jobs", "logs", job).out) == whole
    assert bench.tfx("jobs", "logs", job, "--errors").out == "because\n"
    document = bench.tfx("jobs", "logs", job, "--json").data
    assert (document["cut"], document["text"][:2]) == (False, "éé")


def test_r8_k7_follow_prints_what_comes_until_the_run_is_over(bench: Bench) -> None:
    bench.install("codex")
    bench.behave('echo one; while [ ! -e "$FAKE_DIR/go" ]; do sleep 0.05; done; echo two')
    job = bench.route("executor", "p", "--background").out.strip()
    with bench.start("jobs", "logs", job, "--follow", "--json") as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        (bench.notes / "go").touch()
        rest = [json.loads(line) for line in process.stdout]
        assert process.wait(30) == 0
    assert first == {"job": job, "text": "one\n"}
    assert "".join(piece["text"] for piece in rest) == "two\n"


@pytest.mark.parametrize("name", ["nope", "../../etc", "20260101-000000-abcdef", ""])
@pytest.mark.parametrize("verb", ["show", "wait", "cancel", "logs"])
def test_r8_an_unknown_job_is_not_found(bench: Bench, verb: str, name: str) -> None:
    ran = bench.tfx("jobs", verb, name, "--json")
    assert ran.code == 1
    assert ran.document["problems"][0]["code"] == "not-found"


def finished(bench: Bench) -> str:
    return str(bench.json("executor", "p")["job"])


def aged(bench: Bench, job: str, days: float) -> str:
    """The same run, as if it had begun some days ago."""
    then = time.strftime("%Y%m%d-%H%M%S", time.gmtime(time.time() - days * 86_400))
    name = f"{then}-{job[-6:]}"
    (bench.jobs / job).rename(bench.jobs / name)
    record = json.loads((bench.jobs / name / "job.json").read_bytes())
    (bench.jobs / name / "job.json").write_text(json.dumps({**record, "job": name}))
    return name


def test_r8_prune_removes_what_is_over_and_old_and_nothing_else(bench: Bench) -> None:
    bench.install("codex")
    jobs = [finished(bench) for _ in range(3)]
    old, older, young = (aged(bench, job, days) for job, days in zip(jobs, (8, 30, 1), strict=True))
    (bench.jobs / older / "mine.txt").touch()
    assert bench.tfx("jobs", "prune", "--json").data["removed"] == [old]
    assert not (bench.jobs / old).exists()
    assert [path.name for path in (bench.jobs / older).iterdir()] == ["mine.txt"]
    assert (bench.jobs / young / "stdout").exists()
    assert bench.tfx("jobs", "prune", "--older-than", "0", "--json").data["removed"] == [young]
    assert bench.tfx("jobs", "list", "--stats", "--json").data["stats"][0]["runs"] == 3


def test_r8_prune_leaves_a_running_job_whatever_its_age(bench: Bench, running: str) -> None:
    assert bench.tfx("jobs", "prune", "--older-than", "0", "--json").data["removed"] == []
    assert shown(bench, running)["status"] == "running"


def test_r8_a_new_run_prunes_by_itself(bench: Bench) -> None:
    bench.install("codex")
    old = aged(bench, finished(bench), 8)
    assert bench.route("executor", "p").code == 0
    assert not (bench.jobs / old).exists()


def test_stats_sum_runs_per_role_and_cli(bench: Bench) -> None:
    bench.install("codex", "gemini")
    bench.behave("printf 'tokens used\\n1,000\\n' >&2")
    for _ in range(3):
        bench.route("executor", "p")
    bench.behave("echo no; exit 1")
    bench.route("executor", "p")
    bench.route("writer", "p")
    stats = bench.tfx("jobs", "list", "--stats", "--json").data["stats"]
    first, second = stats
    assert (first["role"], first["cli"], first["runs"], first["success"]) == (
        *("executor", "codex", 4, 3),
    )
    assert first["tokens"] == 3000
    assert 0 < first["p50_s"] <= first["p95_s"]
    assert (second["role"], second["cli"], second["success"], second["tokens"]) == (
        *("writer", "gemini", 0, None),
    )


def test_the_list_is_the_newest_first_and_limited(bench: Bench) -> None:
    bench.install("codex")
    names = [bench.json("executor", str(number))["job"] for number in range(3)]
    listed = bench.tfx("jobs", "list", "--limit", "2", "--json").data["jobs"]
    assert len(listed) == 2
    every = bench.tfx("jobs", "list", "--limit", "0", "--json").data["jobs"]
    assert [job["job"] for job in every] == names[::-1]
    assert {job["output"] for job in every} == {""}


def test_r8_a_torn_record_is_passed_over(bench: Bench) -> None:
    bench.install("codex")
    job = bench.json("executor", "p")["job"]
    (bench.jobs / job / "job.json").write_text('{"job": ')
    assert bench.tfx("jobs", "list", "--json").data["jobs"] == []
    assert bench.route("executor", "p").code == 0


def test_no_place_to_write_is_a_failure_that_runs_nothing(bench: Bench, tmp_path: Path) -> None:
    bench.install("codex")
    bench.extra["XDG_STATE_HOME"] = str(tmp_path / "file" / "state")
    (tmp_path / "file").touch()
    ran = bench.route("executor", "p", "--json")
    assert ran.code == 1
    assert ran.document["problems"][0]["code"] == "no-room"
    assert bench.ran() == set()
