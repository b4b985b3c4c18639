"""The typed client of a running hub: one method for every operation, errors as the hub raised them.

Finds the hub by its state file and proves itself with the user's token; never starts a hub.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from tfx.core.paths import Paths
from tfx.errors import AgentUnavailable, InvalidRequest, JsonValue, TfxError
from tfx.hub import state as state_file
from tfx.hub import tokens
from tfx.hub.exchange import Answer, Exchange, unreachable
from tfx.hub.failures import from_wire
from tfx.hub.models import Cursor
from tfx.hub.operations import OPERATIONS
from tfx.hub.places import HubFiles
from tfx.hub.wire.fields import Request
from tfx.hub.wire.views import EventView

T = TypeVar("T", bound=msgspec.Struct)

ANSWER_S = 15.0
_STREAM_S = 45.0  # three missed keep-alives
_OK = 200
_ENCODER = msgspec.json.Encoder()
_EVENT = msgspec.json.Decoder(EventView)


class _Envelope(msgspec.Struct, frozen=True):
    """The success envelope; its data are decoded as the type the caller names."""

    data: msgspec.Raw


_DATA = msgspec.json.Decoder(_Envelope)


@dataclass(frozen=True, slots=True)
class Address:
    """Where the hub is, by which run of it (None for an address the user gave)."""

    url: str
    instance: str | None


def locate(paths: Paths) -> Address:
    """Return the address: `TFX_HUB_URL`, else the state file's.

    Raises AgentUnavailable `hub-not-running` when there is neither.
    """
    given = paths.env.get("TFX_HUB_URL", "")
    if given:
        return Address(given.removesuffix("/").removesuffix("/mcp"), None)
    files = HubFiles.of(paths)
    recorded = state_file.read(files.state)
    if recorded is None:
        raise AgentUnavailable("no hub is running", code="hub-not-running", hint="tfx hub start")
    return Address(recorded.url, recorded.instance)


class HubClient:
    """A connection to the hub with one credential."""

    def __init__(self, address: Address, credential: str | None) -> None:
        self.address = address
        self._credential = credential
        self._exchange = Exchange(address.url, credential)

    @classmethod
    def of(cls, paths: Paths, *, operator: bool = False) -> Self:
        """Return a client of the user's hub.

        `operator` takes the operator credential, for the operations that need it only (K-28).
        Raises AgentUnavailable when no hub is known.
        """
        files = HubFiles.of(paths)
        address = locate(paths)
        if operator:
            return cls(address, tokens.read_operator(files))
        return cls(address, tokens.read_bus(paths, files))

    def call(self, name: str, request: Request, response: type[T], *, wait_ms: int = 0) -> T:
        """Call an operation; `wait_ms` is how long the hub itself may wait before it answers.

        Raises what the hub raised, or AgentUnavailable when it does not answer.
        """
        return self._call(name, _ENCODER.encode(request), response, wait_ms)

    def call_with(
        self, name: str, fields: Mapping[str, object], response: type[T], *, wait_ms: int = 0
    ) -> T:
        """Call an operation with named fields; None leaves a field out, the hub checks the rest.

        Raises as `call` does.
        """
        given = {key: value for key, value in fields.items() if value is not None}
        return self._call(name, _ENCODER.encode(given), response, wait_ms)

    def _call(self, name: str, body: bytes, response: type[T], wait_ms: int) -> T:
        answer = self._send("POST", f"/v1/{OPERATIONS[name].name}", body, wait_ms)
        try:
            return msgspec.json.decode(_DATA.decode(answer.body).data, type=response)
        except msgspec.DecodeError as error:
            raise unreachable(self.address.url, error) from error

    def status(self) -> dict[str, JsonValue]:
        """Return the hub's status document (H-24)."""
        answer = self._send("GET", "/status", None, 0)
        document = json.loads(answer.body)
        return document if isinstance(document, dict) else {}

    def events(self, after: Cursor | None) -> Iterator[EventView]:
        """Yield the log's events from a cursor on, for ever.

        Raises what the hub raises (`cursor-ahead`, `cursor-expired`), and AgentUnavailable when
        the stream ends or stays silent.
        """
        headers: dict[str, str] = {"Last-Event-ID": after} if after else {}
        try:
            with self._exchange.open_stream(
                "/v1/events", headers=headers, timeout_s=_STREAM_S
            ) as response:
                if response.status != _OK:
                    raise _refusal(Answer(response.status, response.read()))
                yield from _events_of(response)
        except (OSError, http.client.HTTPException) as error:
            raise unreachable(self.address.url, error) from error
        raise AgentUnavailable(
            "the hub ended the event stream", code="hub-unreachable", hint="tfx hub status"
        )

    def close(self) -> None:
        """Close the connection."""
        self._exchange.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _send(self, method: str, path: str, body: bytes | None, wait_ms: int) -> Answer:
        try:
            answer = self._exchange.send(method, path, body, timeout_s=ANSWER_S + wait_ms / 1000)
        except (OSError, http.client.HTTPException) as error:
            raise unreachable(self.address.url, error) from error
        if answer.status != _OK:
            raise _refusal(answer)
        return answer


def _events_of(response: http.client.HTTPResponse) -> Iterator[EventView]:
    failed = False
    for line in response:
        if line.startswith(b"event: error"):
            failed = True
        elif line.startswith(b"data: ") and failed:
            raise _refusal(Answer(_OK, line.removeprefix(b"data: ")))
        elif line.startswith(b"data: "):
            yield _EVENT.decode(line.removeprefix(b"data: "))


def _refusal(answer: Answer) -> TfxError:
    try:
        document = json.loads(answer.body)
        return from_wire(document["error"])
    except (ValueError, TypeError, KeyError):
        return InvalidRequest(
            f"what answers there is no tfx hub (HTTP {answer.status})", code="not-a-hub"
        )
