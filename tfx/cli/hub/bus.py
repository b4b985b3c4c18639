"""`tfx hub publish|ask|poll|ack|wait`: messages, for people and scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tfx.cli.context import finish

if TYPE_CHECKING:
    from tfx.cli.hub.calls import Answered
    from tfx.cli.output import Screen
    from tfx.core.paths import Paths
    from tfx.hub.wire.messages import AckResult, AskResult, PollResult, PublishResult, WaitResult
    from tfx.result import Result

SenderOption = Annotated[
    str | None,
    typer.Option("--from", metavar="AGENT", help="Who sends; TFX_AGENT_ID, else the operator."),
]
AgentOption = Annotated[
    str | None,
    typer.Option("--agent", metavar="AGENT", help="Whose mail; TFX_AGENT_ID, else the operator."),
]
ToOption = Annotated[str, typer.Option("--to", metavar="AGENT", help="An agent, or topic:NAME.")]
TopicOption = Annotated[
    str, typer.Option("--topic", metavar="NAME", help="What the message is about.")
]
PayloadOption = Annotated[
    str | None, typer.Option("--payload", metavar="JSON", help="A JSON object; - reads stdin.")
]
PriorityOption = Annotated[
    int, typer.Option("--priority", metavar="N", min=1, max=9, help="9 is the most urgent.")
]
TtlOption = Annotated[
    str, typer.Option("--ttl", metavar="TIME", help="When it lapses: 90 (seconds), 15m, 4h.")
]
DeferredOption = Annotated[
    bool, typer.Option("--deferred", help="Keep it for a receiver that is not registered yet.")
]
CorrelationOption = Annotated[
    str | None, typer.Option("--correlation-id", metavar="ID", help="The request it answers.")
]
TraceOption = Annotated[
    str | None, typer.Option("--trace-id", metavar="ID", help="The trace it belongs to.")
]
OpIdOption = Annotated[
    str | None, typer.Option("--op-id", metavar="KEY", help="The same key is done once only.")
]
IncludeOption = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="NAME", help="Only this topic; may be repeated."),
]


def publish(
    ctx: typer.Context,
    to: ToOption,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The text; - reads stdin.")
    ] = None,
    sender: SenderOption = None,
    topic: TopicOption = "message",
    payload: PayloadOption = None,
    priority: PriorityOption = 5,
    ttl: TtlOption = "5m",
    deferred: DeferredOption = False,
    correlation_id: CorrelationOption = None,
    trace_id: TraceOption = None,
    op_id: OpIdOption = None,
) -> None:
    """Send a message to an agent or a topic.

    Done means it is stored. It lapses, and becomes a dead letter, when nobody claims it within
    --ttl.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[PublishResult]]:
        from tfx.cli.durations import milliseconds_within
        from tfx.cli.hub.calls import agent_of, body_of, call
        from tfx.hub.wire.fields import TTL_MS
        from tfx.hub.wire.messages import PublishResult

        fields = {
            "from": agent_of(paths, sender),
            "to": to,
            "topic": topic,
            "payload": body_of(text, payload),
            "priority": priority,
            "ttl_ms": milliseconds_within(ttl, "--ttl", *TTL_MS),
            "deferred": deferred,
            "correlation_id": correlation_id,
            "trace_id": trace_id,
            "op_id": op_id,
        }
        return call(paths, "publish", fields, PublishResult)

    def render(screen: Screen, data: Answered[PublishResult]) -> None:
        from tfx.cli.hub.views import show_sent

        show_sent(screen, data.struct)

    finish(ctx, "hub publish", feature, render)


def ask(
    ctx: typer.Context,
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="The question; - reads stdin.")
    ],
    to: ToOption,
    sender: SenderOption = None,
    topic: TopicOption = "question",
    wait: Annotated[
        float,
        typer.Option("--wait", metavar="S", min=0, max=45, help="How long to wait; 0: a ticket."),
    ] = 30,
    payload: PayloadOption = None,
    priority: PriorityOption = 5,
    ttl: TtlOption = "5m",
    deferred: DeferredOption = False,
    trace_id: TraceOption = None,
    op_id: OpIdOption = None,
) -> None:
    """Ask an agent and wait for its one answer.

    An answer that comes later than --wait is got with the same --op-id.
    """

    def feature(screen: Screen, paths: Paths) -> Result[Answered[AskResult]]:
        from tfx.cli.durations import milliseconds_within
        from tfx.cli.hub.calls import agent_of, call, milliseconds, object_of, text_of
        from tfx.hub.wire.fields import TTL_MS
        from tfx.hub.wire.messages import AskResult

        screen.progress(f"waiting for {to}")
        fields = {
            "from": agent_of(paths, sender),
            "to": to,
            "topic": topic,
            "question": text_of(question),
            "payload": None if payload is None else object_of(text_of(payload), "--payload"),
            "priority": priority,
            "ttl_ms": milliseconds_within(ttl, "--ttl", *TTL_MS),
            "await_response_ms": milliseconds(wait),
            "deferred": deferred,
            "trace_id": trace_id,
            "op_id": op_id,
        }
        return call(paths, "ask", fields, AskResult, wait_ms=milliseconds(wait))

    def render(screen: Screen, data: Answered[AskResult]) -> None:
        from tfx.cli.hub.views import show_ask

        show_ask(screen, data.struct)

    finish(ctx, "hub ask", feature, render)


