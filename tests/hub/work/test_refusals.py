"""Every decision is an event, allow and deny; the same refusal floods no log (WK-K6)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import pytest

from tests.hub.running import RunningHub, start
from tests.hub.work.crew import ELSEWHERE, Crew, PlayCrew, Worker, refused
from tfx.errors import AccessDenied, TfxError
from tfx.hub.models import Privilege
from tfx.hub.operations_work import WORK_ROWS
from tfx.hub.store import denials
from tfx.hub.store.events import decode_body, encode_body
from tfx.hub.store.kinds import Kind


def denied(crew: Crew) -> list[dict[str, object]]:
    return [body for _, _, body in crew.log("claim_denied")]


def home_of_last(crew: Crew) -> str:
    """The kind of the first event of the stream that the newest refusal is in."""
    rows = crew.bed.rows(
        "SELECT f.kind FROM log l JOIN log f ON f.seq = l.stream "
        "WHERE l.kind = 'claim_denied' ORDER BY l.seq DESC LIMIT 1"
    )
    return str(rows[0][0])


def test_wk_k6_a_change_says_which_lease_it_was_made_under(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann, "in_progress")
        await ann.update(1, lease, title="mine")
        await ann.attach("file", "a.py", lease, task=1)
        await ann.update(1, lease, status="in_review")
        await bob.review(1)
        await bob.update(1, status="done")
        seen = crew.log("task_moved", "task_changed", "artifact_attached", task=1)
        assert [kind for kind, _, _ in seen] == [
            *("task_moved", "task_changed", "artifact_attached", "task_moved", "task_moved"),
        ]
        for _, _, body in seen:
            assert (body["lease"], body["epoch"]) == (lease.lease_id, lease.epoch)
        free = await crew.person.ready()
        await crew.person.update(free.task, title="nobody's")
        ((_, _, body),) = crew.log("task_changed", task=free.task)
        assert {"lease", "epoch"} & set(body) == set()

    act(story)


def test_wk_k6_bodies_without_a_lease_are_read_and_written_as_they_were() -> None:
    old = {
        Kind.TASK_MOVED: '{"before":"accepted","status":"assigned"}',
        Kind.TASK_CHANGED: '{"title":"x"}',
        Kind.ARTIFACT_ATTACHED: '{"artifact":"file","identity":"a"}',
        Kind.CLAIM_DENIED: '{"code":"held","reason":"x","verb":"claim"}',
    }
    for kind, text in old.items():
        body = decode_body(kind, text)
        assert body is not None
        assert encode_body(body) == text


async def bad_transition(_crew: Crew, ann: Worker) -> object:
    return await ann.update(1, status="merged")


async def add_where_locked(crew: Crew, ann: Worker) -> object:
    await crew.boss.lock()
    return await ann.add("more")


async def next_where_locked(crew: Crew, ann: Worker) -> object:
    await crew.boss.lock()
    return await ann.take_next()


async def look_where_locked(crew: Crew, ann: Worker) -> object:
    await crew.boss.lock()
    return await ann.take_next(claim=False)


async def stranger_where_locked(crew: Crew, _ann: Worker) -> object:
    await crew.boss.lock()
    return await Worker(crew.bed, "ann", "no-such-session").add("more")


async def another_lock(crew: Crew, _ann: Worker) -> object:
    await crew.boss.lock()
    return await crew.boss.lock(note="for another reason")


async def stranger_takes_next(crew: Crew, _ann: Worker) -> object:
    return await Worker(crew.bed, "ann", "no-such-session").take_next()


async def stranger_renews(crew: Crew, ann: Worker) -> object:
    lease = (await ann.show(1)).lease
    assert lease is not None
    return await Worker(crew.bed, "ann", "no-such-session").renew(lease)


async def wrong_room(crew: Crew, ann: Worker) -> object:
    return await Worker(crew.bed, "ann", ann.session, room=ELSEWHERE).add("more")


@pytest.mark.parametrize(
    ("step", "verb", "code", "home"),
    [
        (bad_transition, "move to merged", "bad-transition", "task_created"),
        (add_where_locked, "add", "lock-active", "lock_set"),
        (next_where_locked, "next", "lock-active", "lock_set"),
        (look_where_locked, "next", "lock-active", "lock_set"),
        (stranger_where_locked, "add", "lock-active", "lock_set"),
        (another_lock, "lock", "lock-active", "lock_set"),
        (stranger_takes_next, "next", "actor-invalid", "hub_started"),
        (stranger_renews, "renew", "actor-invalid", "task_created"),
        (wrong_room, "add", "foreign-room", "hub_started"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_wk_k6_every_refusal_that_is_a_decision_is_an_event(
    act: PlayCrew,
    step: Callable[[Crew, Worker], Awaitable[object]],
    verb: str,
    code: str,
    home: str,
) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        await crew.owned(ann)
        with refused(code):
            await step(crew, ann)
        (body,) = denied(crew)
        assert (body["verb"], body["code"], home_of_last(crew)) == (verb, code, home)
        assert body["reason"]
        assert ("lock" in body) == (code == "lock-active")

    act(story)


def test_wk_k6_what_is_malformed_is_no_decision(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        lease = await crew.owned(ann)
        for fields in ({"title": "  "}, {"blocked_by": [1]}):
            with pytest.raises(TfxError):
                await ann.update(1, lease, **fields)
        with refused("nothing-ready"):
            await ann.take_next()
        assert denied(crew) == []

    act(story)


@pytest.mark.parametrize(
    ("name", "verb", "fields"),
    [
        ("work_force_release", "force-release", {"task": 1, "reason": "x", "no_lease": True}),
        ("work_delete", "delete", {"task": 1}),
        ("work_lock", "lock", {"task": 1, "reason": "human_stop"}),
        ("work_unlock", "unlock", {}),
    ],
)
def test_wk_k6_what_needs_the_operator_is_an_event_too(
    hub: RunningHub, name: str, verb: str, fields: dict[str, object]
) -> None:
    room = str(hub.home / verb)
    made = hub.call("work_add", room=room, title="x", accept=True)["task"]
    reply = hub.post(f"/v1/{name}", {"room": room, "agent_id": "eve", **fields})
    assert reply.code == "operator-needed"
    trace = hub.call("trace", trace_id=made["trace_id"])["items"]
    if "task" in fields:
        assert [(each["kind"], each["code"], each["actor"]) for each in trace[1:]] == [
            ("claim_denied", "operator-needed", "hub:hub")
        ]
        assert trace[1]["agent"] == "eve"
    garbage = hub.post(f"/v1/{name}", {"room": 1})
    assert garbage.code == "operator-needed"  # told first, and of garbage nothing is kept
    assert hub.call("rebuild_check", operator=True)["equal"]


def test_wk_k6_each_operation_about_work_that_needs_the_operator_keeps_its_refusal(
    act: PlayCrew,
) -> None:
    async def story(crew: Crew) -> None:
        closed = {row.name for row in WORK_ROWS if row.privilege is Privilege.OPERATOR}
        assert set(crew.bed.core.refusers) == closed

    act(story)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHub]:
    running = start(tmp_path_factory.mktemp("home"))
    try:
        yield running
    finally:
        running.end()


def test_wk_k6_the_same_refusal_within_a_minute_is_counted_and_told_by_the_next(
    act: PlayCrew,
) -> None:
    async def story(crew: Crew) -> None:
        ann, bob, cat = [await crew.hire(name) for name in ("ann", "bob", "cat")]
        lease = await crew.owned(ann)
        for _ in range(500):
            with refused("held"):
                await bob.claim(1)
        assert len(denied(crew)) == 1
        with refused("held"):
            await cat.claim(1)  # another agent
        with refused("lease-holder"):
            await bob.release(1, lease)  # another verb
        assert len(denied(crew)) == 3
        crew.clock.pass_ms(denials.WINDOW_MS - 1)
        with refused("held"):
            await bob.claim(1)
        assert len(denied(crew)) == 3
        crew.clock.pass_ms(1)
        for _ in range(2):
            with refused("held"):
                await bob.claim(1)
        assert [each.get("repeated") for each in denied(crew)] == [None, None, None, 500]
        await crew.boss.force(1, lease)
        await crew.person.update(1, status="cancelled")
        with refused("bad-status"):
            await bob.claim(1)  # another code
        assert len(denied(crew)) == 5

    act(story)


def test_wk_k6_a_refusal_whose_event_was_not_stored_is_written_by_the_next(
    act: PlayCrew,
) -> None:
    async def story(crew: Crew) -> None:
        ann, bob, cat = [await crew.hire(name) for name in ("ann", "bob", "cat")]
        await crew.owned(ann)
        store = crew.bed.core.store
        keep = store.denials.keep

        def fail_after(tx: object, denial: object) -> None:
            keep(tx, denial)  # type: ignore[arg-type]
            raise AccessDenied("the transaction fails", code="test")

        store.denials.keep = fail_after  # type: ignore[method-assign]
        with refused("test"):
            await bob.claim(1)
        store.denials.keep = keep  # type: ignore[method-assign]
        assert denied(crew) == []
        for each in (cat, bob):  # hers takes the number that his would have had
            with refused("held"):
                await each.claim(1)
        assert [each["agent"] for each in denied(crew)] == ["cat", "bob"]

    act(story)


def test_wk_k6_a_refused_request_keeps_no_key_whether_it_is_written_or_counted(
    act: PlayCrew,
) -> None:
    async def story(crew: Crew) -> None:
        ann, bob = await crew.hire("ann"), await crew.hire("bob")
        lease = await crew.owned(ann)
        for _ in range(2):
            with refused("held"):
                await bob.claim(1, op_id="k")
        await ann.release(1, lease)
        assert (await bob.claim(1, op_id="k")).agent_id == "bob"
        assert crew.bed.rows("SELECT count(*) FROM log WHERE op_id = 'k'") == [(1,)]

    act(story)
