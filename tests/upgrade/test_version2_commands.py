"""What the commands do with a database of version 2: check, rehearse, upgrade, restore, adopt."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from tests.hub.driver import FakeClock
from tests.upgrade.scenes import NAMES, Site, change, everything, unpack
from tests.upgrade.version2 import (
    FROZEN,
    filled_v2,
    fresh,
    is_folded,
    unpack_v2,
)
from tfx.errors import StateConflict
from tfx.hub.store.store import Store
from tfx.upgrade import run
from tfx.upgrade.model import Line, RowCount, State, Task


def test_u18_a_check_of_version_2_tells_what_is_to_be_done_and_writes_nothing(site: Site) -> None:
    path = filled_v2(site.database, 3_000)
    before = path.read_bytes()
    receipt = site.work(Task.CHECK)
    assert (receipt.state, receipt.pending) == (State.CHECKED, "older")
    assert (receipt.from_version, receipt.to_version, receipt.adopted) == (2, 3, None)
    size = len(before)
    needed = sum(each.needed_bytes for each in receipt.space)
    assert size < needed < 1.5 * size + 3_000_000, "a backup, and no second copy"
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == ["hub.db"]


@pytest.mark.parametrize("name", FROZEN)
def test_u17_a_rehearsal_of_version_2_leaves_it_as_it_was(site: Site, name: str) -> None:
    path = unpack_v2(name, site.database)
    before = {each.name: each.read_bytes() for each in path.parent.glob("hub.db*")}
    receipt = site.work(Task.REHEARSE)
    assert (receipt.state, receipt.from_version, receipt.to_version) == (State.REHEARSED, 2, 3)
    assert (receipt.backup_directory, receipt.adopted) == (None, None)
    assert receipt.rows["tasks"] == RowCount(None, 0)
    after = {each.name: each.read_bytes() for each in path.parent.glob("hub.db*")}
    assert {name: after[name] for name in before} == before
    assert not site.store.exists()


def test_u7_a_hub_refuses_version_2_and_names_the_upgrade(site: Site) -> None:
    path = unpack_v2("hub", site.database)
    before = path.read_bytes()
    answer = site.tfx("hub", "start", "--port", "0", code=5)
    problem = answer["problems"][0]  # type: ignore[index]
    assert (problem["code"], problem["hint"]) == ("schema-older", "tfx upgrade")
    assert path.read_bytes() == before


def test_u13_u20_the_command_upgrades_version_2_and_then_says_current(site: Site) -> None:
    unpack_v2("hub", site.database)
    data = site.tfx("upgrade", "--stop-hub", "--yes")["data"]
    assert isinstance(data, dict)
    assert (data["state"], data["from_version"], data["to_version"]) == ("upgraded", 2, 3)
    assert data["adopted"] is None
    assert data["rows"]["log"]["before"] == data["rows"]["log"]["after"]
    again = site.tfx("upgrade")["data"]
    assert isinstance(again, dict)
    assert (again["state"], again["backup_directory"]) == ("current", None)


def test_ev_m7_two_upgrades_of_version_2_at_once_one_upgrades(site: Site) -> None:
    filled_v2(site.database, 5_000)
    children = [
        subprocess.Popen(
            run.worker_argv(), env=site.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    order = msgspec.json.encode(site.request(Task.UPGRADE))
    for child in children:
        assert child.stdin is not None
        child.stdin.write(order)
        child.stdin.close()
        child.stdin = None  # `communicate` would flush it
    ends = [
        msgspec.json.decode(child.communicate(timeout=120)[0].splitlines()[-1], type=Line)
        for child in children
    ]
    states = sorted(
        end.receipt.state if end.receipt else (end.failure.kind if end.failure else "")
        for end in ends
    )
    assert states in (["state-conflict", "upgraded"], ["current", "upgraded"])
    assert site.work(Task.UPGRADE).state is State.CURRENT


@pytest.mark.parametrize("name", FROZEN)
def test_u82_a_backup_of_version_2_comes_back_whole_and_says_what_to_do(
    site: Site, tmp_path: Path, name: str
) -> None:
    before = everything(unpack_v2(name, tmp_path / "before.db"))
    unpack_v2(name, site.database)
    directory = Path(site.work(Task.UPGRADE).backup_directory or "")
    site.now_ms += 60_000
    receipt = site.work(Task.RESTORE, directory)
    assert (receipt.from_version, receipt.to_version) == (3, 2)
    assert everything(site.database) == before
    assert [note for note in receipt.notes if "tfx upgrade" in note] == [
        "it has schema version 2, this program's is 3: the hub starts on it after `tfx upgrade`"
    ]
    with pytest.raises(StateConflict) as refused:
        Store.open(site.database, clock=FakeClock())
    assert refused.value.reason == "schema-older"
    site.now_ms += 60_000
    assert site.work(Task.UPGRADE).state is State.UPGRADED
    assert is_folded(site.database)


def test_k34_an_adoption_replaces_an_empty_version_2_and_refuses_one_with_mail(site: Site) -> None:
    source = unpack(NAMES[0], site.triflux)
    filled_v2(site.database, 0)
    receipt = site.work(Task.ADOPT, source)
    assert (receipt.from_version, receipt.to_version) == (1, 3)
    assert is_folded(site.database)
    unpack_v2("hub", site.database)
    before = site.database.read_bytes()
    with pytest.raises(StateConflict) as refused:
        site.work(Task.ADOPT, source)
    assert refused.value.reason == "not-empty"
    assert site.database.read_bytes()[100:] == before[100:]


def test_k34_a_hub_that_holds_only_a_task_is_not_replaced(site: Site) -> None:
    source = unpack(NAMES[0], site.triflux)
    path = fresh(site.database)
    path.chmod(0o600)
    change(
        path,
        "INSERT INTO tasks (stream, room, number, status, title, detail, priority, author, "
        "trace_id, created_at_ms, changed_at_ms, last_seq) VALUES (1, 'r', 1, 'proposed', 't', '', "
        "5, 'ann', 'x', 1, 1, 1)",
    )
    with pytest.raises(StateConflict) as refused:
        site.work(Task.ADOPT, source)
    assert (refused.value.reason, refused.value.details["rows"]) == ("not-empty", {"tasks": 1})


def test_u83_a_version_2_file_is_not_adopted_but_upgraded(site: Site, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir(mode=0o700)
    source = unpack_v2("hub", tmp_path / "own" / "hub.db")
    with pytest.raises(StateConflict) as refused:
        site.work(Task.ADOPT, source)
    assert refused.value.reason == "not-triflux"
    assert "tfx upgrade --db" in (refused.value.hint or "")


def test_u18_a_check_that_finds_something_pending_is_exit_1(site: Site) -> None:
    path = unpack_v2("hub", site.database)
    found = site.tfx("upgrade", "--check", code=1)
    assert (found["status"], found["problems"]) == ("failed", [])
    site.tfx("upgrade", "--yes")
    assert site.tfx("upgrade", "--check")["exit"] == 0
    path.unlink()
    unpack(NAMES[0], site.triflux)
    missing = site.tfx("upgrade", "--check", code=1)["problems"][0]  # type: ignore[index]
    assert missing["hint"] == "tfx upgrade --adopt auto"
