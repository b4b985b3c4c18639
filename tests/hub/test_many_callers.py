"""Many callers at once: nobody is told that the database is busy (EV-T2)."""

from __future__ import annotations

import pytest

from tests.benchmarks import load
from tests.hub.running import RunningHub


@pytest.mark.parametrize("scenario", ["publish", "publish+poll+ack", "ask→answer"])
def test_ev_t2_sixty_four_callers_are_all_served(hub: RunningHub, scenario: str) -> None:
    done = load.run(hub.port, hub.token, scenario, 64, 640)  # raises at an answer that is not 200
    assert isinstance(done["operations"], int)
    assert done["operations"] >= 640
    status = hub.call("rebuild_check", operator=True)
    assert status["equal"] is True
    assert b'refusals_total{code="busy"}' not in hub.get("/metrics").body
