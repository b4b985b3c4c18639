"""Find out which agents are there: program, proof of identity, config directory, version, login.

Writes nothing and reads no secret; what to do with an agent is decided elsewhere.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from tfx.agents.binaries import PackageFile, on_path, packages_above
from tfx.agents.model import Agent, Registry
from tfx.agents.versions import AgentVersion, Unknown, package_version, probe_version
from tfx.core.paths import Paths

_PARALLEL_PROBES = 8


class Presence(StrEnum):
    """Whether an agent is installed (S-12, S-15)."""

    INSTALLED = "installed"
    UNKNOWN = "unknown"  # a program of that name is there, but it is not known to be the agent
    ABSENT = "absent"


class Proof(StrEnum):
    """What makes an agent count as installed, the strongest first."""

    PACKAGE = "package"  # its package.json
    OUTPUT = "output"  # its --version names it
    NAME = "name"  # a program of its name, and nothing against it
    CONFIG = "config"  # only its config directory


class Login(StrEnum):
    """Whether somebody is logged in, as far as files and variable names show it (S-13)."""

    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class AuthState:
    """The login of an agent; `file` with owner (uid) and permission bits, where one exists."""

    login: Login
    reason: str
    file: Path | None = None
    uid: int | None = None
    mode: int | None = None


@dataclass(frozen=True, slots=True)
class Detected:
    """What is known of one agent on this machine.

    `program` is the file on PATH, `real` what it leads to. `config_existed` was looked up before
    any program ran. `note` says why the presence is unknown.
    """

    agent: Agent
    presence: Presence
    proof: Proof | None
    program: Path | None
    real: Path | None
    package: PackageFile | None
    config_dir: Path | None
    config_existed: bool
    version: AgentVersion | Unknown
    auth: AuthState
    note: str = ""

    @property
    def is_installed(self) -> bool:
        """True when tfx treats the agent as there."""
        return self.presence is Presence.INSTALLED


def detect(paths: Paths, agents: Iterable[Agent], *, probe: bool = False) -> tuple[Detected, ...]:
    """Return what is known of each agent, in the order given.

    Without `probe` no program runs: PATH, package.json and files are all that is read. With it
    every version that no package.json states is asked for, in parallel (D-93).
    """
    seen = [_look(paths, agent) for agent in agents]
    if not probe:
        return tuple(seen)
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  (costs as much as the rest)

    with ThreadPoolExecutor(_PARALLEL_PROBES) as pool:
        return tuple(pool.map(lambda found: confirm(paths, found), seen))


def confirm(paths: Paths, found: Detected) -> Detected:
    """Return the same finding with its version asked for, and its identity with it (S-14, S-15).

    Nothing runs when a package.json has said it already, or when no output could tell the agent
    from its namesakes.
    """
    rule = found.agent.version
    is_tellable = found.presence is Presence.INSTALLED or (
        found.package is None and rule.line is not None
    )
    if found.program is None or isinstance(found.version, AgentVersion) or not is_tellable:
        return found
    version = probe_version(found.program, rule, paths)
    if rule.line is None or found.proof is Proof.PACKAGE:
        return replace(found, version=version)
    if isinstance(version, AgentVersion):
        return replace(
            found, presence=Presence.INSTALLED, proof=Proof.OUTPUT, version=version, note=""
        )
    if not version.says_otherwise:
        return replace(found, version=version)
    note = f"{found.program} does not say that it is {found.agent.label}"
    return replace(found, presence=Presence.UNKNOWN, proof=None, version=version, note=note)


def identify(paths: Paths, agent: Agent, program: Path) -> Detected:
    """Return what is known of an agent by one of its programs, wherever PATH leads; runs nothing.

    Doctor asks it for each copy that some shell finds.
    """
    return _identify(_nothing(paths, agent), program)


def _nothing(paths: Paths, agent: Agent) -> Detected:
    config_dir = None if agent.config is None else agent.config.resolve(paths)
    # os.path, because Path.is_dir raises where a parent may not be entered
    config_existed = config_dir is not None and os.path.isdir(config_dir)  # noqa: PTH112
    by_config = agent.config_counts and config_existed
    return Detected(
        agent=agent,
        presence=Presence.INSTALLED if by_config else Presence.ABSENT,
        proof=Proof.CONFIG if by_config else None,
        program=None,
        real=None,
        package=None,
        config_dir=config_dir,
        config_existed=config_existed,
        version=Unknown("its program is not on PATH"),
        auth=auth_state(paths, agent),
    )


def _look(paths: Paths, agent: Agent) -> Detected:
    nothing = _nothing(paths, agent)
    search = paths.env.get("PATH", "")
    programs = [hits[0] for name in agent.binaries if (hits := on_path([name], search))]
    findings = [_identify(nothing, program) for program in programs]
    identified = [found for found in findings if found.is_installed]
    return next(iter(identified or findings), nothing)


def _identify(nothing: Detected, program: Path) -> Detected:
    agent = nothing.agent
    found = replace(
        nothing,
        presence=Presence.INSTALLED,
        proof=Proof.NAME,
        program=program,
        real=Path(os.path.realpath(program)),
        version=Unknown("not asked, and no package.json states it"),
    )
    names = {package.name for package in agent.packages if package.registry is Registry.NPM}
    above = tuple(packages_above(program))
    own = next((package for package in above if package.name in names), None)
    if own is not None:
        version = package_version(own, agent.version) or found.version
        return replace(found, proof=Proof.PACKAGE, package=own, version=version)
    if names and above and above[0].is_installed:
        note = f"{program} belongs to the npm package {above[0].name}"
        return replace(found, presence=Presence.UNKNOWN, proof=None, package=above[0], note=note)
    if agent.has_namesakes:
        note = f"other programs are called {program.name} too, and nothing identifies {program}"
        return replace(found, presence=Presence.UNKNOWN, proof=None, note=note)
    return found


def auth_state(paths: Paths, agent: Agent) -> AuthState:
    """Return what files and the names of set variables say of a login; no content is read."""
    auth = agent.auth
    unsure = ""
    for login_file in auth.files:
        path = login_file.place.resolve(paths)
        try:
            status = path.stat()
            is_empty = stat.S_ISDIR(status.st_mode) and not any(path.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            unsure = f"{paths.display(path)}: {error.strerror}"
            continue
        if is_empty:
            continue
        if not login_file.proves_login:
            unsure = f"{paths.display(path)} exists with and without a login"
            continue
        return AuthState(
            Login.PRESENT,
            f"{paths.display(path)} exists",
            path,
            status.st_uid,
            stat.S_IMODE(status.st_mode),
        )
    for variable in auth.variables:
        if paths.env.get(variable):
            return AuthState(Login.PRESENT, f"{variable} is set")
    if auth.elsewhere and (not auth.elsewhere_on or sys.platform in auth.elsewhere_on):
        unsure = unsure or f"it may be in {auth.elsewhere}"
    if unsure:
        return AuthState(Login.UNKNOWN, unsure)
    return AuthState(Login.ABSENT, "no file and no variable holds one")
