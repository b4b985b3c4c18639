"""Choose the CLI of a run and spell its command line: preference, fallback, flags it knows.

Runs nothing but `--version` and `--help`, each once per installed version; adds no flag that
switches a safeguard off unless that was asked for (R-3).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tfx.agents.catalogue import find
from tfx.agents.detect import Detected, confirm, detect
from tfx.agents.versions import AgentVersion, Unknown, parse_version
from tfx.core.paths import Paths
from tfx.core.process import run
from tfx.errors import AgentUnavailable, InvalidRequest, JsonValue
from tfx.route.known import remembered
from tfx.route.places import agent_path, searched, usual_directories
from tfx.route.table import CliRow, Role, Table, Verb

_HELP_TIMEOUT_S = 30
_HELP_LIMIT_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Chosen:
    """The CLI of a run: where it is, which version, and the PATH that its process gets."""

    row: CliRow
    program: Path
    version: str | None
    path: str

    def knows(self, paths: Paths, flag: str) -> bool:
        """Say whether the installed version's own help has what a flag needs (R-1)."""
        needed = self.row.needs.get(flag)
        if needed is None:
            return True
        return re.search(needed, self._help(paths), re.MULTILINE) is not None

    def _help(self, paths: Paths) -> str:
        argv = [str(self.program), *self.row.help]
        env = {**paths.env, "PATH": self.path, "NO_COLOR": "1"}

        def ask() -> str:
            try:
                done = run(argv, env=env, timeout_s=_HELP_TIMEOUT_S, limit_bytes=_HELP_LIMIT_BYTES)
            except OSError:
                return ""
            return (done.stdout + done.stderr).decode("utf-8", "replace")  # opencode: stderr

        return remembered(paths, self.program, " ".join(self.row.help), ask)


def choose(paths: Paths, table: Table, role: Role, forced: str) -> Chosen:
    """Return the CLI for a role: the forced one, else the preferred, else the first installed.

    Raises AgentUnavailable with what was looked for when there is none (R-2).
    """
    where = searched(paths)
    wanted = [role.cli, *(name for name in table.order if name != role.cli)]
    if forced != "auto":
        wanted = [table.cli(forced).name]
    notes: list[str] = []
    for name in wanted:
        found = _identified(where, name)
        if found.is_installed and found.program is not None:
            version = found.version.text if isinstance(found.version, AgentVersion) else None
            path = agent_path(paths, found.program)
            return Chosen(table.cli(name), found.program, version, path)
        if found.note:
            notes.append(found.note)
    raise _nothing(paths, role, wanted, forced, notes)


def _identified(where: Paths, name: str) -> Detected:
    """Return what is known of a CLI; its `--version` is asked once per installed file."""
    (found,) = detect(where, [find(name)])
    if found.program is None or isinstance(found.version, AgentVersion):
        return found
    program = found.program

    def ask() -> str:
        sure = confirm(where, found)
        version = sure.version.text if isinstance(sure.version, AgentVersion) else ""
        return json.dumps([sure.is_installed, version, sure.note])

    is_installed, text, note = json.loads(remembered(where, program, "--version", ask))
    sure = found if is_installed == found.is_installed else confirm(where, found)
    version = parse_version(text, found.agent.version.build_mark) if text else None
    return replace(sure, version=version or Unknown("not stated"), note=note)


def _nothing(
    paths: Paths, role: Role, wanted: Sequence[str], forced: str, notes: Sequence[str]
) -> AgentUnavailable:
    callers = [entry for entry in paths.env.get("PATH", "").split(":") if entry]
    looked = [*callers, *(str(one) for one in usual_directories(paths))]
    forcing = "" if forced == "auto" else f"; {forced} is forced by --cli, TFX_CLI_MODE or [route]"
    seen = f" ({'; '.join(notes)})" if notes else ""
    directories: list[JsonValue] = [*dict.fromkeys(looked)]
    names: list[JsonValue] = [*wanted]
    return AgentUnavailable(
        f"no usable CLI for role {role.name}: looked for {', '.join(wanted)} on PATH and in the"
        f" usual directories{seen}{forcing}",
        code="no-usable-cli",
        hint="install one of them, or name the directories to look into in TFX_ROUTE_DIRS",
        details={"role": role.name, "looked_for": names, "directories": directories},
    )


@dataclass(frozen=True, slots=True)
class Wish:
    """What a command line has to say; `servers_off` of all `servers` are to be left out."""

    verb: Verb
    effort: str
    skip_approvals: bool = False
    servers: tuple[str, ...] = ()
    servers_off: tuple[str, ...] = ()


def command_line(paths: Paths, chosen: Chosen, wish: Wish) -> tuple[str, ...]:
    """Return the arguments of a run, the program first; the prompt is not among them (R-4).

    Raises InvalidRequest when approvals are to be skipped and the CLI has no way known to do so.
    """
    row = chosen.row
    skip = row.skip_approvals if wish.skip_approvals else ()
    if wish.skip_approvals and not (skip and chosen.knows(paths, "skip_approvals")):
        raise InvalidRequest(
            f"{row.name} has no flag here that skips approvals",
            code="flag-unknown",
            hint=f"{row.name} --help",
        )
    review = row.review if wish.verb is Verb.REVIEW else ()
    parts = (
        row.argv,
        review if review and chosen.knows(paths, "review") else (),
        tuple(_effort(paths, chosen, wish.effort)),
        tuple(_servers(paths, chosen, wish)),
        skip,
        row.last,
    )
    return (str(chosen.program), *(word for part in parts for word in part))


def _effort(paths: Paths, chosen: Chosen, effort: str) -> Iterator[str]:
    value = chosen.row.efforts.get(effort)
    if value is not None and chosen.knows(paths, "effort"):
        yield from (word.replace("{}", value) for word in chosen.row.effort)


def _servers(paths: Paths, chosen: Chosen, wish: Wish) -> Iterator[str]:
    """Yield the words that leave servers out, where the CLI can do that."""
    row = chosen.row
    if not wish.servers_off:
        return
    if row.server_off and chosen.knows(paths, "server_off"):
        for name in wish.servers_off:
            yield from (word.replace("{}", name) for word in row.server_off)
    elif row.servers_only and chosen.knows(paths, "servers_only"):
        for name in (name for name in wish.servers if name not in wish.servers_off):
            yield from (word.replace("{}", name) for word in row.servers_only)
