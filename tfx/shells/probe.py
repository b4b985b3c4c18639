"""Run one shell in one mode and make a cell of what comes back.

Which shells are run, and what their cells mean together, is matrix.py's work.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tfx.core.listen import End, Heard, listen
from tfx.core.paths import Paths
from tfx.shells.binaries import host_machine, inspect, unreachable
from tfx.shells.cell import Cell, Reason, Resolution, Status
from tfx.shells.flavours import FISH, Alternatives, Flavour, Mode
from tfx.shells.names import Said
from tfx.shells.question import Question, Words
from tfx.shells.searchpath import Copy, Entry, examine, split, walk
from tfx.shells.selection import Shell

_TERMINAL_CODES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_TAIL_LINES = 5
_TAIL_WIDTH = 300
_JOB_STARTED = re.compile(r"\[\d+\]\s+\d+")  # an interactive shell's word for a background job
_OWN_TRACE = "set +eux"  # our first command, where a start-up file left tracing on


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What all probes of one run share. `host` is a `uname -m` value."""

    paths: Paths
    names: tuple[str, ...]
    words: Words
    roots: Mapping[str, tuple[Path, ...]]
    host: str
    timeout_s: float
    variables: tuple[str, ...] = ()


def blank(shell: Shell, mode: Mode | None, status: Status, reason: Reason | None) -> Cell:
    """Return the cell of a shell that was not run; without a mode it stands for all of them."""
    return Cell(
        label=f"{shell.label} -{mode}" if mode else shell.label,
        shell=shell.label,
        mode=mode,
        program=shell.program,
        login_shell=shell.login,
        status=status,
        reason=reason,
        flavour=shell.flavour,
    )


def probe(
    shell: Shell,
    flavour: Flavour,
    mode: Mode,
    inquiry: Inquiry,
    *,
    env: Mapping[str, str],
    left_s: float,
    cancel: threading.Event,
) -> Cell:
    """Return the cell of one shell in one mode; every failure is a reason in it.

    Runs for the time-out of the inquiry, or for `left_s` if the whole run has less (D-54).
    """
    question = Question(flavour, inquiry.names, secrets.token_hex(8), inquiry.variables)
    argv = (str(shell.program), *mode.flags, question.text(inquiry.words))
    if (obstacle := _cannot_start(shell.program)) is not None:
        cell = blank(shell, mode, Status.UNKNOWN, Reason.SPAWN_ERROR)
        return replace(cell, argv=argv, stderr=(obstacle,))
    home = inquiry.paths.home
    directory = _usual_directory(flavour, inquiry.paths)
    cell = _with_files(blank(shell, mode, Status.UNKNOWN, None), home, directory)
    cell = replace(cell, argv=argv)
    if cancel.is_set() or left_s <= 0:
        return replace(cell, reason=Reason.CANCELLED if cancel.is_set() else Reason.DEADLINE)
    try:
        heard = listen(
            (*inquiry.words.keeper, *argv),
            env=env,
            cwd=home,
            until=question.end,
            timeout_s=min(inquiry.timeout_s, left_s),
            cancel=cancel,
        )
    except OSError as error:
        complaint = (error.strerror or str(error),)
        return replace(cell, reason=Reason.SPAWN_ERROR, stderr=complaint)
    cell = replace(
        cell,
        reason=classify(heard, question.begin, cut=left_s < inquiry.timeout_s),
        exit_code=heard.code,
        end=heard.end,
        duration_ms=heard.duration_ms,
        stderr=tail(heard.stderr, flavour.noise),
        outlived=heard.outlived,
    )
    return cell if cell.reason else _answered(cell, question, heard.stdout, inquiry)


def _cannot_start(program: Path) -> str | None:
    """Say why a shell would not be started; its keeper would take its text for a script."""
    fault = unreachable(program) or inspect(program, search=lambda _: program, host=host_machine())
    return None if fault is None else f"{fault.fault.value}: {fault.about}"


