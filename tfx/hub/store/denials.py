"""Refusals in the log: the same one again within a minute is counted and not written (WK-K6).

Used in the writer's thread only; knows no rule and no request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from tfx.hub.store.events import encode_body
from tfx.hub.store.kinds import Kind

if TYPE_CHECKING:
    from tfx.hub.models import AgentId, StreamNo
    from tfx.hub.store.tx import Tx
    from tfx.hub.store.work_bodies import ClaimDenied

WINDOW_MS: Final = 60_000
MOST: Final = 4_096
"""So many different refusals are remembered; the oldest give way and are written again."""
_STORED: Final = (
    "SELECT 1 FROM log WHERE seq = ? AND stream = ? AND kind = 'claim_denied' AND body = ?"
)

_Key: TypeAlias = "tuple[int, str | None, str, str, str | None, str | None, str | None]"


@dataclass(frozen=True, slots=True)
class Denial:
    """A refusal, and the stream it is an event of."""

    name: str
    stream: StreamNo
    body: ClaimDenied
    actor: AgentId


@dataclass(slots=True)
class _Last:
    """The event that a refusal had last, and how often it came since."""

    seq: int
    at_ms: int
    text: str
    repeated: int = 0


class Denials:
    """What was refused lately; lost with the process, which loses counts and no event."""

    def __init__(self) -> None:
        self._last: dict[_Key, _Last] = {}

    def keep(self, tx: Tx, denial: Denial) -> None:
        """Append the refusal, unless the same one of its stream is younger than a minute.

        The next event of it says how many were counted only. An event whose transaction failed
        is not there, so it is never counted on.
        """
        body, stream = denial.body, denial.stream
        key = (stream, body.agent, body.verb, body.code, body.lease, body.lock, body.route)
        last = self._last.pop(key, None)
        if (
            last is not None
            and 0 <= tx.now_ms - last.at_ms < WINDOW_MS
            and _stored(tx, last, stream)
        ):
            last.repeated += 1
            self._last[key] = last
            return
        whole = msgspec.structs.replace(body, repeated=0 if last is None else last.repeated)
        event = tx.append(denial.name, stream, Kind.CLAIM_DENIED, denial.actor, whole)
        self._last[key] = _Last(event.seq, event.at_ms, encode_body(whole))
        if len(self._last) > MOST:
            del self._last[next(iter(self._last))]


def _stored(tx: Tx, last: _Last, stream: StreamNo) -> bool:
    return tx.one(_STORED, (last.seq, stream, last.text)) is not None
