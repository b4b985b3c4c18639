"""The paths that are not called a thousand times: health, status, metrics, event stream.

Starlette routes them; the doors have been passed before (H-23 … H-26).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from tfx.errors import InvalidRequest, NotFound
from tfx.hub.transport.events import EventStream
from tfx.hub.transport.http import EVENTS, HEALTH, Asgi
from tfx.hub.transport.replies import Receive, Scope, Send

Document = Callable[[], dict[str, object]]
Page = Callable[[Request], Awaitable[Response]]

STATUS = "/status"
METRICS = "/metrics"
_METRICS_TYPE = "text/plain; version=0.0.4"
_ENCODER = msgspec.json.Encoder()


def pages(
    *,
    health: Document,
    status: Callable[[], Awaitable[dict[str, object]]],
    metrics: Callable[[], str],
    events: EventStream,
) -> Asgi:
    """Return the application behind the doors for everything that is not a hot path."""

    async def serve_health(_request: Request) -> Response:
        return _json(health())

    async def serve_status(_request: Request) -> Response:
        return _json(await status())

    async def serve_metrics(_request: Request) -> Response:
        return Response(metrics(), media_type=_METRICS_TYPE)

    served: dict[str, Page] = {
        HEALTH: serve_health,
        STATUS: serve_status,
        METRICS: serve_metrics,
        EVENTS: events,
    }
    router = Router(
        routes=[Route(path, _endpoint(page), methods=["GET"]) for path, page in served.items()],
        redirect_slashes=False,
    )

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path not in served:
            raise NotFound(f"nothing is served at {str(path)[:200]}", code="unknown-path")
        if scope["method"] not in {"GET", "HEAD"}:
            raise InvalidRequest(
                f"{path} takes GET, not {scope['method']}",
                code="method-not-allowed",
                details={"allow": "GET"},
            )
        await router(scope, receive, send)

    return serve


def _endpoint(page: Page) -> Asgi:
    class Endpoint:
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            response = await page(Request(scope, receive, send))
            await response(scope, receive, send)

    return Endpoint()


def _json(document: dict[str, object]) -> Response:
    return Response(
        _ENCODER.encode(document),
        media_type="application/json",
        headers={"cache-control": "no-store"},
    )
