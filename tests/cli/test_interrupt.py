"""Ctrl-C while modules are loaded: exit 130 and one word, as at any other moment (K-9)."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import Machine, bare_env, tfx

# Sends the signal of Ctrl-C in the moment in which a module is looked for.
SITE = """
import importlib.abc, os, signal, sys
class Interrupt(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == os.environ["INTERRUPT_AT"]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
"""


@pytest.mark.parametrize(
    ("command", "module"),
    [
        ("list", "tfx.cli.entry"),
        ("list", "typer"),
        ("list", "tfx.cli.app"),
        ("list", "tfx.cli.work.commands"),
        ("list", "tfx.setup.inventory"),
        ("config show", "tfx.config.settings"),
        ("bogus", "tfx.cli.output"),
        ("hub bridge", "tfx.hub.bridge.run"),
        ("hub bridge", "tfx.hub.bridge.frames"),
    ],
)
def test_k9_an_interrupt_while_modules_are_loaded_exits_130(
    home: Path, tmp_path: Path, command: str, module: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(SITE)
    env = bare_env(home, PYTHONPATH=str(tmp_path), INTERRUPT_AT=module)
    ran = tfx(home, *command.split(), env=env)
    assert (ran.code, ran.out, ran.err) == (130, "", "interrupted\n")


def test_k9_an_interrupt_of_nobody_who_listens_exits_130_too(home: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(SITE)
    done = subprocess.run(
        ["sh", "-c", f"'{sys.executable}' -m tfx list 2>/dev/full"],
        env=bare_env(home, PYTHONPATH=str(tmp_path), INTERRUPT_AT="typer"),
        check=False,
        timeout=60,
    )
    assert done.returncode == 128 + signal.SIGINT


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
def test_d49_another_word_to_end_is_an_interrupt_and_then_that_death(
    home: Path, tmp_path: Path, signum: signal.Signals
) -> None:
    (tmp_path / "sitecustomize.py").write_text(SITE.replace("SIGINT", signum.name))
    env = bare_env(home, PYTHONPATH=str(tmp_path), INTERRUPT_AT="tfx.setup.inventory")
    ran = tfx(home, "list", env=env)
    assert (ran.code, ran.out, ran.err) == (-signum, "", "interrupted\n")


def test_d49_a_hang_up_that_is_ignored_stays_so(home: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(SITE.replace("SIGINT", "SIGHUP"))
    env = bare_env(home, PYTHONPATH=str(tmp_path), INTERRUPT_AT="tfx.setup.inventory")
    ran = tfx(home, "list", env=env, command=("nohup", sys.executable, "-m", "tfx"))
    assert ran.code == 0


# Sends the signal while the first settings file is put in its place.
AT_RENAME = """
import os, signal, sys
def heard(event, words):
    if event in {"os.rename", "os.link"} and str(words[1]).endswith("settings.json"):
        os.kill(os.getpid(), signal.SIGTERM)
sys.addaudithook(heard)
"""


def test_d49_a_run_of_setup_that_is_ended_leaves_nothing_half_done(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "claude")
    (tmp_path / "sitecustomize.py").write_text(AT_RENAME)
    ran = machine.setup(PYTHONPATH=str(tmp_path))
    assert (ran.code, ran.out) == (-signal.SIGTERM, "")
    seen = machine.tfx("doctor", "setup.journal", "setup.lock", "--json").data["rows"]
    assert [each["status"] for each in seen] == ["ok", "ok"]
    assert machine.setup().code == 0
