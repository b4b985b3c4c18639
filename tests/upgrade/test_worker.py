"""Parent and worker: what goes over the pipe, and every way in which a worker can end."""

from __future__ import annotations

import dataclasses
import itertools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from tests.clock import late_at_each_line
from tests.upgrade.scenes import NAMES, Site, everything, unpack
from tfx import __version__
from tfx.core import locks, streaming
from tfx.core.paths import Paths
from tfx.errors import InvalidRequest, OperationFailed, StateConflict
from tfx.hub.daemon import probe
from tfx.hub.places import HubFiles
from tfx.hub.schema import registry
from tfx.hub.state import HubState
from tfx.upgrade import orders, run, worker
from tfx.upgrade.model import Line, Progress, Receipt, State, Task

BEAT = '{"progress":{"phase":"transform","table":"messages","rows_done":1,"rows_total":2}}'


def worked(
    site: Site, program: str, silence_s: float = 60.0, told: run.Told = lambda _: None
) -> Receipt:
    """Run a stand-in for the worker."""
    return run.run(
        Paths.resolve(site.env),
        site.request(Task.UPGRADE),
        told,
        run.Work((sys.executable, "-c", program), silence_s),
    )


@pytest.mark.parametrize(
    ("program", "code"),
    [
        (f"print('{BEAT}'); print('junk')", "worker-garbage"),
        (f"print('{BEAT}'); raise SystemExit(7)", "worker-died"),
        (f"print('{BEAT}', flush=True); import os; os.kill(os.getpid(), 9)", "worker-died"),
        ("pass", "worker-died"),
    ],
)
def test_u26_u111_a_worker_that_ends_badly_is_an_error_with_its_last_phase(
    site: Site, program: str, code: str
) -> None:
    with pytest.raises(OperationFailed) as failed:
        worked(site, program)
    assert failed.value.reason == code
    wanted = "transform" if "progress" in program else "unknown"
    assert failed.value.details["phase"] == wanted


def test_u111_a_worker_that_hangs_is_killed(site: Site) -> None:
    program = f"print('{BEAT}', flush=True); import time; time.sleep(600)"
    with pytest.raises(OperationFailed) as failed:
        worked(site, program, silence_s=0.5)
    assert failed.value.reason == "worker-silent"


