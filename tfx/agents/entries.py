"""The hub entry in each client's own spelling: the shapes the rows name, and the one builder.

Knows no file and no agent by name; a shape is a pure function from a connection to JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from tfx.agents.model import Agent, Entry, Expansion, Http, Stdio
from tfx.errors import InvalidRequest, JsonValue

_EXPANDED = "value-expanded"
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")


def mcp_entry(
    agent: Agent, connection: Stdio | Http, *, env: Mapping[str, str] | None = None
) -> JsonValue:
    """Return the value of `tfx-hub` for an agent, exactly as the client wants it (setup 2.3).

    `env` is the environment the client is expected to run in. Raises InvalidRequest when the
    shape is not known, the command is relative (K-18), the token is not URL-safe (S-21), or the
    client would replace a part of a value: variables that `env` holds, all of them without it.
    """
    _refuse_unsafe(connection)
    target = agent.mcp
    if target is not None and target.expansion is not None:
        _refuse_expanded(agent, target.expansion, connection, env)
    match connection:
        case Stdio() if target is not None and target.stdio is not None:
            return target.stdio.build(connection)
        case Http() if target is not None and target.http is not None:
            return target.http.build(connection)
        case _:
            transport = "stdio" if isinstance(connection, Stdio) else "http"
            raise InvalidRequest(
                f"the {transport} entry of {agent.label} is not known",
                code="shape-unknown",
                details={"agent": agent.name, "transport": transport},
            )


def entry_or_refusal(
    agent: Agent, connection: Stdio | Http, *, env: Mapping[str, str]
) -> JsonValue | InvalidRequest:
    """Return the entry as `mcp_entry` does, or its refusal where the client would change it.

    That is a matter of this agent alone; what else is wrong is raised.
    """
    try:
        return mcp_entry(agent, connection, env=env)
    except InvalidRequest as error:
        if error.reason != _EXPANDED:
            raise
        return error


def entry_by_variable(agent: Agent, url: str, variable: str) -> JsonValue | None:
    """Return an HTTP entry that names a variable instead of the token, or None (S-23)."""
    if agent.mcp is None or agent.mcp.by_variable is None:
        return None
    return agent.mcp.by_variable(url, variable)


def _refuse_unsafe(connection: Stdio | Http) -> None:
    if isinstance(connection, Http) and _TOKEN.fullmatch(connection.token) is None:
        raise InvalidRequest("a bus token holds letters, digits, - and _ only", code="unsafe-token")
    if isinstance(connection, Stdio) and not connection.command.startswith("/"):
        raise InvalidRequest(
            f"the command of an entry must be an absolute path: {connection.command!r}",
            code="relative-command",
        )


def _refuse_expanded(
    agent: Agent, expansion: Expansion, connection: Stdio | Http, env: Mapping[str, str] | None
) -> None:
    for text in _texts(connection):
        for found in expansion.pattern.finditer(text):
            is_unset = env is not None and found["name"] not in env
            if expansion.keeps_unset and is_unset and not found["default"]:
                continue
            raise InvalidRequest(
                f"{agent.label} would replace {found[0]!r} in {text!r}",
                code=_EXPANDED,
                hint="install tfx under a path without such text",
                details={"agent": agent.name, "text": text},
            )


def _texts(connection: Stdio | Http) -> Iterator[str]:
    if isinstance(connection, Http):
        yield connection.url
        return
    yield connection.command
    yield from connection.args
    yield from connection.env.values()


def _headers(http: Http) -> Entry:
    return {"Authorization": f"Bearer {http.token}"}


def _command(stdio: Stdio) -> Entry:
    entry: Entry = {"command": stdio.command, "args": [*stdio.args]}
    if stdio.env:
        entry["env"] = {**stdio.env}
    return entry


def plain_stdio(stdio: Stdio) -> Entry:
    """Spell it with `command`, `args`, `env`: Gemini, Qwen, Amp, Codex, Cursor and others."""
    return _command(stdio)


def typed_stdio(stdio: Stdio) -> Entry:
    """Spell it with a leading `type`: Claude."""
    return {"type": "stdio", **_command(stdio)}


def copilot_stdio(stdio: Stdio) -> Entry:
    """Spell it as type `local` with all tools: Copilot."""
    return {"tools": ["*"], "type": "local", **_command(stdio)}


def opencode_stdio(stdio: Stdio) -> Entry:
    """Spell it with one argument vector and `environment`: opencode."""
    entry: Entry = {"type": "local", "command": [stdio.command, *stdio.args]}
    if stdio.env:
        entry["environment"] = {**stdio.env}
    return entry


def goose_stdio(stdio: Stdio) -> Entry:
    """Spell it as an extension: Goose."""
    return {"type": "stdio", "cmd": stdio.command, "args": [*stdio.args]}


def plain_http(http: Http) -> Entry:
    """Spell it with `url` and `headers`: Amp, Cursor."""
    return {"url": http.url, "headers": _headers(http)}


def typed_http(http: Http) -> Entry:
    """Spell it as type `http`: Claude, Gemini."""
    return {"type": "http", **plain_http(http)}


def copilot_http(http: Http) -> Entry:
    """Spell it as type `http` with all tools: Copilot."""
    return {"tools": ["*"], "type": "http", **plain_http(http)}


def opencode_http(http: Http) -> Entry:
    """Spell it as type `remote`: opencode."""
    return {"type": "remote", **plain_http(http)}


def qwen_http(http: Http) -> Entry:
    """Spell it with `httpUrl`; `url` would mean server-sent events: Qwen."""
    return {"httpUrl": http.url, "headers": _headers(http)}


def codex_http(http: Http) -> Entry:
    """Spell it with `http_headers`; an inline `bearer_token` keeps Codex from starting."""
    return {"url": http.url, "http_headers": _headers(http)}


def antigravity_http(http: Http) -> Entry:
    """Spell it with `serverUrl`, which is only believed: Antigravity."""
    return {"serverUrl": http.url, "headers": _headers(http)}


def token_in_braces(shape: Callable[[Http], Entry]) -> Callable[[str, str], Entry]:
    """Spell an HTTP entry with `${VAR}` for the token: Claude, Gemini, Copilot, Qwen."""
    return lambda url, variable: shape(Http(url, f"${{{variable}}}"))


def opencode_reference(url: str, variable: str) -> Entry:
    """Name the variable as `{env:VAR}`: opencode."""
    return opencode_http(Http(url, f"{{env:{variable}}}"))


def codex_reference(url: str, variable: str) -> Entry:
    """Name the variable as a setting of its own: Codex."""
    return {"url": url, "bearer_token_env_var": variable}
