"""`db.backups`: real backups of real hubs, whole, cut, changed, unfinished, old, open to others."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.doctor.world import Clinic, by_target, commands, texts
from tests.hub.running import RunningHub, start
from tests.support import gone, listing
from tfx.doctor.checks import backups as checks
from tfx.doctor.facts import Facts
from tfx.doctor.model import Status
from tfx.doctor.options import Options
from tfx.hub.store import inspection
from tfx.hub.store.inspection import Traffic
from tfx.upgrade import manifest
from tfx.upgrade.manifest import Stage

DAY_MS = 86_400_000
HOUR_MS = 3_600_000


@pytest.fixture
def clinic(tmp_path: Path) -> Clinic:
    return Clinic(tmp_path)


@pytest.fixture
def hub(clinic: Clinic) -> Iterator[RunningHub]:
    """A running hub whose database holds one message."""
    running = start(clinic.home, clinic.env)
    try:
        running.register("agent-1", "agent-2")
        running.call("publish", from_="agent-1", to="agent-2", topic="x", payload={})
        yield running
    finally:
        running.end()


def backed_up(clinic: Clinic) -> Path:
    made = clinic.tfx("backup", "create", "--json")
    assert made.code == 0, made.out
    return Path(made.data["backup_directory"])


def rows(clinic: Clinic, **options: Any) -> dict[str, Any]:  # noqa: ANN401
    return clinic.rows("db.backups", **options)


def of(clinic: Clinic, directory: Path, **options: Any) -> Any:  # noqa: ANN401
    return rows(clinic, **options)[f"~/{directory.relative_to(clinic.home)}"]


def database_of(directory: Path) -> Path:
    [file] = directory.glob("*.db")
    return file


def test_without_a_database_there_is_nothing_to_back_up(clinic: Clinic) -> None:
    assert rows(clinic)["backups"].status is Status.SKIP


def test_messages_without_a_backup_are_information_with_the_command(
    clinic: Clinic, hub: RunningHub
) -> None:
    for _ in ("running", "stopped"):
        found = rows(clinic)["backups"]
        assert (found.status, commands(found)) == (Status.INFO, ["tfx backup create"])
        assert "1 messages" in found.summary
        hub.end()


def test_a_database_without_messages_needs_no_backup(clinic: Clinic) -> None:
    running = start(clinic.home, clinic.env)
    running.register("agent-1")
    running.end()
    assert rows(clinic)["backups"].status is Status.OK


def test_a_fresh_backup_made_running_or_stopped_is_ok(clinic: Clinic, hub: RunningHub) -> None:
    backed_up(clinic)
    hub.end()
    newest = backed_up(clinic)
    found = rows(clinic)["newest backup"]
    assert found.status is Status.OK
    assert (found.details["path"], found.details["sound"]) == (
        f"~/{newest.relative_to(clinic.home)}",
        2,
    )
    assert "of the right size" in found.summary


def test_d1_the_look_changes_nothing_not_even_with_deep(clinic: Clinic, hub: RunningHub) -> None:
    backed_up(clinic)
    hub.end()
    before = listing(clinic.home)
    for words in (("db.backups",), ("db.backups", "--deep")):
        ran = clinic.doctor(*words)
        assert ran.code == 0
        assert {each["status"] for each in ran.data["rows"]} == {"ok"}
    assert "read to the last byte" in by_target(ran, "db.backups")["newest backup"]["summary"]
    assert listing(clinic.home) == before


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("fault", ["cut", "gone", "manifest", "no-manifest"])
def test_a_backup_that_cannot_be_restored_is_a_warning(clinic: Clinic, fault: str) -> None:
    directory = backed_up(clinic)
    file = database_of(directory)
    match fault:
        case "cut":
            file.chmod(0o600)
            os.truncate(file, 4096)
        case "gone":
            file.unlink()
        case "manifest":
            (directory / manifest.NAME).write_text('{"stage": "done", ')
        case _:
            (directory / manifest.NAME).unlink()
    before = listing(directory)
    ran = clinic.doctor("db.backups", "--fix", "--yes")
    assert (ran.code, ran.data["fixes"]) == (0, [])
    found = of(clinic, directory)
    assert (found.status, found.fix) == (Status.WARN, {"class": "M"})
    assert found.summary.startswith("cannot be restored: ")
    assert commands(found)[0] == "tfx backup create"
    assert rows(clinic)["backups"].status is Status.INFO  # no sound one is left
    assert listing(directory) == before


@pytest.mark.usefixtures("hub")
def test_a_changed_byte_is_found_by_deep_alone(clinic: Clinic) -> None:
    directory, whole = backed_up(clinic), backed_up(clinic)
    file = database_of(directory)
    file.chmod(0o600)
    data = bytearray(file.read_bytes())
    data[-10] ^= 1
    file.write_bytes(data)
    target = f"~/{directory.relative_to(clinic.home)}"
    assert set(rows(clinic)) == {"newest backup"}
    seen = rows(clinic, deep=True)
    assert seen[target].status is Status.WARN
    assert seen["newest backup"].details["sound"] == 1
    assert whole.name in seen["newest backup"].details["path"]
    assert file.read_bytes() == bytes(data)


@pytest.mark.usefixtures("hub")
def test_a_reader_that_dies_is_unknown_never_damaged(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tfx.upgrade import run  # noqa: PLC0415

    directory = backed_up(clinic)
    monkeypatch.setattr(run, "worker_argv", lambda: ("/bin/false",))
    assert of(clinic, directory, deep=True).status is Status.UNKNOWN


@pytest.mark.usefixtures("hub")
def test_an_unfinished_backup_names_prune_and_a_living_maker(clinic: Clinic) -> None:
    from dataclasses import replace  # noqa: PLC0415

    directory = backed_up(clinic)
    done = manifest.read(directory)
    assert done is not None
    database_of(directory).unlink()
    manifest.write(directory, replace(done, stage=Stage.PENDING, start_token="0" * 8))
    found = of(clinic, directory)
    assert (found.status, commands(found)) == (Status.INFO, ["tfx backup prune"])
    from tfx.core.identity import identify  # noqa: PLC0415

    me = identify()
    assert me is not None
    alive = replace(done, stage=Stage.PENDING, pid=os.getpid(), start_token=me.start_token)
    manifest.write(directory, alive)
    assert f"made by process {os.getpid()}" in of(clinic, directory).summary
    manifest.write(directory, replace(done, stage=Stage.PENDING, start_token="0" * 8))
    assert clinic.tfx("backup", "prune", "--json").code == 0
    assert not directory.exists()


@pytest.mark.usefixtures("hub")
def test_u4_a_backup_open_to_others_is_closed_by_fix_and_reopened_by_undo(clinic: Clinic) -> None:
    directory = backed_up(clinic)
    directory.chmod(0o755)
    found = rows(clinic)[f"~/{directory.relative_to(clinic.home)} (mode)"]
    assert (found.status, found.fix) == (Status.WARN, {"class": "A"})
    ran = clinic.doctor("db.backups", "--fix", "--yes")
    assert [each["outcome"] for each in ran.data["fixes"]] == ["applied"]
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert clinic.setup("--undo", ran.data["run"]).code == 0
    assert stat.S_IMODE(directory.stat().st_mode) == 0o755


@pytest.mark.parametrize(
    ("age_ms", "lost", "status", "words"),
    [
        (5 * 60_000, Traffic(1, 2 * DAY_MS), Status.OK, "5 min"),
        (3 * HOUR_MS, Traffic(1, None), Status.OK, "3 h"),
        (31 * DAY_MS, Traffic(5, 99 * DAY_MS), Status.INFO, "31 days ago, and messages came"),
        (31 * DAY_MS, Traffic(5, DAY_MS), Status.OK, "31 days"),  # it misses none of them
        (31 * DAY_MS, Traffic(0, None), Status.OK, "31 days"),
        (31 * DAY_MS, None, Status.INFO, "31 days"),  # not known what it misses
        (-HOUR_MS, Traffic(1, None), Status.OK, "less than a minute"),  # a clock that was set back
    ],
)
def test_k45_old_is_only_what_misses_messages(
    age_ms: int, lost: Traffic | None, status: Status, words: str
) -> None:
    made = 60 * DAY_MS
    found = checks.judge_age(made, made + age_ms, lost)
    assert (found.status, words in found.summary) == (status, True)
    assert bool(found.remedies) is (status is Status.INFO)


def test_the_backups_of_another_database_are_not_counted(clinic: Clinic, hub: RunningHub) -> None:
    backed_up(clinic)
    hub.end()
    clinic.env["TFX_HUB_DB"] = str(clinic.home / "elsewhere/x.db")
    assert rows(clinic) == {}
    running = start(clinic.home, clinic.env)
    running.end()
    assert "newest backup" not in rows(clinic)


def test_traffic_is_not_told_of_another_schema(clinic: Clinic, hub: RunningHub) -> None:
    hub.end()
    found = inspection.traffic(hub.files.database)
    assert found is not None
    assert (found.messages, (found.last_posted_at_ms or 0) > DAY_MS) == (1, True)
    import apsw  # noqa: PLC0415

    connection = apsw.Connection(str(hub.files.database))
    connection.execute("CREATE TABLE intruder (x)")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    assert inspection.traffic(hub.files.database) is None
    found_row = rows(clinic)["backups"]
    assert (found_row.status, "messages" in found_row.summary) == (Status.INFO, False)


@pytest.mark.usefixtures("hub")
def test_an_end_of_the_look_ends_the_reader(
    clinic: Clinic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tfx.upgrade import run  # noqa: PLC0415

    backed_up(clinic)
    script = tmp_path / "slow"
    script.write_text(
        "#!/bin/sh\necho $$ > " + str(tmp_path / "pid") + "\n"
        'while :; do echo \'{"progress": {"phase": "verify-backup"}}\'; sleep 0.1; done\n'
    )
    script.chmod(0o755)
    monkeypatch.setattr(run, "worker_argv", lambda: (str(script),))
    facts = Facts(clinic.paths, Options(deep=True))
    found: list[object] = []

    def look() -> None:
        with pytest.raises(checks._Ended):
            found.extend(checks.backups(facts))

    thread = threading.Thread(target=look)
    thread.start()
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
        thread.join(0.05)
        assert thread.is_alive()
    facts.cancel.set()
    thread.join(60)
    assert not thread.is_alive()
    assert gone(int((tmp_path / "pid").read_text()))


def test_texts_name_no_message(clinic: Clinic, hub: RunningHub) -> None:
    hub.call("publish", from_="agent-1", to="agent-2", topic="x", payload={"canary": "4711"})
    shutil.rmtree(backed_up(clinic) / "none", ignore_errors=True)
    assert all("4711" not in texts(each) for each in rows(clinic, deep=True).values())


def test_u76_a_backup_in_a_named_directory_is_looked_at_while_it_is_there(
    clinic: Clinic, hub: RunningHub
) -> None:
    assert hub.files.database.exists()
    store = clinic.home / "my backups"
    made = clinic.tfx("backup", "create", "--backup-dir", str(store), "--json")
    assert made.code == 0, made.out
    directory = Path(made.data["backup_directory"])
    newest = rows(clinic)["newest backup"]
    assert (newest.status, newest.details["path"]) == (Status.OK, clinic.paths.display(directory))
    next(directory.glob("*.db")).unlink()
    assert of(clinic, directory).status is Status.WARN
    shutil.rmtree(store)
    assert "newest backup" not in rows(clinic)
    noted = clinic.paths.backup_stores
    assert noted.exists()
    hub.end()
    assert clinic.tfx("setup", "--remove", "--purge", "--yes").code == 0
    assert not noted.exists()


def test_u76_the_list_names_the_other_stores_that_hold_backups(
    clinic: Clinic, hub: RunningHub
) -> None:
    assert hub.files.database.exists()
    for name in ("my backups", "emptied"):
        store = clinic.home / name
        made = clinic.tfx("backup", "create", "--backup-dir", str(store), "--json")
        assert made.code == 0, made.out
    (directory,) = (clinic.home / "emptied").iterdir()
    shutil.rmtree(directory)
    (clinic.home / "emptied/pictures").mkdir()
    mine = str(clinic.home / "my backups")
    assert clinic.tfx("backup", "list", "--json").data["elsewhere"] == [mine]
    told = clinic.tfx("backup", "list").out.partition(": tfx ")[2]
    words = shlex.split(told.replace("~/", f"{clinic.home}/"))
    found = clinic.tfx(*words, "--json").data
    assert (len(found["backups"]), found["elsewhere"]) == (1, [])
