"""How occupancy and invocations look to people.

Calls nothing; every fact shown is in the JSON document too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfx.cli.durations import duration
from tfx.cli.tables import print_table, table_of
from tfx.core.clock import iso

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfx.cli.output import Screen
    from tfx.hub.wire.invocations import InvocationsResult, InvocationView
    from tfx.hub.wire.occupancy import AgentsFreeResult, BusyResult
    from tfx.hub.wire.seats import SeatView


def seat_text(seat: SeatView) -> str:
    """Return a seat in a few words: tier, holder, what is known of its life."""
    evidence = f", {seat.evidence.value}" if seat.evidence else ""
    return (
        f"{seat.tier.value}: pid {seat.pid} on {seat.host} ({seat.liveness.value}{evidence}, "
        f"heard {duration(seat.beat_age_ms)} ago)"
    )


def seats_text(seats: Iterable[SeatView]) -> str:
    """Return all tiers that are taken, for one cell of a table."""
    return "; ".join(seat_text(seat) for seat in seats) or "-"


def show_busy(screen: Screen, data: BusyResult) -> None:
    """Draw whether one agent is busy, and with what."""
    if data.tier is None:
        screen.line(f"{data.agent_id} is idle", sign="ok")
    else:
        screen.line(f"{data.agent_id} is busy ({data.tier.value})", sign="info")
    for seat in data.seats:
        guarded = f", delivers {seat.message_id}" if seat.message_id else ""
        screen.line(f"  {seat_text(seat)}{guarded}")
    screen.line(f"  generation {data.generation}")


def show_freed(screen: Screen, data: AgentsFreeResult) -> None:
    """Draw who was evicted, and who was left."""
    for each in data.evicted:
        screen.line(f"evicted pid {each.pid} on {each.host}: {each.evidence.value}", sign="changed")
    for seat in data.left:
        screen.line(f"left, because nothing proves that it is gone: {seat_text(seat)}", sign="warn")
    if not data.evicted and not data.left:
        screen.line(f"nobody holds {data.agent_id}", sign="ok")


def show_invocations(screen: Screen, data: InvocationsResult) -> None:
    """Draw invocations as a table."""
    if not data.invocations:
        screen.line("nothing is recorded", sign="info")
        return
    table = table_of("invocation", "kind", "agent", "state", "started", "took", "process", "what")
    for each in data.invocations:
        took = "" if each.ended_at_ms is None else duration(each.ended_at_ms - each.started_at_ms)
        table.add_row(
            each.invocation_id,
            each.kind.value,
            each.agent_id,
            _state(each),
            iso(each.started_at_ms),
            took,
            f"{each.pid} on {each.host}",
            _what(each),
        )
    print_table(screen, table)
    if data.next_before is not None:
        screen.note(f"there are more: tfx hub invocations --before {data.next_before}")


def _state(each: InvocationView) -> str:
    words = [each.state.value]
    if each.outcome is not None:
        words.append(each.outcome.value)
    if each.is_late:
        words.append("late")
    if each.evidence is not None:
        words.append(each.evidence.value)
    if each.liveness is not None and each.beat_age_ms is not None:
        words.append(f"{each.liveness.value}, heard {duration(each.beat_age_ms)} ago")
    return " ".join(words)


def _what(each: InvocationView) -> str:
    task = f"task {each.task} of {each.room}" if each.task is not None else None
    return ", ".join(word for word in (each.title, task, each.summary, each.error) if word)
