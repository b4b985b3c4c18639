"""Read from a CLI's own output what went wrong and how many tokens it says it used (R-10).

Keeps no word of the output: only codes and remedies leave this module.
"""

from __future__ import annotations

import re
from pathlib import Path

from tfx.route.excerpt import last_lines
from tfx.route.result import Issue
from tfx.route.table import CliRow, IssueRow

_TAIL_BYTES = 64 * 1024
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def tokens_in(row: CliRow, stderr: Path) -> int | None:
    """Return the number of tokens that the CLI printed last, or None."""
    if row.tokens is None:
        return None
    found = re.findall(row.tokens, _tail(stderr))
    return int(re.sub(r"\D", "", found[-1])) if found else None


def issues_in(
    rows: tuple[IssueRow, ...], cli: str, stdout: Path, stderr: Path, *, failed: bool
) -> tuple[Issue, ...]:
    """Return the recognised issues of a run, in the order of the table.

    A successful run may well talk about rate limits; only its error output is looked at, and
    only for what always counts.
    """
    complaints = _tail(stderr)
    texts = (complaints, _tail(stdout)) if failed else (complaints,)
    return tuple(
        Issue(row.code, row.remedy.format(cli=cli))
        for row in rows
        if (failed or row.always) and any(row.is_in(text) for text in texts)
    )


def _tail(path: Path) -> str:
    try:
        data = last_lines(path, _TAIL_BYTES)
    except OSError:
        return ""
    return _ESCAPES.sub("", data.decode("utf-8", "replace"))
