"""What people see of the hub: status, agents, mail, dead letters, a trace as a timeline.

Draws typed answers; asks nobody.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tfx.cli.durations import duration
from tfx.cli.hub.seats import seats_text
from tfx.cli.tables import print_table, table_of
from tfx.core.clock import iso

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfx.cli.output import Screen
    from tfx.errors import JsonValue
    from tfx.hub.daemon.report import HubData
    from tfx.hub.wire.agents import AgentsResult
    from tfx.hub.wire.messages import AskResult, Message, PollResult, PublishResult, WaitResult
    from tfx.hub.wire.views import DeadLettersResult, EventView, TraceItem, TraceResult

_PAYLOAD_SHOWN = 400
_MS_PER_S = 1000
_QUEUES = {
    "open_waits": "open waits",
    "queued": "queued",
    "claimed": "claimed, not acked",
    "owed_answers": "owed answers",
    "pending_human_requests": "questions to you",
    "dead_letters": "dead letters",
}


def show_status(screen: Screen, data: HubData) -> None:
    """Draw the state of the hub."""
    if data.state.value != "running" or data.uptime_ms is None:
        reason = f": {data.reason}" if data.reason else ""
        screen.line(f"{data.state.value}{reason}", sign="bad" if data.reason else "info")
        if data.stranger:
            screen.line(
                f"  the port is held by {data.stranger['name']} (pid {data.stranger['pid']})"
            )
        if data.pid is not None:
            screen.line(f"  held by   pid {data.pid}")
        screen.line(f"  database  {data.database}")
        screen.line(f"  log       {data.log}")
        return
    up = duration(data.uptime_ms)
    screen.line(f"running at {data.url} for {up} (pid {data.pid}, tfx {data.version})", sign="ok")
    facts: dict[str, object] = {
        "instance": data.instance,
        "database": data.database,
        "log": data.log,
        "durability": data.durability,
        "schema": _schema(data.schema),
        **{word: (data.queues or {}).get(key) for key, word in _QUEUES.items()},
    }
    width = max(len(name) for name in facts)
    for name, value in facts.items():
        if value is not None:
            screen.line(f"  {name:<{width}}  {value}")
    for warning in data.warnings:
        screen.line(warning, sign="warn")


def show_agents(screen: Screen, data: AgentsResult) -> None:
    """Draw the agents as a table."""
    if not data.agents:
        screen.line("no agent is registered", sign="info")
        return
    now_ms = time.time_ns() // 1_000_000
    table = table_of(
        "agent", "cli", "state", "seen", "busy", "generation", "unread", "owes", "awaits", "topics"
    )
    for agent in data.agents:
        unread = f"{agent.unread} ({agent.urgent} urgent)" if agent.urgent else str(agent.unread)
        table.add_row(
            agent.agent_id,
            agent.cli,
            agent.state.value,
            duration(max(0, now_ms - agent.last_seen_ms)) + " ago",
            seats_text(agent.seats),
            str(agent.generation or "-"),
            unread,
            str(agent.owes),
            str(agent.awaits),
            ", ".join(agent.topics),
        )
    print_table(screen, table)
    if data.next_after:
        screen.note(f"there are more: tfx hub agents --after {data.next_after}")


def show_ask(screen: Screen, data: AskResult) -> None:
    """Draw the answer, or the ticket."""
    if data.response is not None:
        _show_message(screen, data.response)
        return
    screen.line(f"{data.state.value}: {data.request_message_id}", sign="info")
    screen.note(f"correlation id {data.correlation_id}, trace {data.trace_id}")


def show_sent(screen: Screen, data: PublishResult) -> None:
    """Draw where a message is, and until when it waits for a receiver."""
    if data.fanout_count == 0:
        screen.line(f"nobody receives that topic: {data.message_id} is a dead letter", sign="warn")
        return
    many = "" if data.fanout_count == 1 else f" for {data.fanout_count} receivers"
    left_ms = max(0, data.expires_at_ms - time.time_ns() // 1_000_000)
    waits = duration(-(-left_ms // _MS_PER_S) * _MS_PER_S)
    screen.line(f"stored as {data.message_id}{many}, for {waits} if nobody claims it", sign="ok")


def show_mail(screen: Screen, data: PollResult, whose: str | None) -> None:
    """Draw claimed messages, what is owed, and how to ack.

    `whose` is the option that names the agent, or None where nothing is left to ack.
    """
    for message in data.messages:
        _show_message(screen, message)
    if not data.messages:
        screen.line("no mail", sign="info")
    elif whose is not None:
        ids = " ".join(message.message_id for message in data.messages)
        screen.note(f"received? tfx hub ack{whose} {ids}; else it comes again in a minute")
    for left in data.not_acked:
        screen.line(f"not acked: {left.message_id} ({left.reason.value})", sign="warn")
    for owed in data.owes:
        screen.line(f"you owe {owed.agent} an answer on {owed.topic} ({owed.message_id})")
    if data.more:
        screen.note("there is more")


def show_waiting(screen: Screen, data: WaitResult) -> None:
    """Draw the summary of waiting mail."""
    if not data.total:
        return
    screen.line(f"{data.total} waiting, {data.urgent} urgent", sign="ok")
    for each in data.first:
        screen.line(f"  {each.type.value} from {each.sender} on {each.topic} ({each.message_id})")


def show_dead(screen: Screen, data: DeadLettersResult) -> None:
    """Draw dead letters as a table."""
    if not data.dead_letters:
        screen.line("no dead letters", sign="ok")
        return
    table = table_of(
        "message", "failed at", "reason", "from", "to", "topic", "attempts", "again as"
    )
    for dead in data.dead_letters:
        table.add_row(
            dead.message_id,
            iso(dead.failed_at_ms),
            dead.reason.value,
            dead.sender,
            dead.receiver,
            dead.topic,
            str(dead.attempts),
            dead.replayed_as or "",
        )
    print_table(screen, table)
    if data.next_after is not None:
        screen.note(f"there are more: tfx hub dead list --after {data.next_after}")


def show_trace(screen: Screen, data: TraceResult) -> None:
    """Draw a trace as a timeline: time since its first event, who, what, because of what."""
    if not data.items:
        screen.line("nothing of this trace is kept", sign="info")
        return
    begin_ms = data.items[0].at_ms
    screen.line(f"{data.trace_id} from {iso(begin_ms)}")
    last = len(data.items) - 1
    for index, item in enumerate(data.items):
        rail = _rail(index, last, plain=screen.plain)
        since = f"+{(item.at_ms - begin_ms) / _MS_PER_S:.3f} s"
        screen.line(f"{since:>12} {rail} {_what(item)}")
    if data.next_after is not None:
        screen.note(f"there is more: tfx hub trace {data.trace_id} --after {data.next_after}")


def event_line(event: EventView) -> str:
    """Return one event as a line."""
    body = bytes(event.body).decode("utf-8", "replace")
    return f"{event.seq} {iso(event.at_ms)} {event.kind} by {event.actor} {body[:_PAYLOAD_SHOWN]}"


def _what(item: TraceItem) -> str:
    words = [item.kind, *_of_task(item), "by", item.actor]
    if item.task is not None and item.agent not in {None, item.actor}:
        words += ["for", str(item.agent)]
    if item.receiver:
        words += ["to", item.receiver]
    if item.topic:
        words += ["on", item.topic]
    if item.attempt:
        words.append(f"(attempt {item.attempt})")
    if item.reason:
        words.append(f"({item.reason})")
    name = item.message_id or item.request_id or item.invocation_id
    if name:
        words.append(f"[{name}]")
    if item.cause:
        words.append(f"because of [{item.cause}]")
    return " ".join(words)


def _of_task(item: TraceItem) -> list[str]:
    """Say which task an event of work is about, and what became of it."""
    if item.task is None:
        return []
    words = [f"#{item.task}"]
    if item.status:
        words += ["to", item.status]
    if item.code:
        words.append(item.code)
    if item.epoch is not None and item.kind.startswith("work_"):  # another event's is who held it
        words.append(f"epoch {item.epoch}")
    return words


def _rail(index: int, last: int, *, plain: bool) -> str:
    if plain:
        return "*"
    if last == 0:
        return "╶"
    return "┌" if index == 0 else "└" if index == last else "├"


def _show_message(screen: Screen, message: Message) -> None:
    again = f", attempt {message.attempt}" if message.attempt > 1 else ""
    screen.line(
        f"{message.type.value} from {message.sender} on {message.topic}"
        f" ({message.message_id}, priority {message.priority}{again})",
        sign="changed",
    )
    text = bytes(message.payload).decode("utf-8", "replace")
    cut = "…" if message.cut or len(text) > _PAYLOAD_SHOWN else ""
    screen.line(f"  {text[:_PAYLOAD_SHOWN]}{cut}")


def _schema(schema: Mapping[str, JsonValue] | None) -> str | None:
    return f"{schema['version']} ({str(schema['hash'])[:12]})" if schema else None
