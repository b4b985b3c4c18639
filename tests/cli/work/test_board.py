"""`tfx task board`: for people, for scripts, and as it changes."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.cli.work.agents import Agent, Person

Agents = Callable[..., Agent]
BOARD = (sys.executable, "-m", "tfx", "task", "board")


def on_a_terminal(person: Person, *words: str, columns: int = 120) -> str:
    """Run the board on a pseudo-terminal and return what it draws."""
    master, slave = pty.openpty()
    env = {**person.hub.env, "COLUMNS": str(columns), "LINES": "40", "TERM": "xterm-256color"}
    with subprocess.Popen(
        [*BOARD, *words], env=env, cwd=person.workspace, stdout=slave, stderr=slave
    ) as running:
        os.close(slave)
        drawn = b""
        while True:
            try:
                piece = os.read(master, 65_536)
            except OSError:
                break
            if not piece:
                break
            drawn += piece
        running.wait(60)
    os.close(master)
    return drawn.decode()


@pytest.fixture
def busy(person: Person, agent: Agents) -> Person:
    """A board with everything on it that a board can show."""
    for title in ("free", "taken", "reviewed", "locked"):
        person.has(title)
    person.has("late", blocked_by=[2], priority=9)
    person.has("idea", accept=False)
    alpha, beta = agent("alpha"), agent("beta")
    alpha.does("lease", "claim", "2", "--ttl", "4h")
    alpha.does("lease", "claim", "3")
    alpha.does("task", "update", "3", "--status", "in_review")
    beta.does("lease", "review", "claim", "3")
    person.does("lease", "lock", "4", "--note", "design")
    return person


def test_without_a_terminal_the_board_is_plain_lines(busy: Person) -> None:
    room = busy.workspace.name
    ran = busy.tfx("task", "board")
    lines = ran.out.splitlines()
    assert lines[0].startswith(f"board of ~/{room}, revision ")
    assert lines[1].startswith("! task 4 is locked by operator")
    assert lines[2:7] == [
        "proposed (1)",
        "  #6 idea",
        "accepted (3)",
        "  #5 late [blocked by 2; priority 9]",
        "  #1 free [ready]",
    ]
    assert lines[7] == "  #4 locked [locked: human_stop]"
    assert lines[8] == "assigned (1)"
    assert lines[9].startswith(f"  #2 taken [alpha.{room}, beat ")
    assert lines[9].endswith("; ends in 3 h]")
    assert lines[10] == "in_review (1)"
    assert lines[11].startswith(f"  #3 reviewed [alpha.{room}, beat ")
    assert lines[11].endswith(f"; review by beta.{room}]")
    assert busy.tfx("--ascii", "task", "board").out.isascii()


def test_the_document_has_tasks_leases_and_locks_of_one_revision(busy: Person) -> None:
    data = busy.does("task", "board")
    assert set(data) == {"room", "revision", "tasks", "leases", "locks", "locks_total"}
    assert data["room"] == str(busy.workspace)
    assert [each["task"] for each in data["tasks"]] == [1, 2, 3, 4, 5, 6]
    assert sorted(each["task"] for each in data["leases"]) == [2, 3]
    assert [each["task"] for each in data["locks"]] == [4]
    busy.does("task", "update", "1", "--status", "cancelled")
    assert 1 not in [each["task"] for each in busy.does("task", "board")["tasks"]]
    assert 1 in [each["task"] for each in busy.does("task", "board", "--all")["tasks"]]


def test_on_a_wide_terminal_each_status_is_a_column(busy: Person) -> None:
    text = on_a_terminal(busy)
    heads = next(line for line in text.splitlines() if "proposed (1)" in line)
    assert "accepted (3)" in heads
    assert "in_review (1)" in heads
    assert "╭" in text
    narrow = on_a_terminal(busy, columns=60)
    assert "╭" not in narrow
    assert "  #5 late" in narrow
    plain = on_a_terminal(busy, "--ascii")
    assert plain.isascii()
    assert "\x1b" not in plain
    assert "  #5 late" in plain


def test_a_board_longer_than_a_page_is_read_to_its_end(person: Person) -> None:
    for number in range(505):
        person.has(f"task {number}")
    assert len(person.does("task", "board")["tasks"]) == 505


def test_an_empty_board_says_how_to_begin(person: Person) -> None:
    assert "tfx task add 'TITLE' --accept" in person.tfx("task", "board").out


@contextmanager
def watching(person: Person, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [*BOARD, "--watch", *words],
        env=person.hub.env,
        cwd=person.workspace,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,  # or a second line would be out of the sight of `select`
    ) as running:
        try:
            yield running
        finally:
            running.send_signal(signal.SIGINT)
            running.communicate(timeout=60)


def line_of(running: subprocess.Popen[bytes]) -> bytes:
    assert running.stdout is not None
    assert select.select([running.stdout], [], [], 100)[0], "nothing came"
    return running.stdout.readline()


def test_k_7_watch_prints_one_document_for_each_change(person: Person) -> None:
    person.has("one")
    with watching(person, "--json") as running:
        first = json.loads(line_of(running))
        assert [each["title"] for each in first["tasks"]] == ["one"]
        person.has("two")
        second = json.loads(line_of(running))
        assert [each["title"] for each in second["tasks"]] == ["one", "two"]
        assert second["revision"] > first["revision"]
        person.does("lease", "lock", "1")
        assert json.loads(line_of(running))["locks"][0]["task"] == 1
    assert running.returncode == 130


def test_watch_goes_on_after_a_restart_of_the_hub(person: Person) -> None:
    person.has("one")
    with watching(person, "--json") as running:
        assert json.loads(line_of(running))["tasks"]
        person.hub.end()
        time.sleep(0.5)
        again = person.hub.again()
        person.hub.url, person.hub.port, person.hub.pid = again.url, again.port, again.pid
        person.has("two")
        while len(json.loads(line_of(running))["tasks"]) != 2:
            pass


def test_watch_without_a_hub_exits_4(person: Person) -> None:
    home = person.workspace / "empty"
    home.mkdir()
    ran = person.tfx("task", "board", "--watch", "--json", HOME=str(home))
    assert (ran.code, ran.document["problems"][0]["code"]) == (4, "hub-not-running")
