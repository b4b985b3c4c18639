"""MCP spoken by hand in both eras, with exactly the given headers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.hub.running import Reply, RunningHub

MODERN = "2026-07-28"
LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
ERAS = (MODERN, *LEGACY)


def envelope(version: str = MODERN) -> dict[str, object]:
    return {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }


@dataclass(frozen=True, slots=True)
class Speaker:
    """A client of one revision; `agent` is what a bridge would say."""

    hub: RunningHub
    version: str = MODERN
    agent: str | None = None
    query: str = ""
    operator: bool = False

    @property
    def is_modern(self) -> bool:
        return self.version == MODERN

    def post(
        self,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        identity: object = 1,
        timeout_s: float = 60,
    ) -> Reply:
        given = dict(params or {})
        headers = [("MCP-Protocol-Version", self.version)]
        if self.is_modern:
            given = {"_meta": envelope(), **given}
            headers.append(("Mcp-Method", method))
            if "name" in given:
                headers.append(("Mcp-Name", str(given["name"])))
        if self.agent is not None:
            headers.append(("Tfx-Agent", self.agent))
        document = {"jsonrpc": "2.0", "id": identity, "method": method, "params": given}
        return self.raw(document, headers, timeout_s=timeout_s)

    def raw(
        self,
        document: object,
        headers: Iterable[tuple[str, str]] = (),
        *,
        timeout_s: float = 60,
    ) -> Reply:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        return self.hub.request(
            "POST",
            f"/mcp{self.query}",
            body,
            [
                *self.hub.headers(operator=self.operator),
                ("Content-Type", "application/json"),
                ("Accept", "application/json, text/event-stream"),
                ("Content-Length", str(len(body))),
                *headers,
            ],
            timeout_s=timeout_s,
        )

    def result(self, method: str, params: Mapping[str, object] | None = None) -> Any:  # noqa: ANN401  (JSON of the hub under test)
        answer = self.post(method, params)
        assert answer.status == 200, answer.body
        assert set(answer.document) == {"jsonrpc", "id", "result"}, answer.body
        return answer.document["result"]

    def tool(self, name: str, **arguments: object) -> Any:  # noqa: ANN401
        """Call a tool and return its envelope; `from_` is `from`."""
        return self.envelope(self.result_of(name, arguments))

    def result_of(self, name: str, arguments: Mapping[str, object]) -> Any:  # noqa: ANN401
        given = {key.rstrip("_"): value for key, value in arguments.items()}
        return self.result("tools/call", {"name": name, "arguments": given})

    @staticmethod
    def envelope(result: Any) -> Any:  # noqa: ANN401
        assert "structuredContent" not in result
        [content] = result["content"]
        assert content["type"] == "text"
        envelope = json.loads(content["text"])
        assert envelope["ok"] is not result["isError"]
        return envelope

    def data(self, name: str, **arguments: object) -> Any:  # noqa: ANN401
        envelope = self.tool(name, **arguments)
        assert envelope["ok"], envelope
        return envelope["data"]

    def error(self, method: str, params: Mapping[str, object] | None = None) -> tuple[int, int]:
        """Return status and error code of a request that must fail."""
        answer = self.post(method, params)
        return answer.status, answer.document["error"]["code"]
