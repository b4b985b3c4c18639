"""`tfx task`: every command against a real hub, its envelope and its exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.work.agents import Agent, Person

Agents = Callable[..., Agent]


def test_wk_t3_a_task_is_proposed_unless_it_is_accepted(person: Person) -> None:
    ran = person.tfx("task", "add", "Parse week dates")
    assert (ran.code, ran.out) == (0, "✓ task 1 is proposed: Parse week dates\n")
    made = person.does(
        *("task", "add", "Second", "--accept", "--detail", "-", "--priority", "8"),
        *("--parent", "1", "--blocked-by", "1", "--exclusive", "db", "--branch", "b", "--pr", "p"),
        *("--output", "o", "--source-message", "m", "--source-task", "JIRA-1"),
        stdin="all\nabout it",
    )["task"]
    assert (made["task"], made["status"], made["detail_chars"]) == (2, "accepted", 12)
    assert person.does("task", "show", "2")["task"]["detail"] == "all\nabout it"
    assert (made["priority"], made["parent"], made["blocked_by"]) == (8, 1, [1])
    assert (made["exclusive"], made["branch"], made["pr"]) == ("db", "b", "p")
    assert (made["output"], made["source_message"], made["source_task"]) == ("o", "m", "JIRA-1")
    assert (made["ready"], made["assignee"], made["lease"]) == (False, None, None)


def test_wk_t6_the_same_key_makes_one_task(person: Person) -> None:
    first, again = (person.does("task", "add", "one", "--key", "k")["task"] for _ in range(2))
    assert first["task"] == again["task"] == 1
    problem = person.refused("task", "add", "other", "--key", "k")
    assert (problem["code"], problem["exit"]) == ("idempotency-conflict", 5)
    by_op = [person.does("task", "add", "two", "--op-id", "x")["task"]["task"] for _ in range(2)]
    assert by_op == [2, 2]


def test_wk_k5_work_that_is_there_already_is_refused_with_its_task(person: Person) -> None:
    person.has("one", branch="api/paging")
    problem = person.refused("task", "add", "again", "--branch", "api/paging")
    assert (problem["code"], problem["exit"]) == ("duplicate-work", 5)
    assert (problem["details"]["task"], problem["details"]["matches"]) == (1, "branch")
    assert problem["hint"] == "the work that is already there: tfx task show 1"


def test_wk_k5_a_duplicate_is_sent_to_the_review_or_to_who_has_it(
    person: Person, agent: Agents
) -> None:
    alpha, beta = agent("alpha"), agent("beta")
    person.has("one", pr="https://example.org/o/r/pull/7")
    alpha.does("lease", "claim", "1")
    again = ("task", "add", "again", "--pr", "http://EXAMPLE.org/o/r/pull/7/files")
    problem = beta.refused(*again)
    assert (problem["code"], problem["details"]["route"]) == ("duplicate-work", "work")
    name = problem["details"]["assignee"]
    assert problem["hint"] == f"{name} works on it and can hand it on: tfx lease handoff 1 --to YOU"
    alpha.does("task", "update", "1", "--status", "in_review")
    problem = beta.refused(*again)
    assert problem["details"]["route"] == "review"
    assert problem["hint"].endswith("tfx lease review claim 1")
    assert beta.does("lease", "review", "claim", "1")["review"]["task"] == 1


def test_wk_t7_list_filters_and_says_why_a_task_is_not_ready(person: Person, agent: Agents) -> None:
    person.has("one")
    person.has("two", blocked_by=[1])
    person.has("three", accept=False)
    person.does("task", "update", "3", "--status", "cancelled")
    alpha = agent("alpha")
    alpha.does("lease", "claim", "1")

    def listed(*words: str, who: Agent | Person = person) -> list[int]:
        return [each["task"] for each in who.does("task", "list", *words)["tasks"]]

    assert listed() == [1, 2]
    assert listed("--all") == [1, 2, 3]
    assert listed("--status", "cancelled", "--status", "accepted") == [2, 3]
    assert listed("--status", "in-progress") == []
    assert listed("--ready") == []
    assert listed("--mine", who=alpha) == listed("--assignee", alpha.name) == [1]
    assert listed("--after", "1") == [2]
    text = person.tfx("task", "list").out
    assert f"1      assigned   5      one     {alpha.name}" in text
    assert "blocked by 1" in text
    more = person.tfx("task", "list", "--limit", "1")
    assert "tfx task list --after 1" in more.err
    assert person.tfx("task", "list", "--status", "done").out == "· no such task on this board\n"


def test_list_refuses_what_it_does_not_know(person: Person) -> None:
    problem = person.refused("task", "list", "--status", "finished")
    assert problem["exit"] == 2
    assert "in_review, merged, done, cancelled" in problem["message"]
    assert person.refused("task", "list", "--mine")["code"] == "actor-missing"
    both = person.refused("task", "list", "--mine", "--assignee", "x-1")
    assert (both["code"], both["exit"]) == ("usage", 2)


def test_show_tells_all_of_a_task(person: Person, agent: Agents) -> None:
    alpha = agent("alpha")
    person.has("one", detail="first\nsecond", branch="b/1")
    lease = alpha.does("lease", "claim", "1", "--ttl", "4h", "--label", "Alpha")["lease"]
    alpha.does("task", "attach", "pr", "https://x/1", "--task", "1")
    person.does("lease", "lock", "1", "--note", "wait")
    data = person.does("task", "show", "1")["task"]
    assert data["lease"]["lease_id"] == lease["lease_id"]
    assert data["artifacts"][0]["identity"] == "https://x/1"
    text = person.tfx("task", "show", "1").out
    for part in (
        "#1 one",
        f"{alpha.name} holds it until 20",
        f"(lease {lease['lease_id']}, epoch 0)",
        "branch    b/1",
        "pr https://x/1 (by",
        "task 1 is locked by operator",
        "human_stop (wait)",
        "    second",
    ):
        assert part in text, part
    gone = person.refused("task", "show", "99")
    assert (gone["code"], gone["exit"]) == ("unknown-task", 1)


def test_a_text_of_an_agent_gives_the_terminal_no_orders(person: Person) -> None:
    person.does(
        "task", "add", "red\x1b[31m alert\u202e\x07", "--accept", "--detail", "a\x1b]0;x\x07b"
    )
    for words in (("show", "1"), ("list",), ("board",)):
        text = person.tfx("task", *words).out
        assert not {"\x1b", "\x07", "\u202e"} & set(text), words


def test_wk_t12_next_looks_and_with_claim_takes(person: Person, agent: Agents) -> None:
    alpha, beta = agent("alpha"), agent("beta")
    nothing = alpha.refused("task", "next", "--claim")
    assert (nothing["code"], nothing["exit"]) == ("nothing-ready", 5)
    assert "tfx task list" in nothing["hint"]
    for title, priority in (("low", 2), ("high", 8)):
        person.has(title, priority=priority)
    seen = person.does("task", "next")
    assert (seen["task"]["title"], seen["lease"]) == ("high", None)
    assert beta.does("task", "next", "--peek")["lease"] is None
    taken = alpha.does("task", "next", "--claim", "--ttl", "90m", "--instance", "i-1")
    lease = taken["lease"]
    assert (taken["task"]["title"], lease["agent_id"], lease["epoch"]) == ("high", alpha.name, 0)
    assert (lease["ttl_ms"], lease["instance"]) == (5_400_000, "i-1")
    assert beta.does("task", "next", "--claim")["task"]["title"] == "low"
    text = alpha.tfx("task", "next", "--claim", "--op-id", "n")
    assert text.code == 5
    assert "[nothing-ready]" in text.err
    wrong = person.refused("task", "next", "--claim", "--ttl", "4 hours")
    assert (wrong["code"], wrong["exit"]) == ("usage", 2)


def test_next_prints_what_every_later_change_has_to_name(person: Person, agent: Agents) -> None:
    person.has("one")
    ran = agent("alpha").tfx("task", "next", "--claim")
    assert ran.code == 0
    lease = person.does("task", "show", "1")["task"]["lease"]
    assert f"  --lease {lease['lease_id']} --epoch 0\n" in ran.out


def test_h_31_a_claim_shows_the_beginning_of_a_long_detail(person: Person, agent: Agents) -> None:
    person.has("one", detail="\n".join(["all about it"] * 300))
    ran = agent("alpha").tfx("task", "next", "--claim")
    assert ran.code == 0
    assert "    all about it\n" in ran.out
    assert "    … of 3899 characters: tfx task show 1\n" in ran.out
    assert "characters" not in person.tfx("task", "show", "1").out


def test_update_changes_only_what_it_names(person: Person, agent: Agents) -> None:
    alpha = agent("alpha")
    for title in ("one", "two"):
        person.has(title, branch=title, detail="d")
    lease = alpha.does("lease", "claim", "1")["lease"]
    fence = ("--lease", lease["lease_id"], "--epoch", "0")
    moved = alpha.does("task", "update", "1", "--status", "in-progress", "--note", "on it", *fence)
    assert (moved["task"]["status"], moved["task"]["note"]) == ("in_progress", "on it")
    assert (moved["task"]["branch"], moved["task"]["detail_chars"]) == ("one", 1)
    changed = alpha.does(
        *("task", "update", "1", "--title", "uno", "--priority", "9", "--exclusive", "k"),
        *("--branch", "", "--pr", "https://x/2", "--output", "o", "--detail", ""),
        *("--blocked-by", "2", "--expect", str(moved["task"]["revision"])),
    )["task"]
    assert (changed["title"], changed["priority"], changed["exclusive"]) == ("uno", 9, "k")
    assert (changed["branch"], changed["pr"], changed["blocked_by"]) == (None, "https://x/2", [2])
    freed = alpha.does("task", "update", "1", "--no-blockers", "--exclusive", "")["task"]
    assert (freed["blocked_by"], freed["exclusive"]) == ([], None)
    stale = alpha.refused("task", "update", "1", "--priority", "1", "--expect", "1")
    assert (stale["code"], stale["exit"]) == ("stale", 5)
    both = alpha.refused("task", "update", "1", "--no-blockers", "--blocked-by", "2")
    assert (both["code"], both["exit"]) == ("usage", 2)


def test_wk_t1_a_refused_status_names_those_that_are_allowed(person: Person) -> None:
    person.has("one")
    problem = person.refused("task", "update", "1", "--status", "done")
    assert (problem["code"], problem["exit"]) == ("bad-transition", 2)
    assert problem["hint"] == "tfx task update 1 --status assigned|cancelled"
    ran = person.tfx("task", "update", "1", "--status", "done")
    assert "hint: tfx task update 1 --status assigned|cancelled" in ran.err
    assert person.refused("task", "update", "1", "--status", "ready")["code"] == "usage"


def test_wk_l20_the_person_decides_with_the_credential_whoever_holds_it(
    person: Person, agent: Agents
) -> None:
    alpha = agent("alpha")
    person.has("one")
    lease = alpha.does("lease", "claim", "1")["lease"]
    wish = ("task", "update", "1", "--status", "cancelled", "--note", "no longer wanted")
    problem = person.refused(*wish)
    assert (problem["code"], problem["exit"]) == ("actor-missing", 5)
    assert "tfx lease force-release 1" in problem["hint"]
    assert "--operator" in problem["hint"]
    assert person.does(*wish, "--operator")["task"]["status"] == "cancelled"
    assert person.refused(*wish, "--operator", "--agent", "x-1")["exit"] == 2
    fence = ("--lease", lease["lease_id"], "--epoch", "0")
    lost = alpha.refused("task", "update", "1", "--note", "mine", *fence)
    assert (lost["code"], lost["exit"]) == ("lease-lost", 5)


def test_wk_l14_attach_names_what_came_of_the_work(person: Person, agent: Agents) -> None:
    alpha, beta = agent("alpha"), agent("beta")
    person.has("one", branch="api/paging")
    alpha.does("lease", "claim", "1")
    alpha.does("task", "attach", "branch", "api/paging")  # found by what it is linked to
    data = alpha.does("task", "attach", "file", "notes/../plan.md", "--task", "1")["task"]
    found = {(each["kind"], each["identity"]) for each in data["artifacts"]}
    assert found == {("branch", "api/paging"), ("file", str(alpha.workspace / "plan.md"))}
    other = beta.refused("task", "attach", "commit", "3f2a1c", "--task", "1")
    assert (other["code"], other["details"]["holder"]) == ("lease-holder", alpha.name)
    wrong = alpha.refused("task", "attach", "video", "x", "--task", "1")
    assert (wrong["code"], wrong["exit"]) == ("usage", 2)


def test_k_28_delete_needs_the_credential_and_keeps_the_number(person: Person) -> None:
    person.does("task", "add", "one")
    data = person.does("task", "delete", "1", "--reason", "a mistake")
    assert (data["task"], data["deleted"]) == (1, True)
    assert person.does("task", "delete", "1")["deleted"] is False
    assert person.does("task", "add", "two")["task"]["task"] == 2
    person.hub.files.operator.rename(person.hub.files.operator.with_suffix(".kept"))
    try:
        refused = person.refused("task", "delete", "2")
        assert refused["exit"] in {4, 5}
    finally:
        person.hub.files.operator.with_suffix(".kept").rename(person.hub.files.operator)


def test_k_8_a_success_is_one_document_with_the_hubs_answer(person: Person) -> None:
    ran = person.tfx("--json", "task", "add", "한글 ✓")
    document = json.loads(ran.out)
    assert list(document) == ["tfx", "command", "status", "exit", "data", "problems"]
    assert (document["command"], document["status"], document["problems"]) == ("task add", "ok", [])
    assert (document["data"]["task"]["title"], ran.err) == ("한글 ✓", "")
    assert person.tfx("task", "add", "x", "--quiet").out == ""


@pytest.mark.parametrize(
    "words",
    [
        ("task", "add", "t\udcff"),
        ("task", "add", ""),
        ("task", "add", "x" * 301),
        ("task", "show", "0"),
        ("task", "show", "x"),
        ("task", "list", "--limit", "0"),
        ("task", "update", "1", "--priority", "10"),
    ],
)
def test_what_no_request_can_carry_is_a_usage_error(person: Person, words: tuple[str, ...]) -> None:
    ran = person.tfx(*words, "--json")
    assert ran.code == 2, ran.out + ran.err
    assert ran.document["problems"][0]["kind"] == "invalid-request"


def test_an_agent_of_another_workspace_sees_and_takes_nothing_here(
    person: Person, agent: Agents, tmp_path: Path
) -> None:
    person.has("one")
    stranger = agent("stranger", tmp_path)
    assert stranger.does("task", "list")["tasks"] == []
    problem = stranger.refused("lease", "claim", "1", "--room", str(person.workspace))
    assert (problem["code"], problem["exit"]) == ("foreign-room", 5)


def test_what_others_wrote_never_drives_the_terminal(person: Person) -> None:
    evil = "a\x1b]0;b\x07c\u202ed\x9be"
    shown = "a\\x1b]0;b\\x07c\\u202ed\\x9be"
    ran = person.tfx("task", "add", evil, "--accept", "--key", "k")
    assert ran.out == f"✓ task 1 is accepted: {shown}\n"
    person.does("lease", "lock", "1", "--note", evil)
    ran = person.tfx("task", "update", "1", "--title", "x")
    assert f"the task is locked (human_stop): {shown} [lock-active]" in ran.err
    person.does("lease", "unlock", "1")
    person.does("task", "update", "1", "--note", evil)
    for command in (("task", "list"), ("task", "show", "1"), ("task", "board")):
        out = person.tfx(*command).out
        assert not set("\x1b\x07\u202e\x9b") & set(out)


def test_wk_t10_a_task_that_is_given_to_a_name_shows_the_name(person: Person) -> None:
    person.has("one")
    given = ("--status", "assigned", "--label", "Bob", "--operator")
    assert "\n  of        Bob\n" in person.tfx("task", "update", "1", *given).out
    assert "\n  of        Bob\n" in person.tfx("task", "show", "1").out
    assert "(Bob)" in person.tfx("task", "list").out
    assert "Bob, no lease" in person.tfx("task", "board").out
