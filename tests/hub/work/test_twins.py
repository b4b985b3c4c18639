"""Which work is somebody's already, where its proposer is sent, and who is told (WK-K5)."""

from __future__ import annotations

import pytest

from tests.hub.work.crew import Crew, PlayCrew, refused
from tfx.core import database
from tfx.hub.schema import registry
from tfx.hub.services.work.admission import PLACES, twin_of_task
from tfx.hub.store import tasks, twins

PR = "https://github.com/o/r/pull/7"


@pytest.mark.parametrize("kind", ["file", "link"])
def test_wk_k5_two_tasks_may_touch_one_file(act: PlayCrew, kind: str) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        first = await crew.owned(ann)
        second = await crew.owned(bob)
        await ann.attach(kind, "README.md", first, task=1)
        seen = await bob.attach(kind, "README.md", second, task=2)
        assert [each.identity for each in seen.artifacts] == ["README.md"]
        with refused("task-needed") as error:  # two have it: none is guessed
            await crew.person.attach(kind, "README.md")
        assert error.value.details["tasks"] == [1, 2]
        assert (await crew.person.add(output="README.md")).task == 3

    act(story)


@pytest.mark.parametrize(("kind", "identity", "again"), [
    ("branch", "feat/q", "refs/heads/feat/q"), ("pr", PR, f"{PR}/files"),
    ("pr", "o/r#7", "O/R#7"), ("commit", "0a1b2c3d", "0A1B2C3D"),
])  # fmt: skip
def test_wk_k5_branch_pr_and_commit_are_one_tasks_alone(
    act: PlayCrew, kind: str, identity: str, again: str
) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        first = await crew.owned(ann)
        second = await crew.owned(bob)
        await ann.attach(kind, identity, first, task=1)
        with refused("artifact-mismatch") as error:
            await bob.attach(kind, again, second, task=2)
        details = error.value.details
        assert (details["task"], details["other"], details["matches"]) == (2, 1, kind)
        assert (details["route"], details["assignee"]) == ("work", "ann")
        with refused("duplicate-work"):
            await crew.person.add("again", output=again if kind == "pr" else identity)
        assert (await ann.attach(kind, again, first)).task == 1  # it is linked to hers

    act(story)


def test_wk_k5_an_output_that_was_promised_is_not_attached_elsewhere(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await crew.person.add(output=PR)
        lease = await crew.owned(ann)
        with refused("artifact-mismatch"):
            await ann.attach("pr", f"{PR}/", lease, task=2)
        assert (await ann.show(2)).artifacts == ()

    act(story)


def test_wk_k5_a_task_is_compared_by_all_that_it_has(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann, "in_progress")
        await ann.attach("commit", "0a1b2c3d", lease, task=1)
        await ann.attach("file", "README.md", lease, task=1)
        await ann.update(1, lease, status="done")
        second = await crew.owned(ann)
        await ann.attach("file", "README.md", second, task=2)

        async def twin() -> tuple[int, str] | None:
            store = crew.bed.core.store
            row = await store.read(lambda reader: tasks.find(reader, crew.person.room, 1))
            assert row is not None
            found = await store.read(lambda reader: twin_of_task(reader, row))
            return None if found is None else (found[0].number, found[1])

        assert await twin() is None
        await ann.attach("commit", "0a1b2c3d", second, task=2)
        assert await twin() == (2, "commit")

    act(story)


def test_wk_k5_a_duplicate_is_sent_to_the_review_or_to_who_works_on_it(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob, cat = [await crew.hire(name) for name in ("ann", "bob", "cat")]
        lease = await ann.claim((await bob.ready(branch="work/1")).task)
        with refused("duplicate-work") as error:
            await cat.add("again", branch="work/1")
        assert (error.value.details["route"], error.value.details["assignee"]) == ("work", "ann")
        assert error.value.hint == "ask ann for it: tfx lease handoff 1 --to YOU"
        await ann.update(1, lease, status="in_review")
        for who, route in ((ann, "work"), (bob, "work"), (cat, "review"), (cat.bare, "review")):
            with refused("duplicate-work") as error:
                await who.add("again", branch="work/1")
            assert (who.name, error.value.details["route"]) == (who.name, route)
            assert ("review claim 1" in str(error.value.hint)) == (route == "review")
        routes = [body.get("route") for _, _, body in crew.log("claim_denied")]
        assert routes == ["work", "work", "work", "review"]  # the same once more is counted only
        assert (await cat.review(1)).agent_id == "cat"  # the hint is a way

    act(story)


def test_wk_k5_who_has_the_work_is_told_once_of_each_proposer(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob, cat = [await crew.hire(name) for name in ("ann", "bob", "cat")]
        lease = await ann.claim((await crew.person.ready(branch="work/1")).task)
        other = await crew.owned(cat)
        for _ in range(5):
            with refused("duplicate-work"):
                await bob.add("the same", branch="work/1")
            with refused("duplicate-work"):
                await cat.update(2, other, branch="work/1")
            with refused("artifact-mismatch"):
                await cat.attach("branch", "work/1", other, task=2)
            with refused("duplicate-work"):
                await ann.add("mine again", branch="work/1")
        told = await ann.mail()
        assert [(each["event"], each["by"], each["proposed"]) for each in told] == [
            ("duplicate-proposed", "bob", "the same"),
            ("duplicate-proposed", "cat", "task 2: do it"),
        ]
        assert {(each["task"], each["matches"]) for each in told} == {(1, "branch")}
        await ann.handoff(1, "cat", lease)
        await cat.mail()
        with refused("duplicate-work"):
            await bob.add("the same", branch="work/1")
        assert [each["by"] for each in await cat.mail()] == ["bob"]  # the new holder hears it, too

    act(story)


def test_wk_k5_nobody_is_told_of_work_that_is_nobodys(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        bob = await crew.hire("bob")
        await crew.person.ready(branch="free")
        await crew.person.ready(branch="unknown")
        await crew.boss.update(2, status="assigned", assignee="stranger")
        for branch in ("free", "unknown"):
            with refused("duplicate-work"):
                await bob.add("the same", branch=branch)
        assert crew.log("message_posted") == []

    act(story)


@pytest.mark.parametrize("place", twins.TWINS)
def test_ev_q2_each_place_of_a_mark_is_found_by_an_index(place: str) -> None:
    connection = database.open_memory()
    registry.create(connection)
    values = (1,) * (3 if place.startswith("source") else 5)
    rows = connection.execute(f"EXPLAIN QUERY PLAN {twins.TWINS[place]}", values).fetchall()
    connection.close()
    steps = [str(row[3]) for row in rows]
    assert [step for step in steps if step.startswith("SCAN")] == []
    field = place.rstrip("!").removeprefix("artifact ")
    wanted = "artifacts_identity" if place.startswith("artifact") else f"tasks_{field}"
    assert any(wanted in step for step in steps), steps


def test_wk_k5_every_place_is_looked_at_by_its_query() -> None:
    for kind, places in PLACES.items():
        for place in places:
            assert {place, place + "!"} & set(twins.TWINS), kind
