"""Ctrl-C while modules are loaded: exit 130 and one word, as at any other moment (K-9)."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import bare_env, tfx

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
