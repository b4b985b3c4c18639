"""Every door on every path: Host, Origin, token, method, type, size, strict JSON (hub.md §6)."""

from __future__ import annotations

import json
import socket

import pytest

from tests.hub.running import Reply, RunningHub
from tfx.hub.operations import OPERATIONS
from tfx.hub.transport.http import MAX_BODY_BYTES

OPERATION_PATHS = [f"/v1/{name}" for name in OPERATIONS]
BRIDGE_PATHS = [f"/bridge/{name}" for name in ("register", "result", "context", "deregister")]
POST_PATHS = [*OPERATION_PATHS, *BRIDGE_PATHS]
GET_PATHS = ["/status", "/metrics", "/v1/events"]
UNKNOWN_PATHS = ["/", "/nope", "/v1/nope", "/v1/", "/bridge/nope", "/v1/publish/", "//v1/publish"]
EVERY_PATH = [*POST_PATHS, *GET_PATHS, *UNKNOWN_PATHS, "/health"]
EVERY_METHOD = ["GET", "POST", "OPTIONS", "PUT", "DELETE", "HEAD"]


def _send(
    hub: RunningHub,
    method: str,
    path: str,
    *,
    host: str | None = None,
    token: str | None = None,
    body: bytes | None = None,
    **headers: str,
) -> Reply:
    given = [("Host", host or f"127.0.0.1:{hub.port}")]
    if token is not None:
        given.append(("Authorization", f"Bearer {token}"))
    given += [(name.replace("_", "-"), value) for name, value in headers.items()]
    if body is not None:
        given.append(("Content-Length", str(len(body))))
    return hub.request(method, path, body, given)


@pytest.mark.parametrize("path", EVERY_PATH)
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "localhost:x", "["])
def test_h_43_a_foreign_host_is_421_on_every_path_and_method(
    shared_hub: RunningHub, path: str, host: str
) -> None:
    for method in EVERY_METHOD:
        reply = _send(shared_hub, method, path, host=host, token=shared_hub.token)
        assert reply.status == 421, (method, path)
        assert "access-control-allow-origin" not in reply.headers


def test_h_43_one_host_header_is_needed(shared_hub: RunningHub) -> None:
    none = b"GET /status HTTP/1.1\r\nAuthorization: Bearer x\r\nConnection: close\r\n\r\n"
    two = none.replace(b"Authorization", b"Host: localhost\r\nHost: evil.example\r\nAuthorization")
    for raw in (none, two):
        assert _raw(shared_hub, raw).startswith((b"HTTP/1.1 421", b"HTTP/1.1 400"))


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:27888", "[::1]:80", "[::1]", "127.0.0.1"])
def test_h_43_loopback_names_are_let_in_with_any_port(shared_hub: RunningHub, host: str) -> None:
    assert _send(shared_hub, "GET", "/status", host=host, token=shared_hub.token).status == 200


@pytest.mark.parametrize("path", EVERY_PATH)
@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://localhost.evil.example",
        "file://",
        "http:",
        "chrome-extension://localhost",
        "http://127.0.0.1:x",
        "",
    ],
)
def test_h_43_a_foreign_origin_is_403_on_every_path_and_method(
    shared_hub: RunningHub, path: str, origin: str
) -> None:
    for method in EVERY_METHOD:
        reply = _send(shared_hub, method, path, token=shared_hub.token, Origin=origin)
        assert reply.status == 403, (method, path)
        assert not [name for name in reply.headers if name.startswith("access-control")]


@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://127.0.0.1", "https://[::1]:1"])
def test_h_43_a_loopback_origin_may_speak(shared_hub: RunningHub, origin: str) -> None:
    assert _send(shared_hub, "GET", "/status", token=shared_hub.token, Origin=origin).status == 200


@pytest.mark.parametrize("path", [path for path in EVERY_PATH if path != "/health"])
@pytest.mark.parametrize("token", [None, "", "wrong", "x" * 5000])
def test_h_42_without_the_right_token_every_path_is_401(
    shared_hub: RunningHub, path: str, token: str | None
) -> None:
    for method in EVERY_METHOD:
        reply = _send(shared_hub, method, path, token=token)
        assert reply.status == 401, (method, path)
        assert reply.headers["www-authenticate"] == "Bearer"
        assert shared_hub.token.encode() not in reply.body


