"""Checks that break, hang or take long; order, time and the progress line."""

from __future__ import annotations

import itertools
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.doctor.world import Clinic
from tests.support import bare_env, gone
from tfx.core.paths import Paths
from tfx.doctor import facts as facts_module
from tfx.doctor import run as run_module
from tfx.doctor.facts import Facts
from tfx.doctor.model import Check, Explanation, Finding, Group, Status
from tfx.doctor.options import Options
from tfx.doctor.redaction import Redactor
from tfx.doctor.run import run_checks
from tfx.errors import NotFound


def _check(name: str, run: object, **more: object) -> Check:
    return Check(name, Group.MACHINE, "t", Explanation("", "", "", ""), run, **more)  # type: ignore[arg-type]


@pytest.fixture
def facts(home: Path) -> Facts:
    return Facts(Paths.resolve(bare_env(home)), Options(timeout_s=60))


def test_d23_a_check_that_breaks_is_a_row_and_the_others_run(facts: Facts) -> None:
    def breaks(_: Facts) -> Iterator[Finding]:
        yield Finding("before", Status.OK, "seen")
        raise ValueError("boom")

    def refuses(_: Facts) -> Iterator[Finding]:
        yield from ()
        raise NotFound("no such thing", hint="tfx setup")

    def fine(_: Facts) -> Iterator[Finding]:
        yield Finding("x", Status.OK, "fine")

    def is_kept_out(_: Facts) -> Iterator[Finding]:
        yield from ()
        raise PermissionError(13, "Permission denied", str(facts.paths.home / "closed/file"))

    checks = [
        _check("a", breaks),
        _check("b", refuses),
        _check("c", fine),
        _check("d", is_kept_out),
    ]
    found = run_checks(checks, facts, lambda _: None)
    assert [(f.check.id, f.finding.target, f.finding.status) for f in found] == [
        ("a", "before", Status.OK),
        ("a", "check", Status.UNKNOWN),
        ("b", "not-found", Status.UNKNOWN),
        ("c", "x", Status.OK),
        ("d", "no-access", Status.UNKNOWN),
    ]
    assert "~/closed/file may not be looked at" in found[4].finding.summary
    assert "ValueError: boom" in found[1].finding.summary
    assert found[2].finding.remedies[0].command == "tfx setup"


def test_d24_a_check_that_hangs_is_unknown_and_the_run_goes_on(facts: Facts) -> None:
    forever, hanging, ended = threading.Event(), threading.Event(), threading.Event()
    clock = itertools.count()

    def hangs(_: Facts) -> Iterator[Finding]:
        yield Finding("before", Status.OK, "seen")
        hanging.set()
        forever.wait()

    def fine(_: Facts) -> Iterator[Finding]:
        yield Finding("x", Status.OK, "fine")
        ended.set()

    def now() -> float:
        """Half a second later at each look, once the one hangs and the other is done."""
        return next(clock) / 2 if hanging.is_set() and ended.is_set() else 0.0

    checks = [_check("a", hangs), _check("b", fine)]
    found = run_checks(checks, facts, lambda _: None, now)
    forever.set()
    assert [(f.check.id, f.finding.status) for f in found] == [
        ("a", Status.OK),
        ("a", Status.UNKNOWN),
        ("b", Status.OK),
    ]
    assert found[1].finding.summary.startswith("timeout")


def test_d24_a_time_in_which_doctor_stood_still_counts_against_no_check(facts: Facts) -> None:
    asked, may_end = threading.Event(), threading.Event()
    clock = itertools.count()

    def takes_long(_: Facts) -> Iterator[Finding]:
        asked.set()
        assert may_end.wait(60)
        yield Finding("x", Status.OK, "fine")

    def now() -> float:
        """An hour later at each look: nothing of ours is let run in between."""
        return next(clock) * 3_600.0

    def say(_: str) -> None:
        if asked.is_set() and next(clock) > 10:
            may_end.set()

    found = run_checks([_check("a", takes_long)], facts, say, now)
    assert [each.finding.status for each in found] == [Status.OK]


def test_d25_slow_checks_start_first_and_print_in_place(facts: Facts) -> None:
    started: list[str] = []

    def runs(name: str) -> object:
        def run(_: Facts) -> Iterator[Finding]:
            started.append(name)
            yield Finding(name, Status.OK, "")

        return run

    checks = [_check("quick", runs("quick")), _check("slow", runs("slow"), slow=True)]
    found = run_checks(checks, facts, lambda _: None)
    assert started[0] == "slow"
    assert [each.check.id for each in found] == ["quick", "slow"]


def test_d17_a_target_that_stands_twice_gets_a_number(facts: Facts) -> None:
    def twice(_: Facts) -> Iterator[Finding]:
        yield Finding("x", Status.OK, "")
        yield Finding("x", Status.OK, "")

    found = run_checks([_check("a", twice)], facts, lambda _: None)
    assert [each.finding.target for each in found] == ["x", "x (2)"]


def test_a_fact_is_found_once_and_its_error_is_everybodys(facts: Facts) -> None:
    calls: list[int] = []

    def find() -> int:
        calls.append(1)
        time.sleep(0.05)
        raise ValueError("no")

    def ask() -> None:
        with pytest.raises(ValueError, match="no"):
            facts.shared("x", find)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    ask()
    assert calls == [1]


