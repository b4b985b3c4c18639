"""Targets that may not be written: another uid, a read-only mount, a full disk (K-44)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support import bare_env

ROOT = Path(__file__).parents[2]
REPORT = """
from pathlib import Path
import sys
from tests.plan.machine import Machine
machine = Machine(Path(sys.argv[1]))
for outcome in machine.apply(machine.desired()).outcomes:
    print(outcome.status.value, outcome.action.path.name, outcome.snippet is not None,
          outcome.reason, sep="|")
"""


def as_another_uid(top: Path) -> list[str]:
    """Run setup as `nobody` where we are root, else as ourselves: modes then bind anyway."""
    code = [sys.executable, "-c", REPORT, str(top)]
    if os.geteuid() == 0:
        readable = subprocess.run(
            ["setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all",
             sys.executable, "-c", "import tfx"],
            cwd=ROOT, env=bare_env(top), capture_output=True, check=False,
        )  # fmt: skip
        if readable.returncode:
            pytest.skip("setpriv is missing or another uid may not read this checkout")
        for path in (top, *top.parents):
            if path.is_relative_to("/tmp") and path != Path("/tmp"):  # noqa: S108
                path.chmod(path.stat().st_mode | 0o055)
        for path in (top, *top.rglob("*")):
            os.chown(path, 65534, 65534, follow_symlinks=False)
        code = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *code]
    done = subprocess.run(
        code, cwd=ROOT, env=bare_env(top / "home"), capture_output=True, check=False, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "m" / "home").mkdir(parents=True)
    return tmp_path / "m"


def test_s51_a_directory_that_forbids_new_files_is_written_in_place(top: Path) -> None:
    settings = top / "home" / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"a": 1}')
    for name in ("scripts", "skills"):
        (settings.parent / name).mkdir()
    settings.parent.chmod(0o555)
    inode = settings.stat().st_ino
    lines = as_another_uid(top)
    assert [line for line in lines if line.startswith("changed|settings.json")]
    assert "tfx-hub" in settings.read_text()
    assert settings.stat().st_ino == inode


def test_s52_a_read_only_file_in_a_read_only_directory_is_partial(top: Path) -> None:
    settings = top / "home" / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"a": 1}')
    settings.chmod(0o444)
    settings.parent.chmod(0o555)
    lines = as_another_uid(top)
    partial = [line for line in lines if line.startswith("partial|settings.json|True|")]
    assert len(partial) == 2
    assert str(settings) in partial[0]
    assert settings.read_text() == '{"a": 1}'
    assert [line for line in lines if line.startswith("changed|config.toml")]
    assert [line for line in lines if line.startswith("partial|SKILL.md")]


def test_a_file_that_may_not_be_read_is_refused(top: Path) -> None:
    settings = top / "home" / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"a": 1}')
    settings.chmod(0)
    lines = as_another_uid(top)
    refused = [line for line in lines if line.startswith("refused|settings.json")]
    assert len(refused) == 2
    assert "cannot read" in refused[0]


def in_mount_namespace(script: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script where it may mount what it likes."""
    probe = subprocess.run(
        ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False
    )
    if probe.returncode:
        pytest.skip("no private mount namespace here (needs root)")
    return subprocess.run(
        ["unshare", "-m", "sh", "-euc", textwrap.dedent(script)],
        cwd=ROOT, env=bare_env(ROOT) | {"PY": sys.executable, "CODE": REPORT},
        capture_output=True, check=False, text=True,
    )  # fmt: skip


@pytest.mark.faults
def test_s86_a_link_chain_into_a_read_only_store_is_partial_and_kept(top: Path) -> None:
    store, settings = top / "store", top / "home" / ".claude" / "settings.json"
    store.mkdir()
    (store / "settings.json").write_text('{"a": 1}')
    settings.parent.mkdir()
    hop = top / "home" / "hop"
    hop.symlink_to(store / "settings.json")
    settings.symlink_to(hop)
    done = in_mount_namespace(f"""
        mount --bind {store} {store}
        mount -o remount,bind,ro {store}
        "$PY" -c "$CODE" {top}
    """)
    assert done.returncode == 0, done.stderr
    partial = [
        line for line in done.stdout.splitlines() if line.startswith("partial|settings.json|True")
    ]
    assert len(partial) == 2
    assert "Read-only file system" in partial[0]
    assert settings.is_symlink()
    assert (store / "settings.json").read_text() == '{"a": 1}'


@pytest.mark.faults
def test_a_bind_mounted_file_is_written_in_place(top: Path) -> None:
    real, settings = top / "real.json", top / "home" / ".claude" / "settings.json"
    real.write_text('{"a": 1}')
    settings.parent.mkdir()
    settings.write_text("{}")
    done = in_mount_namespace(f"""
        mount --bind {real} {settings}
        "$PY" -c "$CODE" {top}
    """)
    assert done.returncode == 0, done.stderr
    assert "tfx-hub" in real.read_text()


@pytest.mark.faults
@pytest.mark.parametrize("kib", [4, 8, 12, 16, 24, 32, 48])
def test_a_tiny_file_system_loses_nothing(top: Path, kib: int) -> None:
    """HOME lies on a file system of a few pages, with a large file of the user's in it."""
    (top / "before.json").write_text(json.dumps({"long": "x" * 2000}))
    done = in_mount_namespace(f"""
        mount -t tmpfs -o size={kib}k,mode=755 none {top}/home
        mkdir {top}/home/.claude
        cp {top}/before.json {top}/home/.claude/settings.json
        "$PY" -c "$CODE" {top}
        if ! grep -q tfx-hub {top}/home/.claude/settings.json; then
            cmp {top}/home/.claude/settings.json {top}/before.json
        fi
        ! find {top}/home -name '.tfx-*' | grep .
    """)
    assert done.returncode == 0, done.stdout + done.stderr
    statuses = {line.split("|")[0] for line in done.stdout.splitlines()}
    assert statuses <= {"changed", "failed"}
    assert kib > 12 or "failed" in statuses
    assert kib < 48 or statuses == {"changed"}


@pytest.mark.faults
@pytest.mark.parametrize("kib", [4, 8, 12, 16, 24, 40])
def test_a_tiny_file_system_under_state_loses_nothing(top: Path, kib: int) -> None:
    """The backup does not fit: then nothing is changed, and the message says where."""
    (top / "home" / ".claude").mkdir()
    settings = top / "home" / ".claude" / "settings.json"
    settings.write_text('{"a": 1}')
    (top / "state").mkdir()
    done = in_mount_namespace(f"""
        mount -t tmpfs -o size={kib}k,mode=700 none {top}/state
        "$PY" -c "$CODE" {top} || echo "exit $?"
        mount -o remount,size=1m {top}/state
        "$PY" -c "$CODE" {top}
    """)
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-6:]
    assert {line.split("|")[0] for line in last} <= {"changed", "unchanged"}, done.stdout
    assert "tfx-hub" in settings.read_text()
