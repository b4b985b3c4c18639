"""Store and services put together: what a server serves and a test drives.

Knows neither HTTP nor processes.
"""

from __future__ import annotations

import asyncio
import contextlib
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from tfx.core.identity import examine
from tfx.hub.models import Caller, Durability, Limits, Retention
from tfx.hub.schema import registry
from tfx.hub.services.agents import Agents
from tfx.hub.services.asks import Asks
from tfx.hub.services.attach import Attach
from tfx.hub.services.bus import Bus
from tfx.hub.services.dead_letters import DeadLetters
from tfx.hub.services.events import Events
from tfx.hub.services.evictions import Evictions
from tfx.hub.services.humans import Announce, Humans
from tfx.hub.services.inbox import Inbox
from tfx.hub.services.invocations import Invocations
from tfx.hub.services.judge import Judge
from tfx.hub.services.life import Life
from tfx.hub.services.metrics import Metrics, prometheus
from tfx.hub.services.occupancy import Occupancy
from tfx.hub.services.receivers import Receivers
from tfx.hub.services.retiring import Retiring
from tfx.hub.services.running import Running
from tfx.hub.services.terminals import Terminals
from tfx.hub.services.upkeep import Upkeep
from tfx.hub.services.vault import Vault
from tfx.hub.services.views import Views
from tfx.hub.services.work.changing import Changing
from tfx.hub.services.work.gate import refusers
from tfx.hub.services.work.leasing import Leasing
from tfx.hub.services.work.reviewing import Reviewing
from tfx.hub.services.work.shapes import Shapes
from tfx.hub.services.work.standing import Standing
from tfx.hub.services.work.tasking import Tasking
from tfx.hub.store.store import Store
from tfx.hub.wire.views import SchemaView

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path
    from typing import TypeAlias

    import msgspec

    from tfx.core.clock import Clock
    from tfx.hub.models import AgentId, RunFacts, Unread
    from tfx.hub.services.work.gate import Refuser
    from tfx.hub.wire.humans import HumanView

    Handler: TypeAlias = Callable[[Caller, msgspec.Struct], Awaitable[msgspec.Struct]]


