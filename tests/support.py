"""Run the installed command as a user would, in a HOME of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TFX = (sys.executable, "-m", "tfx")


@dataclass(frozen=True, slots=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        loaded = json.loads(self.out)
        assert isinstance(loaded, dict)
        return loaded

    @property
    def data(self) -> Any:  # noqa: ANN401  (JSON of the command under test)
        return self.document["data"]


def bare_env(home: Path, **extra: str) -> dict[str, str]:
    """An environment with nothing of the real user in it."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"} | extra


def tfx(
    home: Path,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    command: Sequence[str] = TFX,
    timeout_s: float = 120,
) -> Ran:
    done = subprocess.run(
        [*command, *arguments],
        env=dict(env) if env is not None else bare_env(home),
        input=stdin.encode(),
        capture_output=True,
        timeout=timeout_s,
        check=False,
        cwd=home if home.is_dir() else None,
    )
    return Ran(
        done.returncode,
        done.stdout.decode("utf-8", "replace"),
        done.stderr.decode("utf-8", "replace"),
    )


def listing(root: Path) -> dict[str, tuple[int, int, bytes | str | None]]:
    """Everything below a directory: mode, mtime and content; links by their target."""
    found: dict[str, tuple[int, int, bytes | str | None]] = {}
    for path in sorted(root.rglob("*")):
        stat = path.lstat()
        content: bytes | str | None = None
        if path.is_symlink():
            content = str(path.readlink())
        elif path.is_file():
            content = path.read_bytes()
        found[str(path.relative_to(root))] = (stat.st_mode, stat.st_mtime_ns, content)
    return found