def poll(
    ctx: typer.Context,
    agent: AgentOption = None,
    wait: Annotated[
        float, typer.Option("--wait", metavar="S", min=0, max=45, help="Wait for mail so long.")
    ] = 0,
    max_messages: Annotated[
        int, typer.Option("--max", metavar="N", min=1, max=100, help="At most so many messages.")
    ] = 20,
    include_topics: IncludeOption = None,
    ack_ids: Annotated[
        list[str] | None, typer.Option("--ack", metavar="ID", help="Ack first; may be repeated.")
    ] = None,
    auto_ack: Annotated[
        bool, typer.Option("--auto-ack", help="Ack with the claim: at most once.")
    ] = False,
    max_bytes: Annotated[
        int,
        typer.Option(
            "--max-bytes", metavar="BYTES", min=1024, max=262_144, help="Size of the whole answer."
        ),
    ] = 16_384,
    op_id: OpIdOption = None,
) -> None:
    """Claim messages.

    What is not acked within a minute comes again: `tfx hub ack`, --ack or --auto-ack.
    """

    def feature(screen: Screen, paths: Paths) -> Result[Answered[PollResult]]:
        from tfx.cli.hub.calls import agent_of, call, milliseconds
        from tfx.hub.wire.messages import PollResult

        screen.progress("waiting for mail")
        fields = {
            "agent_id": agent_of(paths, agent),
            "wait_ms": milliseconds(wait),
            "max_messages": max_messages,
            "include_topics": include_topics or None,
            "ack_ids": ack_ids or None,
            "auto_ack": auto_ack,
            "max_bytes": max_bytes,
            "op_id": op_id,
        }
        return call(paths, "poll_messages", fields, PollResult, wait_ms=milliseconds(wait))

    def render(screen: Screen, data: Answered[PollResult]) -> None:
        from tfx.cli.hub.views import show_mail

        show_mail(screen, data.struct, None if auto_ack else f" --agent {agent}" if agent else "")

    finish(ctx, "hub poll", feature, render)


def ack(
    ctx: typer.Context,
    message_ids: Annotated[
        list[str], typer.Argument(metavar="MESSAGE_ID...", help="What `tfx hub poll` printed.")
    ],
    agent: AgentOption = None,
) -> None:
    """Confirm that messages were received.

    Exit 1 when one of them was not acked.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[Answered[AckResult]]:
        from tfx.cli.hub.calls import agent_of, call, not_acked
        from tfx.hub.wire.messages import AckResult

        fields = {"agent_id": agent_of(paths, agent), "message_ids": message_ids}
        return not_acked(call(paths, "ack", fields, AckResult))

    def render(screen: Screen, data: Answered[AckResult]) -> None:
        for message_id in data.struct.acked_ids:
            screen.line(f"acked {message_id}", sign="ok")

    finish(ctx, "hub ack", feature, render)


def wait(
    ctx: typer.Context,
    agent: AgentOption = None,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="S", min=0, help="Give up after S seconds; else never."),
    ] = None,
) -> None:
    """Block until an agent has mail; claims nothing. Exit 0 mail, 1 time-out, 4 no hub."""

    def feature(screen: Screen, paths: Paths) -> Result[Answered[WaitResult]]:
        from tfx.cli.hub.calls import agent_of
        from tfx.cli.hub.waiting import wait_for_mail

        screen.progress("waiting for mail")
        return wait_for_mail(paths, agent_of(paths, agent), timeout)

    def render(screen: Screen, data: Answered[WaitResult]) -> None:
        from tfx.cli.hub.views import show_waiting

        show_waiting(screen, data.struct)

    finish(ctx, "hub wait", feature, render)
