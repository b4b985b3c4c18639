"""Tables on terminals of any width: a name that is cut off cannot be copied."""

from __future__ import annotations

import io
from dataclasses import dataclass

import pytest

from tfx.cli.output import Screen
from tfx.cli.tables import print_table, table_of

NAME = "spark.codex.a-long-directory"


@dataclass
class _Wishes:
    json: bool = False
    quiet: bool = False
    verbose: bool = False
    ascii: bool = False


class _Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def _drawn(out: io.StringIO) -> str:
    screen = Screen(_Wishes(), io.StringIO(), out, io.StringIO())
    table = table_of("agent", "state", "topics", "owes")
    table.add_row(NAME, "offline", "", "-")
    table.add_row("claude.a", "online", "task.context", "2")
    print_table(screen, table)
    return out.getvalue()


@pytest.mark.parametrize("columns", ["20", "40", "80"])
def test_a_table_that_does_not_fit_is_shown_row_by_row_and_uncut(
    monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("TERM", "xterm")
    said = _drawn(_Terminal())
    if columns == "80":
        assert "─" in said
    else:
        assert said.splitlines() == [
            NAME,
            "  state   offline",
            "claude.a",
            "  state   online",
            "  topics  task.context",
            "  owes    2",
        ]
    assert "…" not in said


def test_without_a_terminal_a_table_is_whole_at_any_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    lines = _drawn(io.StringIO()).splitlines()
    assert any(NAME in line and "offline" in line for line in lines)
