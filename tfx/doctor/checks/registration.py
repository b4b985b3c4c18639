"""`mcp.registration`: our hub entry in each agent, and whether what it names answers.

Configured, listening, speaking HTTP and initialised are separate states (D-105, D-162); servers
of others are never started.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tfx.doctor.checks.drift import differs
from tfx.doctor.checks.projects import at, document_of, kept_for_projects
from tfx.doctor.facts import Facts, InUse
from tfx.doctor.model import MANUAL, Finding, Remedy, Status
from tfx.errors import JsonValue

if TYPE_CHECKING:
    from tfx.agents.model import McpTarget
    from tfx.hub.state import HubState
    from tfx.plan.actions import Action

_OK = 200
_NOT_FOUND = 404
_URL_KEYS = ("url", "httpUrl", "serverUrl")


def registration(facts: Facts) -> Iterator[Finding]:
    """Yield the state of our entry in each agent in use that can have one."""
    actions = _actions(facts)
    for one in facts.in_use:
        if one.agent.mcp is None or not one.agent.writes.mcp:
            continue
        action = actions.get(one.agent.name)
        entries = entries_of(facts, one.agent.mcp)
        if action is not None and action.kind.value not in {"unchanged", "skipped"}:
            yield differs(facts, action, one.agent.name)
        elif not entries:
            yield _none(facts, one, action)
        elif len(entries) > 1:
            yield _several(facts, one, entries)
        else:
            yield from _one(facts, one, entries, recorded=_is_recorded(facts, one))
        for directory, entry in kept_for_projects(facts, one.agent):
            yield _of_project(facts, one, directory, entry)


def _actions(facts: Facts) -> Mapping[str, Action]:
    from tfx.agents.model import HUB_ENTRY  # noqa: PLC0415  (start-up rule)

    plan = facts.wanted.plan
    return {
        agent: action
        for action in (*plan.settled, *plan.actions)
        if action.asset == HUB_ENTRY
        for agent in action.agents
    }


def _is_recorded(facts: Facts, one: InUse) -> bool:
    from tfx.agents.model import HUB_ENTRY  # noqa: PLC0415  (start-up rule)

    records = facts.wanted.manifest.entries.values()
    return any(each.agent == one.agent.name and each.asset == HUB_ENTRY for each in records)


def entries_of(facts: Facts, target: McpTarget) -> dict[Path, Mapping[str, JsonValue]]:
    """Return our entry by the file that holds it; a file that does not parse holds none."""
    found: dict[Path, Mapping[str, JsonValue]] = {}
    read = target.existing(facts.paths)
    for path in read if target.reads.value == "merged" else read[:1]:
        value = at(document_of(target, path), target.entry_key)
        if isinstance(value, dict):
            found[path] = value
    return found


def _none(facts: Facts, one: InUse, action: Action | None) -> Finding:
    if action is not None:
        summary = "the entry cannot be read: its file is not one that tfx can read"
        return Finding(one.agent.name, Status.UNKNOWN, summary, repair=MANUAL)
    status = Status.INFO if facts.wanted.was_set_up else Status.SKIP
    remedy = Remedy("write one", "tfx setup")
    return Finding(one.agent.name, status, "no tfx-hub entry yet", remedies=(remedy,))


def _several(facts: Facts, one: InUse, entries: Mapping[Path, Mapping[str, JsonValue]]) -> Finding:
    names = [facts.paths.display(path) for path in entries]
    return Finding(
        one.agent.name,
        Status.WARN,
        f"tfx-hub stands in {len(names)} files: {', '.join(names)}; the first one counts",
        {"files": list(map(str, entries))},
        (Remedy(f"delete it from {names[-1]} by hand"),),
        MANUAL,
    )


def _one(
    facts: Facts,
    one: InUse,
    entries: Mapping[Path, Mapping[str, JsonValue]],
    *,
    recorded: bool,
) -> Iterator[Finding]:
    path, entry = next(iter(entries.items()))
    name = one.agent.name
    if not recorded:
        yield _foreign(facts, one, path, entry)
    elif url := next((str(entry[key]) for key in _URL_KEYS if key in entry), None):
        yield _address(facts, name, url)
    else:
        yield _stdio(facts, name, entry)


def _foreign(facts: Facts, one: InUse, path: Path, entry: Mapping[str, JsonValue]) -> Finding:
    from tfx.desired import RIVAL_ENTRIES  # noqa: PLC0415  (start-up rule)

    owner = next((r.owner for r in RIVAL_ENTRIES if r.made(json.dumps(entry))), "somebody else")
    return Finding(
        one.agent.name,
        Status.WARN,
        f"the tfx-hub entry in {facts.paths.display(path)} is not of tfx but of {owner}",
        {"file": str(path)},
        (Remedy("take it over, after a backup", "tfx setup --mcp-transport stdio --take-new"),),
        MANUAL,
    )


def _of_project(
    facts: Facts, one: InUse, directory: str, entry: Mapping[str, JsonValue]
) -> Finding:
    """Return what the hub entry of one project does; no command of it is started (D-105)."""
    target = f"{one.agent.name} in {facts.paths.display(Path(directory))}"
    url = next((entry[key] for key in _URL_KEYS if isinstance(entry.get(key), str)), None)
    seen = _stranger(target) if url is None else _address(facts, target, str(url))
    fine = seen.status is Status.OK
    words = "it answers" if fine else seen.summary
    remedy = Remedy(
        f"delete tfx-hub from projects of that directory in {_state_file(facts, one)} by hand, if"
        " you do not need it"
    )
    return replace(
        seen,
        status=Status.INFO if fine else seen.status,
        summary=f"an entry of that project beats the one of tfx: {words}",
        remedies=(*seen.remedies, remedy),
        repair=MANUAL,
    )


def _stranger(target: str) -> Finding:
    return Finding(target, Status.WARN, "it runs a command that tfx did not write")


def _address(facts: Facts, target: str, url: str) -> Finding:
    """Return what an address leads to; the user may have written any text there."""
    try:
        return _http(facts, target, url)
    except ValueError:
        return Finding(target, Status.FAIL, "its address is none")


def _state_file(facts: Facts, one: InUse) -> str:
    files = one.agent.mcp.existing(facts.paths) if one.agent.mcp is not None else ()
    return facts.paths.display(files[0]) if files else "its file"


def _stdio(facts: Facts, name: str, entry: Mapping[str, JsonValue]) -> Finding:
    from tfx.core import process  # noqa: PLC0415  (start-up rule)
    from tfx.shells.binaries import runnable  # noqa: PLC0415

    given = entry.get("command")
    words = [str(word) for word in given] if isinstance(given, list) else [str(given)]
    program = Path(words[0])
    details: dict[str, JsonValue] = {"command": words[0]}
    setup = Remedy("write the entry anew", "tfx setup --mcp-transport stdio --take-new")
    if not program.is_absolute():
        summary = f"its command {words[0]!r} is no absolute path: it fails where PATH lacks it"
        return Finding(name, Status.WARN, summary, details, (setup,), MANUAL)
    if not runnable(program):
        summary = f"its command {program} is not there or cannot be run"
        return Finding(name, Status.FAIL, summary, details, (setup,), MANUAL)
    before = [word for word in words[1:] if word.startswith("-")]
    arguments = [*before, "-m", "tfx"] if "-m" in before else []
    try:
        done = process.run(
            [str(program), *arguments, "--version"],
            env={"PATH": "/usr/bin:/bin", "HOME": str(facts.paths.home)},
            timeout_s=facts.options.timeout_s,
            cancel=facts.cancel,
        )
    except OSError as error:
        summary = f"its command cannot be started: {error.strerror}"
        return Finding(name, Status.FAIL, summary, details, (setup,), MANUAL)
    if not done.ok:
        summary = f"its command does not run: `--version` ended with {done.code}"
        return Finding(name, Status.FAIL, summary, details, (setup,), MANUAL)
    return Finding(name, Status.OK, f"stdio, its command runs: {program}", details)


def _http(facts: Facts, name: str, url: str) -> Finding:
    """Return how far a connection gets: TCP, HTTP, `initialize` (D-162)."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 80
    # of the address as it stands there no more than where it leads (D-27)
    shown = f"{parts.scheme}://{host}:{port}"
    details: dict[str, JsonValue] = {"url": shown, "configured": True}
    if host not in {"127.0.0.1", "localhost"}:
        summary = f"its address is not of this machine: {host}"
        return Finding(name, Status.WARN, summary, details, repair=MANUAL)
    seen = facts.probe
    recorded = seen.recorded if seen.in_use else None
    running = recorded if seen.state.value == "running" else None
    if running is None and recorded is not None and recorded.port == port:
        return _unwell(name, port, details)
    if running is None or running.port != port:
        return _not_our_hub(name, port, running, details)
    details["listening"] = True
    try:
        status, body = _initialize(host, port, parts.path or "/mcp", facts)
    except (OSError, http.client.HTTPException) as error:
        details |= {"http": False, "error": str(error)}
        summary = f"port {port} listens, but does not speak HTTP"
        look = Remedy("see who holds it", "tfx doctor hub.port")
        return Finding(name, Status.FAIL, summary, details, (look,), MANUAL)
    details |= {"http": True, "status": status}
    return _initialised(name, status, body, details)