@pytest.mark.parametrize(
    ("says", "code"),
    [
        ("print('junk', flush=True)", "worker-garbage"),
        ("print('x', end='', flush=True)", "worker-garbage"),
        ("sys.stderr.write('noise')", "worker-silent"),
    ],
)
def test_u111_a_worker_that_talks_without_sense_is_killed_as_one_that_hangs(
    site: Site, says: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, go = tmp_path / "late", tmp_path / "go"
    late_at_each_line(monkeypatch, late)
    program = (
        f"print('{BEAT}', flush=True)\nimport os, sys, time\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(.01)\n{says}\n"
        f"with open({str(late)!r}, 'w') as file: print(file=file)\n"
        f"while True: {says}; time.sleep(.05)"
    )
    with pytest.raises(OperationFailed) as failed:
        worked(site, program, told=lambda _: go.touch())
    assert failed.value.reason == code
    assert failed.value.details["phase"] == "transform"


def test_u111_a_worker_that_closes_its_output_and_goes_on_is_killed(site: Site) -> None:
    program = f"print('{BEAT}', flush=True)\nimport os, time\nos.close(1)\ntime.sleep(600)"
    with pytest.raises(OperationFailed) as failed:
        worked(site, program, silence_s=0.5)
    assert failed.value.reason == "worker-silent"


def test_u111_a_worker_that_makes_sense_now_and_then_may_go_on(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a clock that goes on by ten seconds whenever somebody looks at it."""
    clock = itertools.count(step=10)
    monkeypatch.setattr(streaming, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    program = (
        f"import time\nfor _ in range(12): print('junk'); print('{BEAT}', flush=True); "
        "time.sleep(.05)\nraise SystemExit(7)"
    )
    with pytest.raises(OperationFailed) as failed:
        worked(site, program)
    assert next(clock) > 120, "twice the silence"
    assert "sent something that is no progress" in failed.value.message  # it ended by itself


def test_u23_errors_carry_phase_and_backup_directory(site: Site) -> None:
    answer = site.tfx("upgrade", code=1)
    assert answer["problems"][0]["details"]["phase"] == "options"  # type: ignore[index]
    assert answer["problems"][0]["details"]["backup_directory"] is None  # type: ignore[index]
    unpack(NAMES[0], site.database)
    site.database.parent.chmod(0o770)
    answer = site.tfx("upgrade", code=5)
    assert answer["problems"][0]["kind"] == "access-denied"  # type: ignore[index]
    assert answer["problems"][0]["details"]["phase"] == "options"  # type: ignore[index]


def test_must_show_the_command_and_its_receipt(site: Site) -> None:
    unpack(NAMES[0], site.database)
    answer = site.tfx("upgrade", "--backup-dir", str(site.home / "B"))
    data = answer["data"]
    assert isinstance(data, dict)
    assert answer["status"] == "ok"
    assert (data["state"], data["from_version"], data["to_version"]) == (
        "upgraded",
        1,
        registry.CURRENT,
    )
    assert data["backup_directory"].startswith(str(site.home / "B"))
    assert data["rows"]["messages"] == {"before": 1575, "after": 1575}
    assert len(data["from_schema_hash"]) == len(data["to_schema_hash"]) == 64
    assert {each["phase"] for each in data["phases"]} >= {"backup", "transform", "commit"}
    stamp = site.database.stat().st_mtime_ns
    again = site.tfx("upgrade", "--backup-dir", str(site.home / "B"))["data"]
    assert isinstance(again, dict)
    assert (again["state"], again["backup_directory"]) == ("current", None)
    assert site.database.stat().st_mtime_ns == stamp


def test_must_show_an_undelivered_message_reaches_its_agent_through_the_hub(site: Site) -> None:
    unpack(NAMES[0], site.triflux)
    site.tfx("upgrade", "--adopt", "auto")
    site.tfx("hub", "start", "--port", "0")
    try:
        polled = site.tfx("hub", "poll", "--agent", "claude-lead")["data"]
        assert isinstance(polled, dict)
        assert polled["messages"]
        busy = site.tfx("upgrade", code=5)
        assert busy["problems"][0]["code"] == "hub-running"  # type: ignore[index]
        looked = site.tfx("upgrade", "--check")["data"]
        assert isinstance(looked, dict)
        assert looked["state"] == "current"
        assert site.tfx("upgrade", "--stop-hub")["exit"] == 0
        status = site.tfx("hub", "status")["data"]
        assert isinstance(status, dict)
        assert status["state"] == "running", "a stopped hub is started again (K-42)"
    finally:
        site.tfx("hub", "stop")


def test_k46_a_hub_that_runs_on_an_older_schema_is_not_called_current(site: Site) -> None:
    paths = Paths.resolve(site.env)
    files = HubFiles.of(paths)
    recorded = HubState(
        instance="i",
        pid=1,
        start_token="t",  # noqa: S106  (of a process)
        boot_id="b",
        host="h",
        url="http://127.0.0.1:1",
        port=1,
        version=__version__,
        database=str(files.database),
        started_at_ms=1,
    )
    seen = probe.Probe(
        probe.State.RUNNING, files, recorded=recorded, status={"schema": {"version": 2}}
    )
    places = orders.Places.of(paths, None, None)
    with pytest.raises(StateConflict) as refused:
        orders._running(places, seen)
    assert (refused.value.reason, refused.value.hint) == ("hub-running", "tfx upgrade --stop-hub")
    current = dataclasses.replace(seen, status={"schema": {"version": registry.CURRENT}})
    assert orders._running(places, current).state is State.CURRENT


def test_k4_relative_paths_are_resolved_by_the_cli(site: Site) -> None:
    unpack(NAMES[0], site.home / "work" / "old.db")
    data = site.tfx("upgrade", "--db", "work/old.db", "--backup-dir", "kept")["data"]
    assert isinstance(data, dict)
    assert data["database"] == str(site.home / "work" / "old.db")
    assert data["backup_directory"].startswith(str(site.home / "kept"))


@pytest.mark.parametrize(
    "request_text",
    ["{", "[]", '{"task":"upgrade"}', '{"task":"fly","database":"/a","store":"/b","root":"/c"}',
     '{"task":"upgrade","database":"/a","store":"/b","root":"/c","more":1}',
     '{"task":"upgrade","database":1,"store":"/b","root":"/c"}'],
)  # fmt: skip
def test_u22_an_unknown_key_or_a_wrong_type_is_an_invalid_request(request_text: str) -> None:
    with pytest.raises(InvalidRequest):
        worker.request_of(request_text.encode())


@pytest.mark.parametrize(
    "arguments",
    [
        ("--dry-run", "--check"),
        ("--stop-hub", "--check"),
        ("--adopt", "auto", "--check"),
        ("--nonsense",),
    ],
)
def test_u113_options_that_do_not_go_together_are_refused(
    site: Site, arguments: tuple[str, ...]
) -> None:
    assert site.tfx("upgrade", *arguments, code=2)["exit"] == 2


# The worker, which stands still once it verifies its backup.
HELD = """
import sys, time
from tfx.upgrade import worker
from tfx.upgrade.reporter import Reporter
enter = Reporter.enter
def entered(self, phase):
    enter(self, phase)
    if phase == "verify-backup":
        time.sleep(600)
Reporter.enter = entered
sys.exit(worker.main())
"""


def start(
    site: Site, task: Task = Task.UPGRADE, argv: Sequence[str] | None = None
) -> subprocess.Popen[bytes]:
    child = subprocess.Popen(
        argv or run.worker_argv(),
        env=site.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    )
    assert child.stdin is not None
    child.stdin.write(msgspec.json.encode(site.request(task)))
    child.stdin.close()
    child.stdin = None  # `communicate` would flush it
    return child


def test_u89_a_parent_that_is_gone_stops_nothing(site: Site) -> None:
    unpack(NAMES[0], site.database)
    child = start(site)
    assert child.stdout is not None
    child.stdout.close()
    assert child.wait(60) == 0
    child.communicate()
    assert site.work(Task.UPGRADE).state is State.CURRENT


def test_u26_a_signal_rolls_back_and_says_so(site: Site) -> None:
    path = unpack(NAMES[0], site.database)
    before = everything(path)
    child = start(site, argv=(sys.executable, "-I", "-c", HELD))
    assert child.stdout is not None
    for raw in child.stdout:
        line = msgspec.json.decode(raw, type=Line)
        if line.progress is not None and line.progress.phase == "verify-backup":
            child.send_signal(signal.SIGTERM)
            break
    rest = child.stdout.read().splitlines()
    child.stdout.close()
    assert child.wait(60) == 1
    if child.stderr is not None:
        child.stderr.close()
    failure = msgspec.json.decode(rest[-1], type=Line).failure
    assert failure is not None
    assert failure.code == "interrupted"
    assert everything(path) == before
    assert site.work(Task.UPGRADE).state is State.UPGRADED


def test_u97_two_upgrades_at_once_one_upgrades_and_the_other_is_told(site: Site) -> None:
    unpack(NAMES[0], site.database)
    children = [start(site), start(site)]
    answers = [child.communicate(timeout=120)[0].splitlines()[-1] for child in children]
    ends = [msgspec.json.decode(each, type=Line) for each in answers]
    states = sorted(
        end.receipt.state if end.receipt else (end.failure.kind if end.failure else "")
        for end in ends
    )
    assert states in (["state-conflict", "upgraded"], ["current", "upgraded"])
    assert site.work(Task.UPGRADE).state is State.CURRENT


def test_progress_is_never_silent_for_over_a_second(site: Site) -> None:
    unpack(NAMES[0], site.database)
    seen: list[tuple[float, Progress]] = []
    run.run(
        Paths.resolve(site.env),
        site.request(Task.UPGRADE),
        lambda progress: seen.append((time.monotonic(), progress)),
    )
    assert {progress.phase for _, progress in seen} >= {"backup", "verify-backup", "transform"}


def test_s6_k34_setup_names_the_command_that_adopts(site: Site) -> None:
    unpack(NAMES[0], site.triflux)
    done = subprocess.run(
        [sys.executable, "-m", "tfx", "setup", "--dry-run"],
        env=site.env, cwd=site.home, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "tfx upgrade --adopt auto" in done.stdout + done.stderr


def test_u5_no_answer_of_a_person_is_in_receipt_or_manifest(site: Site) -> None:
    unpack(NAMES[0], site.database)
    answer = json.dumps(site.tfx("upgrade"))
    written = "".join(each.read_text("utf-8") for each in Path(site.store).rglob("manifest.json"))
    for text in (answer, written):
        assert "배포를" not in text
        assert "payload" not in text


def test_u24_an_interrupt_of_the_command_ends_the_worker_and_changes_nothing(site: Site) -> None:
    path = unpack(NAMES[0], site.database)
    before = everything(path)
    lock = path.with_name("hub.db.lock")
    parent = subprocess.Popen(
        [sys.executable, "-m", "tfx", "upgrade", "--json"],
        env=site.env, cwd=site.home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    while not locks.is_held(lock) and parent.poll() is None:
        time.sleep(0.002)
    parent.send_signal(signal.SIGINT)
    parent.communicate(timeout=60)
    assert locks.wait_until_free(lock, 60)
    state = site.work(Task.CHECK).state
    if state is State.CURRENT:
        assert parent.returncode in {0, 130}, "the signal came after the commit"
        return
    assert parent.returncode == 130
    assert everything(path) == before
    assert site.work(Task.UPGRADE).state is State.UPGRADED


def test_u96_a_hub_does_not_start_while_an_upgrade_works(site: Site) -> None:
    unpack(NAMES[0], site.database)
    site.tfx("upgrade")
    lock = locks.try_lock(site.database.with_name("hub.db.lock"), "upgrade")
    assert lock is not None
    with lock:
        answer = site.tfx("hub", "start", "--port", "0", code=5)
    assert answer["problems"][0]["code"] == "lock-held"  # type: ignore[index]


def test_u7_a_hub_on_an_older_database_names_the_upgrade(site: Site) -> None:
    path = unpack(NAMES[0], site.database)
    before = path.read_bytes()
    answer = site.tfx("hub", "start", "--port", "0", code=5)
    problem = answer["problems"][0]  # type: ignore[index]
    assert (problem["code"], problem["hint"]) == ("schema-older", "tfx upgrade")
    assert path.read_bytes() == before


def test_u17_an_adoption_is_rehearsed_without_a_trace(site: Site) -> None:
    source = unpack(NAMES[0], site.triflux)
    before = source.read_bytes()
    data = site.tfx("upgrade", "--adopt", "auto", "--dry-run")["data"]
    assert isinstance(data, dict)
    assert (data["state"], data["backup_directory"]) == ("rehearsed", None)
    assert data["adopted"]["source"] == str(source)
    assert data["adopted"]["arrived"]["messages"] == 1575
    assert source.read_bytes() == before
    assert not site.database.exists()
    assert not site.store.exists()


def test_k34_adopt_auto_without_a_triflux_database_says_where_it_looked(site: Site) -> None:
    answer = site.tfx("upgrade", "--adopt", "auto", code=1)
    problem = answer["problems"][0]  # type: ignore[index]
    assert problem["code"] == "no-triflux"
    assert problem["details"]["path"] == str(site.triflux)


def test_u20_the_question_comes_before_anything_is_changed_and_no_means_no(site: Site) -> None:
    path = unpack(NAMES[0], site.database)
    before = path.read_bytes()
    paths = Paths.resolve(site.env)
    asked: list[Receipt] = []

    def no(found: Receipt) -> bool:
        asked.append(found)
        return False

    with pytest.raises(StateConflict) as refused:
        orders.upgrade(paths, orders.Options(), lambda _: None, no)
    assert refused.value.reason == "declined"
    assert [(each.pending, each.from_version) for each in asked] == [("older", 1)]
    assert path.read_bytes() == before
    assert not site.store.exists()
    done = orders.upgrade(paths, orders.Options(), lambda _: None, lambda _: True)
    assert done.data.state is State.UPGRADED
    again = orders.upgrade(paths, orders.Options(), lambda _: None, no)
    assert again.data.state is State.CURRENT
    assert len(asked) == 1, "nothing to do is nothing to ask"
