"""Who a command speaks for, and on which board (K-4, K-27, WK-A2 … WK-A4)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.cli.work.agents import Agent, Person
from tests.hub.running import RunningHub

Agents = Callable[..., Agent]


def test_k_27_inside_an_agent_the_commands_speak_for_it_and_its_session(
    agent: Agents, person: Person
) -> None:
    alpha = agent("alpha")
    lease = alpha.does("lease", "claim", person.has("one"))["lease"]
    assert (lease["agent_id"], lease["session"]) == (alpha.name, alpha.session)
    assert lease["room"] == str(alpha.workspace)


def test_k_27_outside_of_agents_it_is_the_person_who_is_no_worker(person: Person) -> None:
    made = person.does("task", "add", "one", "--accept")["task"]
    assert made["author"] == "operator"
    problem = person.refused("lease", "claim", str(made["task"]))
    assert (problem["code"], problem["exit"]) == ("actor-missing", 5)
    assert problem["kind"] == "authentication-required"


def test_wk_a4_an_agent_that_is_only_named_has_no_session(hub: RunningHub, person: Person) -> None:
    hub.register("named-1")
    number = person.has("one")
    ran = person.tfx("lease", "claim", number, "--agent", "named-1", "--json")
    assert ran.code != 0
    given = person.tfx(
        "task", "update", number, "--priority", "8", "--json", TFX_AGENT_ID="named-1"
    )
    assert given.code == 0, given.out
    assert given.data["task"]["priority"] == 8


def test_k_27_an_option_wins_over_the_variable_and_both_over_the_ancestor(
    agent: Agents, person: Person
) -> None:
    alpha, beta = agent("alpha"), agent("beta")
    number = person.has("one")
    own = ("--agent", beta.name, "--session", beta.session)
    lease = alpha.does("lease", "claim", number, *own)["lease"]
    assert (lease["agent_id"], lease["session"]) == (beta.name, beta.session)
    tfx = f"{sys.executable} -m tfx lease status --mine --json"
    for ran in (
        alpha.sh(f"TFX_AGENT_ID={beta.name} {tfx}"),
        alpha.sh(f"{tfx} --agent {beta.name}"),
    ):
        assert [each["task"] for each in ran.data["leases"]] == [int(number)], ran.err
    assert alpha.does("lease", "status", "--mine")["leases"] == []


def test_wk_a2_a_session_that_is_not_the_agents_is_refused(agent: Agents, person: Person) -> None:
    alpha, beta = agent("alpha"), agent("beta")
    number = person.has("one")
    wrong = ("--agent", beta.name, "--session", alpha.session)
    assert person.refused("lease", "claim", number, *wrong)["exit"] == 5
    alone = person.refused("lease", "claim", number, "--session", alpha.session)
    assert (alone["code"], alone["exit"]) == ("usage", 2)
    assert "--agent" in alone["message"]


def test_k_27_worktrees_and_directories_below_are_on_the_board_of_their_repository(
    hub: RunningHub, tmp_path: Path
) -> None:
    main = tmp_path / "main"
    git = ("git", "-C", str(main), "-c", "user.name=t", "-c", "user.email=t@t")
    subprocess.run(("git", "init", "-q", str(main)), check=True)
    subprocess.run((*git, "commit", "-q", "--allow-empty", "-m", "x"), check=True)
    subprocess.run((*git, "worktree", "add", "-q", str(tmp_path / "side")), check=True)
    below = main / "a" / "b"
    below.mkdir(parents=True)
    rooms = {
        Person(hub, place).does("task", "add", place.name)["task"]["room"]
        for place in (main, below, tmp_path / "side")
    }
    assert rooms == {str(main)}


def test_k_4_a_relative_room_is_resolved_by_the_command(person: Person) -> None:
    elsewhere = person.workspace.parent / "elsewhere" / "deep"
    elsewhere.mkdir(parents=True, exist_ok=True)
    made = person.does("task", "add", "one", "--room", "../elsewhere/deep")["task"]
    assert made["room"] == str(elsewhere)
    assert person.does("task", "list")["tasks"] == []
    there = person.does("task", "list", "--room", str(elsewhere))
    assert made["task"] in [each["task"] for each in there["tasks"]]


def test_k_27_an_agent_stays_on_the_board_of_its_registration_wherever_it_stands(
    agent: Agents, person: Person
) -> None:
    alpha = agent("alpha")
    person.has("one")
    assert alpha.sh("cd /").code == 0
    lease = alpha.does("task", "next", "--claim")["lease"]
    assert (lease["room"], lease["worktree"]) == (str(alpha.workspace), None)
    foreign = alpha.refused("lease", "claim", "1", "--room", "/")
    assert (foreign["code"], foreign["exit"]) == ("foreign-room", 5)


def test_the_working_tree_is_recorded_with_the_lease(agent: Agents, person: Person) -> None:
    alpha = agent("alpha")
    for _ in range(2):
        person.has("one")
    assert alpha.does("lease", "claim", "1")["lease"]["worktree"] == str(alpha.workspace)
    named = alpha.does("lease", "claim", "2", "--worktree", "../side")["lease"]
    assert named["worktree"] == str(alpha.workspace.parent / "side")


def test_a_working_directory_that_is_gone_is_said(person: Person) -> None:
    gone = person.workspace / "gone"
    gone.mkdir()
    line = f"rmdir {gone}; exec {sys.executable} -I -m tfx task list --json"
    done = subprocess.run(
        ["sh", "-c", line],
        env=person.hub.env,
        cwd=gone,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2, done.stderr
    [problem] = json.loads(done.stdout)["problems"]
    assert problem["code"] == "no-directory"