def _unwell(name: str, port: int, details: dict[str, JsonValue]) -> Finding:
    """Return the finding of our own hub that does not answer as it should; it is sent nothing."""
    summary = f"the hub on port {port} is starting or unwell"
    remedy = Remedy("see how it is", "tfx doctor hub.health")
    return Finding(name, Status.WARN, summary, details, (remedy,), MANUAL)


def _not_our_hub(
    name: str, port: int, running: HubState | None, details: dict[str, JsonValue]
) -> Finding:
    """Return the finding of an address where our hub is not; a stranger is sent nothing (D-1)."""
    from tfx.hub.daemon import ports  # noqa: PLC0415  (start-up rule)

    details["listening"] = ports.is_listening(port)
    if running is not None:
        summary = f"it names port {port}, but the hub runs on {running.port}"
        remedy = Remedy("free the port, then restart the hub", "tfx hub restart")
    elif details["listening"]:
        summary = f"port {port} is held by another program than the hub"
        remedy = Remedy("see by which", "tfx doctor hub.port")
    else:
        summary = f"configured, but nothing listens on port {port}: the hub is not running"
        remedy = Remedy("start the hub", "tfx hub start")
    return Finding(name, Status.WARN, summary, details, (remedy,), MANUAL)


def _initialised(name: str, status: int, body: bytes, details: dict[str, JsonValue]) -> Finding:
    if status == _OK and _protocol(body) is not None:
        return Finding(name, Status.OK, "http, answers `initialize`", details)
    if status == _NOT_FOUND:
        summary = "listening and speaking HTTP, but it has no MCP endpoint at that path"
        remedy = Remedy("use the other form", "tfx setup --mcp-transport stdio")
        return Finding(name, Status.WARN, summary, details, (remedy,), MANUAL)
    shown = "without a protocol version" if status == _OK else f"with HTTP {status}"
    summary = f"listening, but `initialize` is answered {shown}"
    remedy = Remedy("write the entry anew, with the present token", "tfx setup")
    return Finding(name, Status.FAIL, summary, details, (remedy,), MANUAL)


def _protocol(body: bytes) -> str | None:
    """Return the protocol version of an answer to `initialize`; our hub answers in one JSON."""
    try:
        answer = json.loads(body)
    except ValueError:
        return None
    result = answer.get("result") if isinstance(answer, dict) else None
    version = result.get("protocolVersion") if isinstance(result, dict) else None
    return version if isinstance(version, str) else None


def _initialize(host: str, port: int, path: str, facts: Facts) -> tuple[int, bytes]:
    from tfx.hub import tokens  # noqa: PLC0415  (start-up rule)

    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "tfx-doctor", "version": "1"},
        },
    }
    token = tokens.read_bus(facts.paths, facts.probe.files)
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {token}",
    }
    connection = http.client.HTTPConnection(host, port, timeout=facts.options.timeout_s)
    try:
        connection.request("POST", path, json.dumps(request), headers)
        answer = connection.getresponse()
        return answer.status, answer.read(65_536)
    finally:
        connection.close()
