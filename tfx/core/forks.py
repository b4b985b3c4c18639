"""Refuse to fork while a database file is open: a child would break its locks (EV-S9).

Knows no database; it is told how to find the open files.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache

from tfx.errors import OperationFailed

_FORKS = frozenset({"os.fork", "os.forkpty"})


@cache
def guard_forks(opened: Callable[[], list[str]]) -> None:
    """Refuse `os.fork` from now on while `opened` names a file.

    Starting a program is no such fork: nothing of ours runs before it is another program.
    """

    def on_audit(event: str, _arguments: tuple[object, ...]) -> None:
        if event in _FORKS and (names := opened()):
            raise OperationFailed(
                f"this process must not fork: {names[0]} is open in it", code="fork-refused"
            )

    sys.addaudithook(on_audit)
