"""`tfx lease`: claim to force-release, reviews and locks, against a real hub."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.work.agents import Agent, Person

Agents = Callable[..., Agent]


@pytest.fixture
def number(person: Person) -> str:
    """A task that can be claimed."""
    return person.has("one")


def test_wk_l2_claiming_again_returns_the_same_lease(agent: Agents, number: str) -> None:
    alpha = agent("alpha")
    first, again = (alpha.does("lease", "claim", number, "--ttl", "4h") for _ in range(2))
    assert first["lease"] == again["lease"]
    assert first["lease"]["ttl_ms"] == 14_400_000
    ran = alpha.tfx("lease", "claim", number)
    assert f"task {number} is held by {alpha.name} until 20" in ran.out
    assert f"--lease {first['lease']['lease_id']} --epoch 0" in ran.out


def test_wk_t12_claiming_what_is_held_names_the_holder(
    agent: Agents, person: Person, number: str
) -> None:
    alpha, beta = agent("alpha"), agent("beta")
    alpha.does("lease", "claim", number)
    problem = beta.refused("lease", "claim", number)
    assert (problem["code"], problem["exit"]) == ("held", 5)
    assert (problem["details"]["holder"], problem["details"]["epoch"]) == (alpha.name, 0)
    assert alpha.name in problem["message"]
    assert f"tfx lease handoff {number} --to YOU" in problem["hint"]
    early = beta.refused("lease", "claim", person.has("two", blocked_by=[int(number)]))
    assert (early["code"], early["exit"]) == ("not-ready", 5)


def test_wk_d2_renew_finds_its_own_lease_and_gives_it_a_new_end(agent: Agents, number: str) -> None:
    alpha, beta = agent("alpha"), agent("beta")
    lease = alpha.does("lease", "claim", number, "--ttl", "1h")["lease"]
    longer = alpha.does("lease", "renew", number, "--ttl", "4h")["lease"]
    assert longer["expires_at_ms"] - lease["expires_at_ms"] > 10_000_000
    assert (longer["lease_id"], longer["epoch"]) == (lease["lease_id"], 0)
    ran = alpha.tfx("lease", "renew", number)
    assert (ran.code, ran.out.startswith(f"✓ the lease of task {number} is yours until 20")) == (
        *(0, True),
    )
    named = ("--lease", lease["lease_id"], "--epoch", "1")
    assert alpha.refused("lease", "renew", number, *named)["code"] == "lease-changed"
    other = beta.refused("lease", "renew", number)
    assert (other["code"], other["exit"]) == ("lease-missing", 5)
    assert f"tfx lease status {number}" in other["hint"]


def test_wk_d1_a_lease_without_time_to_live_needs_no_renewal(agent: Agents, number: str) -> None:
    alpha = agent("alpha")
    alpha.does("lease", "claim", number)
    problem = alpha.refused("lease", "renew", number)
    assert (problem["code"], problem["exit"]) == ("no-ttl", 5)


def test_wk_l16_release_frees_the_task(agent: Agents, person: Person, number: str) -> None:
    alpha, beta = agent("alpha"), agent("beta")
    lease = alpha.does("lease", "claim", number)["lease"]
    wrong = alpha.refused("lease", "release", number, "--lease", lease["lease_id"], "--epoch", "3")
    assert wrong["code"] == "lease-changed"
    assert beta.refused("lease", "release", number)["code"] == "lease-holder"
    ran = alpha.tfx("lease", "release", number, "--reason", "needs a database")
    assert ran.out == f"✓ task {number} is accepted; {alpha.name} held it with epoch 0\n"
    none = alpha.refused("lease", "release", number)
    assert (none["code"], none["exit"]) == ("lease-missing", 5)
    assert beta.does("lease", "claim", number)["lease"]["epoch"] == 1
    assert person.does("lease", "status", number)["leases"][1]["reason"] == "needs a database"


def test_wk_l18_handoff_gives_the_next_epoch_to_exactly_one_live_session(
    agent: Agents, number: str
) -> None:
    alpha, beta = agent("alpha"), agent("beta")
    lease = alpha.does("lease", "claim", number)["lease"]
    nobody = alpha.refused("lease", "handoff", number, "--to", "nobody-1")
    assert (nobody["code"], nobody["exit"]) == ("target-unreachable", 4)
    assert "tfx hub agents" in nobody["hint"]
    other = ("--to-session", "another")
    assert alpha.refused("lease", "handoff", number, "--to", beta.name, *other)["exit"] == 5
    data = alpha.does(
        *("lease", "handoff", number, "--to", beta.name, "--to-session", beta.session),
        *("--ttl", "2h", "--reason", "over to you"),
    )
    assert (data["released"]["lease_id"], data["lease"]["epoch"]) == (lease["lease_id"], 1)
    assert (data["lease"]["agent_id"], data["lease"]["ttl_ms"]) == (beta.name, 7_200_000)
    fence = ("--lease", lease["lease_id"], "--epoch", "0")
    lost = alpha.refused("task", "update", number, "--note", "still me", *fence)
    assert (lost["code"], lost["exit"]) == ("lease-lost", 5)
    assert lost["hint"].startswith("stop changing the task (somebody else has it now)")
    assert f"tfx lease status --lease {lease['lease_id']}" in lost["hint"]
    told = alpha.does("lease", "status", "--lease", lease["lease_id"])["leases"]
    assert (told[0]["state"], told[0]["successor"]) == ("released", data["lease"]["lease_id"])
    text = alpha.tfx("lease", "status", "--lease", lease["lease_id"]).out
    assert "released" in text
    assert f"now lease {data['lease']['lease_id']}" in text


def test_wk_l20_the_person_hands_on_what_an_agent_holds(
    agent: Agents, person: Person, number: str
) -> None:
    alpha, beta = agent("alpha"), agent("beta")
    alpha.does("lease", "claim", number)
    to = ("lease", "handoff", number, "--to", beta.name)
    problem = person.refused(*to)
    assert (problem["code"], problem["exit"]) == ("actor-missing", 5)
    ran = person.tfx(*to, "--operator")
    assert f"✓ task {number} is held by {beta.name} until it is given back" in ran.out


def test_wk_d8_status_answers_for_task_agent_room_and_self(
    agent: Agents, person: Person, number: str
) -> None:
    alpha, beta = agent("alpha"), agent("beta")
    second = person.has("two")
    alpha.does("lease", "claim", number)
    beta.does("lease", "claim", second)

    def tasks(data: Any) -> list[int]:  # noqa: ANN401
        return sorted(each["task"] for each in data["leases"])

    assert tasks(person.does("lease", "status")) == [int(number), int(second)]
    assert tasks(person.does("lease", "status", number)) == [int(number)]
    assert tasks(alpha.does("lease", "status", "--mine")) == [int(number)]
    assert tasks(person.does("lease", "status", "--of", beta.name)) == [int(second)]
    line = person.tfx("lease", "status", number).out
    assert f"✓ task {number}: {alpha.name}, epoch 0, lease " in line
    assert "until it is given back, beat" in line
    assert person.refused("lease", "status", "--mine")["code"] == "actor-missing"
    two = person.refused("lease", "status", number, "--of", beta.name)
    assert (two["code"], two["exit"]) == ("usage", 2)
    gone = person.refused("lease", "status", "--lease", "never-was")
    assert (gone["code"], gone["exit"]) == ("unknown-lease", 1)


def test_wk_l25_a_beat_lists_what_is_held_and_an_old_one_is_a_warning(
    agent: Agents, person: Person, number: str
) -> None:
    alpha = agent("alpha")
    assert alpha.tfx("lease", "beat").out == "· you hold nothing\n"
    lease = alpha.does("lease", "claim", number)["lease"]
    beaten = alpha.does("lease", "beat")
    assert beaten["accepted"] is True
    assert [(each["lease_id"], each["epoch"]) for each in beaten["leases"]] == [
        (lease["lease_id"], 0)
    ]
    assert f"task {number}: lease {lease['lease_id']}, epoch 0" in alpha.tfx("lease", "beat").out
    old = alpha.tfx("lease", "beat", "--sequence", "1", "--json")
    assert (old.code, old.document["status"]) == (0, "warning")
    assert old.document["problems"][0]["code"] == "beat-not-taken"
    assert old.data == {"accepted": False, "leases": []}
    nobody = person.refused("lease", "beat")
    assert (nobody["code"], nobody["exit"]) == ("actor-missing", 2)


def test_wk_d5_force_release_takes_the_lease_that_is_there_and_says_whose(
    agent: Agents, person: Person, number: str
) -> None:
    alpha = agent("alpha")
    lease = alpha.does("lease", "claim", number)["lease"]
    assert person.tfx("lease", "force-release", number).code == 2
    stale = ("--lease", lease["lease_id"], "--epoch", "7")
    wrong = person.refused("lease", "force-release", number, "--reason", "x", *stale)
    assert (wrong["code"], wrong["exit"]) == ("lease-changed", 5)
    ran = person.tfx("lease", "force-release", number, "--reason", "its agent is gone")
    assert ran.out == f"✓ task {number} is accepted; {alpha.name} held it with epoch 0\n"
    mail = alpha.does("lease", "status", "--lease", lease["lease_id"])["leases"][0]
    assert (mail["state"], mail["reason"]) == ("revoked", "its agent is gone")
    none = person.refused("lease", "force-release", number, "--reason", "again")
    assert (none["code"], none["exit"]) == ("lease-missing", 5)
    told = alpha.does("hub", "poll", "--agent", alpha.name)["messages"]
    assert [each["topic"] for each in told] == ["work.lease"]


def test_wk_r1_wk_r2_the_review_is_one_others(agent: Agents, person: Person, number: str) -> None:
    alpha, beta, gamma = agent("alpha"), agent("beta"), agent("gamma")
    alpha.does("lease", "claim", number)
    early = beta.refused("lease", "review", "claim", number)
    assert (early["code"], early["exit"]) == ("bad-status", 5)
    alpha.does("task", "update", number, "--status", "in_review")
    own = alpha.refused("lease", "review", "claim", number)
    assert (own["code"], own["exit"]) == ("self-review", 5)
    review = beta.does("lease", "review", "claim", number)["review"]
    assert review["agent_id"] == beta.name
    assert f"{beta.name} reviews task {number}" in beta.tfx("lease", "review", "claim", number).out
    held = gamma.refused("lease", "review", "claim", number)
    assert (held["code"], held["hint"]) == ("held", f"how it stands: tfx task show {number}")
    wrong = beta.refused("lease", "review", "release", number, "--review", "other")
    assert wrong["exit"] == 5
    assert person.does("task", "list")["tasks"][0]["reviewer"] == beta.name
    ended = beta.tfx("lease", "review", "release", number, "--reason", "looks right")
    assert ended.out == f"✓ {beta.name} no longer reviews task {number}\n"
    none = beta.tfx("lease", "review", "release", number)
    assert (none.code, none.out) == (0, f"✓ nobody reviewed task {number}\n")


def test_wk_d8_the_person_ends_a_stuck_review_and_anybody_may_ask_what_became_of_it(
    agent: Agents, person: Person, number: str
) -> None:
    alpha, beta = agent("alpha"), agent("beta")
    alpha.does("lease", "claim", number)
    alpha.does("task", "update", number, "--status", "in_review")
    review = beta.does("lease", "review", "claim", number)["review"]["review_id"]
    refused = person.refused("lease", "review", "release", number)
    assert (refused["code"], refused["exit"]) == ("lease-holder", 5)
    ended = ("lease", "review", "release", number, "--operator", "--reason", "stuck")
    assert person.tfx(*ended).out == f"✓ {beta.name} no longer reviews task {number}\n"
    told = beta.does("lease", "status", "--lease", review)["reviews"]
    assert (told[0]["state"], told[0]["reason"]) == ("revoked", "stuck")
    line = person.tfx("lease", "status", "--lease", review).out
    assert f"task {number}: the review of {beta.name} ({review}), revoked" in line
    assert ": stuck" in line
    both = person.refused(*ended, "--agent", beta.name)
    assert (both["code"], both["exit"]) == ("usage", 2)


def test_wk_k1_a_lock_stops_a_task_or_the_room_until_it_is_cleared(
    agent: Agents, person: Person, number: str
) -> None:
    alpha = agent("alpha")
    ran = person.tfx("lease", "lock", number, "--reason", "manager-pause", "--note", "wait")
    assert ran.out == f"✓ task {number} stands still: manager_pause\n"
    stopped = alpha.refused("lease", "claim", number)
    assert (stopped["code"], stopped["exit"]) == ("lock-active", 5)
    assert f"tfx lease unlock {number}" in stopped["hint"]
    trace = person.does("task", "show", number)["task"]["trace_id"]
    assert f"lock_set #{number} by operator" in person.tfx("hub", "trace", trace).out
    assert person.tfx("lease", "unlock", number).out == f"✓ task {number} goes on\n"
    assert person.tfx("lease", "unlock", number).out == f"✓ task {number} was not locked\n"
    lock = person.does("lease", "lock", "--whole-room")["lock"]
    assert (lock["task"], lock["reason"]) == (None, "human_stop")
    assert alpha.refused("task", "add", "more")["code"] == "lock-active"
    assert person.does("lease", "unlock", "--whole-room")["cleared"]["lock_id"] == lock["lock_id"]
    for words in ((), (number, "--whole-room")):
        problem = person.refused("lease", "lock", *words)
        assert (problem["code"], problem["exit"]) == ("usage", 2)
        assert person.refused("lease", "unlock", *words)["exit"] == 2
    assert person.refused("lease", "lock", number, "--reason", "because")["exit"] == 2


def test_k_28_what_only_a_person_may_is_refused_without_the_credential(
    person: Person, number: str
) -> None:
    kept = person.hub.files.operator.with_suffix(".kept")
    person.hub.files.operator.rename(kept)
    try:
        for words in (
            ("lease", "force-release", number, "--reason", "x"),
            ("lease", "lock", number),
            ("lease", "unlock", number),
            ("task", "update", number, "--operator", "--priority", "1"),
        ):
            assert person.refused(*words)["exit"] in {4, 5}, words
        assert person.does("task", "update", number, "--priority", "2")["task"]["priority"] == 2
    finally:
        kept.rename(person.hub.files.operator)


def test_wk_l11_an_assignment_without_a_lease_is_no_authority(
    agent: Agents, person: Person, number: str
) -> None:
    alpha = agent("alpha")
    given = person.does("task", "update", number, "--assignee", alpha.name)["task"]
    assert (given["status"], given["assignee"]["agent_id"]) == ("assigned", alpha.name)
    problem = alpha.refused("task", "update", number, "--status", "in_progress")
    assert (problem["code"], problem["exit"]) == ("lease-missing", 5)
    assert (
        problem["hint"]
        == f"an agent claims it: tfx lease claim {number}; how it stands: tfx lease status {number}"
    )
    assert alpha.does("lease", "claim", number)["task"]["status"] == "assigned"


def test_wk_a2_a_session_that_ended_is_told_what_to_do(agent: Agents, number: str) -> None:
    alpha = agent("alpha")
    alpha.does("lease", "claim", number)
    alpha.hub.call("deregister", agent_id=alpha.name, lease_id=alpha.session)
    own = ("--agent", alpha.name, "--session", alpha.session)
    problem = alpha.refused("task", "update", number, "--note", "x", *own)
    assert (problem["code"], problem["exit"]) == ("authority-ended", 5)
    assert f"tfx lease claim {number}" in problem["hint"]
