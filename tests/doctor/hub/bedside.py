"""What the tests of a doctor at a hub share: one row, the hub's files, a hub with work."""

from __future__ import annotations

from typing import Any

from tests.doctor.world import Clinic
from tests.hub.running import RunningHub
from tfx.hub.places import HubFiles


def one(clinic: Clinic, check: str, target: str | None = None, **options: Any) -> Any:  # noqa: ANN401
    rows = clinic.rows(check, **options)
    return rows[target] if target else next(iter(rows.values()))


def files(clinic: Clinic) -> HubFiles:
    return HubFiles.of(clinic.paths)


def at_work(hub: RunningHub) -> None:
    hub.register("agent-1", "agent-2")
    hub.call(
        "request_human_input",
        requester_agent="agent-1",
        kind="approval",
        prompt="may I?",
        requested_schema={},
        deadline_ms=600_000,
        default_action="decline",
    )
