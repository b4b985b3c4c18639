"""What a hook of an agent CLI prints: the mail that its agent was not told of yet (H-70).

Standard library only; knows neither tools nor rules. Never a reason for an agent to stop: a hub
that is not there is silence.
"""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Mapping
from typing import Final

from tfx.core.paths import Paths
from tfx.errors import JsonValue, TfxError
from tfx.hub import ancestry, state, tokens
from tfx.hub.exchange import Exchange
from tfx.hub.places import HubFiles

LIMIT_S: Final = 2.0
_OK: Final = 200
_UNAUTHORIZED: Final = 401
_MOST_INPUT: Final = 1024 * 1024


class _Refused(Exception):
    """The hub does not take the token."""


def main() -> int:
    """Read the hook's JSON on standard input, print its answer, return the exit status.

    0 with mail, without mail and without a hub; 1 with one line on standard error when the hub
    refuses the token: the agent's user sees that, and nothing is blocked.
    """
    event = _event(sys.stdin.buffer.read(_MOST_INPUT))
    if event is None:
        return 0
    try:
        text = _mail(Paths.resolve())
    except _Refused:
        print("tfx: the hub refuses this token; see `tfx hub status`", file=sys.stderr)  # noqa: T201  (a hook's one line)
        return 1
    except (OSError, http.client.HTTPException, TfxError, ValueError, LookupError, TypeError):
        return 0  # no hub, or one that stops just now: the next hook will tell
    if text:
        answer = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
        print(json.dumps(answer, ensure_ascii=False))  # noqa: T201  (the answer itself)
    return 0


def _event(data: bytes) -> str | None:
    """Return the event that the agent names; without one there is nobody to answer."""
    try:
        event = json.loads(data)["hook_event_name"]
    except (ValueError, LookupError, TypeError):
        return None
    return event if isinstance(event, str) else None


def _mail(paths: Paths) -> str:
    files = HubFiles.of(paths)
    run = state.read(files.state)
    url = paths.env.get("TFX_HUB_URL", "").removesuffix("/").removesuffix("/mcp")
    if run is not None and not url:
        url = run.url
    found = ancestry.belongs_to() if url else None
    if found is None:
        return ""
    named = paths.env.get("TFX_AGENT_ID") or None
    with Exchange(url, tokens.read_bus(paths, files)) as exchange:
        wanted: Mapping[str, JsonValue] = {
            "cli": found.cli,
            "workspace": found.workspace,
            "process": ancestry.facts_of(found.process),
            "agent_id": named,
            "find_only": True,
        }
        agent = _call(exchange, "attach", wanted)["agent_id"]
        if found.cli == ancestry.UNKNOWN_CLI:  # the bridge may be below another process
            agent = agent or named
        if not isinstance(agent, str):
            return ""
        return _text(agent, _call(exchange, "notices", {"agent_id": agent}))


def _call(exchange: Exchange, name: str, fields: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    body = json.dumps(fields).encode()
    answer = exchange.send("POST", f"/v1/{name}", body, timeout_s=LIMIT_S)
    if answer.status == _UNAUTHORIZED:
        raise _Refused
    if answer.status != _OK:
        raise ValueError(answer.status)
    data = json.loads(answer.body)["data"]
    if not isinstance(data, dict):
        raise TypeError(name)
    return data


def _text(agent: str, notices: dict[str, JsonValue]) -> str:
    fresh, first = notices["fresh"], notices["first"]
    if not fresh or not isinstance(first, list):
        return ""
    lines = [f"tfx-hub: {fresh} new for {agent}, {notices['total']} unread. Read: poll_messages."]
    for each in first:
        if isinstance(each, dict):
            urgent = f", priority {each['priority']}" if each["priority"] != _USUAL else ""
            lines.append(f"- {each['type']} from {each['from']}, topic {each['topic']}{urgent}")
    return "\n".join(lines)


_USUAL: Final = 5
