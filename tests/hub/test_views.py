from __future__ import annotations

import asyncio
import re

import msgspec
import pytest

from tests.hub.conftest import Play
from tests.hub.driver import FACTS, NOBODY, Bed
from tfx.errors import NotFound, OperationFailed
from tfx.hub.models import AgentId, DefaultAction, HumanKind, StatusScope
from tfx.hub.operations import OPERATIONS
from tfx.hub.wire import humans, views


def test_k_21_every_operation_but_shutdown_has_its_handler(play: Play) -> None:
    async def story(bed: Bed) -> None:
        assert set(bed.core.handlers) == set(OPERATIONS) - {"shutdown"}

    play(story)


def test_h_24_status_tells_where_everything_stands(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        for _ in range(3):
            await bed.publish("ann", "bob")
        await bed.poll("bob", most=1)
        await bed.publish("ann", "topic:void")
        status = await bed.core.views.status(NOBODY, views.StatusRequest())
        assert status.hub is not None
        assert status.queues is not None
        assert (status.hub.state, status.hub.instance) == ("ready", FACTS.instance)
        assert (status.queues.queued, status.queues.claimed, status.queues.dead_letters) == (
            2,
            1,
            1,
        )
        assert status.queues.totals["messages"] == 4
        assert status.queues.database_bytes > 0

    play(story)


def test_h_24_a_status_of_the_hub_reads_no_table(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(bed: Bed) -> None:
        def refuse(*_: object) -> None:
            raise AssertionError("status went to the database")

        monkeypatch.setattr(bed.core.store, "read", refuse)
        monkeypatch.setattr(bed.core.store, "write", refuse)
        assert (await bed.core.views.status(NOBODY, views.StatusRequest())).hub is not None
        monkeypatch.undo()

    play(story)


def test_h_75_a_percentile_without_a_sample_is_null_and_not_0(play: Play) -> None:
    async def story(bed: Bed) -> None:
        queues = bed.core.views.queues()
        assert queues.delivery is not None
        assert (queues.delivery.samples, queues.delivery.p50_ms) == (0, None)
        assert queues.timeout_rate is None
        await bed.register("bob")
        await bed.publish("ann", "bob")
        bed.clock.pass_ms(250)
        await bed.poll("bob")
        await bed.ask("ann", "bob", wait_ms=1)
        queues = bed.core.views.queues()
        assert queues.delivery is not None
        assert queues.commit is not None
        assert (queues.delivery.samples, queues.delivery.p50_ms) == (1, 250)
        assert queues.commit.samples > 0
        assert queues.timeout_rate == 1

    play(story)


def test_h_76_metrics_name_no_agent_and_no_payload(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("canary-agent", "canary-topic")
        await bed.publish("canary-sender", "canary-agent", '{"canary":"payload"}', ttl_ms=1_000)
        await bed.publish("canary-sender", "topic:canary-void")
        await bed.tick(1_001)
        bed.core.refused("unknown-recipient")
        text = bed.core.metrics()
        assert "canary" not in text
        for line in text.splitlines():
            assert re.fullmatch(r"# TYPE \w+ \w+|\w+(\{\w+=\"[^\"]+\"\})? [-+\d.e]+", line), line
        assert "tfx_hub_messages_total 2" in text
        assert 'tfx_hub_dead_letters_total{reason="no-subscriber"} 1' in text
        assert 'tfx_hub_dead_letters_total{reason="ttl-expired"} 1' in text
        assert 'tfx_hub_refusals_total{code="unknown-recipient"} 1' in text
        assert 'tfx_hub_commit_ms_bucket{le="+Inf"}' in text

    play(story)


CHORES = {
    *("clock", "deliveries", "fallback", "human-deadlines", "next-deadline", "retention"),
    *("leases", "dead-sessions", "occupancy", "invocations"),
}


def test_h_19_a_fault_in_any_chore_degrades_the_hub_until_it_works_again(
    play: Play, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(bed: Bed) -> None:
        upkeep, store = bed.core.upkeep, bed.core.store

        async def broken(_command: object) -> None:
            raise OperationFailed("injected")

        async def all_chores() -> None:
            monkeypatch.setattr(upkeep, "_fallback_at", 0.0)
            monkeypatch.setattr(upkeep, "_forget_at", 0.0)
            await upkeep.tick()
            await upkeep._pause_s()

        await bed.register("bob")
        waiting = asyncio.create_task(bed.poll("bob", wait_ms=45_000))
        while not store.wakeups.open_waits:  # noqa: ASYNC110  (nothing tells when it waits)
            await asyncio.sleep(0)
        with monkeypatch.context() as patch:
            patch.setattr(store, "read", broken)
            patch.setattr(store, "write", broken)
            bed.clock.sleep_ms(3_600_000)
            await all_chores()
            await all_chores()
            assert bed.core.health() == "degraded"
            assert bed.core.counted.failing == CHORES
            for name in CHORES:
                assert bed.core.counted.sweep_errors[name] == 2
                assert any(name in warning for warning in bed.core.views.warnings())
        told = [each.getMessage() for each in caplog.records if "fails" in each.getMessage()]
        assert len(told) == len(CHORES)  # once each, not each second
        await all_chores()
        assert bed.core.health() == "ready"
        assert 'chore="deliveries"} 2' in bed.core.metrics()
        await bed.publish("ann", "bob")
        assert len((await asyncio.wait_for(waiting, 30)).messages) == 1

    play(story)


def test_h_20_a_hub_in_use_says_why_it_must_not_exit(play: Play) -> None:
    async def story(bed: Bed) -> None:
        assert bed.core.busy() is None
        await bed.register("bob", ttl_ms=10_000)
        assert bed.core.busy() == "live agents"
        bed.clock.pass_ms(10_000)
        assert bed.core.busy() is None
        await bed.core.humans.request_human_input(
            NOBODY,
            humans.HumanInputRequest(
                requester_agent=AgentId("bob"),
                kind=HumanKind.TEXT,
                prompt="?",
                requested_schema=msgspec.Raw(b"{}"),
                deadline_ms=60_000,
                default_action=DefaultAction.CANCEL,
            ),
        )
        bed.clock.pass_ms(10_000)
        assert bed.core.busy() == "pending human requests"

    play(story)


def test_status_of_agents_queues_and_a_trace(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("ann")
        await bed.register("bob")
        ticket = await bed.ask("ann", "bob")
        agents = await bed.core.views.status(NOBODY, views.StatusRequest(scope=StatusScope.AGENT))
        assert agents.agents is not None
        assert [a.agent_id for a in agents.agents] == ["ann", "bob"]
        assert [a.owes for a in agents.agents] == [0, 1]
        trace = await bed.core.views.status(
            NOBODY, views.StatusRequest(scope=StatusScope.TRACE, trace_id=ticket.trace_id)
        )
        assert trace.trace is not None
        assert [i.kind for i in trace.trace.items] == ["message_posted"]
        with pytest.raises(NotFound):
            await bed.core.views.status(
                NOBODY, views.StatusRequest(scope=StatusScope.AGENT, agent_id=AgentId("nobody"))
            )

    play(story)


def test_h_46_the_event_stream_shows_no_answer_of_a_person(play: Play) -> None:
    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.publish("ann", "bob", '{"open":"shown"}')
        await bed.core.humans.request_human_input(
            NOBODY,
            humans.HumanInputRequest(
                requester_agent=AgentId("bob"),
                kind=HumanKind.TEXT,
                prompt="?",
                requested_schema=msgspec.Raw(b"{}"),
                deadline_ms=1_000,
                default_action=DefaultAction.CANCEL,
            ),
        )
        await bed.tick(1_000)
        page = await bed.core.events.events(NOBODY, views.EventsRequest())
        payloads = {e.kind: e.payload for e in page.events}
        text = msgspec.json.encode(page).decode()
        assert '"shown"' in text
        assert '"timed_out":true' not in text
        assert bytes(payloads["human_request_expired"]) == b"null"

    play(story)
