"""Databases of triflux, homes to work in, and the worker's tasks called in this process."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from tfx.core import database
from tfx.hub.schema import registry
from tfx.upgrade import check, tasks
from tfx.upgrade.model import Phase, Receipt, Request, State, Task
from tfx.upgrade.reporter import Reporter

DATA = Path(__file__).parent / "data"
NAMES = tuple(sorted(each.name.removesuffix(".db.xz") for each in DATA.glob("*.xz")))
BASE = ("agents", "messages", "message_inbox", "human_requests", "dead_letters")
NOW_MS = 1_800_000_000_000
LAST_MS = 1_700_000_000_000


def unpack(name: str, path: Path) -> Path:
    """Write a database of triflux as its release left it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_bytes(lzma.decompress((DATA / f"{name}.db.xz").read_bytes()))
    path.chmod(0o600)
    return path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def rows(path: Path, table: str) -> list[tuple[object, ...]]:
    """Return every row of a table, bytes as they are."""
    connection = apsw.Connection(
        database.uri(path, "mode=ro"), flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    )
    try:
        columns = [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")]
        shown = ", ".join(f"typeof({c}), CAST({c} AS BLOB)" for c in columns)
        return sorted(connection.execute(f"SELECT {shown} FROM {table}").fetchall(), key=repr)
    finally:
        connection.close()


def everything(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return every row of every table of a database."""
    connection = apsw.Connection(str(path))
    names = [
        str(name)
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    ]
    connection.close()
    return {name: rows(path, name) for name in names}


def select(path: Path, sql: str, *values: database.Value) -> list[database.Row]:
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(sql, values).fetchall()
    finally:
        connection.close()


def change(path: Path, *statements: str) -> Path:
    """Run statements on a database, in rollback mode, and close it."""
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement).fetchall()
    connection.close()
    return path


def empty_v1(path: Path) -> Path:
    """Make a database of version 1 without rows."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return change(path, registry.schema_text(1))


def agent(name: str, topics: str = "[]", *, seen: int = LAST_MS, metadata: str = "{}") -> str:
    return (
        f"INSERT INTO agents VALUES ('{name}', 'codex', 7, '[\"code\"]', '{topics}', {seen}, "
        f"{seen + 60_000}, 'online', '{metadata}')"
    )


def message(
    name: str,
    to: str = "bob",
    *,
    kind: str = "event",
    status: str = "queued",
    sender: str = "ann",
    expires: int = LAST_MS + 60_000,
    payload: str = "'{}'",
    correlation: str = "c",
) -> str:
    return (
        f"INSERT INTO messages VALUES ('{name}', '{kind}', '{sender}', '{to}', 'news', 5, 60000, "
        f"{LAST_MS}, {expires}, '{correlation}', 't', {payload}, '{status}')"
    )


def examine(path: Path) -> check.Checked:
    return check.examine(path, None)


@dataclass(slots=True)
class Site:
    """A home with a hub database at its usual place."""

    home: Path
    now_ms: int = NOW_MS
    vfs: str | None = None
    phases: list[Phase] = field(default_factory=list)
    reporter: Reporter = field(default_factory=Reporter)
    on_phase: Callable[[Phase], None] | None = None

    @property
    def database(self) -> Path:
        return self.home / ".local/state/tfx/hub/hub.db"

    @property
    def triflux(self) -> Path:
        return self.home / ".claude/cache/tfx-hub/state.db"

    @property
    def store(self) -> Path:
        return self.home / ".local/share/tfx/backups"

    @property
    def env(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}

    def request(self, task: Task, file: Path | None = None) -> Request:
        return Request(
            task,
            str(self.database),
            str(self.store),
            str(self.database.parent),
            None if file is None else str(file),
            now_ms=self.now_ms,
        )

    def work(self, task: Task, file: Path | None = None) -> Receipt:
        """Do a task in this process; `phases` and `reporter` tell where it was."""
        self.reporter = Reporter()
        self.phases = []
        self.reporter.on_phase = self._entered
        return tasks.run(self.request(task, file), self.reporter, examine, self.home, vfs=self.vfs)

    def _entered(self, phase: Phase) -> None:
        self.phases.append(phase)
        if self.on_phase is not None:
            self.on_phase(phase)

    def tfx(self, *arguments: str, code: int = 0) -> dict[str, object]:
        """Run the command with --json and return its document."""
        done = subprocess.run(
            [sys.executable, "-m", "tfx", *arguments, "--json"],
            env=self.env,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        document: dict[str, object] = json.loads(done.stdout)
        return document

    def backups(self) -> list[Path]:
        return sorted(self.store.iterdir()) if self.store.exists() else []


def upgraded(site: Site, *statements: str) -> Path:
    """Upgrade a database that holds what the statements insert."""
    change(empty_v1(site.database), *statements)
    assert site.work(Task.UPGRADE).state is State.UPGRADED
    return site.database
