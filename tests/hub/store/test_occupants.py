"""What can be seen of holders and invocations in a database at rest."""

from __future__ import annotations

from pathlib import Path

from tests.hub.driver import START_MS, Bed, with_bed
from tests.hub.occupying import beat, ended, finish, hold, me, open_terminal, start
from tests.support import listing
from tfx.core.identity import identify
from tfx.hub.occupancy_models import InvocationKind, Tier
from tfx.hub.store.occupants import look


def test_k_22_holders_and_what_runs_are_seen_in_a_file_at_rest(tmp_path: Path) -> None:
    path = tmp_path / "hub.db"
    ids: dict[str, str] = {}

    async def story(bed: Bed) -> None:
        await bed.register("bob")
        await bed.register("cat")
        ids["hold"] = (await hold(bed)).hold_id
        await open_terminal(bed, "cat", ended())
        ids["run"] = await start(bed, "cat", me(), kind=InvocationKind.TOOL)
        ids["lost"] = await start(bed, "cat", ended())
        await finish(bed, await start(bed))
        await bed.tick(5_000)
        await beat(bed, ids["hold"])
        await bed.core.running.probe()

    with_bed(path, story)
    before = listing(tmp_path)
    seen = look(path)
    assert listing(tmp_path) == before
    held, terminal = seen.seats
    assert (held.agent, held.tier, held.id) == ("bob", Tier.MESSAGE, ids["hold"])
    assert held.process == identify()
    assert (held.since_ms, held.heard_ms) == (START_MS, START_MS + 5_000)
    assert (terminal.agent, terminal.tier, terminal.heard_ms) == ("cat", Tier.TERMINAL, START_MS)
    (run,) = seen.running
    assert (run.id, run.kind, run.agent) == (ids["run"], InvocationKind.TOOL, "cat")
    assert (seen.unseen, seen.lost) == (0, 1)
    assert look(path, lost_since_ms=START_MS + 5_001).lost == 0
