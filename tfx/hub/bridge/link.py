"""The bridge's way to the hub: where it is, who we are to it, one call, again after a restart.

Knows no line of the client; standard library only, so that it starts quickly and stays small.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tfx.core import process
from tfx.core.paths import Paths
from tfx.errors import AgentUnavailable, OperationFailed, TfxError
from tfx.hub import ancestry, state, tokens
from tfx.hub.exchange import Answer, Exchange, unreachable
from tfx.hub.failures import from_wire
from tfx.hub.places import HubFiles

ANSWER_S: Final = 60.0
"""The hub answers within 45 s (H-39)."""
PERSIST_S: Final = 30.0
"""So long a call is tried again while the hub is away."""
_ENSURE_S: Final = 45.0
_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0
_SESSION_ENDED: Final = b"authority-ended"
_NOBODYS: Final = frozenset({"ended", "unknown-agent"})
"""What a heartbeat of a session gets when its name has no open one."""
_BAD_REQUEST: Final = 400
_UNAUTHORIZED: Final = 401
_OK: Final = 200


@dataclass(frozen=True, slots=True)
class Place:
    """One run of the hub: its address and the token that it takes."""

    url: str
    instance: str
    token: str | None


@dataclass(frozen=True, slots=True)
class Attached:
    """Who the bridge is to the hub: the agent and its register lease (K-27)."""

    name: str
    session: str | None

    @property
    def headers(self) -> dict[str, str]:
        """What tells the hub so, beside a call."""
        session = {} if self.session is None else {"Tfx-Session": self.session}
        return {"Tfx-Agent": self.name, **session}


class Hub:
    """The hub as all calls of this bridge share it: its place, and who the bridge is to it."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._files = HubFiles.of(paths)
        self._lock = threading.Lock()
        self._place: Place | None = None
        self._attached: tuple[str, Attached | None] | None = None
        self._failed_at = -PERSIST_S
        self._failure: TfxError | None = None
        self.client: str | None = None
        """The name by which the client introduced itself."""

    def place(self) -> Place:
        """Return where the hub is, starting it when nothing says that one runs.

        Raises AgentUnavailable or OperationFailed when there is none and none can be started.
        """
        with self._lock:
            if self._place is None:
                self._place = self._recorded()
            if self._place is None:
                self._ensure()
                self._place = self._recorded()
            if self._place is None:
                raise AgentUnavailable(
                    "no hub is running", code="hub-not-running", hint="tfx hub start"
                )
            return self._place

    def lost(self, place: Place) -> None:
        """Take back a place that did not answer; the next call looks, and starts a hub at need."""
        with self._lock:
            if self._place is not place:
                return
            self._place = None
            recorded = self._recorded()
            if recorded is not None and recorded != place:
                self._place = recorded
            elif not self._paths.env.get("TFX_HUB_URL"):
                self._ensure()

    def forget(self, place: Place) -> None:
        """Read the records again at the next look, without starting anything."""
        with self._lock:
            if self._place is place:
                self._place = None

    def agent(self, exchange: Exchange, place: Place) -> Attached | None:
        """Return who we are at this run of the hub, asking for it once (K-27)."""
        attached = self._attached
        if attached is None or attached[0] != place.instance:
            attached = (place.instance, self._attach(exchange))
            self._attached = attached
        return attached[1]

    def ended(self, exchange: Exchange, attached: Attached) -> None:
        """Attach anew at the next call when a session has ended and nobody else has its name.

        A name that another process took is left to it, or two would take it in turns.
        """
        lease = {"agent_id": attached.name, "lease_id": attached.session}
        answer = exchange.send(
            "POST", "/v1/heartbeat", json.dumps(lease).encode(), timeout_s=ANSWER_S
        )
        if answer.status == _OK or _code_of(answer.body) not in _NOBODYS:
            return
        with self._lock:
            if self._attached is not None and self._attached[1] is attached:
                self._attached = None

    def standing(self) -> tuple[Place, Attached] | None:
        """Return where a hub is recorded now and who we are to it; starts and asks nothing.

        None before the first attach, and while no hub is recorded.
        """
        attached = self._attached
        if attached is None or attached[1] is None:
            return None
        place = self._recorded()
        return None if place is None else (place, attached[1])

    def _attach(self, exchange: Exchange) -> Attached | None:
        found = ancestry.belongs_to(default_cli=self.client or ancestry.UNKNOWN_CLI)
        if found is None:
            return None
        body = {
            "cli": found.cli[:64],
            "workspace": found.workspace,
            "process": ancestry.facts_of(found.process),
            "agent_id": self._paths.env.get("TFX_AGENT_ID") or None,
        }
        data = json.dumps(body).encode()
        answer = exchange.send("POST", "/v1/attach", data, timeout_s=ANSWER_S)
        if answer.status == _BAD_REQUEST:
            raise _refused(answer.body)  # TFX_AGENT_ID is no name: nobody works under no name
        if answer.status != _OK:
            return None  # what is wrong will be told to the call itself
        told = json.loads(answer.body)["data"]
        name, session = told["agent_id"], told["lease_id"]
        return Attached(name, session) if isinstance(name, str) else None

    def _recorded(self) -> Place | None:
        token = tokens.read_bus(self._paths, self._files)
        given = self._paths.env.get("TFX_HUB_URL", "")
        if given:
            return Place(given.removesuffix("/").removesuffix("/mcp"), "", token)
        run = state.read(self._files.state)
        return None if run is None else Place(run.url, run.instance, token)

    def _ensure(self) -> None:
        """Run `tfx hub ensure`; one that has just failed is not tried again at once."""
        now = time.monotonic()
        if self._failure is not None and now - self._failed_at < _LONGEST_PAUSE_S:
            raise self._failure
        self._failure = None
        argv = [sys.executable, "-E", "-P", "-m", "tfx", "hub", "ensure", "--json"]
        done = process.run(argv, env=self._paths.env, timeout_s=_ENSURE_S)
        if not done.ok:
            self._failed_at, self._failure = time.monotonic(), _told(done.stdout)
            raise self._failure