def classify(heard: Heard, begin: bytes, *, cut: bool) -> Reason | None:
    """Say why there is no answer, or None when there is one (D-50).

    `cut` says that the end of the whole run ended the probe before its own time-out.
    """
    match heard.end:
        case End.MARK:
            return None if begin in heard.stdout else Reason.REPLACED
        case End.EXIT:
            replaced = heard.code == 0 or b"not a terminal" in heard.stderr
            return Reason.REPLACED if replaced else Reason.EXITED
        case End.FLOOD:
            return Reason.FLOOD
        case End.DEADLINE:
            return Reason.DEADLINE if cut else Reason.TIMEOUT
        case End.CANCELLED:
            return Reason.CANCELLED


def tail(stderr: bytes, noise: Sequence[str]) -> tuple[str, ...]:
    """Return the last lines of what a shell complained of, without its own noise (D-51)."""
    text = _TERMINAL_CODES.sub("", stderr.decode("utf-8", "replace"))
    lines = (_CONTROLS.sub("", line).strip() for line in text.split("\n"))
    kept = [
        line[:_TAIL_WIDTH]
        for line in lines
        if line
        and _OWN_TRACE not in line
        and not _JOB_STARTED.fullmatch(line)
        and not any(known in line for known in noise)
    ]
    return tuple(kept[-_TAIL_LINES:])


def _answered(cell: Cell, question: Question, output: bytes, inquiry: Inquiry) -> Cell:
    answer = question.read(output)
    home = inquiry.paths.home
    if answer.directory:
        cell = _with_files(cell, home, Path(answer.directory))
    if answer.path is None:
        return replace(cell, reason=Reason.NO_PATH)
    entries = split(answer.path, home, inquiry.roots)
    return replace(
        cell,
        status=Status.OK,
        path_text=answer.path,
        variables=answer.variables,
        entries=entries,
        names=tuple(
            resolve(name, said, entries, home, host=inquiry.host)
            for name, said in answer.names.items()
        ),
    )


def resolve(
    name: str, said: Said, entries: Sequence[Entry], home: Path, *, host: str
) -> Resolution:
    """Join what a shell says of a name with what its PATH holds; an alias is followed (D-84)."""
    copies = walk(name, entries, home, host=host)
    target = expand_home(said.target, home) if said.target else None
    target_copy: Copy | None = None
    if target and target.startswith("/"):
        target_copy = examine(Path(target), entries, home, host=host)
    elif target and "/" not in target:
        found = copies if target == name else walk(target, entries, home, host=host)
        target_copy = next((copy for copy in found if copy.runnable), None)
    return Resolution(name, said.kind, copies, target, target_copy, said.defined_in)


def expand_home(word: str, home: Path) -> str:
    """Replace a leading `~/`, `$HOME/` or `${HOME}/`; other variables stay as they are."""
    for spelling in ("~/", "$HOME/", "${HOME}/"):
        if word.startswith(spelling):
            return f"{home}/{word.removeprefix(spelling)}"
    return word


def _with_files(cell: Cell, home: Path, directory: Path) -> Cell:
    """Fill in the start-up files of the cell's mode, and the one to edit."""
    if cell.flavour is None or cell.mode is None:
        return cell

    def first(alternatives: Alternatives) -> Path:
        files = [
            Path(file.replace("~/", f"{home}/").replace("@/", f"{directory}/"))
            for file in alternatives
        ]
        return next((file for file in files if file.exists()), files[-1])

    read = [first(alternatives) for alternatives in cell.flavour.startup[cell.mode]]
    edit = cell.flavour.edit.get(cell.mode)
    return replace(
        cell,
        startup_files=tuple(file for file in read if file.exists()),
        edit_file=first(edit) if edit else None,
    )


def _usual_directory(flavour: Flavour, paths: Paths) -> Path:
    return paths.config_dir.parent / "fish" if flavour is FISH else paths.home
