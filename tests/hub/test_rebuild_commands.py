"""`tfx hub rebuild` from the command line, with and without a hub (K-22, K-23)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.hub.running import RunningHub, cli
from tests.hub.test_databases import MAKE
from tests.support import tfx
from tfx.core import locks


def test_k_22_rebuild_works_under_the_lock_while_no_hub_runs(hub: RunningHub) -> None:
    hub.register("agent-1")
    hub.end()
    assert cli(hub, "rebuild", "--json").data["events"] >= 2
    assert cli(hub, "rebuild", "--check", "--json").data["equal"] is True
    lock = locks.try_lock(hub.files.lock, "upgrade")
    assert lock is not None
    with lock:
        assert cli(hub, "rebuild", "--json").code in {4, 5}
    again = hub.again()
    assert again.call("agents")["agents"][0]["agent_id"] == "agent-1"


def test_k_23_rebuild_folds_what_an_older_fold_left_and_start_runs_again(hub: RunningHub) -> None:
    hub.register("bob")
    hub.end()
    older = (
        "PRAGMA ignore_check_constraints = 1; UPDATE stamp SET fold_version = 0;"
        "DELETE FROM subscriptions; DELETE FROM agents;"
    )
    subprocess.run(
        [sys.executable, "-c", MAKE, str(hub.files.database), older], check=True, timeout=60
    )
    refused = cli(hub, "start", "--port", "0", "--json")
    assert refused.code == 5
    assert refused.document["problems"][0]["code"] == "fold-other"
    assert cli(hub, "rebuild", "--check", "--json").code == 5
    assert cli(hub, "rebuild", "--json").data["rows"]["agents"] == 1
    assert cli(hub, "rebuild", "--check", "--json").data["equal"] is True
    assert cli(hub, "start", "--port", "0", "--json").code == 0
    assert [each["agent_id"] for each in cli(hub, "agents", "--json").data["agents"]] == ["bob"]


def test_k_23_rebuild_leaves_a_newer_fold_alone(hub: RunningHub) -> None:
    hub.end()
    newer = "UPDATE stamp SET fold_version = 99;"
    subprocess.run(
        [sys.executable, "-c", MAKE, str(hub.files.database), newer], check=True, timeout=60
    )
    before = hub.files.database.read_bytes()
    ran = cli(hub, "rebuild", "--json")
    assert (ran.code, ran.document["problems"][0]["code"]) == (5, "schema-newer")
    assert hub.files.database.read_bytes() == before


def test_k_22_rebuild_without_a_database_says_so(home: Path) -> None:
    ran = tfx(home, "hub", "rebuild", "--json")
    assert (ran.code, ran.document["problems"][0]["code"]) == (1, "no-database")
    assert list(home.iterdir()) == []
