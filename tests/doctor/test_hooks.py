"""The hooks that setup wrote for Claude: found at fault, repaired through setup's journal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.doctor.world import Clinic, by_target, commands, row, texts
from tests.support import Ran, listing
from tfx.config.keypath import value_digest
from tfx.core.files import digest
from tfx.doctor.model import Status

SETTINGS = ".claude/settings.json"
HOOK = ".claude/hooks/tfx-inbox.py"
HUD = ".claude/hud/tfx-hud.py"
MANIFEST = ".local/state/tfx/setup/manifest.json"
EVENTS = ("SessionStart", "UserPromptSubmit")
GONE = "/no/such/venv/bin/python3"


def settings(clinic: Clinic) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((clinic.home / SETTINGS).read_text())
    return document


def rewrite(clinic: Clinic, document: dict[str, Any]) -> bytes:
    """Write the settings as another program would, and return the bytes."""
    return clinic.write(SETTINGS, json.dumps(document, indent=4) + "\n").read_bytes()


def doubled(clinic: Clinic, *events: str) -> bytes:
    document = settings(clinic)
    for event in events:
        document["hooks"][event] *= 2
    return rewrite(clinic, document)


def fix(clinic: Clinic, *checks: str) -> Ran:
    return clinic.doctor(*(checks or ("setup", "agents")), "--fix", "--yes")


def outcomes(ran: Ran) -> list[tuple[str, str, str]]:
    return [(each["id"], each["target"], each["outcome"]) for each in ran.data["fixes"]]


def undone(clinic: Clinic, ran: Ran) -> None:
    done = clinic.setup("--undo", ran.data["run"])
    assert done.code == 0, done.out


def strings(value: Any) -> Iterator[str]:  # noqa: ANN401
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def test_setup_wrote_the_hooks_and_they_are_right(clinic: Clinic) -> None:
    assert set(EVENTS) <= settings(clinic)["hooks"].keys()
    assert clinic.rows("settings.json")[f"~/{SETTINGS}"].status is Status.OK


@pytest.mark.parametrize("checks", [(), ("settings.json",)])
def test_must_show_d104_our_hook_twice_is_repaired_and_undone(
    clinic: Clinic, checks: tuple[str, ...]
) -> None:
    kept = settings(clinic)
    before = doubled(clinic, *EVENTS)
    found = clinic.rows("settings.json")[f"~/{SETTINGS}:hooks.SessionStart[1]"]
    assert (found.status, found.fix) == (Status.WARN, {"class": "A"})
    assert "the hook of tfx" in found.summary
    assert commands(found) == ["tfx doctor --fix"]
    ran = fix(clinic, *checks)
    assert ran.code == 0, ran.out
    assert outcomes(ran) == [
        ("settings.json", f"~/{SETTINGS}:hooks.{event}[1]", "applied") for event in EVENTS
    ]
    assert row(ran, "settings.json", f"~/{SETTINGS}")["status"] == "ok"
    assert settings(clinic) == kept
    assert clinic.setup("--runs").data["runs"][0]["changes"] == 1  # one file
    undone(clinic, ran)
    assert (clinic.home / SETTINGS).read_bytes() == before


def test_d5_d118_d177_the_plan_of_a_doubled_hook_is_the_file_before_and_after(
    clinic: Clinic,
) -> None:
    document = settings(clinic)
    document["env"] = {"CANARY_KEY": "canary4711"}
    rewrite(clinic, document)
    before = doubled(clinic, "SessionStart")
    ran = clinic.doctor("settings.json", "--fix", "--dry-run")
    place = f"~/{SETTINGS}:hooks.SessionStart[1]"
    [action] = row(ran, "settings.json", place)["fix"]["plan"]["actions"]
    assert action["before"]["sha256"] == digest(before)
    assert action["diff"].startswith('-hooks.SessionStart[1]: {"hooks": [')
    assert action["diff"].count("\n") == 1
    assert "canary4711" not in ran.out
    assert fix(clinic, "settings.json").code == 0
    after = (clinic.home / SETTINGS).read_bytes()
    assert action["after"]["sha256"] == digest(after) != digest(before)


def test_d104_d118_setup_describes_one_hook_and_doctor_tells_it_once(clinic: Clinic) -> None:
    doubled(clinic, "SessionStart")
    check = clinic.setup("--check")
    assert check.code == 1
    assert "stood there more than once" in check.out
    assert {each.status for each in clinic.rows("assets.manifest").values()} == {Status.OK}


def test_d104_three_copies_are_one_fix(clinic: Clinic) -> None:
    document = settings(clinic)
    document["hooks"]["SessionStart"] *= 3
    rewrite(clinic, document)
    ran = fix(clinic, "settings.json")
    assert [each[2] for each in outcomes(ran)] == ["applied"]
    assert len(settings(clinic)["hooks"]["SessionStart"]) == 1


def test_d123_the_hooks_of_others_beside_ours_stay_however_often(clinic: Clinic) -> None:
    theirs = {"hooks": [{"type": "command", "command": "/bin/true"}]}
    document = settings(clinic)
    ours = document["hooks"]["SessionStart"][0]
    document["hooks"]["SessionStart"] = [theirs, ours, theirs, ours]
    rewrite(clinic, document)
    rows = clinic.rows("settings.json")
    assert rows[f"~/{SETTINGS}:hooks.SessionStart[2]"].fix == {"class": "M"}
    assert rows[f"~/{SETTINGS}:hooks.SessionStart[3]"].fix == {"class": "A"}
    fix(clinic)
    assert settings(clinic)["hooks"]["SessionStart"] == [theirs, theirs, ours]


def test_d104_d123_our_hook_again_in_another_form_is_told_and_left(clinic: Clinic) -> None:
    document = settings(clinic)
    other = {"hooks": [{"type": "command", "command": f"{sys.executable} ~/{HOOK}"}]}
    document["hooks"]["SessionStart"].append(other)
    before = rewrite(clinic, document)
    found = clinic.rows("settings.json")[f"~/{SETTINGS}:hooks.SessionStart[1]"]
    assert (found.status, found.fix) == (Status.WARN, {"class": "M"})
    assert "a second time" in found.summary
    assert fix(clinic).data["fixes"] == []
    assert (clinic.home / SETTINGS).read_bytes() == before


def test_must_show_k12_our_hook_to_a_deleted_file_is_explained_and_restored_by_setup(
    clinic: Clinic,
) -> None:
    (clinic.home / HOOK).unlink()
    before = listing(clinic.home)
    ran = fix(clinic)
    assert (ran.code, ran.data["fixes"]) == (1, [])
    assert listing(clinic.home) == before
    for event in EVENTS:
        found = row(ran, "settings.json", f"~/{SETTINGS}:hooks.{event}[0].hooks[0]")
        assert found["status"] == "fail"
        assert found["remediation"][0]["command"] == "tfx setup --restore"
    assert "block every prompt" in json.dumps(by_target(ran, "settings.json"))
    assert row(ran, "assets.manifest", f"~/{HOOK}")["details"]["state"] == "deleted"
    assert clinic.setup("--restore").code == 0
    assert clinic.doctor("setup", "settings.json").data["counts"]["fail"] == 0


def test_must_show_the_exec_bit_of_our_hook_is_set_again_and_undone(clinic: Clinic) -> None:
    (clinic.home / HOOK).chmod(0o644)
    before = (clinic.home / HOOK).read_bytes()
    ran = fix(clinic)
    assert (ran.code, outcomes(ran)) == (0, [("assets.manifest", f"~/{HOOK}", "applied")])
    assert (clinic.home / HOOK).stat().st_mode & 0o777 == 0o755
    undone(clinic, ran)
    assert (clinic.home / HOOK).stat().st_mode & 0o777 == 0o644
    assert (clinic.home / HOOK).read_bytes() == before


def moved(clinic: Clinic, *names: str) -> bytes:
    """Make entries what a tfx in a virtual environment that is gone had written; the bytes."""
    document, manifest = settings(clinic), json.loads((clinic.home / MANIFEST).read_text())
    for record in manifest["entries"]:
        place: Any = document
        for step in record["key"]:
            place = place.get(step, {})
        if record["key"][-1] not in names:
            continue
        value = place[0] if record["element"] else place
        hook = value["hooks"][0] if record["element"] else value
        hook["command"] = GONE + hook["command"][hook["command"].index(" ") :]
        record["value_sha256"] = value_digest(value)
    (clinic.home / MANIFEST).write_text(json.dumps(manifest))
    return rewrite(clinic, document)


@pytest.mark.parametrize("checks", [(), ("settings.json",)])
@pytest.mark.parametrize("names", [EVENTS, (*EVENTS, "statusLine"), ("SessionStart",)])
def test_must_show_a_hook_whose_interpreter_is_gone_is_written_anew_and_undone(
    clinic: Clinic, checks: tuple[str, ...], names: tuple[str, ...]
) -> None:
    before = moved(clinic, *names)
    rows = clinic.rows("settings.json")
    bad = {target: each for target, each in rows.items() if each.status is Status.FAIL}
    assert len(bad) == len(names)
    assert all(GONE in texts(each) for each in bad.values())
    assert all(each.fix == {"class": "A"} for each in bad.values())
    ran = fix(clinic, *checks)
    assert ran.code == 0, ran.out
    assert [each[2] for each in outcomes(ran)] == ["applied"] * len(names)
    assert not [text for text in strings(settings(clinic)) if GONE in text]
    assert clinic.setup("--check").code == 0
    undone(clinic, ran)
    assert (clinic.home / SETTINGS).read_bytes() == before


def test_d129_a_hook_that_the_user_changed_is_left(clinic: Clinic) -> None:
    document = settings(clinic)
    document["hooks"]["SessionStart"][0]["hooks"][0]["command"] = f"{GONE} -I x"
    before = rewrite(clinic, document)
    ran = fix(clinic)
    assert (ran.code, ran.data["fixes"]) == (1, [])
    found = row(ran, "settings.json", f"~/{SETTINGS}:hooks.SessionStart[0].hooks[0]")
    assert (found["fix"], found["details"]["ours"]) == ({"class": "M"}, False)
    assert (clinic.home / SETTINGS).read_bytes() == before


def test_d117_where_the_manifest_cannot_be_read_no_hook_is_ours(clinic: Clinic) -> None:
    doubled(clinic, "SessionStart")
    (clinic.home / MANIFEST).write_text("{broken")
    found = clinic.rows("settings.json")[f"~/{SETTINGS}:hooks.SessionStart[1]"]
    assert (found.status, found.fix) == (Status.WARN, {"class": "M"})


def test_a_removed_tfx_leaves_no_copy_of_its_hook(clinic: Clinic) -> None:
    doubled(clinic, *EVENTS)
    assert clinic.setup("--remove").code == 0
    left = (clinic.home / SETTINGS).read_text() if (clinic.home / SETTINGS).exists() else ""
    assert Path(HOOK).name not in left
    assert Path(HUD).name not in left
