"""Who leaves out session or agent may do no more than a proven worker (WK-A4, L11, L24, T9)."""

from __future__ import annotations

import pytest

from tests.hub.work.crew import Crew, PlayCrew, Worker, all_refused, refused
from tfx.errors import ActorMissing, TfxError

NOBODY = "actor-missing"
ANOTHER = "actor-mismatch"


async def left_alone(crew: Crew, *steps: str) -> int:
    """A task of ann, whose session has ended since: OWNED, without a lease."""
    ann = await crew.hire("ann")
    lease = await crew.owned(ann, *steps)
    await ann.leave()
    return lease.task


def unproven(crew: Crew, bob: Worker) -> tuple[tuple[Worker, str, str], ...]:
    """Nobody at all, and an agent without its session, each with how it is refused."""
    return (
        (crew.person, NOBODY, "authentication-required"),
        (bob.bare, ANOTHER, "access-denied"),
    )


@pytest.mark.parametrize("steps", [(), ("in_progress",), ("in_progress", "blocked")])
def test_wk_l24_what_an_agent_left_is_not_taken_from_it_without_the_credential(
    act: PlayCrew, steps: tuple[str, ...]
) -> None:
    async def story(crew: Crew) -> None:
        bob = await crew.hire("bob")
        task = await left_alone(crew, *steps)
        before = await crew.person.show(task)
        for who, code, kind in unproven(crew, bob):
            tries = (
                who.release(task),
                who.release(task, no_lease=True, reason="it is gone"),
                who.update(task, status="cancelled"),
                who.update(task, status="in_progress"),
                who.update(task, title="mine"),
                who.update(task, note="mine"),
                who.attach("file", "a.py", task=task),
            )
            errors = await all_refused(tries, code, kind)
            assert {str(error.details["assignee"]) for error in errors} == {"ann"}
        with refused("lease-missing"):
            await bob.release(task)
        after = await crew.person.show(task)
        assert (after.status, after.assignee, after.title, after.note, after.artifacts) == (
            *(before.status, before.assignee, before.title, before.note, before.artifacts),
        )
        told = {(body["code"], actor) for _, actor, body in crew.log("claim_denied")}
        assert told >= {(NOBODY, "operator"), (ANOTHER, "bob")}
        freed = await crew.boss.release(task, no_lease=True)
        assert (freed.task.status, freed.task.assignee) == ("accepted", None)

    act(story)


def test_wk_a4_an_unsupervised_agent_goes_on_with_its_own(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        task = await left_alone(crew, "in_progress")
        await ann.bare.update(task, note="half way", status="blocked")
        await ann.bare.attach("file", "a.py", task=task)
        freed = await ann.bare.release(task)
        assert (freed.task.status, freed.task.assignee) == ("accepted", None)
        await crew.boss.update(task, status="assigned", label="ann")  # a name for its key
        with refused(ANOTHER):
            await (await crew.hire("bob")).bare.release(task)
        assert (await ann.bare.release(task)).task.status == "accepted"

    act(story)


def test_wk_a4_anybody_changes_what_is_nobodys(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        bob = await crew.hire("bob")
        for who in (crew.person, bob.bare, bob):
            task = (await who.add()).task
            await who.update(task, status="accepted", title="clearer", exclusive="x")
            await who.attach("link", "https://example.org", task=task)
            assert (await who.show(task)).title == "clearer"
            assert task in [line.task for line in (await who.board()).tasks]
            assert (await who.update(task, status="cancelled")).status == "cancelled"
            assert (await who.update(task, status="accepted")).status == "accepted"
            await who.update(task, status="cancelled")

    act(story)


@pytest.mark.parametrize("has_left", [False, True])
def test_wk_r5_a_merge_needs_the_session_of_the_reviewer(act: PlayCrew, *, has_left: bool) -> None:
    async def story(crew: Crew) -> None:
        ann, bob, cat = [await crew.hire(name) for name in ("ann", "bob", "cat")]
        await crew.owned(ann, "in_progress", "in_review")
        await bob.review(1)
        if has_left:
            await ann.leave()
        for who in (crew.person, bob.bare, cat.bare, cat, ann.bare, ann):
            with pytest.raises(TfxError) as error:
                await who.update(1, status="merged")
            assert error.value.kind.value in {
                *("access-denied", "authentication-required", "state-conflict"),
            }, who
        seen = await crew.person.show(1)
        assert (seen.status, seen.review is not None) == ("in_review", True)
        assert (await bob.update(1, status="merged")).status == "merged"

    act(story)


def test_wk_r5_the_credential_merges_what_an_agent_left(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        task = await left_alone(crew, "in_review")
        with refused(NOBODY):
            await crew.person.update(task, status="merged")
        assert (await crew.boss.update(task, status="merged")).status == "merged"

    act(story)


@pytest.mark.parametrize("given", [{"assignee": "ann"}, {"label": "Ann"}])
def test_wk_t9_only_the_credential_gives_a_task_to_somebody_else(
    act: PlayCrew, given: dict[str, object]
) -> None:
    async def story(crew: Crew) -> None:
        bob = await crew.hire("bob")
        task = (await crew.person.ready()).task
        for status in ({"status": "assigned"}, {}):
            with refused(NOBODY, "authentication-required"):
                await crew.person.update(task, **given, **status)
            if "assignee" in given:
                with refused(ANOTHER, "access-denied"):
                    await bob.bare.update(task, **given, **status)
        assert (await crew.person.show(task)).assignee is None
        seen = await crew.boss.update(task, **given)
        assert (seen.status, seen.assignee is not None) == ("assigned", True)

    act(story)


def test_wk_t9_an_agent_with_the_credential_gives_to_others_too(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        task = (await crew.person.ready()).task
        lead = Worker(crew.bed, "lead", None, crew.boss.caller)
        seen = await lead.update(task, status="assigned", assignee="ann")
        assert seen.assignee is not None
        assert seen.assignee.agent_id == "ann"
        assert (await lead.release(task)).task.status == "accepted"

    act(story)


def test_wk_k6_nobody_is_a_refusal_of_its_own_class_and_an_event(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        await crew.owned(await crew.hire("ann"))
        for step in (
            crew.person.claim(1),
            Worker(crew.bed, None, "a-session").update(1, title="mine"),
            crew.person.update(1, title="mine"),
            crew.person.review(1),
        ):
            with pytest.raises(ActorMissing) as error:
                await step
            assert (error.value.exit, error.value.kind.value) == (5, "authentication-required")
        told = [(body["code"], body["verb"]) for _, _, body in crew.log("claim_denied")]
        # the same refusal within a minute is counted, not told again
        assert told == [(NOBODY, "claim"), (NOBODY, "update"), (NOBODY, "review-claim")]

    act(story)
