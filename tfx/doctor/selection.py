"""Which checks run: names, groups and patterns against the registry (D-2, D-3).

Runs nothing.
"""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Sequence

from tfx.doctor.model import Check
from tfx.doctor.options import Options
from tfx.errors import InvalidRequest


def choose(checks: Sequence[Check], options: Options) -> tuple[Check, ...]:
    """Return the checks to run, in registry order; `--skip` wins (D-3).

    A check that is off by default runs when its id is named or its option is given (D-2, D-12).
    Raises InvalidRequest for a pattern that matches nothing, with the nearest names, and where
    nothing is left: checking nothing must not look like success.
    """
    wanted = (*options.checks, *options.only)
    for pattern in (*wanted, *options.skip):
        if not any(_matches(check, pattern) for check in checks):
            raise unknown(pattern, checks)
    chosen = tuple(
        check
        for check in checks
        if _is_wanted(check, wanted, options)
        and not any(_matches(check, pattern) for pattern in options.skip)
    )
    if not chosen:
        raise InvalidRequest(
            "no check is left to run; --skip wins over what is named",
            code="no-check",
            hint="tfx doctor --list",
        )
    return chosen


def _is_wanted(check: Check, wanted: Sequence[str], options: Options) -> bool:
    if check.id in wanted:
        return True
    on = (
        check.default
        or (check.network and options.network)
        or (check.deep and options.deep and not check.network)
    )
    return on and (not wanted or any(_matches(check, pattern) for pattern in wanted))


def _matches(check: Check, pattern: str) -> bool:
    return fnmatch.fnmatchcase(check.id, pattern) or check.group.value == pattern


def find(checks: Sequence[Check], name: str) -> tuple[Check, ...]:
    """Return the checks of an id, a group or a pattern.

    Raises InvalidRequest with the nearest names when there is none.
    """
    found = tuple(check for check in checks if _matches(check, name))
    if not found:
        raise unknown(name, checks)
    return found


def unknown(name: str, checks: Sequence[Check]) -> InvalidRequest:
    """Return the error for a name that no check and no group has."""
    names = [*(check.id for check in checks), *dict.fromkeys(c.group.value for c in checks)]
    tails = {each.rpartition(".")[2]: each for each in names}
    near = difflib.get_close_matches(name, names, 3, 0.5)
    near += [tails[each] for each in difflib.get_close_matches(name, tails, 3, 0.7)]
    near = list(dict.fromkeys(near)) or names[:3]
    return InvalidRequest(
        f"no check is called {name!r}; nearest: {', '.join(near)}",
        code="unknown-check",
        hint="tfx doctor --list",
        details={"name": name, "nearest": [*near]},
    )
