"""What stands in the place of a file and is none, or is more than tfx reads (D-24, D-166)."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.doctor.world import Clinic, texts
from tests.hub.running import free_port
from tfx.doctor.model import Status

# All that doctor reads by itself; a start-up file is read by its shell.
READ = (
    ".claude.json",
    ".claude/settings.json",
    ".codex/config.toml",
    ".config/tfx/config.toml",
    ".local/state/tfx/setup/manifest.json",
    ".local/state/tfx/hub/hub.db",
    ".local/state/tfx/hub/state.json",
    ".local/state/tfx/hub/token",
    ".local/share/tfx/backups/20260101T000000Z/manifest.json",
    ".npmrc",
    ".nvm/alias/default",
    ".nvm/versions/node/v22.2.0/bin/gemini",
)


@pytest.mark.parametrize("name", READ)
def test_d24_a_pipe_in_the_place_of_a_file_is_waited_for_by_no_check(
    clinic: Clinic, name: str
) -> None:
    clinic.write(".nvm/versions/node/v22.2.0/bin/gemini", "#!/bin/sh\n", 0o755)
    path = clinic.home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path, 0o755)
    chosen = ("settings.json", "mcp.*", "skills", "setup", "cli.matrix", "cli.method", "db.*")
    ran = clinic.doctor(*chosen, "hub.health", "hub.pid", "hub.tokens", "time", "--timeout", "2")
    waited = [each for each in ran.data["rows"] if each["details"].get("reason") == "timeout"]
    assert waited == []
    assert "check-broke" not in ran.out


@pytest.mark.parametrize("kind", ["directory", "pipe", "socket"])
def test_d109_what_is_no_file_is_no_database(clinic: Clinic, kind: str) -> None:
    clinic.env["TFX_HUB_PORT"] = str(free_port())
    place = clinic.home / ".local/state/tfx/hub/hub.db"
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if kind == "directory":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        with socket.socket(socket.AF_UNIX) as one:
            os.chdir(place.parent)
            one.bind(place.name)
    found = clinic.rows("db.file", "db.integrity", "db.backups")
    said = found["~/.local/state/tfx/hub/hub.db"]
    assert (said.status, said.summary) == (Status.FAIL, "is no file, so it is no database")
    assert found["database"].status is Status.FAIL
    assert "is no file" in found["database"].summary


def test_d109_a_linked_database_is_named_with_the_file_behind(clinic: Clinic) -> None:
    place = clinic.home / ".local/state/tfx/hub/hub.db"
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    place.symlink_to(clinic.write("elsewhere/mine.db", b"", 0o600))
    said = clinic.rows("db.file")["~/.local/state/tfx/hub/hub.db (link)"]
    assert (said.status, "~/elsewhere/mine.db" in said.summary) == (Status.INFO, True)


DEEP = b'{"a": ' + b"[" * 300 + b"]" * 300 + b"}"
LARGE = b'{"a": "' + b"x" * (33 * 1024 * 1024) + b'"}'


@pytest.mark.parametrize("content", [DEEP, LARGE], ids=["deep", "large"])
def test_d166_what_is_beyond_the_limits_of_tfx_is_no_fault_of_the_agent(
    clinic: Clinic, content: bytes
) -> None:
    clinic.write(".claude.json", content)
    looked = clinic.look("settings.json", "mcp.registration", "assets.manifest").data
    about = [row for row in looked.rows if "claude" in row.target and row.status != Status.OK]
    assert about
    assert {row.status for row in about} <= {Status.UNKNOWN, Status.INFO}, about
    said = next(row for row in about if row.target == "~/.claude.json")
    assert said.summary.startswith("larger than tfx reads")
    assert "ignores the whole file" not in texts(said)


def test_d166_a_toml_file_beyond_the_limits_neither(clinic: Clinic) -> None:
    path: Path = clinic.write(".codex/config.toml", "a = " + "[" * 80 + "]" * 80 + "\n")
    said = clinic.rows("settings.json")[f"~/{path.relative_to(clinic.home)}"]
    assert (said.status, said.summary[:21]) == (Status.UNKNOWN, "larger than tfx reads")
