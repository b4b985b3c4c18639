"""The doors of every path: Host, Origin, bearer (H-42, H-43, H-47).

Knows neither paths nor operations; what it refuses has not been read any further.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from urllib.parse import urlsplit

from tfx.errors import AccessDenied, AuthenticationRequired
from tfx.hub.models import Caller
from tfx.hub.tokens import Credentials

Headers = list[tuple[bytes, bytes]]

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_WEB = frozenset({"http", "https"})
_SCHEME = b"bearer "
_MOST_REMEMBERED = 64

BUS_CALLER = Caller()
OPERATOR_CALLER = Caller(operator=True)


class Doors:
    """Decides who may speak. Constant-time in the credential; remembers Hosts it let in."""

    def __init__(self, credentials: Credentials, allow_hosts: Iterable[str]) -> None:
        self._names = _LOOPBACK | {name.lower() for name in allow_hosts}
        self._known_hosts: set[bytes] = set()
        self.renew(credentials)

    def renew(self, credentials: Credentials) -> None:
        """Accept these credentials from now on, and no others."""
        self._bus = credentials.bus.encode()
        self._operator = credentials.operator.encode()

    def admit(self, headers: Headers) -> None:
        """Check Host and Origin; raises AccessDenied `bad-host` (421) or `bad-origin` (403)."""
        hosts = 0
        for name, value in headers:
            if name == b"host":
                hosts += 1
                if value not in self._known_hosts:
                    self._check_host(value)
            elif name == b"origin":
                self._check_origin(value)
        if hosts != 1:
            raise AccessDenied(f"a request needs one Host header, not {hosts}", code="bad-host")

    def caller(self, headers: Headers) -> Caller:
        """Return who asks; raises AuthenticationRequired without a valid credential."""
        given = b""
        for name, value in headers:
            if name == b"authorization":
                given = value
        if given[:7].lower() == _SCHEME:
            secret = given[7:].strip()
            # both are always compared: the time says nothing about which one was nearly right
            is_bus = hmac.compare_digest(secret, self._bus)
            if hmac.compare_digest(secret, self._operator):
                return OPERATOR_CALLER
            if is_bus:
                return BUS_CALLER
        raise AuthenticationRequired(
            "the hub's bearer token is missing" if not given else "this is not the hub's token",
            hint="tfx hub token",
        )

    def _check_host(self, value: bytes) -> None:
        host = value.decode("latin-1").lower()
        name, colon, port = host.rpartition(":")
        if not colon or port.endswith("]"):
            name, port = host, "0"
        if name not in self._names or not port.isdecimal():
            raise AccessDenied(
                "this Host is not one of this hub",
                code="bad-host",
                hint="allow_hosts in [hub] of config.toml",
            )
        if len(self._known_hosts) < _MOST_REMEMBERED:
            self._known_hosts.add(value)

    def _check_origin(self, value: bytes) -> None:
        try:
            parts = urlsplit(value.decode("latin-1"))
            name = parts.netloc.lower()
            _ = parts.port
        except ValueError:
            name, parts = "", urlsplit("")
        if parts.port is not None:
            name = name.rpartition(":")[0]
        if parts.scheme not in _WEB or name not in _LOOPBACK:
            raise AccessDenied("this Origin may not speak to the hub", code="bad-origin")
