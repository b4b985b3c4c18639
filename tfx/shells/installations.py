"""The distinct copies of a program that all cells together lead to, and which of them wins where.

Copies are told apart by their real path, never by the name of a directory (D-83); which one is
older is the business of whoever knows versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tfx.shells.binaries import Problem
from tfx.shells.cell import Cell
from tfx.shells.matrix import Matrix
from tfx.shells.searchpath import Copy


@dataclass(frozen=True, slots=True)
class Installation:
    """One copy. The tuples of cells hold their labels, in the order of the matrix.

    `paths` are all spellings that lead to it. It wins in a cell when PATH gives it first, is
    shadowed where another copy comes before it, and is aliased where the shell's own alias leads
    to it, whatever PATH says. `problems` may differ between cells: a script may find its
    interpreter in one and not in the other.
    """

    real: Path
    paths: tuple[Path, ...]
    links: tuple[str, ...]
    runnable: bool
    manager: str | None
    wins_in: tuple[str, ...] = ()
    shadowed_in: tuple[str, ...] = ()
    aliased_in: tuple[str, ...] = ()
    problems: tuple[tuple[str, Problem], ...] = ()


def installations(matrix: Matrix, name: str) -> tuple[Installation, ...]:
    """Return the copies of a program, in the order in which the cells first meet them."""
    found: dict[Path, Installation] = {}
    for cell, copy, aliased in _met(matrix, name):
        known = found.get(copy.real) or Installation(
            copy.real, (), copy.links, copy.runnable, copy.place.manager if copy.place else None
        )
        found[copy.real] = _joined(known, cell, copy, aliased=aliased, name=name)
    return tuple(found.values())


def winners(matrix: Matrix, name: str) -> tuple[Installation, ...]:
    """Return the copies that PATH or an alias starts in some cell; more than one is a finding."""
    return tuple(one for one in installations(matrix, name) if one.wins_in or one.aliased_in)


def _met(matrix: Matrix, name: str) -> Iterator[tuple[Cell, Copy, bool]]:
    for cell in matrix.cells:
        resolution = cell.resolution(name)
        if resolution is None:
            continue
        yield from ((cell, copy, False) for copy in resolution.copies)
        if resolution.target_copy is not None and _same_program(resolution.target_copy, name):
            yield cell, resolution.target_copy, True


def _same_program(copy: Copy, name: str) -> bool:
    return copy.path.name == name


def _joined(
    known: Installation, cell: Cell, copy: Copy, *, aliased: bool, name: str
) -> Installation:
    resolution = cell.resolution(name)
    winner = resolution.winner if resolution else None
    spelled = known.paths if copy.path in known.paths else (*known.paths, copy.path)
    known = replace(known, paths=spelled)
    if copy.problem is not None and (cell.label, copy.problem) not in known.problems:
        known = replace(known, problems=(*known.problems, (cell.label, copy.problem)))
    if aliased:
        return replace(known, aliased_in=_with(known.aliased_in, cell.label))
    if winner is not None and winner.real == copy.real:
        return replace(known, wins_in=_with(known.wins_in, cell.label))
    if winner is not None and copy.runnable:
        return replace(known, shadowed_in=_with(known.shadowed_in, cell.label))
    return known


def _with(labels: tuple[str, ...], label: str) -> tuple[str, ...]:
    return labels if label in labels else (*labels, label)