class Link:
    """One connection to the hub, for one call at a time."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._place: Place | None = None
        self._exchange: Exchange | None = None
        self._cancelled = False

    def call(self, path: str, data: bytes, headers: Mapping[str, str]) -> Answer | None:
        """Send a body to the hub, again after a restart of it; None when `cancel` ended it.

        It may be sent twice: what changes something must carry a key (K-26). Raises TfxError.
        """
        until = time.monotonic() + PERSIST_S
        pause_s = _PAUSE_S
        while True:
            place = self._hub.place()
            try:
                return self._once(place, path, data, headers)
            except TimeoutError as error:
                self._drop()
                raise unreachable(place.url, error) from error
            except (OSError, http.client.HTTPException) as error:
                self._drop()
                if self._cancelled:
                    return None
                if time.monotonic() >= until:
                    raise unreachable(place.url, error) from error
            self._hub.lost(place)
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def begin(self) -> None:
        """Forget that an earlier call was cancelled."""
        self._cancelled = False

    def cancel(self) -> None:
        """End the running call from another thread: the hub then stops what it waits for."""
        self._cancelled = True
        if self._exchange is not None:
            self._exchange.abort()

    def _once(
        self, place: Place, path: str, data: bytes, headers: Mapping[str, str]
    ) -> Answer | None:
        if self._exchange is None or self._place != place:
            self._drop()
            self._place, self._exchange = place, Exchange(place.url, place.token)
        exchange = self._exchange
        agent = self._hub.agent(exchange, place)
        named = {} if agent is None else agent.headers
        if self._cancelled:
            return None
        answer = exchange.send(
            "POST",
            path,
            data,
            timeout_s=ANSWER_S,
            headers={**headers, **named},
            repeatable=False,  # `call` repeats it, unless it was cancelled
        )
        if answer.status == _UNAUTHORIZED and self._hub_has_another(place):
            raise ConnectionError("the token was renewed")
        if agent is not None and _SESSION_ENDED in answer.body:
            self._hub.ended(exchange, agent)
        return answer

    def _hub_has_another(self, place: Place) -> bool:
        """Say whether another token or another hub is recorded by now."""
        self._hub.forget(place)
        return self._hub.place() != place

    def _drop(self) -> None:
        if self._exchange is not None:
            self._exchange.close()
            self._exchange = None


def _told(output: bytes) -> TfxError:
    """Return the problem that `tfx hub ensure` reports."""
    try:
        problem = json.loads(output)["problems"][0]
        return OperationFailed(
            str(problem["message"]), code=str(problem["code"]), hint=problem.get("hint")
        )
    except (ValueError, LookupError, TypeError):
        return OperationFailed(
            "the hub cannot be started", code="hub-not-running", hint="tfx hub start"
        )


def _refused(body: bytes) -> TfxError:
    """Return why the hub does not take the name of this agent; the name is in the message."""
    try:
        return from_wire(json.loads(body)["error"])
    except (ValueError, LookupError, TypeError):
        return OperationFailed("the hub refuses to attach this agent", code="attach-refused")


def _code_of(body: bytes) -> str:
    """Return the code of a refusal, nothing where there is none."""
    try:
        return str(json.loads(body)["error"]["code"])
    except (ValueError, LookupError, TypeError):
        return ""
