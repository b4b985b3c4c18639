"""The words of occupancy and invocations: tiers, evidence, kinds, states.

Knows neither wire, nor rules, nor SQL.
"""

from __future__ import annotations

from enum import StrEnum


class Tier(StrEnum):
    """What keeps an agent busy, in the order in which it is told (EV-B2)."""

    MESSAGE = "message"
    TERMINAL = "terminal"
    INVOCATION = "invocation"


class Evidence(StrEnum):
    """Why a holder was evicted: a proof of its death, its deadline, or a person (EV-B10)."""

    PID_GONE = "pid-gone"
    TOKEN_DIFFERS = "token-differs"  # noqa: S105  (the start token of a process)
    BOOT_DIFFERS = "boot-differs"
    DEADLINE = "deadline"
    FORCE = "force"


class SeatEnd(StrEnum):
    """How a holder's seat ended without a successor."""

    RELEASED = "released"
    LOST = "lost"
    FORCED = "forced"
    RETIRED = "retired"


class InvocationKind(StrEnum):
    """What runs: a turn of an agent, a session in a terminal, a tool."""

    TURN = "turn"
    TERMINAL = "terminal"
    TOOL = "tool"


class InvocationState(StrEnum):
    """How an invocation stands; a lost one may still be finished, late (EV-I2)."""

    RUNNING = "running"
    FINISHED = "finished"
    LOST = "lost"


class Outcome(StrEnum):
    """How an invocation ended, by its own word."""

    OK = "ok"
    FAILED = "failed"
    CANCELLED = "cancelled"
