"""A room is one absolute path, however it is written; a relative one is nobody's (event-log §2)."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hub.conftest import Play
from tests.hub.driver import Bed
from tests.hub.running import RunningHub
from tests.hub.work.crew import process_facts
from tfx.errors import InvalidRequest
from tfx.hub.operations import OPERATIONS
from tfx.hub.wire import agents, leases, work
from tfx.hub.wire.fields import place

PLACES: Final = ("room", "workspace", "worktree")
NO_PATHS: Final = ("relative/dir", " ", "", ".", "./x", "~/x", "/x/./y", "/x/../y", "/..", "x/")
WHO: Final[dict[str, Any]] = {
    "agent_id": "ann",
    "cli": "claude",
    "capabilities": ["code"],
    "topics": [],
    "heartbeat_ttl_ms": 600_000,
}


@pytest.mark.parametrize(
    ("written", "meant"),
    [("/x", "/x"), ("/x/", "/x"), ("//x", "/x"), ("/x//y///", "/x/y"), ("/", "/"), ("/ ", "/ ")],
)
def test_ev_2_one_place_has_one_form(written: str, meant: str) -> None:
    assert place(written, "room") == meant


@given(st.text(alphabet="/.ab ", max_size=12))
def test_ev_2_what_passes_is_absolute_and_stays_as_it_is(text: str) -> None:
    try:
        found = place(text, "room")
    except InvalidRequest:
        assert not text.startswith("/") or {".", ".."} & set(text.split("/"))
        return
    assert found.startswith("/")
    assert place(found, "room") == found
    assert "//" not in found
    assert found == "/" or not found.endswith("/")


def test_ev_2_every_operation_with_a_place_checks_it(shared_hub: RunningHub) -> None:
    """Found in the table, so that a later operation is checked, too."""
    seen = set()
    for name, row in OPERATIONS.items():
        for field in msgspec.structs.fields(row.request):
            if field.encode_name not in PLACES:
                continue
            seen.add((name, field.encode_name))
            request = msgspec.json.decode(
                msgspec.json.encode({**_needed(row.request), field.encode_name: "/x//y/"}),
                type=row.request,
            )
            assert getattr(request, field.name) == "/x/y", name
            for text in NO_PATHS:
                fields = {**_needed(row.request), field.encode_name: text}
                answer = shared_hub.post(f"/v1/{name}", fields, operator=True)
                assert answer.status == 400, (name, text)
                error = answer.document["error"]
                assert (error["kind"], error["details"]["field"]) == (
                    "invalid-request",
                    field.encode_name,
                )
    assert {("register", "workspace"), ("attach", "workspace"), ("work_add", "room")} <= seen
    assert {("work_claim", "worktree"), ("invocations", "room"), ("work_status", "room")} <= seen


def _needed(request: type[msgspec.Struct]) -> dict[str, object]:
    """Values of the required fields of a request, as far as its types tell."""
    known = {
        **WHO,
        "task": 1,
        "lease_id": "l",
        "epoch": 0,
        "to": "bob",
        "title": "x",
        "kind": "turn" if request.__name__.startswith("Invocation") else "file",
        "identity": "a",
        "reason": "human_stop",
        "process": process_facts(1),
        "workspace": "/w",
    }
    return {
        each.encode_name: known[each.encode_name]
        for each in msgspec.structs.fields(request)
        if each.required
    }


def test_ev_2_two_ways_to_write_a_room_are_one_board(play: Play) -> None:
    async def story(bed: Bed) -> None:
        given = await bed.call("register", agents.RegisterResult, **WHO, workspace="/x//")
        for room in ("/x", "/x/", "//x"):
            await bed.call("work_add", work.TaskResult, room=room, title="t", accept=True)
        board = await bed.call("work_list", work.TaskListResult, room="/x///")
        assert (board.room, len(board.tasks)) == ("/x", 3)
        who: dict[str, Any] = {"agent_id": "ann", "session": given.lease_id}
        taken = await bed.call("work_claim", leases.LeaseResult, **who, room="/x/", task=1)
        assert taken.lease.room == "/x"

    play(story)


def test_ev_l7_a_retry_may_write_its_room_in_another_way(play: Play) -> None:
    async def story(bed: Bed) -> None:
        added = [
            await bed.call("work_add", work.TaskResult, room=room, title="t", op_id="k")
            for room in ("/x", "/x/")
        ]
        assert [each.task.task for each in added] == [1, 1]

    play(story)


def test_ev_2_what_an_older_version_let_in_is_still_read(play: Play) -> None:
    async def story(bed: Bed) -> None:
        given = await bed.call("register", agents.RegisterResult, **WHO, workspace="/x")
        await bed.call("work_add", work.TaskResult, room="/x", title="t", accept=True)

        def older(tx: Any) -> None:  # noqa: ANN401  (the writer's transaction)
            tx.all("UPDATE agents SET workspace = 'relative/dir'")
            tx.all("UPDATE tasks SET room = 'relative/dir'")

        await bed.core.store.write(older)
        (seen,) = (await bed.call("agents", agents.AgentsResult)).agents
        assert seen.workspace == "relative/dir"
        board = await bed.call("work_list", work.TaskListResult, agent_id="ann")
        assert (board.room, len(board.tasks)) == ("relative/dir", 1)
        who: dict[str, Any] = {"agent_id": "ann", "session": given.lease_id}
        taken = await bed.call("work_claim", leases.LeaseResult, **who, task=1)
        assert taken.lease.room == "relative/dir"
        again = await bed.call("register", agents.RegisterResult, **WHO, workspace="/x/")
        assert again.lease_id != given.lease_id

    play(story)
