"""The options of `tfx doctor`, and which of them contradict each other.

Knows nothing of the machine; a contradiction is found before anything is read.
"""

from __future__ import annotations

from dataclasses import dataclass

from tfx.errors import InvalidRequest

TIMEOUT_S = 5.0
LONGEST_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for; `validate` refuses contradictions (D-5, D-6, D-11).

    `shows_yours`: the report is for a terminal and `--verbose`, so differences may hold the
    user's own lines; one that may be pasted never does (D-27).
    """

    checks: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    fix: bool = False
    dry_run: bool = False
    yes: bool = False
    reset: bool = False
    strict: bool = False
    timeout_s: float = TIMEOUT_S
    network: bool = False
    deep: bool = False
    all_shells: bool = False
    shows_yours: bool = False

    def validate(self) -> None:
        """Raise InvalidRequest for options that contradict each other."""
        for word, said in (("--dry-run", self.dry_run), ("--yes", self.yes)):
            if said and not self.fix:
                raise InvalidRequest(f"{word} goes with --fix only", hint="tfx doctor --help")
        if self.dry_run and self.yes:
            raise InvalidRequest("--dry-run and --yes exclude each other")
        if self.reset and (self.fix or self.checks or self.only or self.skip):
            raise InvalidRequest("--reset goes with no check and not with --fix")
        if not 0 < self.timeout_s <= LONGEST_TIMEOUT_S:
            raise InvalidRequest(
                f"--timeout must be above 0 and at most {LONGEST_TIMEOUT_S:g} s,"
                f" not {self.timeout_s:g}"
            )
