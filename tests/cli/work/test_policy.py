"""What config.toml says of work reaches the daemon (WK-K8, K-19)."""

from __future__ import annotations

from pathlib import Path

from tests.cli.work.agents import Agent, Person
from tests.hub.running import start

CONFIG = "[hub]\nreview_rounds = 1\n"


def test_wk_k8_review_rounds_of_the_configuration_block_the_task_until_the_person_decides(
    home: Path,
) -> None:
    config = home / ".config" / "tfx" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(CONFIG, "utf-8")
    room = home / "project"
    (room / ".git").mkdir(parents=True)
    hub = start(home)
    try:
        person = Person(hub, room)
        number = person.has("one")
        alpha = Agent.start(hub, "alpha.project", room)
        try:
            alpha.does("lease", "claim", number)
            for status in ("in_review", "in_progress"):
                alpha.does("task", "update", number, "--status", status)
            again = alpha.does("task", "update", number, "--status", "in_review")["task"]
            assert again["status"] == "blocked"
            assert again["note"].startswith("policy: ")
            problem = alpha.refused("task", "update", number, "--status", "in_review")
            assert (problem["code"], problem["exit"]) == ("policy-limit", 5)
            assert f"tfx task update {number} --status STATUS --operator" in problem["hint"]
            person.does("task", "update", number, "--status", "in_progress", "--operator")
            last = alpha.does("task", "update", number, "--status", "in_review")["task"]
            assert last["status"] == "in_review"
        finally:
            alpha.end()
    finally:
        hub.end()
