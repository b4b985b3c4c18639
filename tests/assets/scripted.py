"""The route script on a bench: fake CLIs that record argv and standard input, and its shells."""

from __future__ import annotations

import contextlib
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping


ROOT = Path(__file__).parents[2]


SCRIPT = ROOT / "assets" / "scripts" / "tfx-route.sh"


# A fake CLI notes what it got in $FAKE_DIR/<its name>, then behaves as $FAKE_DIR/behave says.
FAKE = r"""#!/bin/sh
note=$FAKE_DIR/${0##*/}
for arg in "$@"; do
    case $arg in --help) cat "$note.help" 2>/dev/null; exit 0 ;; esac
done
umask >"$note.umask"
printf '%s' "$PATH" >"$note.path"
printf '%s\0' "$@" >"$note.argv"
cat >"$note.stdin"
[ -r "$FAKE_DIR/behave" ] && . "$FAKE_DIR/behave"
exit 0
"""


HELPS = {
    "codex": "Commands:\n  resume  Resume\n  review  Run a code review\n",
    "gemini": "  -m, --model   Model\n",
    "claude": "  --effort <level>   Effort level\n",
    "copilot": "GitHub Copilot CLI\n      --reasoning-effort <level>\n",
    "opencode": "opencode run [message..]\n",
}


@dataclass(frozen=True)
class Ended:
    code: int
    stdout: bytes
    stderr: str

    @property
    def fields(self) -> dict[str, str]:
        block = self.stdout.partition(b"=== OUTPUT ===\n")[0].decode()
        return dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)

    @property
    def output(self) -> bytes:
        return self.stdout.partition(b"=== OUTPUT ===\n")[2]


@dataclass
class Bench:
    """A home, a directory of fake CLIs and the environment that knows nothing else."""

    home: Path
    notes: Path
    bin: Path
    cwd: Path
    shell: tuple[str, ...]
    extra: dict[str, str] = field(default_factory=dict)

    def install(self, *names: str, into: Path | None = None) -> None:
        into = into or self.bin
        into.mkdir(parents=True, exist_ok=True)
        for name in names:
            (into / name).write_text(FAKE)
            (into / name).chmod(0o755)
            (self.notes / f"{name}.help").write_text(HELPS[name])

    def behave(self, script: str) -> None:
        (self.notes / "behave").write_text(script)

    @property
    def env(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "FAKE_DIR": str(self.notes),
            "TMPDIR": str(self.home),
            "TFX_ROUTE_DIRS": "",
        } | self.extra

    def late_when_told(self) -> None:
        """Let every sleep last at least until the agent says `: >"$FAKE_DIR/late"`.

        The time of a run is a sum of sleeps, so it is not over before.
        """
        sleep = self.bin / "sleep"
        sleep.write_text(
            '#!/bin/sh\nwhile [ ! -e "$FAKE_DIR/late" ]; do /bin/sleep 0.05; done\n'
            'exec /bin/sleep "$@"\n'
        )
        sleep.chmod(0o755)

    def start(
        self, *args: str | bytes, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self.shell, str(SCRIPT), *args],
            env=self.env if env is None else dict(env),
            cwd=self.cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(
        self, *args: str | bytes, stdin: bytes = b"", env: Mapping[str, str] | None = None
    ) -> Ended:
        with self.start(*args, env=env) as process:
            try:
                out, err = process.communicate(stdin, timeout=150)
            finally:
                process.kill()
        return Ended(process.returncode, out, err.decode(errors="replace"))

    def argv(self, name: str) -> list[str]:
        return (self.notes / f"{name}.argv").read_text().split("\0")[:-1]

    def stdin(self, name: str) -> bytes:
        return (self.notes / f"{name}.stdin").read_bytes()

    def ran(self) -> set[str]:
        return {note.stem for note in self.notes.glob("*.argv")}

    def processes(self) -> list[psutil.Process]:
        """Return every living process that was started below the script; zombies are dead."""
        mine = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("FAKE_DIR") == str(self.notes):
                    mine.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return mine

    def left(self) -> list[psutil.Process]:
        """Return what is still there when everything that was killed has had time to go."""
        deadline = time.monotonic() + 60
        while (living := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return living

    def logs(self) -> list[Path]:
        return sorted((self.home / ".local/state/tfx/route").glob("run.*"))


SHELLS = [
    pytest.param(("dash",), id="dash"),
    pytest.param(("bash",), id="bash"),
    pytest.param(("ksh",), id="ksh", marks=pytest.mark.shells),
    pytest.param(("busybox", "sh"), id="busybox", marks=pytest.mark.shells),
]


def make_bench(tmp_path: Path, shell: tuple[str, ...]) -> Bench:
    made = Bench(
        home=tmp_path / "home",
        notes=tmp_path / "notes",
        bin=tmp_path / "bin",
        cwd=tmp_path / "cwd",
        shell=shell,
    )
    for place in (made.home, made.notes, made.bin, made.cwd):
        place.mkdir()
    return made


def end_all(bench: Bench) -> None:
    for process in bench.processes():
        with contextlib.suppress(psutil.NoSuchProcess):  # it ended by itself meanwhile
            process.kill()
