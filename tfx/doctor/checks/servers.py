"""`mcp.servers` (--deep): do the stdio MCP servers of others start and answer `initialize`.

Starts each for one answer in a scratch home and ends its whole session; shows no
argument, no variable and no answer of a server.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfx import __version__
from tfx.core import scratch as folders
from tfx.doctor.checks.projects import document_of, entries_in, of_this_project
from tfx.doctor.facts import Facts, InUse
from tfx.doctor.model import MANUAL, Finding, Remedy, Status
from tfx.errors import JsonValue

if TYPE_CHECKING:
    from tfx.agents.model import Expansion, McpTarget
    from tfx.core.listen import Heard

AT_ONCE = 8
_LIMIT_BYTES = 4 * 1024 * 1024
_TAIL_LINES = 3
_TAIL_WIDTH = 200
_SHORTEST_SECRET = 6
# Programs that fetch what they are told to run; without --network they are not started.
_FETCHERS = frozenset(
    {"npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "bun", "deno", "uvx", "uv", "pipx", "docker",
     "podman"}
)  # fmt: skip
_OFFLINE = {"npm_config_offline": "true", "UV_OFFLINE": "1"}
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "tfx-doctor", "version": __version__},
    },
}


@dataclass(frozen=True, slots=True)
class Server:
    """One stdio server as an agent would start it; `path` is the PATH it is started with.

    One that the user has not `approved` in the client is a stranger's code: it is never started.
    """

    target: str
    words: tuple[str, ...]
    variables: Mapping[str, str]
    cwd: Path | None
    path: str
    approved: bool = True


def servers(facts: Facts) -> Iterator[Finding]:
    """Yield whether each stdio server of others starts and answers (D-12, D-92)."""
    found = [server for one in facts.in_use for server in servers_of(facts, one)]
    if not found:
        yield Finding("servers", Status.SKIP, "no agent in use has a stdio server of others")
        return
    with ThreadPoolExecutor(min(AT_ONCE, len(found)), "tfx-server") as pool:
        yield from pool.map(lambda server: _look(facts, server), found)


def servers_of(facts: Facts, one: InUse) -> Iterator[Server]:
    """Yield the stdio servers of an agent: the user's, then those of the project here."""
    if one.agent.mcp is None:
        return
    given = [(name, e, "", True) for name, e in _entries(facts, one.agent.mcp).items()]
    here = of_this_project(facts, one.agent)
    given += [(each.name, each.entry, f" ({each.place})", each.approved) for each in here]
    for name, entry, place, approved in given:
        server = _server(facts, one, f"{name}{place}", entry)
        if server is not None:
            yield replace(server, approved=approved)


def _entries(facts: Facts, target: McpTarget) -> dict[str, Mapping[str, JsonValue]]:
    """Return the servers of others by name; a file that does not parse holds none."""
    from tfx.agents.model import HUB_ENTRY  # noqa: PLC0415  (start-up rule)

    found: dict[str, Mapping[str, JsonValue]] = {}
    read = target.existing(facts.paths)
    for path in read if target.reads.value == "merged" else read[:1]:
        for name, entry in entries_in(document_of(target, path), target.key).items():
            if name != HUB_ENTRY:
                found.setdefault(name, entry)
    return found


def _server(facts: Facts, one: InUse, name: str, entry: Mapping[str, JsonValue]) -> Server | None:
    """Return how an entry is started; None for one that is switched off or has an address."""
    given = entry.get("command", entry.get("cmd"))
    arguments = entry.get("args")
    words = [*given] if isinstance(given, list) else [given] if given else []
    words += arguments if isinstance(arguments, list) else []
    if not words or entry.get("enabled") is False or entry.get("disabled") is True:
        return None
    variables = entry.get("env", entry.get("environment", entry.get("envs")))
    expansion = one.agent.mcp.expansion if one.agent.mcp else None

    def text(value: JsonValue) -> str:
        return _expanded(str(value), expansion, facts.paths.env)

    cwd = entry.get("cwd")
    return Server(
        f"{one.agent.name} {name}",
        tuple(map(text, words)),
        {key: text(value) for key, value in variables.items()}
        if isinstance(variables, dict)
        else {},
        Path(text(cwd)) if isinstance(cwd, str) else None,
        one.programs[0].cell.path_text or "",
    )


def _expanded(text: str, expansion: Expansion | None, env: Mapping[str, str]) -> str:
    """Replace variables as the client does."""
    if expansion is None:
        return text

    def value(found: re.Match[str]) -> str:
        default = (found["default"] or "").removeprefix(":-")
        unset = found[0] if expansion.keeps_unset and not default else default
        return env.get(found["name"], unset)

    return expansion.pattern.sub(value, text)


