"""The sign of life of a bridge: its client's lease, and the session in a terminal that it serves.

An idle client lives all the same: its lease is kept while the bridge runs. Never starts a hub and
never holds a call up; knows no line of the client, standard library only.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from tfx.core.identity import identify
from tfx.errors import JsonValue, TfxError
from tfx.hub import ancestry
from tfx.hub.bridge.link import Attached, Hub
from tfx.hub.exchange import Exchange

EVERY_S: Final = 60.0
"""A tenth of the lease that `attach` gives."""
LIMIT_S: Final = 2.0
LAST_WORD_S: Final = 1.0
_OK: Final = 200
_LOST: Final = "lease-lost"
_FORCED: Final = "force"
_AWAY: Final = (OSError, http.client.HTTPException, TfxError)


@dataclass(frozen=True, slots=True)
class Run:
    """The invocation that we report, of which agent, in which of its sessions.

    `is_taken` when a person has evicted it: it is not reported anew, and still finished, late.
    """

    invocation: str
    agent: str
    session: str | None
    is_taken: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """What the hub said: its data, or of which seat it says that it is lost, and by what."""

    data: dict[str, JsonValue]
    seat: str | None = None
    evidence: str | None = None


class Heart:
    """Beats for one bridge from its first answer to its end."""

    def __init__(self, hub: Hub, *, every_s: float | None = None) -> None:
        self._hub = hub
        self._every_s = EVERY_S if every_s is None else every_s
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._run: Run | None = None
        self._key = secrets.token_hex(16)

    def begin(self) -> None:
        """Beat from now on; called after each answer, it does nothing the second time."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._beats, daemon=True)
                self._thread.start()

    def finish(self) -> None:
        """Stop, and say that our invocation has ended; a hub that is away is not waited for.

        The agent's session is its client's, who may only be starting its servers anew: it and its
        work leases end when the hub has proof that the client is gone (EV-B4, WK-L24).
        """
        self._end.set()
        if self._thread is not None:
            self._thread.join(LAST_WORD_S)
        run, standing = self._run, self._hub.standing()
        if run is None or standing is None:
            return
        place, _ = standing
        with contextlib.suppress(*_AWAY), Exchange(place.url, place.token) as exchange:
            said = {"invocation_id": run.invocation, "outcome": "ok"}
            _call(exchange, "invocation_finish", said, LAST_WORD_S)

    def _beats(self) -> None:
        while True:
            with contextlib.suppress(*_AWAY):  # a hub that is away hears the next one
                self._beat()
            if self._end.wait(self._every_s):
                return

    def _beat(self) -> None:
        standing = self._hub.standing()
        if standing is None:
            return
        place, attached = standing
        with Exchange(place.url, place.token) as exchange:
            lease = {"agent_id": attached.name, "lease_id": attached.session}
            _call(exchange, "heartbeat", lease, LIMIT_S)
            run = self._run
            if run is not None and run.agent == attached.name:
                if run.is_taken and run.session == attached.session:
                    return
                lives = {"invocation_id": run.invocation}
                told = _call(exchange, "invocation_beat", lives, LIMIT_S)
                if told.data:
                    return
                if told.evidence == _FORCED and run.session == attached.session:
                    self._run = replace(run, is_taken=True)
                    return
                # declared lost, or the hub has another database: report it anew
                self._key = secrets.token_hex(16)
            self._run = self._started(exchange, attached)

    def _started(self, exchange: Exchange, attached: Attached) -> Run | None:
        """Report the session; None when another one lives in the agent's terminal."""
        own = identify()
        if own is None:
            return None
        wanted: dict[str, JsonValue] = {
            "agent_id": attached.name,
            "kind": "terminal",
            "process": ancestry.facts_of(own),
            "title": f"bridge of {self._hub.client or ancestry.UNKNOWN_CLI}"[:200],
            "op_id": self._key,
        }
        told = _call(exchange, "invocation_start", wanted, LIMIT_S)
        if told.data:
            return Run(str(told.data["invocation_id"]), attached.name, attached.session)
        if told.seat is None:
            return None
        # its answer was lost, and what it started has ended meanwhile: a next one needs a new key
        self._key = secrets.token_hex(16)
        is_taken = told.evidence == _FORCED
        return Run(told.seat, attached.name, attached.session, is_taken) if is_taken else None


def _call(exchange: Exchange, name: str, fields: Mapping[str, JsonValue], limit_s: float) -> Told:
    """Return what the hub answers or why it refuses; raises OSError or HTTPException."""
    body = json.dumps(fields).encode("utf-8", "replace")
    answer = exchange.send("POST", f"/v1/{name}", body, timeout_s=limit_s)
    try:
        document = json.loads(answer.body)
        if answer.status == _OK:
            return Told(dict(document["data"]))
        error = document["error"]
        details = error["details"] if error["code"] == _LOST else {}
        return Told({}, details.get("seat_id"), details.get("evidence"))
    except (ValueError, LookupError, TypeError, AttributeError):
        return Told({})
