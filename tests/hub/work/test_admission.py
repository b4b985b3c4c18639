"""Work that is already under way is not begun twice, and a loop has an end (WK-K5, K8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hub.driver import Bed, with_bed
from tests.hub.work.crew import (
    ELSEWHERE,
    ROOM,
    Crew,
    PlayCrew,
    Story,
    Worker,
    process_facts,
    refused,
)
from tfx.hub.models import Limits
from tfx.hub.wire.invocations import InvocationStartResult

SAME = [
    ("source_message", "message-1"),
    ("source_task", "ISSUE-7"),
    ("branch", "work/1"),
    ("pr", "https://example.org/pr/7"),
    ("output", "a release note"),
]


@pytest.mark.parametrize(("field", "value"), SAME)
def test_wk_k5_work_with_the_same_origin_or_result_is_denied(
    act: PlayCrew, field: str, value: str
) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        first = await ann.ready(**{field: value})
        with refused("duplicate-work", "state-conflict") as error:
            await bob.add("the same", **{field: value})
        assert error.value.details["task"] == first.task
        assert field in str(error.value.details["matches"])
        other_room = Worker(crew.bed, None, None, room=ELSEWHERE)
        assert (await other_room.add(**{field: value})).task == 1
        await crew.person.update(1, status="cancelled")
        assert (await bob.add("again", **{field: value})).task == 2

    act(story)


def test_wk_k5_an_artifact_of_open_work_counts_and_one_of_finished_work_does_not(
    act: PlayCrew,
) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann, "in_progress")
        await ann.attach("branch", "work/1", lease, task=1)
        await ann.attach("pr", "o/r/7", lease, task=1)
        for fields in ({"branch": "work/1"}, {"pr": "o/r/7"}):
            with refused("duplicate-work") as error:
                await crew.person.add("the same", **fields)
            assert error.value.details["task"] == 1
        await ann.update(1, lease, status="done")
        assert (await crew.person.add("the next", branch="work/1")).task == 2

    act(story)


def test_wk_k5_an_update_does_not_make_a_duplicate_either(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        await crew.person.add(branch="work/1")
        await crew.person.add()
        with refused("duplicate-work"):
            await crew.person.update(2, branch="work/1")
        assert (await crew.person.show(2)).branch is None
        assert (await crew.person.update(1, branch="work/1", title="same")).title == "same"

    act(story)


def test_wk_k5_a_denied_duplicate_leaves_nothing_but_its_denial(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        await crew.person.add(branch="work/1")
        seq = crew.last_seq()
        with refused("duplicate-work"):
            await crew.person.add(branch="work/1")
        later = crew.log()[seq:]
        assert {kind for kind, _, _ in later} <= {"claim_denied"}
        assert len(crew.bed.rows("SELECT * FROM tasks")) == 1

    act(story)


def test_wk_k5_what_cannot_be_made_is_refused_before_anybody_is_told_of_a_duplicate(
    act: PlayCrew,
) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await crew.owned(ann, branch="work/1")
        seq = crew.last_seq()
        with refused("unknown-task"):
            await bob.add(branch="work/1", parent=77)
        with refused("invalid-request"):
            await bob.add("  ", branch="work/1")
        assert crew.last_seq() == seq
        with refused("duplicate-work"):
            await bob.add(branch="work/1")
        assert [each["event"] for each in await ann.mail()] == ["duplicate-proposed"]

    act(story)


def play_with(path: Path, limits: Limits, story: Story) -> None:
    async def whole(bed: Bed) -> None:
        await story(Crew(bed))
        assert await bed.refolds()

    with_bed(path / "hub.db", whole, limits=limits)


def test_wk_k8_after_so_many_review_rounds_the_task_is_blocked(tmp_path: Path) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann, "in_progress")
        for number in (1, 2):
            seen = await ann.update(1, lease, status="in_review")
            assert (seen.status, seen.rounds) == ("in_review", number)
            await bob.review(1)
            await bob.update(1, lease, status="in_progress", note="once more")
        seen = await ann.update(1, lease, status="in_review")
        assert seen.status == "blocked"
        assert seen.note is not None
        assert seen.note.startswith("policy: ")
        assert seen.lease == lease
        with refused("bad-status"):
            await bob.review(1)

    play_with(tmp_path, Limits(review_rounds=2), story)


async def turn(crew: Crew, agent: str, kind: str = "turn") -> None:
    """Report that an agent takes a turn for task 1."""
    await crew.bed.call(
        "invocation_start",
        InvocationStartResult,
        agent_id=agent,
        kind=kind,
        room=ROOM,
        task=1,
        process=process_facts(),
    )


def test_wk_k8_after_so_many_turns_a_person_decides(tmp_path: Path) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann, "in_progress")
        await turn(crew, "ann")
        await turn(crew, "ann", "tool")
        await turn(crew, "ann")
        assert (await ann.show(1)).status == "in_progress"
        await turn(crew, "ann")
        seen = await ann.show(1)
        assert (seen.status, seen.lease) == ("blocked", lease)
        assert seen.note is not None
        assert seen.note.startswith("policy: ")
        await crew.boss.update(1, lease, status="in_progress")  # and the count begins again
        await turn(crew, "ann")
        await turn(crew, "ann")
        assert (await ann.show(1)).status == "in_progress"
        await turn(crew, "ann")
        assert (await ann.show(1)).status == "blocked"

    play_with(tmp_path, Limits(turns=3), story)


def test_wk_k8_the_limits_have_their_defaults() -> None:
    assert (Limits().review_rounds, Limits().turns) == (5, 50)


def test_wk_k8_no_limit_is_no_limit(tmp_path: Path) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann, "in_progress")
        for number in range(1, 9):
            seen = await ann.update(1, lease, status="in_review")
            assert (seen.status, seen.rounds) == ("in_review", number)
            await bob.review(1)
            await bob.update(1, lease, status="in_progress")

        for _ in range(60):
            await turn(crew, "ann")
        assert (await ann.show(1)).status == "in_progress"

    play_with(tmp_path, Limits(review_rounds=0, turns=0), story)
