"""A machine for doctor: a HOME with start-up files, agents on the PATH of its shells, setup run."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support import Machine, Ran
from tfx.core.paths import Paths
from tfx.doctor.examine import examine
from tfx.doctor.facts import Facts
from tfx.doctor.model import Check, Finding
from tfx.doctor.options import Options
from tfx.doctor.registry import CHECKS
from tfx.doctor.report import DoctorData
from tfx.result import Result

PATIENT_S = 60.0  # for looks that are to find something: never the reason why a test ends

# What every cell of a login bash and of sh reads, but a bare `bash -c` and `sh -c`.
PROFILES = (".bash_profile", ".bashrc", ".profile", ".zshenv")


class Clinic(Machine):
    """A machine whose login shell is bash; `everywhere` puts its agents on every shell's PATH."""

    def __init__(self, root: Path, *agents: str, home: str = "home", login: str = "bash") -> None:
        super().__init__(root, *agents, home=home)
        self.env["SHELL"] = f"/bin/{login}"

    @property
    def paths(self) -> Paths:
        return Paths.resolve(self.env, only_looking=True)

    def everywhere(self, *directories: Path) -> Clinic:
        """Add directories (the agents' by default) to the PATH of every start of a shell."""
        places = ":".join(map(str, directories or (self.bin,)))
        for name in PROFILES:
            self.write(name, f'export PATH="{places}:$PATH"\n')
        return self

    def tfx(self, *arguments: str, **extra: str) -> Ran:
        """Run a command; doctor is patient unless the test says how long it waits."""
        if arguments[:1] == ("doctor",) and "--timeout" not in arguments:
            arguments = (*arguments, "--timeout", f"{PATIENT_S:g}")
        return super().tfx(*arguments, **extra)

    def doctor(self, *arguments: str, **extra: str) -> Ran:
        return self.tfx("doctor", *arguments, "--json", **extra)

    def look(
        self,
        *checks: str,
        timeout_s: float = PATIENT_S,
        **options: Any,  # noqa: ANN401
    ) -> Result[DoctorData]:
        """Run checks in this process."""
        said = Options(checks=checks, timeout_s=timeout_s, **options)
        return examine(self.paths, said, say=lambda _: None)

    def rows(self, *checks: str, **options: Any) -> dict[str, Any]:  # noqa: ANN401
        """The rows of checks run in this process, by target."""
        return {row.target: row for row in self.look(*checks, **options).data.rows}


def hurried(clinic: Clinic, check: str, timeout_s: float, **options: Any) -> dict[str, Finding]:  # noqa: ANN401
    """What one check finds that is in a hurry, though the shells were asked with patience."""
    facts = Facts(clinic.paths, Options(timeout_s=PATIENT_S))
    assert facts.in_use is not None
    facts.options = Options(timeout_s=timeout_s, **options)
    return {found.target: found for found in the_check(check).run(facts)}


def by_target(ran: Ran, check: str) -> dict[str, dict[str, Any]]:
    """The rows of one check in a document, by target."""
    return {row["target"]: row for row in ran.data["rows"] if row["id"] == check}


def row(ran: Ran, check: str, target: str) -> dict[str, Any]:
    found = by_target(ran, check)
    assert target in found, (sorted(found), ran.err)
    return found[target]


def the_check(name: str) -> Check:
    return next(check for check in CHECKS if check.id == name)


def commands(found: Finding | Any) -> list[str]:  # noqa: ANN401
    remedies = found.remedies if isinstance(found, Finding) else found.remediation
    return [remedy.command for remedy in remedies if remedy.command]


def texts(found: Any) -> str:  # noqa: ANN401
    """Everything that a row or a finding tells, in one text."""
    given = found.remedies if isinstance(found, Finding) else found.remediation
    remedies = " ".join(f"{r.text} {r.command or ''}" for r in given)
    return f"{found.summary} {json.dumps(dict(found.details))} {remedies}"


def on_terminal(
    clinic: Clinic, *words: str, answer: bytes = b"", env: Mapping[str, str] | None = None
) -> str:
    """What doctor says on a terminal to somebody who answers its question so."""
    ours, theirs = pty.openpty()
    said = b""
    with subprocess.Popen(
        [sys.executable, "-m", "tfx", "doctor", *words],
        env=clinic.env | {"TERM": "xterm", "COLUMNS": "200"} | dict(env or {}),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as child:
        os.close(theirs)
        while select.select([ours], [], [], 60)[0]:
            try:
                said += os.read(ours, 4096)
            except OSError:
                break
            if answer and b"[y/N]" in said:
                os.write(ours, answer)
                answer = b""
        child.wait(60)
    os.close(ours)
    return said.decode()
