"""Run the installed command as a user would, in a HOME of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
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


PACKAGES = {
    "claude": ("@anthropic-ai/claude-code", "2.1.332"),
    "codex": ("@openai/codex", "0.171.0"),
    "gemini": ("@google/gemini-cli", "0.61.0"),
    "copilot": ("@github/copilot", "1.0.102"),
    "opencode": ("opencode-ai", "1.18.33"),
    "amp": ("@sourcegraph/amp", "0.0.1790142911-g7618fb"),
    "qwen": ("@qwen-code/qwen-code", "0.15.10"),
}


def stand_in(prefix: Path, *names: str) -> Path:
    """Agent CLIs as npm leaves them: a package with a version, a link in `bin` (returned)."""
    (prefix / "bin").mkdir(parents=True, exist_ok=True)
    for name in names:
        package, version = PACKAGES[name]
        place = prefix / "lib" / "node_modules" / package
        (place / "bin").mkdir(parents=True)
        record = json.dumps({"name": package, "version": version, "bin": {name: f"bin/{name}"}})
        (place / "package.json").write_text(record, "utf-8")
        program = place / "bin" / name
        program.write_text(f"#!/bin/sh\necho {version}\n", "utf-8")
        program.chmod(0o755)
        (prefix / "bin" / name).symlink_to(program)
    return prefix / "bin"


class Machine:
    """A HOME and the agent CLIs on its PATH."""

    def __init__(self, root: Path, *agents: str, home: str = "home") -> None:
        self.root = root
        self.home = root / home
        self.home.mkdir(parents=True)
        self.bin = stand_in(root / "agents", *agents)
        self.env = bare_env(self.home, PATH=f"{self.bin}{os.pathsep}/usr/bin{os.pathsep}/bin")

    def tfx(self, *arguments: str, **extra: str) -> Ran:
        return tfx(self.home, *arguments, env=self.env | extra)

    def setup(self, *arguments: str, **extra: str) -> Ran:
        return self.tfx("setup", *arguments, "--json", **extra)

    def write(self, path: str, content: str | bytes, mode: int = 0o644) -> Path:
        target = self.home / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        target.chmod(mode)
        return target

    def users_files(self) -> dict[str, tuple[int, bytes]]:
        """Everything outside tfx's own state: mode and content by path."""
        return {
            name: (mode & 0o777, content if isinstance(content, bytes) else str(content).encode())
            for name, (mode, _, content) in listing(self.home).items()
            if content is not None and not name.startswith(".local/state/tfx")
        }


def gone(pid: int, *, within_s: float = 60) -> bool:
    """Say whether a process is dead, waiting a little for a signal to take effect."""
    until = time.monotonic() + within_s
    while True:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(0.02)
