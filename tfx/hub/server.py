"""Where store, services and transports are put together, and nowhere else.

Binds each row of the operation table to its handler (K-21); knows no process, lock or signal.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from typing import Protocol, cast

import msgspec

from tfx.core.clock import Clock, iso
from tfx.hub.core import HubCore
from tfx.hub.models import AgentId, Caller, RunFacts, Unread
from tfx.hub.places import HubFiles
from tfx.hub.settings import HubSettings
from tfx.hub.tokens import Credentials
from tfx.hub.transport.auth import Doors
from tfx.hub.transport.events import EventStream, Read
from tfx.hub.transport.http import Application, Traffic
from tfx.hub.transport.mcp.endpoint import MCP, Mcp
from tfx.hub.transport.mcp.tools import tools_of
from tfx.hub.transport.pages import pages
from tfx.hub.transport.posts import Handler, Refuser, bind, posts
from tfx.hub.transport.serving import Serving
from tfx.hub.transport.triflux import bridge
from tfx.hub.wire.admin import ShutdownRequest, ShutdownResult
from tfx.hub.wire.humans import HumanView
from tfx.hub.wire.views import StatusRequest, StatusResult

FINISH_S = 5.0
MOST_CONNECTIONS = 1024


class Core(Protocol):
    """Store and services, as this module uses them."""

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """The service method of each operation but `shutdown`."""
        ...

    @property
    def refusers(self) -> Mapping[str, Refuser]:
        """What keeps the refusal of a privileged operation, by the operation's name."""
        ...

    @property
    def failed(self) -> asyncio.Event:
        """Set when the writer thread died: nothing can be stored any more (H-19)."""
        ...

    async def start(self) -> None:
        """Start the writer and the sweeps."""
        ...

    def drain(self) -> None:
        """Answer every open wait now."""
        ...

    async def close(self) -> None:
        """Drain the writer's queue, checkpoint, close (EV-D5)."""
        ...

    def health(self) -> str:
        """Return `ready` or `degraded`; constant cost, no database."""
        ...

    def busy(self) -> str | None:
        """Return why the hub must not exit for idleness, or None (H-20)."""
        ...

    def unread(self, agent: AgentId) -> Unread:
        """Return what waits for an agent, from memory (H-38)."""
        ...

    def refused(self, code: str) -> None:
        """Count a refusal by its code (H-76)."""
        ...

    def metrics(self) -> str:
        """Return the Prometheus text of store and services (H-76)."""
        ...


class Hub:
    """A running hub: one store, its services, one HTTP application."""

    def __init__(
        self,
        core: Core,
        credentials: Credentials,
        settings: HubSettings,
        facts: RunFacts,
        clock: Clock,
        *,
        most_connections: int = MOST_CONNECTIONS,
    ) -> None:
        self.core = core
        self.stop_asked = asyncio.Event()
        self.traffic = Traffic(last_request_ms=clock.monotonic_ms())
        self._facts = facts
        self._clock = clock
        self._draining = asyncio.Event()
        handlers: dict[str, Handler] = {**core.handlers, "shutdown": self._shutdown}
        self._status_handler = handlers["status"]
        self._doors = Doors(credentials, settings.allow_hosts)
        rest = pages(
            health=self._health,
            status=self._status,
            metrics=self._metrics,
            events=EventStream(cast("Read", handlers["events"]), self.traffic, self._draining),
        )
        bound = bind(handlers, core.refusers)
        mcp = Mcp(tools_of(bound, core.unread, core.refused), version=facts.version)
        hot = posts(bound) | bridge(handlers) | {MCP: mcp}
        self._serving = Serving(
            Application(
                self._doors,
                hot,
                rest,
                traffic=self.traffic,
                now_ms=clock.monotonic_ms,
                refused=core.refused,
            ),
            most_connections,
        )

    async def start(self, listener: socket.socket) -> None:
        """Start the services, then serve; when this returns requests are answered."""
        await self.core.start()
        await self._serving.start(listener)

    async def stop(self) -> int:
        """Stop accepting, answer the waits, close the store; return the calls cut off (H-17)."""
        self._serving.stop_accepting()
        self._draining.set()
        self.core.drain()
        cut = await self._serving.finish(FINISH_S)
        await self.core.close()
        return cut

    def renew(self, credentials: Credentials) -> None:
        """Take these credentials from now on, and no others."""
        self._doors.renew(credentials)

    def idle_ms(self) -> int:
        """Return for how long nothing at all has used the hub; 0 while something does (H-20)."""
        if self.traffic.open_calls or self.traffic.open_streams or self.core.busy():
            return 0
        return self._clock.monotonic_ms() - self.traffic.last_request_ms

    async def _shutdown(self, _caller: Caller, _request: ShutdownRequest) -> ShutdownResult:
        self.stop_asked.set()
        return ShutdownResult(stopping=True, pid=self._facts.pid)

    def _health(self) -> dict[str, object]:
        state = "draining" if self._draining.is_set() else self.core.health()
        now = iso(self._clock.now_ms())
        return {"ok": True, "version": self._facts.version, "time": now, "state": state}

    async def _status(self) -> dict[str, object]:
        answer = cast("StatusResult", await self._status_handler(_NOBODY, StatusRequest()))
        document = cast("dict[str, object]", msgspec.to_builtins(answer))
        hub = cast("dict[str, object]", document["hub"])
        return {
            "ok": True,
            **{key: value for key, value in document.items() if value is not None},
            **{key: hub[key] for key in _TOP_LEVEL},
        }

    def _metrics(self) -> str:
        traffic = self.traffic
        own = (
            ("tfx_http_requests_total", "counter", traffic.requests),
            ("tfx_http_errors_total", "counter", traffic.errors),
            ("tfx_http_open_calls", "gauge", traffic.open_calls),
            ("tfx_http_open_streams", "gauge", traffic.open_streams),
        )
        lines = "".join(f"# TYPE {name} {kind}\n{name} {value}\n" for name, kind, value in own)
        return lines + self.core.metrics()


_NOBODY = Caller()
_TOP_LEVEL = ("pid", "port", "instance", "version", "schema", "durability", "warnings")


def open_core(
    files: HubFiles,
    settings: HubSettings,
    facts: RunFacts,
    clock: Clock,
    *,
    announce: Callable[[HumanView], None] | None = None,
    for_rebuild: bool = False,
) -> Core:
    """Open the database and build the services; raises what opening the store raises (K-23)."""
    return HubCore.open(
        files.database,
        facts,
        clock=clock,
        durability=settings.durability,
        limits=settings.limits,
        keep=settings.retention,
        announce=announce,
        for_rebuild=for_rebuild,
    )
