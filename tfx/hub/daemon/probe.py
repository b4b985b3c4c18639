"""The one probe: what state is the hub of this user in (H-14).

Changes nothing; start, stop, status and doctor all ask here.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tfx.core import locks
from tfx.core.files import is_file
from tfx.core.paths import Paths
from tfx.errors import JsonValue, TfxError
from tfx.hub import settings as hub_settings
from tfx.hub import state as state_file
from tfx.hub import tokens
from tfx.hub.daemon import ports
from tfx.hub.exchange import Answer, Exchange
from tfx.hub.places import HubFiles
from tfx.hub.state import HubState

HUB = "hub"
STARTING_MS = 30_000
ANSWER_S = 2.0
_LOOKS = 4
_LOOK_PAUSE_S = 0.05
_OK = 200
_UNAUTHORIZED = 401


class State(StrEnum):
    """The state table of the design."""

    RUNNING = "running"
    STARTING = "starting"
    UNRESPONSIVE = "unresponsive"
    FOREIGN = "foreign-process-on-port"
    STOPPED = "stopped"
    STALE = "stopped-stale"


class Reason(StrEnum):
    """Why a hub, or whoever holds its lock, does not count as running."""

    TIMEOUT = "timeout"
    REFUSED = "refused"
    TOKEN_MISMATCH = "token-mismatch"  # noqa: S105  (a reason, not a token)
    OTHER_INSTANCE = "other-instance"
    NO_STATE_FILE = "no-state-file"
    OTHER_HOLDER = "other-holder"
    LOCK_GONE = "lock-gone"


@dataclass(frozen=True, slots=True)
class Probe:
    """What was seen. `status` is the hub's own answer when it runs."""

    state: State
    files: HubFiles
    reason: Reason | None = None
    holder: locks.Holder | None = None
    recorded: HubState | None = None
    stranger: tuple[int, str] | None = None
    status: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def in_use(self) -> bool:
        """True when some process has the database: the lock's holder, or a hub that lost it."""
        return self.state in {State.RUNNING, State.STARTING, State.UNRESPONSIVE}


def probe(paths: Paths, *, port: int | None = None, answer_s: float = ANSWER_S) -> Probe:
    """Return the state of the hub; `port` is the wanted one where it differs from the settings."""
    files = HubFiles.of(paths)
    for _ in range(3):
        if not locks.is_held(files.lock):
            break
        seen = _with_holder(paths, files, answer_s)
        # a hub that stopped while we asked is not an unresponsive one
        if seen.state is not State.UNRESPONSIVE or locks.is_held(files.lock):
            return seen
    return _without_holder(paths, files, port)


def _without_holder(paths: Paths, files: HubFiles, port: int | None) -> Probe:
    recorded = state_file.read(files.state)
    if recorded is not None and _lost_its_lock(files, recorded):
        return Probe(State.UNRESPONSIVE, files, Reason.LOCK_GONE, recorded=recorded)
    if port is None:
        port = _wanted_port(paths)
    if port and ports.is_listening(port):
        return Probe(State.FOREIGN, files, recorded=recorded, stranger=ports.holder_of(port))
    return Probe(State.STALE if is_file(files.state) else State.STOPPED, files, recorded=recorded)


def _lost_its_lock(files: HubFiles, recorded: HubState) -> bool:
    """Say whether a hub serves though its lock file was removed or replaced under it.

    Proven by the address: the recorded process is the one that listens there. One that is killed
    lets go of the lock a moment before it is gone, so only what stays so counts.
    """
    for _ in range(_LOOKS):
        if not recorded.lives or locks.is_held(files.lock):
            return False
        time.sleep(_LOOK_PAUSE_S)
    listens = ports.holder_of(recorded.port)
    return listens is not None and listens[0] == recorded.pid


def _wanted_port(paths: Paths) -> int:
    try:
        return hub_settings.resolve(paths).port
    except TfxError:
        return hub_settings.DEFAULT_PORT  # a broken config.toml is the start's to report


def _with_holder(paths: Paths, files: HubFiles, answer_s: float) -> Probe:
    holder = locks.holder(files.lock)
    recorded = state_file.read(files.state)
    if holder is None:  # the lock was taken, its name is being written
        return Probe(State.STARTING, files, recorded=recorded)
    if holder.purpose != HUB:
        return Probe(State.UNRESPONSIVE, files, Reason.OTHER_HOLDER, holder)
    if recorded is None or not recorded.is_of(holder):
        age_ms = time.time_ns() // 1_000_000 - holder.since_ms
        if age_ms < STARTING_MS:
            return Probe(State.STARTING, files, holder=holder)
        return Probe(State.UNRESPONSIVE, files, Reason.NO_STATE_FILE, holder)
    return _asked(paths, files, holder, recorded, answer_s)


def _asked(
    paths: Paths, files: HubFiles, holder: locks.Holder, recorded: HubState, answer_s: float
) -> Probe:
    def unresponsive(reason: Reason) -> Probe:
        return Probe(State.UNRESPONSIVE, files, reason, holder, recorded)

    try:
        with Exchange(recorded.url, tokens.read_bus(paths, files)) as exchange:
            answer = exchange.send("GET", "/status", None, timeout_s=answer_s)
    except TimeoutError:
        return unresponsive(Reason.TIMEOUT)
    except OSError:
        return unresponsive(Reason.REFUSED)
    except (http.client.HTTPException, TfxError):
        return unresponsive(Reason.OTHER_INSTANCE)
    if answer.status == _UNAUTHORIZED:
        return unresponsive(Reason.TOKEN_MISMATCH)
    status = _status_of(answer)
    if status is None or status.get("instance") != recorded.instance:
        return unresponsive(Reason.OTHER_INSTANCE)
    return Probe(State.RUNNING, files, None, holder, recorded, status=status)


def _status_of(answer: Answer) -> Mapping[str, JsonValue] | None:
    try:
        document = json.loads(answer.body)
    except ValueError:
        return None
    return document if answer.status == _OK and isinstance(document, dict) else None
