"""The options of `tfx setup`, and which of them exclude each other.

Knows nothing of the machine; a contradiction is found before anything is read (S-8).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tfx.agents.catalogue import find
from tfx.desired import Transport
from tfx.errors import InvalidRequest
from tfx.plan.actions import Flags


class Mode(StrEnum):
    """How far a run goes."""

    APPLY = "apply"
    DRY_RUN = "dry-run"
    CHECK = "check"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `tfx setup`; `validate` refuses what contradicts itself (S-8)."""

    mode: Mode = Mode.APPLY
    agents: tuple[str, ...] = ()
    take_new: bool = False
    keep_mine: bool = False
    restore: bool = False
    remove: bool = False
    purge: bool = False
    undo: str | None = None
    runs: bool = False
    transport: Transport | None = None
    yes: bool = False

    def validate(self) -> None:
        """Raise InvalidRequest for options that exclude each other, before anything is read."""
        verbs = [
            name
            for name, said in (
                ("--remove", self.remove),
                ("--undo", self.undo is not None),
                ("--runs", self.runs),
                ("--restore", self.restore),
            )
            if said
        ]
        if len(verbs) > 1:
            raise _contradiction(*verbs)
        for word, said in (("--take-new", self.take_new), ("--keep-mine", self.keep_mine)):
            if said and verbs and (verbs != ["--restore"] or word == "--keep-mine"):
                raise _contradiction(word, verbs[0])
            if said and self.mode is Mode.CHECK:
                raise _contradiction(word, "--check")
        if self.take_new and self.keep_mine:
            raise _contradiction("--take-new", "--keep-mine")
        if self.purge and not self.remove:
            raise InvalidRequest("--purge goes with --remove only", hint="tfx setup --help")
        if self.purge and self.agents:
            raise _contradiction("--purge", "--agent")
        if self.transport is not None and verbs and verbs != ["--restore"]:
            raise _contradiction("--mcp-transport", verbs[0])
        self.names()

    def names(self) -> tuple[str, ...]:
        """Return the catalogue names of --agent. Raises InvalidRequest for an unknown one."""
        return tuple(find(name).name for name in self.agents)

    @property
    def flags(self) -> Flags:
        """The user's word on conflicts, as the engine takes it."""
        return Flags(take_new=self.take_new, keep_mine=self.keep_mine, restore=self.restore)


def _contradiction(one: str, other: str, *_: str) -> InvalidRequest:
    return InvalidRequest(f"{one} and {other} exclude each other", hint="tfx setup --help")