def test_d22_waiting_for_a_shared_fact_is_not_a_checks_own_time(
    facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a clock that goes on only while the fact is found, whoever waits for it meanwhile."""
    seconds = [0.0]
    came = threading.Semaphore(0)
    for module in (facts_module, run_module):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: seconds[0]))

    def find() -> None:
        for _ in range(3):
            assert came.acquire(timeout=60)
        time.sleep(0.05)  # for the others to come to wait; nothing hangs on it
        seconds[0] += 0.3

    def asks(_: Facts) -> Iterator[Finding]:
        came.release()
        facts.shared("x", find)
        yield Finding("x", Status.OK, "")

    checks = [_check(name, asks) for name in ("a", "b", "c")]
    found = run_checks(checks, facts, lambda _: None, time.monotonic)
    assert sorted(each.duration_ms for each in found) == [0, 0, 300]


class Overtaken:
    """A lock that somebody takes right after it was seen free."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def locked(self) -> bool:
        return False

    def __enter__(self) -> bool:
        return self._lock.__enter__()

    def __exit__(self, *given: object) -> None:
        self._lock.release()


def test_d22_who_is_overtaken_on_the_way_to_a_fact_waits_for_it_all_the_same(
    facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts_module._Once, "__init__", _overtaken)
    test_d22_waiting_for_a_shared_fact_is_not_a_checks_own_time(facts, monkeypatch)


def _overtaken(self: Any) -> None:  # noqa: ANN401  (the private class of one fact)
    self.lock = Overtaken()
    self.done = False
    self._value = None
    self._error = None


def test_d22_slow_checks_are_named(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path)
    clinic.write(".profile", "sleep 1.2\n")
    ran = clinic.doctor("shell.rc")
    assert [each["id"] for each in ran.data["slow"]] == ["shell.rc"]
    assert "slow checks: shell.rc" in clinic.tfx("doctor", "shell.rc").out


def _terminal(clinic: Clinic, *words: str) -> str:
    """Standard error of a run on a terminal of its own."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "tfx", "doctor", *words, "--timeout", "60"],
        env=clinic.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        cwd=clinic.home,
    ) as child:
        os.close(theirs)
        said = b""
        while select.select([ours], [], [], 90)[0]:
            try:
                chunk = os.read(ours, 4096)
            except OSError:
                break
            if not chunk:
                break
            said += chunk
        child.wait(90)
    os.close(ours)
    return said.decode()


def test_d26_a_heartbeat_names_what_runs_on_a_terminal_only(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path)
    clinic.write(".profile", "sleep 2.5\n")
    assert "checking shell.rc" in _terminal(clinic, "shell.rc")
    assert "checking" not in _terminal(clinic, "shell.rc", "--json")
    assert clinic.tfx("doctor", "shell.rc").err == ""


def test_d26_the_heartbeat_beats_after_two_seconds_and_then_every_two(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path)
    clinic.write(".profile", "sleep 4.6\n")
    told = re.findall(r"checking shell.rc … (\d+) s", _terminal(clinic, "shell.rc"))
    seconds = [int(each) for each in told]
    assert min(seconds) >= 2
    assert len(set(seconds)) == len(seconds) > 1


@pytest.mark.parametrize(
    ("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -15), (signal.SIGHUP, -1)]
)
def test_d14_d16_d49_whatever_word_ends_it_leaves_no_process(
    tmp_path: Path, signum: int, code: int
) -> None:
    clinic = Clinic(tmp_path, "claude").everywhere()
    mark = clinic.root / "pids"
    program = (clinic.bin / "claude").resolve()
    program.write_text(f"#!/bin/sh\necho $$ >>{mark}\nsleep 60\n")
    (program.parents[1] / "package.json").unlink()
    started, ended = _ended_by(signum, clinic, mark, "cli.exec")
    assert (ended, [pid for pid in started if not gone(pid)]) == (code, [])


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
def test_d49_the_shells_end_too(tmp_path: Path, signum: int) -> None:
    clinic = Clinic(tmp_path, "claude").everywhere()
    mark = clinic.root / "pids"
    clinic.write(".bashrc", f"sh -c 'echo $$; exec sleep 60' >>{mark}\n")
    started, ended = _ended_by(signum, clinic, mark, "shells")
    assert (ended, [pid for pid in started if not gone(pid)]) == (-signum, [])


def _ended_by(signum: int, clinic: Clinic, mark: Path, check: str) -> tuple[list[int], int]:
    """End doctor once its probe has written its pid; which ones, and how doctor ended."""
    with subprocess.Popen(
        [sys.executable, "-m", "tfx", "doctor", check, "--json", "--timeout", "100"],
        env=clinic.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as child:
        until = time.monotonic() + 60
        while not (mark.exists() and mark.read_text()) and time.monotonic() < until:
            time.sleep(0.02)
        os.kill(child.pid, signum)
        child.communicate(timeout=60)
    return [int(pid) for pid in mark.read_text().split()], child.returncode


def test_d12_nothing_beyond_this_machine_is_asked_by_default() -> None:
    from tfx.doctor.registry import CHECKS  # noqa: PLC0415
    from tfx.doctor.selection import choose  # noqa: PLC0415

    assert "network" not in {check.id for check in choose(CHECKS, Options())}
    assert "network" in {check.id for check in choose(CHECKS, Options(network=True))}
    assert "db.log" not in {check.id for check in choose(CHECKS, Options())}
    assert "db.log" in {check.id for check in choose(CHECKS, Options(deep=True))}


def test_d18_the_redactor_is_the_one_place(home: Path) -> None:
    paths = Paths.resolve(bare_env(home))
    assert Redactor(paths).text(str(home)) == "~"
