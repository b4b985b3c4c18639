"""A human request on the terminal: shown, decided, its answer typed.

Knows the wire types only. A secret is typed unseen and goes nowhere but into the request (H-69).
"""

from __future__ import annotations

import datetime as dt
import getpass
import json
import sys
from typing import TYPE_CHECKING

import msgspec

from tfx.errors import AccessDenied, InvalidRequest, JsonValue, NotFound
from tfx.hub.client import HubClient
from tfx.hub.models import HumanAction, HumanKind
from tfx.hub.wire.humans import HumanListRequest, HumanListResult, HumanView

if TYPE_CHECKING:
    from tfx.cli.output import Screen
    from tfx.core.paths import Paths

_SECRET = frozenset({HumanKind.CAPTCHA, HumanKind.CREDENTIAL})
_WORDS = {"a": HumanAction.ACCEPT, "d": HumanAction.DECLINE, "c": HumanAction.CANCEL}


def asked(paths: Paths, request_id: str) -> HumanView:
    """Return the request to be answered; raises AccessDenied without a terminal (H-47)."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise AccessDenied(
            "an answer is typed by a person at a terminal",
            code="terminal-needed",
            hint="run it in a terminal",
        )
    with HubClient.of(paths) as client:
        wanted = HumanListRequest(request_id=request_id)
        found = client.call("human_requests", wanted, HumanListResult).requests
    if not found:
        raise NotFound(
            f"no request has the id {request_id}", code="unknown-request", hint="tfx hub human list"
        )
    return found[0]


def show(screen: Screen, view: HumanView) -> None:
    """Print a request as its reader needs it."""
    until = dt.datetime.fromtimestamp(view.deadline_ms / 1000, dt.UTC).astimezone()
    screen.line(f"{view.request_id}  {view.requester_agent} asks ({view.kind.value})")
    for line in view.prompt.splitlines() or [""]:
        screen.line(f"    {_plain(line)}")
    if view.closed_at_ms is not None:
        screen.line(f"    {view.state.value}")
        return
    default = view.default_action.value.replace("_", " ")
    screen.line(f"    until {until:%Y-%m-%d %H:%M:%S}, then: {default}")


def action_of(view: HumanView, *, accept: bool, decline: bool, cancel: bool) -> HumanAction:
    """Return the chosen action, asking for it when no option names one."""
    chosen = [
        action for action, said in zip(HumanAction, (accept, decline, cancel), strict=True) if said
    ]
    if len(chosen) > 1:
        raise InvalidRequest("choose one of --accept, --decline, --cancel", code="usage")
    _say(f"{view.requester_agent} asks ({view.kind.value}):\n{_plain(view.prompt)}\n")
    while not chosen:
        word = _line("(a)ccept, (d)ecline or (c)ancel? ").strip().lower()[:1]
        chosen = [_WORDS[word]] if word in _WORDS else []
    return chosen[0]


def typed(view: HumanView) -> msgspec.Raw:
    """Return the content, one question for each property of the requested schema."""
    schema = json.loads(bytes(view.requested_schema))
    properties = schema.get("properties") if isinstance(schema, dict) else None
    content: dict[str, JsonValue] = {}
    for name, rule in (properties or {}).items():
        known = rule if isinstance(rule, dict) else {}
        text = _value(view, name, known)
        if text or name in schema.get("required", ()):
            content[name] = _converted(name, text, known)
    return msgspec.Raw(json.dumps(content, ensure_ascii=False).encode())


def _value(view: HumanView, name: str, rule: dict[str, JsonValue]) -> str:
    choices = rule.get("enum")
    shown = f" {json.dumps(choices, ensure_ascii=False)}" if isinstance(choices, list) else ""
    prompt = _plain(f"{rule.get('title') or name}{shown}: ")
    if view.kind in _SECRET:
        return getpass.getpass(prompt)
    return _line(prompt)


def _converted(name: str, text: str, rule: dict[str, JsonValue]) -> JsonValue:
    kind = rule.get("type")
    if kind == "boolean":
        return text.strip().lower() in {"y", "yes", "true", "1"}
    if kind in {"integer", "number", "array", "object"}:
        try:
            value: JsonValue = json.loads(text)
        except ValueError:
            raise InvalidRequest(f"{name} must be a JSON {kind}", code="bad-content") from None
        return value
    return text


def _plain(text: str) -> str:
    """Return text without control characters: an agent wrote it, a terminal obeys them."""
    return "".join(each if each.isprintable() or each == "\n" else " " for each in text)


def _line(prompt: str) -> str:
    _say(prompt)
    line = sys.stdin.readline()
    if not line:
        raise InvalidRequest("no answer was typed", code="usage")
    return line.rstrip("\n")


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