class HubCore:
    """A hub without transports."""

    def __init__(
        self,
        store: Store,
        facts: RunFacts,
        limits: Limits,
        keep: Retention,
        program: str,
        *,
        announce: Announce | None = None,
    ) -> None:
        self.store = store
        vault = Vault(store.clock)
        self.counted = Metrics()
        self.bus = Bus(store, limits)
        self.asks = Asks(store, limits, self.counted)
        self.inbox = Inbox(store, limits, self.counted, vault)
        self.judge = Judge(store, examine)
        life = Life(store, self.judge)
        self.agents = Agents(store, life)
        shapes = Shapes(store.pulses)
        self.tasking = Tasking(store, shapes)
        self.changing = Changing(store, limits, shapes)
        self.leasing = Leasing(store, life, shapes)
        self.standing = Standing(store, shapes)
        self.reviewing = Reviewing(store)
        self.attaching = Attach(store, life)
        self.retiring = Retiring(store, life, self.judge)
        self.events = Events(store)
        self.dead = DeadLetters(store)
        self.humans = Humans(store, vault, announce or _say_nothing)
        evictions = Evictions(self.judge, limits)
        self.receivers = Receivers(store, self.judge, evictions)
        self.terminals = Terminals(store, self.judge, evictions)
        self.occupancy = Occupancy(store, self.judge, evictions)
        self.invocations = Invocations(store, self.judge, evictions, turns=limits.turns)
        self.running = Running(store, self.judge)
        probes = {"occupancy": self.occupancy.sweep, "invocations": self.running.probe}
        self.upkeep = Upkeep(
            store, limits, keep, self.counted, vault, life, program=program, probes=probes
        )
        self.views = Views(
            store,
            facts,
            self.counted,
            schema=SchemaView(
                version=registry.CURRENT,
                hash=registry.HASHES[registry.CURRENT],
                fold=registry.FOLD,
            ),
            view_agent=life.view,
            list_agents=self.agents.agents,
        )
        self._facts = facts
        self._chores: asyncio.Task[None] | None = None
        store.on_commit = self.counted.commit.add

    @classmethod
    def open(
        cls,
        path: Path,
        facts: RunFacts,
        *,
        clock: Clock,
        durability: Durability = Durability.NORMAL,
        limits: Limits | None = None,
        keep: Retention | None = None,
        announce: Announce | None = None,
        for_rebuild: bool = False,
    ) -> HubCore:
        """Open the database and build the services; raises what `Store.open` raises."""
        store = Store.open(path, durability=durability, clock=clock, for_rebuild=for_rebuild)
        return cls(
            store,
            facts,
            limits or Limits(),
            keep or Retention(),
            facts.version,
            announce=announce,
        )

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """The service method of each operation but `shutdown`, by the operation's name."""
        owners = {
            self.bus: ("publish",),
            self.asks: ("ask", "handoff"),
            self.inbox: ("poll_messages", "ack", "wait", "notices"),
            self.agents: ("register", "heartbeat", "deregister", "agents"),
            self.attaching: ("attach",),
            self.retiring: ("agents_retire", "agents_prune"),
            self.dead: ("dead_letters", "dead_replay", "dead_purge"),
            self.humans: (
                "request_human_input",
                "submit_human_input",
                "withdraw_human_input",
                "human_requests",
            ),
            self.views: ("status", "trace", "read_message"),
            self.events: ("events",),
            self.tasking: ("work_add", "work_list", "work_show", "work_next", "work_delete"),
            self.changing: ("work_update", "work_attach"),
            self.leasing: (
                "work_claim",
                "work_renew",
                "work_release",
                "work_handoff",
                "work_force_release",
            ),
            self.standing: ("work_beat", "work_status"),
            self.reviewing: (
                "work_review_claim",
                "work_review_release",
                "work_lock",
                "work_unlock",
            ),
            self.receivers: ("receiver_hold", "receiver_beat", "receiver_release"),
            self.terminals: ("terminal_open", "terminal_beat", "terminal_close"),
            self.occupancy: ("busy", "agents_free"),
            self.invocations: (
                "invocation_start",
                "invocation_beat",
                "invocation_finish",
                "invocation_notify",
            ),
            self.running: ("invocations", "invocations_probe"),
            self.upkeep: ("rebuild", "rebuild_check", "snapshot", "prune"),
        }
        return MappingProxyType(
            {
                name: cast("Handler", getattr(owner, name))
                for owner, names in owners.items()
                for name in names
            }
        )

    @property
    def refusers(self) -> Mapping[str, Refuser]:
        """What keeps the refusal of a privileged operation as an event, by its name (WK-K6)."""
        return refusers(self.store)

    @property
    def failed(self) -> asyncio.Event:
        """Set when the writer thread died: nothing can be stored any more (H-19)."""
        return self.store.died

    async def start(self) -> None:
        """Record the start and begin the chores."""
        await self.upkeep.begin(self._facts.instance)
        self._chores = asyncio.create_task(self.upkeep.run(), name="hub-upkeep")

    def drain(self) -> None:
        """Answer every open wait now, and every later one at once."""
        self.bus.drain()

    async def close(self) -> None:
        """End the chores, record the stop, run what is queued, checkpoint, close (EV-D5)."""
        if self._chores is not None:
            self._chores.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._chores
            if not self.store.died.is_set():
                await self.upkeep.end()
        await self.store.close()

    def health(self) -> str:
        """Return ready, degraded or draining; constant cost, no database (H-23)."""
        return self.views.state

    def busy(self) -> str | None:
        """Return why the hub must not exit for idleness, or None (H-20)."""
        store = self.store
        if store.wakeups.open_waits:
            return "open waits"
        if store.tally.pending_humans:
            return "pending human requests"
        if store.beats.any_live(store.clock.now_ms()):
            return "live agents"
        return None

    def unread(self, agent: AgentId) -> Unread:
        """Return what waits for an agent, from memory (H-38)."""
        return self.bus.unread(agent)

    def refused(self, code: str) -> None:
        """Count a refusal by its code (H-76)."""
        self.counted.refusals[code] += 1

    def metrics(self) -> str:
        """Return the Prometheus text of store and services (H-76)."""
        return prometheus(self.counted, self.views.queues())


def _say_nothing(_view: HumanView) -> None:
    """Announce a human request to nobody."""
