"""The whole matrix: every chosen shell in every mode, side by side, within one budget.

Knows what the cells say together of a name; what that means for an agent is the doctor's.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from tfx.core import scratch as folders
from tfx.core.paths import Paths
from tfx.errors import InvalidRequest
from tfx.shells import managers
from tfx.shells.binaries import host_machine
from tfx.shells.cell import Answer, Cell, Reason, Status
from tfx.shells.flavours import FISH, Mode
from tfx.shells.probe import Inquiry, blank, probe
from tfx.shells.question import Words, base_environment, check_names
from tfx.shells.selection import Shell, choose

TIMEOUT_S = 5.0
LONGEST_TIMEOUT_S = 120.0
BUDGET = 1.2  # of one time-out, for everything together (D-54)
AT_ONCE = 16


class Verdict(StrEnum):
    """Where a name can be started from (D-87), bare `-c` cells apart."""

    EVERYWHERE = "everywhere"
    SOMEWHERE = "somewhere"
    NOWHERE = "nowhere"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Presence:
    """The cells of one name by answer, in the order of the matrix."""

    name: str
    found: tuple[Cell, ...]
    shell_only: tuple[Cell, ...]
    not_found: tuple[Cell, ...]
    unknown: tuple[Cell, ...]

    @property
    def verdict(self) -> Verdict:
        """The one word: a bare `-c` cell reads no file, so it never makes a name missing."""
        if not self.found:
            return Verdict.UNKNOWN if self.unknown else Verdict.NOWHERE
        if any(cell.mode is not Mode.PLAIN for cell in (*self.not_found, *self.shell_only)):
            return Verdict.SOMEWHERE
        return Verdict.UNKNOWN if self.unknown else Verdict.EVERYWHERE


@dataclass(frozen=True, slots=True)
class Matrix:
    """All cells of one run, in a fixed order."""

    cells: tuple[Cell, ...]
    names: tuple[str, ...]
    timeout_s: float
    duration_ms: int

    def presence(self, name: str) -> Presence:
        """Return where a name is; absent and skipped shells do not count."""
        asked = [cell for cell in self.cells if cell.status in {Status.OK, Status.UNKNOWN}]

        def cells(answer: Answer) -> tuple[Cell, ...]:
            return tuple(cell for cell in asked if cell.answer(name) is answer)

        return Presence(
            name,
            found=cells(Answer.FOUND),
            shell_only=cells(Answer.SHELL_ONLY),
            not_found=cells(Answer.NOT_FOUND),
            unknown=cells(Answer.UNKNOWN),
        )

    def in_use(self, name: str) -> bool:
        """Say whether a name resolves on PATH in at least one cell (K-47)."""
        return bool(self.presence(name).found)


def probe_matrix(
    paths: Paths,
    names: Sequence[str],
    *,
    timeout_s: float = TIMEOUT_S,
    all_shells: bool = False,
    shells: Sequence[Shell] | None = None,
    variables: Sequence[str] = (),
    cancel: threading.Event | None = None,
) -> Matrix:
    """Ask every chosen shell (D-53; `shells` instead, if given) what the names are.

    The values of `variables`, and of no other, are kept: none may hold a secret.

    Takes at most 1.2 times `timeout_s`, leaves no process of the probes' sessions and writes
    nothing in the home. What a start of the user's own shell writes stays written: the caches
    of the start-up files; one line in the history of a ksh whose start-up files name a history
    file. The empty data directory that a fish makes at its very first start is taken away again.

    A KeyboardInterrupt, or `cancel`, ends all probes before it goes on. Raises InvalidRequest
    for a time-out outside 0 < S ≤ 120 (D-11) or a name that is no program name.
    """
    if not 0 < timeout_s <= LONGEST_TIMEOUT_S:
        raise InvalidRequest(f"the time-out must be above 0 and at most 120 s, not {timeout_s:g}")
    check_names(names)
    started = time.monotonic()
    names = tuple(dict.fromkeys(names))
    inquiry = Inquiry(
        paths=paths,
        names=names,
        words=Words.found(paths),
        roots=managers.roots(paths),
        host=host_machine(),
        timeout_s=timeout_s,
        variables=tuple(variables),
    )
    chosen = choose(paths, all_shells=all_shells) if shells is None else tuple(shells)
    deadline = started + BUDGET * timeout_s
    cancel = cancel or threading.Event()
    with _environments(paths, chosen) as environments:

        def ask(shell: Shell, mode: Mode | None) -> Cell:
            if shell.flavour is None or mode is None:
                return _not_asked(shell)
            return probe(
                shell,
                shell.flavour,
                mode,
                inquiry,
                env=environments[shell.label],
                left_s=deadline - time.monotonic(),
                cancel=cancel,
            )

        cells = _at_once([partial(ask, shell, mode) for shell, mode in _pairs(chosen)], cancel)
    return Matrix(cells, names, timeout_s, round((time.monotonic() - started) * 1000))


def _pairs(shells: Sequence[Shell]) -> Iterator[tuple[Shell, Mode | None]]:
    for shell in shells:
        if shell.flavour is None or not shell.installed:
            yield shell, None
        else:
            yield from ((shell, mode) for mode in shell.modes)


def _not_asked(shell: Shell) -> Cell:
    """Return the one cell of a shell that cannot be asked; only a login shell is a loss (D-53)."""
    if not shell.installed:
        status = Status.UNKNOWN if shell.login else Status.ABSENT
        return blank(shell, None, status, Reason.NOT_INSTALLED)
    status = Status.UNKNOWN if shell.login else Status.SKIPPED
    return blank(shell, None, status, Reason.UNSUPPORTED)


def _at_once(tasks: Sequence[Callable[[], Cell]], cancel: threading.Event) -> tuple[Cell, ...]:
    if not tasks:
        return ()
    with ThreadPoolExecutor(min(AT_ONCE, len(tasks)), "tfx-shell") as pool:
        try:
            return tuple(pool.map(lambda task: task(), tasks))
        except BaseException:
            cancel.set()  # Ctrl-C: the pool waits until every probe has ended its group
            raise


@contextmanager
def _environments(
    paths: Paths, shells: Sequence[Shell]
) -> Iterator[Mapping[str, Mapping[str, str]]]:
    """Give each shell, by label, the environment to start with.

    A fish that starts makes its directories. Where the user has no configuration of fish there
    is nothing to read in them, so they are made in a scratch folder instead of the home.
    """
    base = base_environment(paths)
    environments: dict[str, Mapping[str, str]] = {shell.label: base for shell in shells}
    new_to_fish = [
        shell.label
        for shell in shells
        if shell.flavour is FISH and not (paths.config_dir.parent / "fish").exists()
    ]
    if not new_to_fish:
        with _empty_again(paths, fish=any(shell.flavour is FISH for shell in shells)):
            yield environments
        return
    with folders.scratch("shells") as scratch:
        moved: dict[str, str] = {}
        for kind in ("CONFIG", "DATA", "CACHE", "STATE"):
            directory = scratch / kind.lower()
            (directory / "fish").mkdir(parents=True)  # several at once would collide over it
            moved[f"XDG_{kind}_HOME"] = str(directory)
        yield environments | {label: {**base, **moved} for label in new_to_fish}


@contextmanager
def _empty_again(paths: Paths, *, fish: bool) -> Iterator[None]:
    """Take away the directories that a configured fish makes at its first start, if empty (D-1).

    They are not made elsewhere: what start-up files find in the data directory has to stay.
    """
    place = paths.data_dir.parent / "fish"
    absent = [each for each in (place, *place.parents) if not os.path.lexists(each)] if fish else []
    try:
        yield
    finally:
        for directory in absent:  # the innermost first; one that holds anything stays
            with suppress(OSError):
                directory.rmdir()
