"""The one line through which a starting hub tells its starter how it went (H-12).

Knows neither how a hub starts nor what it serves.
"""

from __future__ import annotations

import json
import os
import select
import time
from dataclasses import dataclass

from tfx.errors import OperationFailed, TfxError
from tfx.hub.failures import from_wire, to_wire

LIMIT_S = 30.0
_LINES_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Ready:
    """What a hub says once it serves."""

    pid: int
    port: int
    url: str
    instance: str
    version: str


def report_ready(descriptor: int, ready: Ready) -> None:
    """Write the line of success."""
    _write(
        descriptor,
        {
            "ok": True,
            "pid": ready.pid,
            "port": ready.port,
            "url": ready.url,
            "instance": ready.instance,
            "version": ready.version,
        },
    )


def report_failure(descriptor: int, error: TfxError) -> None:
    """Write the line of failure: the error as on every wire."""
    _write(descriptor, {"ok": False, **to_wire(error)})


def await_ready(descriptor: int, *, limit_s: float = LIMIT_S) -> Ready:
    """Read until the line comes, the writer is gone, or the limit is over.

    The pipe is also the child's standard error until it serves, so other lines are what it had
    to say. Raises the error that the child reported; OperationFailed `hub-died` with its last
    words at end of file; OperationFailed `start-timeout`.
    """
    said = bytearray()
    deadline = time.monotonic() + limit_s
    while (left_s := deadline - time.monotonic()) > 0:
        readable, _, _ = select.select([descriptor], [], [], left_s)
        if not readable:
            break
        chunk = os.read(descriptor, 65_536)
        if not chunk:
            raise _died(said)
        said += chunk
        *lines, _rest = said.split(b"\n")
        for line in lines:
            if (document := _line(bytes(line))) is not None:
                return _ready_or_error(document)
    raise OperationFailed(
        f"the hub was not ready within {limit_s:.0f} s; it may still be starting",
        code="start-timeout",
        hint="tfx hub status",
    )


def _write(descriptor: int, document: dict[str, object]) -> None:
    data = json.dumps(document).encode() + b"\n"
    while data:
        data = data[os.write(descriptor, data) :]


def _line(line: bytes) -> dict[str, object] | None:
    if not line.startswith(b'{"ok": '):
        return None
    try:
        document = json.loads(line)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _ready_or_error(document: dict[str, object]) -> Ready:
    if document.pop("ok") is not True:
        raise from_wire(document)
    try:
        return Ready(**document)  # type: ignore[arg-type]
    except TypeError as error:
        raise OperationFailed("the starting hub spoke another dialect", code="hub-died") from error


def _died(said: bytearray) -> OperationFailed:
    words = [line for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    last = words[-_LINES_SHOWN:]
    tail = ": " + last[-1].strip() if last else " and said nothing"
    return OperationFailed(
        f"the hub ended before it was ready{tail}",
        code="hub-died",
        hint="tfx hub logs",
        details={"last_lines": list(last)},
    )
