"""What is taken up again is admitted like something new (WK-K5)."""

from __future__ import annotations

import pytest

from tests.hub.work.crew import Crew, PlayCrew, refused
from tests.hub.work.test_admission import SAME


@pytest.mark.parametrize("end", ["cancelled", "done"])
@pytest.mark.parametrize(("field", "value"), SAME)
def test_wk_k5_a_closed_task_is_not_opened_beside_the_same_work(
    act: PlayCrew, field: str, value: str, end: str
) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann, "in_progress", **{field: value})
        await ann.update(1, lease, status=end)
        await crew.person.ready("the same", **{field: value})
        for who in (crew.person, ann, crew.boss):
            with refused("duplicate-work", "state-conflict") as error:
                await who.update(1, status="accepted")
            assert error.value.details["task"] == 2
        assert (await crew.person.show(1)).status == end
        await crew.person.update(2, status="cancelled")
        assert (await crew.person.update(1, status="accepted")).status == "accepted"
        with refused("duplicate-work"):
            await crew.person.update(2, status="accepted")

    act(story)


@pytest.mark.parametrize("kind", ["branch", "pr"])
def test_wk_k5_the_artifacts_of_a_closed_task_count_too(act: PlayCrew, kind: str) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann, "in_progress")
        await ann.attach(kind, f"{kind}/old", lease, task=1)
        await ann.attach(kind, f"{kind}/new", lease, task=1)  # the old one is an artifact only
        await ann.update(1, lease, status="done")
        await crew.person.ready("the same", **{kind: f"{kind}/old"})
        with refused("duplicate-work", "state-conflict"):
            await crew.person.update(1, status="accepted")
        assert (await crew.person.show(1)).status == "done"

    act(story)


def test_wk_k5_a_task_is_reopened_with_another_branch(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        await crew.person.ready(branch="feat/x")
        await crew.person.update(1, status="cancelled")
        await crew.person.ready(branch="feat/x")
        seen = await crew.person.update(1, status="accepted", branch="feat/y")
        assert (seen.status, seen.branch) == ("accepted", "feat/y")
        await crew.person.update(1, status="cancelled")
        await crew.person.update(2, branch="feat/z")
        await crew.person.ready(branch="feat/w")
        with refused("duplicate-work"):
            await crew.person.update(1, status="accepted", branch="feat/w")

    act(story)
