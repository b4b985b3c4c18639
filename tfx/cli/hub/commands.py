"""The tree of `tfx hub`; each command imports its feature when it runs."""

from __future__ import annotations

from tfx.cli.context import Command, new_app
from tfx.cli.hub import agents, bus, dead, human, invocations, life, log, service

SUMMARY = """Run the hub, the local daemon that agents write through.

One token is one trust domain: agents that hold it can use each other's names, except where a
lease, an epoch or the operator credential guards. An agent with a shell under your user can read
any of your files, so the operator credential stops mistakes and tool calls, not a hostile process.
"""

app = new_app("hub", SUMMARY)


def _add_commands() -> None:
    add = app.command
    add("start", cls=Command)(life.start)
    add("stop", cls=Command)(life.stop)
    add("status", cls=Command)(life.status)
    add("restart", cls=Command)(life.restart)
    add("ensure", cls=Command)(life.ensure)
    add("logs", cls=Command)(life.logs)
    add("bridge", cls=Command)(life.bridge)
    add("install-service", cls=Command)(service.install_service)
    app.add_typer(service.token_app, name="token")
    app.add_typer(agents.app, name="agents")
    add("busy", cls=Command)(agents.busy)
    app.add_typer(invocations.app, name="invocations")
    add("publish", cls=Command)(bus.publish)
    add("ask", cls=Command)(bus.ask)
    add("poll", cls=Command)(bus.poll)
    add("ack", cls=Command)(bus.ack)
    add("wait", cls=Command)(bus.wait)
    app.add_typer(human.app, name="human")
    app.add_typer(dead.app, name="dead")
    add("trace", cls=Command)(log.trace)
    add("events", cls=Command)(log.events)
    add("rebuild", cls=Command)(log.rebuild)
    add("prune", cls=Command)(log.prune)


_add_commands()
