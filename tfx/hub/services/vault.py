"""Answers that are secrets: in memory only, from the answer to its ack or ten minutes (H-48).

Knows no SQL and writes nothing; a restart loses them, and the requester is told so.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from tfx.core import canonical_json
from tfx.errors import InvalidRequest
from tfx.hub.models import MessageType
from tfx.hub.store.humans import HELD, MARK

if TYPE_CHECKING:
    from tfx.hub.store.hub_clock import HubClock
    from tfx.hub.wire.messages import Message

KEPT_MS: Final = 600_000
LOST: Final = "secret-lost"


@dataclass(frozen=True, slots=True, repr=False)
class _Held:
    content: bytes
    until_ms: int


class Vault:
    """Holds contents by the message that carries them; used by loop and writer thread."""

    def __init__(self, clock: HubClock) -> None:
        self._clock = clock
        self._held: dict[str, _Held] = {}
        self._lock = threading.Lock()

    def put(self, message_id: str, content: bytes) -> None:
        """Keep a content for ten minutes."""
        with self._lock:
            self._held[message_id] = _Held(content, self._clock.now_ms() + KEPT_MS)

    def drop(self, ids: Iterable[str]) -> None:
        """Forget the contents of messages that arrived, or were never committed."""
        if self._held:
            with self._lock:
                for each in ids:
                    self._held.pop(each, None)

    def sweep(self) -> None:
        """Forget what is over its time."""
        now = self._clock.now_ms()
        with self._lock:
            for each in [name for name, held in self._held.items() if held.until_ms <= now]:
                del self._held[each]

    def revealed(self, message: Message) -> Message:
        """Return a response with its secret content, or with the error that it is lost."""
        if message.type is not MessageType.HUMAN_RESPONSE:
            return message
        try:
            payload = canonical_json.parse(bytes(message.payload))
        except InvalidRequest:  # of an adopted response, which has no secret here (K-36, K-38)
            return message
        if not isinstance(payload, dict) or payload.get(MARK) != HELD:
            return message
        with self._lock:
            held = self._held.get(message.message_id)
        if held is None or held.until_ms <= self._clock.now_ms():
            shown = {**payload, MARK: "lost", "error": LOST}
        else:
            shown = {**payload, MARK: "here", "content": canonical_json.parse(held.content)}
        raw = msgspec.Raw(canonical_json.dump(shown))
        return msgspec.structs.replace(message, payload=raw, payload_bytes=len(raw))
