"""Fake agent CLIs that note argv, standard input and PATH, then behave as a test says."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests import clock
from tests.support import PACKAGES, TFX, Ran, bare_env

# Notes go to $FAKE_DIR/<name>.*, the behaviour comes from $FAKE_DIR/behave.
FAKE = r"""#!/bin/sh
note=$FAKE_DIR/${0##*/}
for arg in "$@"; do
    case $arg in --help) echo x >>"$note.helped"; cat "$note.help" 2>/dev/null; exit 0 ;; esac
done
umask >"$note.umask"
printf '%s' "$PATH" >"$note.path"
: >"$note.argv"
[ "$#" = 0 ] || printf '%s\0' "$@" >"$note.argv"
cat >"$note.stdin"
echo run >>"$note.runs"
[ -r "$FAKE_DIR/behave" ] && . "$FAKE_DIR/behave"
exit 0
"""
HELPS = {
    "codex": "Commands:\n  resume  Resume\n  review  Run a code review\n"
    "  --dangerously-bypass-approvals-and-sandbox\n",
    "gemini": "  -m, --model   Model\n  -y, --yolo\n  --allowed-mcp-server-names  Names\n",
    "claude": "  --effort <level>   Effort level\n  --dangerously-skip-permissions  All\n",
    "copilot": "GitHub Copilot CLI\n  --reasoning-effort <level>\n  --allow-all \n"
    "  --disable-mcp-server <name>\n",
    "opencode": "opencode run [message..]\n  --auto   approve\n",
}


@dataclass
class Bench:
    """A home, fake CLIs as npm leaves them, and an environment that knows nothing else."""

    root: Path
    extra: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for place in (self.home, self.notes, self.bin, self.cwd):
            place.mkdir()

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def notes(self) -> Path:
        return self.root / "notes"

    @property
    def bin(self) -> Path:
        return self.root / "bin"

    @property
    def cwd(self) -> Path:
        return self.root / "cwd"

    @property
    def jobs(self) -> Path:
        return self.home / ".local/state/tfx/jobs"

    def install(self, *names: str) -> None:
        """Put CLIs on PATH, each with the package.json that states its version."""
        for name in names:
            package, version = PACKAGES[name]
            place = self.root / "lib" / "node_modules" / package
            place.mkdir(parents=True)
            (place / "package.json").write_text(json.dumps({"name": package, "version": version}))
            self.program(place / name)
            (self.bin / name).symlink_to(place / name)

    def program(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FAKE)
        path.chmod(0o755)
        (self.notes / f"{path.name}.help").write_text(HELPS[path.name])

    def behave(self, script: str) -> None:
        (self.notes / "behave").write_text(script)

    def write(self, path: str, text: str) -> None:
        target = self.home / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    @property
    def env(self) -> dict[str, str]:
        return (
            bare_env(self.home, PATH=f"{self.bin}:/usr/bin:/bin")
            | {"FAKE_DIR": str(self.notes), "TFX_ROUTE_DIRS": "", "TFX_ROUTE_HUB_ANSWER_S": "120"}
            | self.extra
        )

    def late_when_told(self, *, goes_on: bool = False) -> None:
        """Let the clock of every run stand still until its agent says `: >"$FAKE_DIR/late"`.

        Then the time-out is over, and with `goes_on` time passes again.
        """
        self.extra |= clock.of_a_command(self.root / "clock", self.notes / "late", goes_on=goes_on)

    def start(self, *arguments: str | bytes) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*TFX, *arguments],
            env=self.env,
            cwd=self.cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def tfx(self, *arguments: str | bytes, stdin: bytes = b"") -> Ran:
        with self.start(*arguments) as process:
            try:
                out, err = process.communicate(stdin, timeout=150)
            finally:
                process.kill()
        return Ran(
            process.returncode,
            out.decode("utf-8", "surrogateescape"),
            err.decode("utf-8", "replace"),
        )

    def route(self, *arguments: str | bytes, stdin: bytes = b"") -> Ran:
        return self.tfx("route", *arguments, stdin=stdin)

    def json(self, *arguments: str | bytes, stdin: bytes = b"") -> Any:  # noqa: ANN401  (JSON)
        ran = self.route("--json", *arguments, stdin=stdin)
        assert ran.document["exit"] == ran.code
        return ran.data

    def argv(self, name: str) -> list[str]:
        return (self.notes / f"{name}.argv").read_text().split("\0")[:-1]

    def stdin(self, name: str) -> bytes:
        return (self.notes / f"{name}.stdin").read_bytes()

    def ran(self) -> set[str]:
        return {note.stem for note in self.notes.glob("*.argv")}

    def runs(self, name: str) -> int:
        return (self.notes / f"{name}.runs").read_text().count("run")

    def processes(self) -> list[psutil.Process]:
        """Every living process that was started below a run of this bench."""
        mine = []
        for process in psutil.process_iter():
            try:
                is_mine = process.environ().get("FAKE_DIR") == str(self.notes)
                if is_mine and process.status() != psutil.STATUS_ZOMBIE:
                    mine.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return mine

    def all_gone(self) -> bool:
        """Wait a moment for everything of this bench to end."""
        return wait_until(lambda: not self.processes())


def wait_until(holds: Any, timeout_s: float = 60) -> bool:  # noqa: ANN401  (a predicate)
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def fields_of(ran: Ran) -> dict[str, str]:
    block = ran.out.partition("=== OUTPUT ===\n")[0]
    return dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)


def output_of(ran: Ran) -> bytes:
    return os.fsencode(ran.out.partition("=== OUTPUT ===\n")[2])


@contextmanager
def benching(root: Path) -> Iterator[Bench]:
    made = Bench(root)
    try:
        yield made
    finally:
        for process in made.processes():
            with contextlib.suppress(psutil.NoSuchProcess):  # it ended by itself meanwhile
                process.kill()
