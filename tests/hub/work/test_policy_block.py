"""What the policy has stopped goes on when a person says so, and not before (WK-K8)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.hub.work.crew import Crew, Worker, all_refused, refused
from tests.hub.work.test_admission import play_with, turn
from tfx.errors import TfxError
from tfx.hub.models import Limits
from tfx.hub.wire.work import LeaseView

LIMITS = Limits(review_rounds=1, turns=2)
Stop = Callable[[Crew, Worker, LeaseView], Awaitable[None]]


async def by_turns(crew: Crew, ann: Worker, lease: LeaseView) -> None:
    for _ in range(2):
        await turn(crew, str(ann.name))
    assert (await ann.show(1)).lease == lease


async def by_rounds(_crew: Crew, ann: Worker, lease: LeaseView) -> None:
    for status in ("in_review", "in_progress", "in_review"):
        await ann.update(1, lease, status=status)


@pytest.mark.parametrize("stop", [by_turns, by_rounds])
def test_wk_k8_no_agent_leaves_a_block_of_the_policy(tmp_path: Path, stop: Stop) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann, "in_progress")
        await stop(crew, ann, lease)
        assert (await ann.show(1)).status == "blocked"
        await ann.update(1, lease, note="I think I am done", title="edited")  # no way out
        for status in ("in_progress", "in_review", "cancelled"):
            with refused("policy-limit", "state-conflict"):
                await ann.update(1, lease, status=status)
        leased = (ann.handoff(1, "bob", lease), ann.release(1, lease))
        await all_refused(leased, "policy-limit", "state-conflict")
        await ann.leave()
        left = (ann.bare.update(1, status="in_progress"), ann.bare.release(1))
        await all_refused(left, "policy-limit", "state-conflict")
        with pytest.raises(TfxError):
            await crew.person.update(1, status="in_progress")
        ann = await crew.hire("ann")
        lease = await ann.claim(1)  # it is hers, and stands still
        with refused("policy-limit"):
            await ann.update(1, lease, status="in_progress")
        assert (await crew.boss.update(1, lease, status="in_progress")).status == "in_progress"
        assert (await ann.update(1, lease, status="done")).status == "done"
        assert bob.session is not None

    play_with(tmp_path, LIMITS, story)


def test_wk_k8_the_end_of_a_lease_is_no_way_out_either(tmp_path: Path) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await crew.person.ready()
        lease = await ann.claim(1, ttl_ms=60_000)
        await ann.update(1, lease, status="in_progress")
        await by_turns(crew, ann, lease)
        await crew.bed.tick(60_001)
        seen = await ann.show(1)
        assert (seen.status, seen.lease) == ("blocked", None)
        assert seen.assignee is not None
        assert seen.assignee.agent_id == "ann"
        freed = await crew.boss.force(1, no_lease=True)
        assert freed.task.status == "accepted"

    play_with(tmp_path, LIMITS, story)


def test_wk_k8_an_agents_own_block_is_its_own_to_leave(tmp_path: Path) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann, "in_progress")
        await ann.update(1, lease, status="blocked", note="policy: 2 turns are the limit")
        assert (await ann.update(1, lease, status="in_progress")).status == "in_progress"
        await by_turns(crew, ann, lease)
        await crew.boss.update(1, lease, status="in_progress")
        await ann.update(1, lease, status="blocked", note="waits for a key")
        assert (await ann.update(1, lease, status="in_progress")).status == "in_progress"

    play_with(tmp_path, LIMITS, story)


@pytest.mark.parametrize("action", ["handoff", "release", "force"])
def test_wk_k8_the_operator_passes_on_what_is_blocked(tmp_path: Path, action: str) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await crew.hire("bob")
        lease = await crew.owned(ann, "in_progress")
        await by_turns(crew, ann, lease)
        if action == "handoff":
            assert (await crew.boss.handoff(1, "bob", lease)).task.status == "assigned"
        elif action == "release":
            assert (await crew.boss.release(1, lease)).task.status == "accepted"
        else:
            assert (await crew.boss.force(1, lease)).task.status == "accepted"

    play_with(tmp_path, LIMITS, story)


def test_wk_k8_a_force_release_is_a_decision_and_turns_count_anew(tmp_path: Path) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann, "in_progress")
        await by_turns(crew, ann, lease)
        assert (await ann.show(1)).status == "blocked"
        await crew.boss.force(1, lease)
        lease = await bob.claim(1)
        await bob.update(1, lease, status="in_progress")
        await turn(crew, "bob")
        assert (await bob.show(1)).status == "in_progress"

    play_with(tmp_path, LIMITS, story)
