"""A key whose first run changed nothing is kept too: its retry never acts later (EV-L7, WK-B1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from tests.hub.driver import NOBODY, OPERATOR_CALLER
from tests.hub.work.crew import Crew, PlayCrew, Worker, refused
from tfx.hub.models import Caller, Retention
from tfx.hub.wire import admin, agents, leases, views, work

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """An operation that finds nothing to do, and what happens before its retry."""

    name: str
    response: type[Any]
    fields: Fields
    then: Callable[[Crew, Worker, Worker], Awaitable[object]]
    other: Fields
    """What makes another request of it."""
    by_boss: bool = False


async def scene(crew: Crew) -> tuple[Worker, Worker]:
    """Task 1 is ann's with PR o/r/1, 2 is ann's in review, 3 locked, 4 ready, 5 is deleted."""
    ann, bob = await crew.hire("ann"), await crew.hire("bob")
    lease = await crew.owned(ann, "in_progress")
    await ann.attach("pr", "o/r/1", lease, task=1)
    await crew.owned(ann, "in_progress", "in_review")
    await crew.person.ready()
    await crew.boss.lock(3)
    await crew.person.ready()
    await crew.person.ready()
    await crew.boss.delete(5)
    await ann.ready("known", client_key="K")
    return ann, bob


async def other_pr(_crew: Crew, ann: Worker, _bob: Worker) -> None:
    await ann.attach("pr", "o/r/2", task=1)


async def let_go(_crew: Crew, ann: Worker, _bob: Worker) -> None:
    await ann.release(1)


async def locked(crew: Crew, _ann: Worker, _bob: Worker) -> None:
    await crew.boss.lock(4)


async def room_locked(crew: Crew, _ann: Worker, _bob: Worker) -> None:
    await crew.boss.lock()


async def renamed(_crew: Crew, ann: Worker, _bob: Worker) -> None:
    await ann.update(1, title="another")


async def nothing(_crew: Crew, _ann: Worker, _bob: Worker) -> None:
    """Nothing happens meanwhile."""


CASES = (
    Case(
        "work_attach",
        work.TaskResult,
        {"task": 1, "kind": "pr", "identity": "o/r/1"},
        other_pr,
        {"identity": "o/r/9"},
    ),
    Case("work_claim", leases.LeaseResult, {"task": 1}, let_go, {"task": 4}),
    Case("work_update", work.TaskResult, {"task": 1}, renamed, {"title": "third"}),
    Case(
        "work_update",
        work.TaskResult,
        {"task": 1, "status": "assigned"},
        let_go,
        {"title": "third"},
    ),
    Case(
        "work_update",
        work.TaskResult,
        {"task": 1, "status": "assigned", "title": "mine"},
        let_go,
        {"title": "third"},
    ),
    Case(
        "work_add",
        work.TaskResult,
        {"title": "known", "accept": True, "client_key": "K"},
        nothing,
        {"title": "new", "client_key": None},
    ),
    Case("work_delete", work.TaskDeleteResult, {"task": 5}, nothing, {"task": 4}, by_boss=True),
    Case(
        "work_lock",
        leases.LockResult,
        {"task": 3, "reason": "human_stop"},
        nothing,
        {"task": 4},
        by_boss=True,
    ),
    Case("work_unlock", leases.LockClearResult, {"task": 4}, locked, {"task": 3}, by_boss=True),
    Case("work_unlock", leases.LockClearResult, {}, room_locked, {"task": 3}, by_boss=True),
)


def known(crew: Crew) -> list[tuple[str, str, dict[str, Any]]]:
    """What has happened, but for what was only noted or refused."""
    return [each for each in crew.log() if each[0] not in {"request_noted", "claim_denied"}]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}-{len(case.fields)}")
def test_ev_l7_what_changed_nothing_is_not_done_later(act: PlayCrew, case: Case) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await scene(crew)
        who = crew.boss if case.by_boss else ann
        has_effect = "title" in case.fields and case.name == "work_update"
        before = known(crew)
        first = await who.ask(case.name, case.response, **case.fields, op_id="k")
        assert (known(crew) == before) != has_effect
        await case.then(crew, ann, bob)
        before = known(crew)
        again = await who.ask(case.name, case.response, **case.fields, op_id="k")
        assert known(crew) == before
        assert type(again) is type(first)
        with refused("idempotency-conflict", "state-conflict"):
            await who.ask(case.name, case.response, **{**case.fields, **case.other}, op_id="k")
        assert known(crew) == before

    act(story)


def test_ev_l7_a_claim_that_found_its_own_lease_is_answered_with_that_lease(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann)
        assert await ann.claim(1, op_id="cc") == lease
        await ann.release(1, lease)
        again = await ann.claim(1, op_id="cc")
        assert (again.lease_id, again.state.value) == (lease.lease_id, "released")
        assert crew.active() == []
        assert (await crew.person.show(1)).status == "accepted"

    act(story)


def test_ev_l7_a_review_that_was_not_there_is_not_ended_later(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        await crew.owned(ann, "in_review")
        assert await bob.end_review(1, op_id="r1") is None
        review = await bob.review(1)
        assert await bob.review(1, op_id="r2") == review  # it has it: the same review
        assert await bob.end_review(1, op_id="r1") is None
        assert (await bob.show(1)).review == review
        await bob.end_review(1)
        assert (await bob.review(1, op_id="r2")).review_id == review.review_id
        assert (await bob.show(1)).review is None

    act(story)


def test_ev_l7_an_update_that_claims_nothing_keeps_its_key_with_what_it_changed(
    act: PlayCrew,
) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann)
        await ann.update(1, lease, status="assigned", title="X", op_id="k1")
        assert crew.log("request_noted") == []  # the change itself carries the key
        await ann.update(1, lease, title="Y")
        told = await ann.update(1, lease, status="assigned", title="X", op_id="k1")
        assert told.title == "Y"
        with refused("idempotency-conflict"):
            await ann.update(1, lease, status="assigned", title="Z", op_id="k1")

    act(story)


def test_ev_l7_what_was_noted_is_told_after_a_refold_and_goes_with_its_stream(
    act: PlayCrew,
) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await crew.owned(ann)
        await crew.person.ready()
        await ann.claim(1, op_id="cc")
        await crew.boss.ask("work_unlock", leases.LockClearResult, op_id="room")
        rows = crew.bed.rows("SELECT t.number FROM tasks t WHERE t.stream IN "
                             "(SELECT stream FROM log WHERE op_id = 'cc')")  # fmt: skip
        assert rows == [(1,)]
        await crew.bed.core.upkeep.rebuild(OPERATOR_CALLER, admin.RebuildRequest())
        with refused("idempotency-conflict"):
            await ann.claim(2, op_id="cc")
        await crew.boss.lock()
        cleared = await crew.boss.ask("work_unlock", leases.LockClearResult, op_id="room")
        assert cleared.cleared is None
        assert len((await crew.person.board()).locks) == 1

    act(story)


def test_k_24_a_note_of_no_task_lives_for_the_keep_time_though_its_run_has_ended(
    act: PlayCrew,
) -> None:
    async def story(crew: Crew) -> None:
        day = 86_400_000
        keep = Retention().messages_ms
        crew.clock.pass_ms(keep)
        await crew.boss.ask("work_unlock", leases.LockClearResult, room="/r", op_id="k")
        await crew.bed.core.upkeep.end()
        await crew.bed.core.upkeep.begin("instance-2")
        for days, left in ((1, 1), (keep // day, 0)):
            crew.clock.pass_ms(days * day)
            await crew.bed.core.upkeep.prune(OPERATOR_CALLER, admin.PruneRequest(dry_run=False))
            assert len(crew.log("request_noted")) == left

    act(story)


@pytest.mark.parametrize(
    ("name", "response", "fields", "caller"),
    [
        ("deregister", agents.DeregisterResult, {"agent_id": "ann"}, NOBODY),
        ("agents_retire", agents.RetireResult, {"agent_id": "ann"}, OPERATOR_CALLER),
        (
            "agents_prune",
            agents.PruneAgentsResult,
            {"unseen_ms": 0, "dry_run": False},
            OPERATOR_CALLER,
        ),
    ],
)
def test_ev_l7_an_agent_that_was_gone_is_not_ended_in_its_next_life(
    act: PlayCrew, name: str, response: type[Any], fields: Fields, caller: Caller
) -> None:
    async def story(crew: Crew) -> None:
        bed = crew.bed
        await bed.register("ann")
        await bed.call("agents_retire", agents.RetireResult, caller=OPERATOR_CALLER, agent_id="ann")
        first = await bed.call(name, response, caller=caller, **fields, op_id="k")
        await bed.register("ann")
        if name == "agents_prune":
            crew.clock.pass_ms(100 * 86_400_000)
        before = crew.last_seq()
        again = await bed.call(name, response, caller=caller, **fields, op_id="k")
        assert msgspec.to_builtins(again) == msgspec.to_builtins(first)
        assert crew.last_seq() == before
        with refused("idempotency-conflict"):
            await bed.call(name, response, caller=caller, **{**fields, **other(name)}, op_id="k")

    act(story)


def other(name: str) -> Fields:
    """What makes another request of it."""
    return {"unseen_ms": 1} if name == "agents_prune" else {"agent_id": "ann", **_more(name)}


def _more(name: str) -> Fields:
    return {"lease_id": "x"} if name == "deregister" else {"agent_id": "bob"}


def test_ev_l7_a_purge_that_found_nothing_purges_nothing_later(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        bed = crew.bed
        fields = {"agent_id": "bob"}

        async def purge() -> int:
            given = await bed.call(
                "dead_purge",
                views.DeadPurgeResult,
                caller=OPERATOR_CALLER,
                **fields,
                op_id="k",
            )
            return given.purged

        await bed.register("bob")
        assert await purge() == 0
        await bed.publish("ann", "bob", ttl_ms=1_000)
        await bed.tick(2_000)
        assert await purge() == 0
        assert len(await bed.dead()) == 1

    act(story)