def test_h_42_other_schemes_and_a_token_in_the_url_do_not_count(shared_hub: RunningHub) -> None:
    token = shared_hub.token
    for value in (f"Basic {token}", token, f"Bearer{token}", f"Bearer {token}x"):
        assert _send(shared_hub, "GET", "/status", Authorization=value).status == 401
    assert _send(shared_hub, "GET", f"/status?token={token}").status == 401
    for value in (f"bearer {token}", f"BEARER  {token} "):
        assert _send(shared_hub, "GET", "/status", Authorization=value).status == 200


def test_h_23_health_needs_no_token_and_tells_four_things(shared_hub: RunningHub) -> None:
    reply = _send(shared_hub, "GET", "/health")
    assert reply.status == 200
    assert set(reply.document) == {"ok", "version", "time", "state"}
    assert reply.document["state"] == "ready"


@pytest.mark.parametrize("path", POST_PATHS)
def test_h_27_a_post_path_answers_405_to_other_methods(shared_hub: RunningHub, path: str) -> None:
    methods = ("PUT", "DELETE", "OPTIONS") if path == "/v1/events" else ("GET", "PUT", "OPTIONS")
    for method in methods:
        reply = _send(shared_hub, method, path, token=shared_hub.token)
        assert (reply.status, reply.code) == (405, "method-not-allowed")
        assert "POST" in reply.headers["allow"]


@pytest.mark.parametrize("path", ["/status", "/metrics", "/health"])
def test_h_27_a_get_path_answers_405_to_other_methods(shared_hub: RunningHub, path: str) -> None:
    for method in ("POST", "DELETE", "OPTIONS"):
        reply = _send(shared_hub, method, path, token=shared_hub.token)
        assert (reply.status, reply.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize("path", UNKNOWN_PATHS)
def test_h_27_an_unknown_path_is_404_in_the_error_envelope(
    shared_hub: RunningHub, path: str
) -> None:
    reply = _send(shared_hub, "POST", path, token=shared_hub.token, Content_Type="application/json")
    assert (reply.status, reply.document["error"]["kind"]) == (404, "not-found")


@pytest.mark.parametrize("path", POST_PATHS)
@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""]
)
def test_h_44_only_application_json_is_read_on_every_path(
    shared_hub: RunningHub, path: str, kind: str | None
) -> None:
    headers = {} if kind is None else {"Content_Type": kind}
    reply = _send(shared_hub, "POST", path, token=shared_hub.token, body=b"{}", **headers)
    assert (reply.status, reply.code) == (415, "unsupported-media-type")


def test_h_44_a_compressed_body_is_415(shared_hub: RunningHub) -> None:
    reply = _send(
        shared_hub,
        "POST",
        "/v1/agents",
        token=shared_hub.token,
        body=b"{}",
        Content_Type="application/json",
        Content_Encoding="gzip",
    )
    assert reply.status == 415


def test_h_44_a_charset_is_no_obstacle(shared_hub: RunningHub) -> None:
    reply = _send(
        shared_hub,
        "POST",
        "/v1/agents",
        token=shared_hub.token,
        body=b"{}",
        Content_Type="application/json; charset=utf-8",
    )
    assert reply.status == 200


@pytest.mark.parametrize("path", POST_PATHS)
def test_h_44_one_byte_over_the_limit_is_413_on_every_path(
    shared_hub: RunningHub, path: str
) -> None:
    body = b'{"pad":"' + b"x" * (MAX_BODY_BYTES - 9) + b'"}'
    assert len(body) == MAX_BODY_BYTES + 1
    reply = shared_hub.post(path, body)
    assert (reply.status, reply.code) == (413, "too-large")
    assert shared_hub.post(path, body[:-2] + b"}").status != 413


@pytest.mark.parametrize("path", ["/v1/publish", "/bridge/result"])
def test_h_44_a_chunked_body_over_the_limit_is_413_too(shared_hub: RunningHub, path: str) -> None:
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    raw = _head(shared_hub, path, "Transfer-Encoding: chunked") + chunk * 17 + b"0\r\n\r\n"
    assert _raw(shared_hub, raw).startswith(b"HTTP/1.1 413")