def _look(facts: Facts, server: Server) -> Finding:
    name = Path(server.words[0]).name
    if not server.approved:
        summary = "not started: not approved in the client, and a project's file is a stranger's"
        return Finding(server.target, Status.SKIP, summary, {"command": name})
    program = _program(server)
    if program is None:
        summary = f"its command {name!r} is not there: the agent cannot start it"
        remedy = Remedy("install it, or give its absolute path in the entry")
        return Finding(server.target, Status.WARN, summary, _details(server), (remedy,), MANUAL)
    if name in _FETCHERS and not facts.options.network:
        summary = f"not started: {name} may fetch it; `--network` allows that"
        return Finding(server.target, Status.SKIP, summary, _details(server))
    try:
        heard = _answer(facts, server, program)
    except OSError as error:
        summary = f"its command cannot be started: {error.strerror or error}"
        return Finding(server.target, Status.WARN, summary, _details(server), (), MANUAL)
    return judge(server, heard, facts.options.timeout_s)


def _program(server: Server) -> Path | None:
    from tfx.shells.binaries import runnable  # noqa: PLC0415  (start-up rule)

    word = server.words[0]
    if "/" in word:
        path = Path(word).expanduser() if word.startswith("~") else Path(word)
        return path if runnable(path) else None
    directories = [entry for entry in server.path.split(os.pathsep) if entry.startswith("/")]
    return next((p for each in directories if runnable(p := Path(each, word))), None)


def _answer(facts: Facts, server: Server, program: Path) -> Heard:
    """Start a server in a scratch home, ask one question, end its whole session."""
    from tfx.agents.versions import scratch_env  # noqa: PLC0415  (start-up rule)
    from tfx.core.listen import listen  # noqa: PLC0415

    with folders.scratch("server") as scratch:
        env = scratch_env(facts.paths, scratch) | {"PATH": server.path}
        env |= {} if facts.options.network else _OFFLINE
        return listen(
            [str(program), *server.words[1:]],
            env=env | dict(server.variables),
            cwd=server.cwd if server.cwd and server.cwd.is_dir() else scratch,
            until=lambda said: _answered(said) is not None,
            say=json.dumps(_INITIALIZE).encode() + b"\n",
            timeout_s=facts.options.timeout_s,
            limit_bytes=_LIMIT_BYTES,
            cancel=facts.cancel,
        )


def _answered(said: bytes) -> Mapping[str, JsonValue] | None:
    """Return the answer to our one question among the lines that were said."""
    for line in said.split(b"\n")[:-1]:
        message = _message(line)
        if message is not None and message.get("id") == 1 and "method" not in message:
            return message
    return None


def _message(line: bytes) -> dict[str, JsonValue] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and value.get("jsonrpc") == "2.0" else None


def judge(server: Server, heard: Heard, timeout_s: float) -> Finding:
    """Return what a server's first words mean; nothing is called broken that a home may mend."""
    answer = _answered(heard.stdout)
    noise = sum(_message(line) is None for line in heard.stdout.split(b"\n") if line.strip())
    details = _details(server) | {"duration_ms": heard.duration_ms, "foreign_lines": noise}
    details["outlived"] = heard.outlived
    if answer is None:
        return _silent(server, heard, timeout_s, details)
    if not isinstance(answer.get("result"), dict):
        summary = "starts, but answers `initialize` with an error"
        return Finding(server.target, Status.WARN, summary, details, (), MANUAL)
    if noise:
        summary = f"answers, but writes {noise} lines that are no message to its standard output"
        remedy = Remedy("let it log to standard error; some clients give up on such a line")
        return Finding(server.target, Status.WARN, summary, details, (remedy,), MANUAL)
    if heard.outlived:
        summary = "answers; something it started in a session of its own still runs"
        remedy = Remedy("look for it with `ps`; tfx ends only what stays in the server's session")
        return Finding(server.target, Status.WARN, summary, details, (remedy,), MANUAL)
    return Finding(server.target, Status.OK, "starts and answers `initialize`", details)


def _silent(
    server: Server, heard: Heard, timeout_s: float, details: dict[str, JsonValue]
) -> Finding:
    details |= {"end": heard.end.value, "code": heard.code, "stderr": _tail(server, heard.stderr)}
    match heard.end.value:
        case "exit":
            summary = f"ended with {heard.code} before it answered, in an empty home"
            remedy = Remedy("see what it says where its agent starts it: it may need its own files")
        case "deadline":
            summary = f"did not answer `initialize` within {timeout_s:g} s"
            remedy = Remedy("give it more time", "tfx doctor mcp.servers --timeout 60")
        case _:
            summary = f"gave no answer: {heard.end.value}"
            remedy = Remedy("look at what it writes to its standard output")
    return Finding(server.target, Status.UNKNOWN, summary, details, (remedy,), MANUAL)


def _details(server: Server) -> dict[str, JsonValue]:
    return {"command": Path(server.words[0]).name, "variables": [*sorted(server.variables)]}


def _tail(server: Server, stderr: bytes) -> list[JsonValue]:
    """Return its last words without the values that the entry gave it."""
    text = stderr.decode("utf-8", "replace")
    for value in sorted((*server.variables.values(), *server.words[1:]), key=len, reverse=True):
        if len(value) >= _SHORTEST_SECRET:
            text = text.replace(value, "***")
    lines = [line for line in text.splitlines() if line.strip()]
    return [line[:_TAIL_WIDTH] for line in lines[-_TAIL_LINES:]]
