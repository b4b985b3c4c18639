"""The shell matrix: where each agent can be started from, and what the start-up files do.

Judges what tfx.shells found; never calls an unknown cell missing, never edits an rc file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tfx.doctor.checks.presence import evidence, places
from tfx.doctor.facts import Facts
from tfx.doctor.model import MANUAL, Check, Explanation, Finding, Group, Remedy, Status
from tfx.doctor.words import command, listed
from tfx.errors import JsonValue

if TYPE_CHECKING:
    from tfx.shells.cell import Cell

_RISKY = ("empty", "relative", "literal-tilde")


def startup_files(facts: Facts) -> Iterator[Finding]:
    """Yield what is wrong with the start of each shell (D-50 … D-53, D-102)."""
    good = 0
    for cell in facts.matrix.cells:
        match cell.status.value:
            case "unknown":
                yield _unanswered(facts, cell)
            case "absent" | "skipped":
                reason = cell.reason.value if cell.reason else ""
                yield Finding(cell.label, Status.SKIP, f"not asked: {reason}")
            case _:
                complaints = list(_complaints(facts, cell))
                good += not complaints
                yield from complaints
    if good:
        took = facts.matrix.duration_ms
        details: dict[str, JsonValue] = {"duration_ms": took}
        details["cells"] = [_shown_cell(cell) for cell in facts.matrix.cells]
        summary = f"{good} starts answered and had nothing to complain of"
        yield Finding("start-up files", Status.OK, summary, details)


def _shown_cell(cell: Cell) -> dict[str, JsonValue]:
    return {
        "cell": cell.label,
        "status": cell.status.value,
        "reason": cell.reason.value if cell.reason else None,
        "duration_ms": cell.duration_ms,
        "files": [str(file) for file in cell.startup_files],
    }


_MEANS = {
    "timeout": "did not answer in time",
    "exited": "ended in its start-up files",
    "replaced": "was replaced (`exec`) or ended (`exit 0`), or its output was redirected",
    "flood": "flooded its output",
    "no-path": "does not export PATH, so the programs it starts have none",
    "spawn-error": "could not be started",
    "not-installed": "is your login shell and not installed",
    "deadline": "was given up: the whole matrix was out of time",
    "cancelled": "was interrupted",
    "unsupported-shell": "is your login shell, and this version of tfx cannot question it",
}


def _unanswered(facts: Facts, cell: Cell) -> Finding:
    reason = cell.reason.value if cell.reason else ""
    means = _MEANS.get(reason, reason)
    code = f" with status {cell.exit_code}" if reason == "exited" else ""
    files = [facts.paths.display(file) for file in cell.startup_files]
    read = f" ({listed(files)})" if files and reason in {"timeout", "exited", "replaced"} else ""
    return Finding(
        cell.label,
        Status.UNKNOWN,
        f"{reason}: it {means}{code}{read}",
        evidence(cell),
        tuple(_unanswered_remedies(facts, cell, reason)),
        MANUAL,
    )


def _unanswered_remedies(facts: Facts, cell: Cell, reason: str) -> Iterator[Remedy]:
    if reason == "no-path":
        yield Remedy("export it in the start-up file", "export PATH", cell.shell)
    elif cell.startup_files and reason in {"timeout", "exited", "replaced", "flood"}:
        home = facts.paths.home
        yours = [file for file in cell.startup_files if file.is_relative_to(home)]
        last = (yours or cell.startup_files)[-1]  # what the system brings is seldom the cause
        yield Remedy(
            f"guard that part of {last}: tfx starts shells with TFX_RESOLVING_ENVIRONMENT=1",
            command(home, "less", last),
        )
        if reason == "timeout":
            yield Remedy("or give it more time", "tfx doctor shell.rc --timeout 30")


def _complaints(facts: Facts, cell: Cell) -> Iterator[Finding]:
    if cell.slow:
        files = listed(facts.paths.display(file) for file in cell.startup_files)
        yield Finding(
            cell.label,
            Status.WARN,
            f"takes {cell.duration_ms / 1000:.1f} s to start: every tool call of an agent waits",
            {"duration_ms": cell.duration_ms, "files": files},
            (Remedy(f"load what is slow in {files} only when it is needed"),),
            MANUAL,
        )
    if cell.stderr:
        lost = cell.shell == "fish" and any("config" in line for line in cell.stderr)
        effect = "; fish then ignores the whole file" if lost else ""
        yield Finding(
            cell.label,
            Status.WARN,
            f"its start-up files complain: {cell.stderr[-1]}{effect}",
            {"stderr": list(cell.stderr), "files": [str(file) for file in cell.startup_files]},
            (Remedy("mend the line that it names"),),
            MANUAL,
        )
    if cell.outlived:
        yield Finding(
            cell.label,
            Status.INFO,
            "its start-up files leave a job in a session of its own (an agent for keys, say)",
        )


def search_path(facts: Facts) -> Iterator[Finding]:
    """Yield what is wrong with the entries of PATH themselves (D-82)."""
    found: dict[tuple[str, str], list[str]] = {}
    for cell in facts.matrix.cells:
        for entry in cell.entries:
            for each in entry.faults:
                found.setdefault((each.value, entry.text), []).append(cell.label)
    faults = [(fault, text, cells) for (fault, text), cells in found.items()]
    for fault, text, cells in faults:
        risky = fault in _RISKY
        if not risky and fault in {"repeated", "missing"}:
            continue
        yield _path_fault(fault, text, cells, Status.WARN if risky else Status.INFO)
    quiet = sum(fault in {"repeated", "missing"} for fault, _, _ in faults)
    if quiet == len(faults):
        details: dict[str, JsonValue] = {
            "repeated": [text for fault, text, _ in faults if fault == "repeated"],
            "missing": [text for fault, text, _ in faults if fault == "missing"],
        }
        yield Finding("PATH", Status.OK, "every entry is an absolute directory", details)


def _path_fault(fault: str, text: str, cells: Sequence[str], status: Status) -> Finding:
    means = {
        "empty": "an empty entry means the working directory: programs of strangers are found",
        "relative": f"{text!r} is relative: what is found depends on the working directory",
        "literal-tilde": f"{text!r} has a `~` that only bash expands; other programs find nothing",
        "unreadable": f"{text} may not be entered",
        "not-a-directory": f"{text} is not a directory",
    }
    return Finding(
        f"PATH {text or '(empty)'}",
        status,
        means.get(fault, fault),
        {"cells": list(cells), "fault": fault},
        (Remedy("write the whole path of the directory in the start-up file"),),
        MANUAL,
    )


def other_places(facts: Facts) -> Iterator[Finding]:
    """Yield the PATHs that need no shell: services, cron, sudo, tfx itself; info only (D-55)."""
    from tfx.shells.columns import columns  # noqa: PLC0415  (start-up rule)

    names = [one.binary for one in facts.in_use]
    if not names:
        yield Finding("columns", Status.SKIP, "no agent is in use")
        return
    for column in columns(facts.paths, names):
        if column.unknown is not None:
            yield Finding(column.label, Status.SKIP, column.unknown)
            continue
        there = [name for name, copy in column.copies if copy is not None]
        away = [name for name, copy in column.copies if copy is None]
        details: dict[str, JsonValue] = {
            name: str(copy.path) if copy is not None else None for name, copy in column.copies
        }
        parts = [f"finds {listed(there)}"] if there else []
        parts += [f"does not find {listed(away)}"] if away else []
        details["entries"] = [entry.text for entry in column.entries]
        remedies = _absolute(facts, away) if away else ()
        yield Finding(column.label, Status.INFO, ", ".join(parts), details, remedies)


def _absolute(facts: Facts, names: Iterable[str]) -> tuple[Remedy, ...]:
    wanted = set(names)
    paths: list[Path] = [
        one.programs[0].installation.paths[0] for one in facts.in_use if one.binary in wanted
    ]
    shown = listed(facts.paths.display(path) for path in paths)
    return (Remedy(f"name the absolute path there: {shown}"),)


CHECKS = (
    Check(
        "cli.matrix",
        Group.SHELLS,
        "each agent in each shell and mode",
        Explanation(
            "Whether every agent that some shell finds is found by all the shells that programs"
            " and agents start: your login shell in four modes, `bash -c`, `bash -lc`, `sh -c`.",
            "A CLI that works in a terminal can be missing for editors, services and the tool"
            " calls of other agents, because these read other start-up files or none.",
            "The PATH and the aliases of fresh shells, started without your environment; what the"
            " start-up files write when you start that shell yourself stays written, and a ksh"
            " whose start-up files name a history file writes one line of tfx into it.",
            "Add the line that the row shows to the file it names, then start a new shell. tfx"
            " never writes start-up files.",
        ),
        places,
        slow=True,
    ),
    Check(
        "shell.rc",
        Group.SHELLS,
        "start-up files: slow, exiting, replaced, complaining",
        Explanation(
            "Whether each shell answers after its start-up files ran, how long that takes, and"
            " what they print to standard error.",
            "An rc file that waits, ends or replaces the shell breaks whatever starts it without"
            " a terminal.",
            "The same fresh shells as cli.matrix.",
            "Guard interactive parts with a test for `$-` or TFX_RESOLVING_ENVIRONMENT.",
        ),
        startup_files,
        slow=True,
    ),
    Check(
        "shell.path",
        Group.SHELLS,
        "entries of PATH that are relative, empty or unreadable",
        Explanation(
            "Every entry of PATH in every probed shell, compared by real path.",
            "An empty or relative entry runs programs of the working directory.",
            "The PATH text of the probed shells.",
            "Correct the line of the start-up file that adds the entry.",
        ),
        search_path,
    ),
    Check(
        "shell.columns",
        Group.SHELLS,
        "PATHs without a shell: services, cron, sudo",
        Explanation(
            "What the PATH of the user's systemd services, of cron, of sudo and of tfx itself"
            " leads to.",
            "What they start reads no start-up file at all.",
            "`systemctl --user show-environment`, secure_path of sudo, cron's default.",
            "Name programs by absolute path in units and crontabs.",
        ),
        other_places,
    ),
)