def test_h_44_a_chunked_body_within_the_limit_is_read(shared_hub: RunningHub) -> None:
    raw = _head(shared_hub, "/v1/agents", "Transfer-Encoding: chunked", "Connection: close")
    assert _raw(shared_hub, raw + b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n").startswith(b"HTTP/1.1 200")


BAD_JSON = {
    "not json": b"{",
    "nothing": b"",
    "two documents": b"{}{}",
    "not an object": b"[]",
    "trailing comma": b'{"agent_id":"abc",}',
    "comment": b'{} // "',
    "single quotes": b"{'agent_id':'abc'}",
    "not utf-8": b'{"agent_id":"\xff\xfe"}',
    "nan": b'{"agent_id":NaN}',
    "raw control character": b'{"agent_id":"a\x00b"}',
    "deep nesting": b'{"agent_id":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
}


@pytest.mark.parametrize("path", POST_PATHS)
@pytest.mark.parametrize("body", BAD_JSON.values(), ids=BAD_JSON)
def test_h_44_bad_json_is_400_on_every_path(shared_hub: RunningHub, path: str, body: bytes) -> None:
    operator = not path.startswith("/bridge") and OPERATIONS[path[4:]].privilege == "operator"
    reply = shared_hub.post(path, body, operator=operator)
    assert reply.status == 400, reply.body
    assert reply.document["error"]["kind"] == "invalid-request"


SPOOFS = {
    "duplicate key": b'"from":"spy"',
    "duplicate key, escaped": b'"\\u0066rom":"spy"',
    "duplicate key within": b'"payload":{"a":{"b":1,"b":2}}',
    "NUL": b'"payload":{"a":"x\\u0000y"}',
    "NUL in a key": b'"payload":{"x\\u0000y":1}',
    "lone high surrogate": b'"payload":{"a":"\\ud800"}',
    "lone low surrogate": b'"payload":{"a":"\\udc00 "}',
    "NaN within": b'"payload":{"a":[NaN]}',
    "number too large": b'"payload":{"a":1e999}',
}


@pytest.mark.parametrize("member", SPOOFS.values(), ids=SPOOFS)
def test_ev_j1_to_j4_what_readers_would_disagree_on_is_refused(
    shared_hub: RunningHub, member: bytes
) -> None:
    base = b'{"from":"operator","to":"nobody-here","topic":"x","deferred":true'
    rest = b"" if member.startswith(b'"payload"') else b',"payload":{}'
    reply = shared_hub.post("/v1/publish", base + rest + b"," + member + b"}")
    assert (reply.status, reply.code) == (400, "bad-json")


@pytest.mark.timeout(60)
def test_ev_j1_a_megabyte_of_keys_with_one_twice_does_not_hold_the_hub(
    shared_hub: RunningHub,
) -> None:
    keys = ",".join(f'"{number:x}":0' for number in range(100_000))
    body = f'{{"payload":{{{keys},"1869f":1}}}}'.encode()
    assert len(body) < MAX_BODY_BYTES
    assert shared_hub.post("/v1/publish", body).status == 400


def test_h_77_a_page_of_a_foreign_origin_stores_nothing(hub: RunningHub) -> None:
    before = hub.call("events")["next_cursor"]
    body = json.dumps(
        {"from": "operator", "to": "victim", "topic": "x", "payload": {}, "deferred": True}
    ).encode()
    for headers in (
        {"Origin": "https://evil.example", "Content_Type": "text/plain"},
        {"Origin": "https://evil.example", "Content_Type": "application/json"},
        {"Content_Type": "text/plain"},
    ):
        reply = _send(hub, "POST", "/v1/publish", token=hub.token, body=body, **headers)
        assert reply.status in {403, 415}
    assert hub.call("events")["next_cursor"] == before


@pytest.mark.parametrize(
    "name", [row.name for row in OPERATIONS.values() if row.privilege == "operator"]
)
def test_h_47_operator_operations_deny_the_bus_token(shared_hub: RunningHub, name: str) -> None:
    reply = shared_hub.post(f"/v1/{name}", {})
    assert (reply.status, reply.code) == (403, "operator-needed")


def _head(hub: RunningHub, path: str, *headers: str) -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: 127.0.0.1:{hub.port}",
        f"Authorization: Bearer {hub.token}",
        "Content-Type: application/json",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def _raw(hub: RunningHub, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", hub.port), timeout=60) as connection:
        connection.sendall(data)
        return connection.recv(65_536)
