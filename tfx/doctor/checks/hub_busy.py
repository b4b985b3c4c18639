"""`hub.busy`: who keeps agents busy without a word, and what is recorded as running and is not.

Reads the hub's database, and asks a running hub whom it heard when; frees and declares nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from tfx.core.clock import SystemClock
from tfx.core.identity import Liveness, ProcessIdentity, examine
from tfx.doctor.checks.hub_work import START_HUB, unreadable
from tfx.doctor.facts import Facts
from tfx.doctor.model import MANUAL, Finding, Remedy, Status
from tfx.doctor.words import DAY_MS, HOUR_MS, age, command, listed

if TYPE_CHECKING:
    from tfx.errors import JsonValue
    from tfx.hub.store.occupants import Occupants

SILENT_MS: Final = 8 * HOUR_MS
"""A silent holder that lives keeps its agent; after so long a person should look (EV-B6)."""
LOST_WITHIN_MS: Final = DAY_MS


def busy(facts: Facts) -> Iterator[Finding]:
    """Yield agents that are held without a word, and runs that are gone (EV-B6, EV-I1)."""
    from tfx.hub.store import occupants  # noqa: PLC0415  (start-up rule)

    reason = unreadable(facts)
    if reason is not None:
        yield reason
        return
    since_ms = SystemClock().now_ms() - LOST_WITHIN_MS
    seen = occupants.look(facts.probe.files.database, lost_since_ms=since_ms)
    found = [
        *(_silent(facts) if facts.hub_runs else _gone(seen)),
        *_phantoms(seen, runs=facts.hub_runs),
        *_lost(seen.lost),
    ]
    yield from found
    if not found:
        number = len({each.agent for each in seen.seats})
        running = len(seen.running) + seen.unseen
        yield Finding(
            "agents",
            Status.OK,
            f"{number} busy, each by a process that is there; {running} invocations run",
            {"busy": number, "running": running},
        )


def _silent(facts: Facts) -> Iterator[Finding]:
    """Yield the agents whose holder is not proven gone and was not heard for long (EV-B6)."""
    ran_ms = SystemClock().now_ms() - facts.hub_since_ms
    for agent in facts.hub_agents:
        for seat in agent.seats:
            silent_ms = min(seat.beat_age_ms, ran_ms)
            if seat.evidence is not None or silent_ms < SILENT_MS:
                continue
            lives = "lives" if seat.liveness is Liveness.ALIVE else "cannot be looked at"
            name = str(agent.agent_id)
            yield Finding(
                f"{name} ({seat.tier.value})",
                Status.WARN,
                f"busy, and silent for {age(silent_ms)}; process {seat.pid} {lives}",
                {
                    "agent": name,
                    "tier": seat.tier.value,
                    "pid": seat.pid,
                    "process": seat.liveness.value,
                    "silent_s": silent_ms // 1000,
                },
                (
                    Remedy("look at it", command(facts.paths.home, "tfx", "hub", "busy", name)),
                    Remedy(
                        "take its seat all the same",
                        command(facts.paths.home, "tfx", "hub", "agents", "free", name, "--force"),
                    ),
                ),
                MANUAL,
            )


def _gone(seen: Occupants) -> Iterator[Finding]:
    """Yield the holders that are gone while no hub runs that would say so."""
    names = _names(seat.agent for seat in seen.seats if _is_dead(seat.process))
    if names:
        yield Finding(
            "holders that are gone",
            Status.INFO,
            f"they kept {listed(map(str, names))} busy",
            {"agents": names},
            (START_HUB,),
            MANUAL,
        )


def _phantoms(seen: Occupants, *, runs: bool) -> Iterator[Finding]:
    """Yield the invocations that are recorded as running and whose process is gone (EV-I1)."""
    gone = [row for row in seen.running if _is_dead(row.process)]
    if gone:
        probe = Remedy("have the hub look; it does so by itself", "tfx hub invocations probe")
        yield Finding(
            "running invocations",
            Status.INFO,
            f"{len(gone)} are recorded as running and their processes are gone",
            {"count": len(gone), "agents": _names(row.agent for row in gone)},
            (probe if runs else START_HUB,),
            MANUAL,
        )


def _lost(number: int) -> Iterator[Finding]:
    """Yield how many invocations ended without a word of late."""
    if number:
        yield Finding(
            "lost invocations",
            Status.INFO,
            f"{number} in the last day ended without a word: killed, or crashed",
            {"count": number},
            (Remedy("see which", "tfx hub invocations --state lost"),),
            MANUAL,
        )


def _names(agents: Iterable[str]) -> list[JsonValue]:
    return [*sorted(set(agents))]


def _is_dead(process: ProcessIdentity) -> bool:
    return examine(process).liveness is Liveness.DEAD
