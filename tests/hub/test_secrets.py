"""Tokens are in their files and nowhere else; files are private whatever the umask (H-42, H-45)."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hub.running import RunningHub
from tests.support import bare_env, tfx
from tfx.core.paths import Paths
from tfx.errors import OperationFailed
from tfx.hub import tokens
from tfx.hub.places import HubFiles


def test_h_45_everything_is_private_whatever_the_umask(home: Path) -> None:
    code = f"import os; os.umask(0); os.execv({sys.executable!r}, {[sys.executable, '-m', 'tfx', 'hub', 'start', '--port', '0']!r})"  # noqa: E501
    env = bare_env(home)
    try:
        subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True)
        directory = HubFiles.of(Paths.resolve(env)).directory
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        files = list(directory.iterdir())
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
        assert {"hub.db", "hub.log", "token", "operator", "state.json"} <= {p.name for p in files}
    finally:
        tfx(home, "hub", "stop", env=env)


def test_h_42_secrets_are_32_random_bytes_and_two(hub: RunningHub) -> None:
    assert hub.token != hub.operator
    assert len(hub.token) == len(hub.operator) == 43


def test_h_42_h_46_no_secret_is_in_a_log_a_status_an_error_or_a_process_list(
    hub: RunningHub,
) -> None:
    secrets = (hub.token, hub.operator)
    said = [hub.get("/status").body, hub.get("/metrics").body, hub.get("/nope").body]
    wrong = [("Host", f"127.0.0.1:{hub.port}"), ("Authorization", f"Bearer x{hub.token}")]
    said.append(hub.request("GET", "/status", None, wrong).body)
    said.append(hub.post("/v1/publish", {"from": hub.token}).body)
    said.append(hub.post("/v1/prune", {}).body)
    for words in (("status",), ("status", "--json"), ("token",), ("logs",), ("agents", "--json")):
        ran = tfx(hub.home, "hub", *words, env=hub.env)
        said += [ran.out.encode(), ran.err.encode()]
    said += [_readable(path) for path in Path("/proc").glob("[0-9]*/cmdline")]
    hub.end()
    kept = {hub.files.token, hub.files.operator}
    said += [path.read_bytes() for path in hub.files.directory.iterdir() if path not in kept]
    for secret in secrets:
        assert not [text for text in said if secret.encode() in text]


def _readable(path: Path) -> bytes:
    with contextlib.suppress(OSError):  # the process has ended, or is not ours
        return path.read_bytes()
    return b""


def test_h_42_an_existing_token_is_never_rewritten(hub: RunningHub) -> None:
    before = (hub.token, hub.operator)
    hub.end()
    hub.again()
    assert (hub.token, hub.operator) == before


@pytest.mark.parametrize("content", ["", "short", "with blank " * 4, "é" * 30, "\n\n"])
def test_h_42_a_broken_token_file_is_refused_and_kept(hub: RunningHub, content: str) -> None:
    hub.end()
    hub.files.token.write_text(content, encoding="utf-8")
    ran = tfx(hub.home, "hub", "start", "--port", "0", "--json", env=hub.env)
    assert ran.code == 1
    assert ran.document["problems"][0]["code"] == "token-unreadable"
    assert hub.files.token.read_text("utf-8") == content


def test_h_9_a_token_file_variable_names_the_bus_token(home: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("f" * 40 + "\n")
    paths = Paths.resolve(bare_env(home, TFX_HUB_TOKEN_FILE=str(kept)))
    assert tokens.bus_override(paths) == "f" * 40
    both = Paths.resolve({**paths.env, "TFX_HUB_TOKEN": "e" * 40})
    assert tokens.bus_override(both) == "e" * 40
    missing = Paths.resolve({**paths.env, "TFX_HUB_TOKEN_FILE": str(tmp_path / "none")})
    with pytest.raises(OperationFailed, match="TFX_HUB_TOKEN_FILE"):
        tokens.bus_override(missing)


def test_h_47_no_variable_sets_the_operator_credential(hub: RunningHub) -> None:
    env = {**hub.env, "TFX_HUB_OPERATOR": "x" * 40, "TFX_HUB_TOKEN": hub.operator}
    assert tokens.read_operator(HubFiles.of(Paths.resolve(env))) == hub.operator


def test_credentials_do_not_show_in_their_representation() -> None:
    credentials = tokens.Credentials("b" * 40, "o" * 40)
    assert "b" * 40 not in f"{credentials!r} {credentials}"
    assert os.getpid()
