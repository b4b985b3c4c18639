"""The help of every command: whole sentences in short lines, and a name for each value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from tests.support import tfx
from tfx.cli.app import app
from tfx.hub.models import Privilege
from tfx.hub.operations import OPERATIONS


def _paths(command: object, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield words
    for name, each in getattr(command, "commands", {}).items():
        yield from _paths(each, (*words, name))


ALL = sorted(_paths(get_command(app)))


@pytest.mark.parametrize("words", ALL, ids=lambda words: " ".join(words) or "tfx")
def test_the_help_cuts_nothing_off_and_names_every_value(
    home: Path, words: tuple[str, ...]
) -> None:
    ran = tfx(home, *words, "--help")
    assert ran.code == 0
    lines = (ran.out or ran.err).splitlines()
    assert not [line for line in lines if line.endswith("...") and "Usage" not in line]
    assert max(map(len, lines)) <= 80
    assert not re.search(r"<(str|int|float|text)", ran.out, re.IGNORECASE)
    assert not re.search(r"^  \S*[A-Z_]+\S*  +\[required\]$", ran.out, re.MULTILINE)
    assert not re.search(r"\([A-Z]+-[A-Z]?\d+\)", ran.out), "requirement ids are not for users"


def test_h47_an_operation_of_the_operator_names_a_command_that_exists() -> None:
    for name, row in OPERATIONS.items():
        assert (row.command is not None) == (row.privilege is Privilege.OPERATOR), name
        if row.command is not None:
            first, *words = row.command.split()
            named = tuple(word for word in words if not word.startswith("-"))
            assert (first, named in ALL) == ("tfx", True), row.command
