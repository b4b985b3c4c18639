"""Start a real client on a copy of a HOME, with an empty environment (S-111, S-112).

Whatever a client prints is filtered before anybody sees it, because some print tokens (S-22).
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.clients.installation import Installation
from tests.hub.running import PATIENT
from tfx.core.paths import Paths
from tfx.core.process import kill_group, run
from tfx.hub.daemon import stop as stopping

TIMEOUT_S = 180  # a guard against what hangs; a client may take long to start

_SECRETS = re.compile(r"(?i)(bearer\s+|token[\"'=:\s]+)[^\s\"',}]+")
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


# A pipe holds 64 KiB, and opencode ends without waiting until the rest of its output is taken.
_INTO_FILE = ("/bin/sh", "-c", 'out=$1; shift; exec "$@" >"$out"', "sh")


def fingerprint(value: str) -> str:
    """Stand for a header value without being it."""
    return "sha256:" + hashlib.sha256(value.encode()).hexdigest()[:16]


def without_secrets(text: str) -> str:
    """Text as it may be shown: what follows `Bearer` or `token` is left out."""
    return _SECRETS.sub(r"\1***", text)


@dataclass(frozen=True, slots=True)
class Output:
    """What a client printed; `repr` and `shown` hold no token, `out` and `err` may."""

    what: str
    code: int | None
    out: str = field(repr=False)
    err: str = field(repr=False)

    @property
    def shown(self) -> str:
        return without_secrets(
            f"$ {self.what}\nstatus {self.code}\n{self.out[-6000:]}\n{self.err[-3000:]}"
        )

    def json(self) -> Any:  # noqa: ANN401  (each client has its own document)
        try:
            return json.loads(self.out)
        except ValueError as error:
            raise OracleError(self) from error


class OracleError(AssertionError):
    """A client did not answer as an oracle has to."""

    def __init__(self, output: Output) -> None:
        super().__init__(output.shown)


@dataclass(frozen=True, slots=True)
class Session:
    """One client start: the copy of the HOME, the directory it runs in, its environment."""

    home: Path
    work: Path
    env: Mapping[str, str]
    original: Path

    def rebased(self, path: str) -> Path:
        """A path that the client printed, as it is called in the original HOME."""
        found = Path(path)
        if found.is_relative_to(self.home):
            return self.original / found.relative_to(self.home)
        return found


class Clients:
    """The installed clients and a place for copies of HOMEs; every start gets a copy of its own.

    `variables` of a start are the variables under test; a value inside the HOME is taken to the
    same place inside the copy.
    """

    def __init__(self, installed: Installation, scratch: Path) -> None:
        self.installed = installed
        self._scratch = scratch

    def run(
        self,
        argv: Sequence[str],
        home: Path,
        variables: Mapping[str, str] | None = None,
        *,
        trusts_work_in: str | None = None,
    ) -> tuple[Output, Session]:
        """Run a client to its end. `trusts_work_in`: the file of Gemini's trusted folders."""
        place = Path(tempfile.mkdtemp(dir=self._scratch))
        try:
            session = self._session(place, home, variables or {})
            if trusts_work_in is not None:
                trust = session.home / trusts_work_in
                trust.parent.mkdir(parents=True, exist_ok=True)
                trust.write_text(json.dumps({str(session.work): "TRUST_FOLDER"}), "utf-8")
            said = place / "said"
            done = run(
                [*_INTO_FILE, str(said), str(self.installed.program(argv[0])), *argv[1:]],
                env=session.env,
                timeout_s=TIMEOUT_S,
                cwd=session.work,
            )
            out = said.read_bytes()
        finally:
            _leave(place)
        return Output(" ".join(argv), done.code, _text(out), _text(done.stderr)), session

    def converse(
        self,
        argv: Sequence[str],
        home: Path,
        messages: Sequence[Mapping[str, object]],
        variables: Mapping[str, str] | None = None,
    ) -> tuple[list[dict[str, Any]], Session]:
        """Send JSON lines to a client and return what it says until every `id` is answered."""
        place = Path(tempfile.mkdtemp(dir=self._scratch))
        try:
            session = self._session(place, home, variables or {})
            return self._talk(argv, session, messages), session
        finally:
            _leave(place)

    def _session(self, place: Path, home: Path, variables: Mapping[str, str]) -> Session:
        copy, work = place / "home", place / "work"
        shutil.copytree(home, copy, symlinks=True)
        # S-111 names PATH and HOME; TMPDIR keeps what clients drop in /tmp inside the place too.
        temporary = place / "tmp"
        for directory in (work, temporary):
            directory.mkdir()
        moved = {
            name: str(copy / Path(value).relative_to(home))
            if Path(value).is_relative_to(home)
            else value
            for name, value in variables.items()
        }
        env = {"PATH": self.installed.search_path, "HOME": str(copy), "TMPDIR": str(temporary)}
        return Session(copy, work, env | moved, home)

    def _talk(
        self, argv: Sequence[str], session: Session, messages: Sequence[Mapping[str, object]]
    ) -> list[dict[str, Any]]:
        heard: list[dict[str, Any]] = []
        waiting = {message["id"] for message in messages if "id" in message}
        with (
            tempfile.TemporaryFile() as complaints,
            subprocess.Popen(
                [str(self.installed.program(argv[0])), *argv[1:]],
                env=dict(session.env),
                cwd=session.work,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                start_new_session=True,
            ) as child,
        ):
            assert child.stdin is not None
            assert child.stdout is not None
            alarm = threading.Timer(TIMEOUT_S, kill_group, (child.pid,))
            alarm.start()
            try:
                child.stdin.write("".join(json.dumps(m) + "\n" for m in messages).encode())
                child.stdin.flush()
                for line in child.stdout:
                    heard.append(json.loads(line))
                    if "method" not in heard[-1]:
                        waiting.discard(heard[-1].get("id"))
                    if not waiting:
                        break
            finally:
                alarm.cancel()
                kill_group(child.pid)
            complaints.seek(0)
            text = _text(complaints.read())
        if waiting:
            raise OracleError(Output(" ".join(argv), child.returncode, repr(heard), text))
        return heard


def _leave(place: Path) -> None:
    """Stop the hub that a client's bridge may have started there, and remove the copy."""
    home = place / "home"
    if home.is_dir():
        stopping.stop(Paths.resolve({"HOME": str(home)}), PATIENT)
    shutil.rmtree(place, ignore_errors=True)


def _text(data: bytes) -> str:
    return _COLOURS.sub("", data.decode("utf-8", "replace"))
