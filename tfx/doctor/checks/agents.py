"""Each agent that is in use: its copies, does it start, its version, how it was installed, login.

Runs nothing but `--version` in a scratch home; reads no secret and updates nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tfx.doctor.checks.copies import duplicates
from tfx.doctor.checks.install import method
from tfx.doctor.checks.login import login
from tfx.doctor.checks.versions import versions
from tfx.doctor.facts import Facts, InUse, Program
from tfx.doctor.model import MANUAL, Check, Explanation, Finding, Group, Remedy, Status
from tfx.doctor.words import command
from tfx.errors import JsonValue

if TYPE_CHECKING:
    from tfx.shells.binaries import Problem


def starts(facts: Facts) -> Iterator[Finding]:
    """Yield whether `--version` of each copy that wins really runs (D-96)."""
    from tfx.agents.versions import AgentVersion  # noqa: PLC0415  (start-up rule)

    facts.ask_versions()
    for one, program in _each(facts):
        target = _target(facts, one, program)
        problem = _problem(program)
        answer = facts.answer(program)
        details: dict[str, JsonValue] = {
            "argv": f"{program.installation.paths[0]} --version",
            "cell": program.cell.label,
        }
        if isinstance(answer, AgentVersion):
            yield Finding(target, Status.OK, f"answers {answer.text}", details)
            continue
        details |= {"reason": answer.reason, "output": answer.tail}
        if answer.says_otherwise and program.detected.package is not None:
            yield Finding(target, Status.INFO, "runs, but prints no version", details)
            continue
        cause = f" ({problem.fault.value}: {problem.about})" if problem else ""
        hangs = "did not end" in answer.reason
        status = Status.UNKNOWN if hangs or answer.says_otherwise else Status.FAIL
        yield Finding(
            target,
            status,
            f"{answer.reason}{cause}",
            details,
            _start_remedies(facts, program, problem),
            MANUAL,
        )


def _start_remedies(facts: Facts, program: Program, problem: Problem | None) -> tuple[Remedy, ...]:
    manager = program.installation.manager
    path = program.installation.paths[0]
    if problem is not None and problem.fault.value == "no-interpreter":
        text = f"install {problem.about}, or put its directory into the PATH of that shell"
        return (Remedy(text),)
    if manager in {"asdf", "mise", "nodenv", "volta"}:
        tool = {"asdf": "asdf reshim", "mise": "mise reshim", "nodenv": "nodenv rehash"}
        return (
            Remedy("choose a version with the manager of the shim"),
            Remedy("rebuild its shims", tool.get(manager)),
        )
    return (Remedy("see what it says", command(facts.paths.home, path, "--version")),)


def architecture(facts: Facts) -> Iterator[Finding]:
    """Yield binaries of another machine, or without their loader (D-98)."""
    yield from _by_fault(
        facts,
        {"wrong-architecture", "no-loader"},
        fine="made for this machine",
        remedy="install the build for this machine",
    )


def shims(facts: Facts) -> Iterator[Finding]:
    """Yield shims of version managers whose target is not there (D-99)."""
    yield from _by_fault(
        facts,
        {"broken-shim", "dangling-link", "link-loop"},
        fine="leads to a program that is there",
        remedy="reinstall it with the manager that made the shim",
    )


def _by_fault(facts: Facts, faults: set[str], *, fine: str, remedy: str) -> Iterator[Finding]:
    from tfx.shells.installations import installations  # noqa: PLC0415  (start-up rule)

    for one in facts.in_use:
        bad = [
            (copy, problem, cell)
            for copy in installations(facts.matrix, one.binary)
            for cell, problem in copy.problems
            if problem.fault.value in faults
        ]
        if not bad:
            yield Finding(one.agent.name, Status.OK, fine)
            continue
        copy, problem, cell = bad[0]
        wins = bool(copy.wins_in)
        yield Finding(
            one.agent.name,
            Status.FAIL if wins else Status.WARN,
            f"{problem.fault.value}: {problem.about} ({copy.paths[0]})",
            {"fault": problem.fault.value, "cell": cell, "wins": wins},
            (Remedy(remedy),),
            MANUAL,
        )
    yield from _broken_everywhere(facts, faults, remedy)


def _broken_everywhere(facts: Facts, faults: set[str], remedy: str) -> Iterator[Finding]:
    """Yield files of an agent's name that no shell can start, where nothing else is in use."""
    from tfx.agents.catalogue import AGENTS  # noqa: PLC0415  (start-up rule)
    from tfx.shells.installations import installations  # noqa: PLC0415

    used = {one.agent.name for one in facts.in_use}
    for agent in AGENTS:
        if agent.name in used or agent.has_namesakes:
            continue
        for copy in (c for name in agent.binaries for c in installations(facts.matrix, name)):
            for _, problem in copy.problems[:1]:
                if problem.fault.value in faults:
                    yield Finding(
                        agent.name,
                        Status.WARN,
                        f"{problem.fault.value}: {problem.about} ({copy.paths[0]})",
                        {"fault": problem.fault.value, "path": str(copy.paths[0])},
                        (Remedy(remedy),),
                        MANUAL,
                    )


def _each(facts: Facts) -> Iterator[tuple[InUse, Program]]:
    for one in facts.in_use:
        for program in one.programs:
            yield one, program


def _target(facts: Facts, one: InUse, program: Program) -> str:
    if len(one.programs) == 1:
        return one.agent.name
    return f"{one.agent.name} {facts.paths.display(program.installation.paths[0])}"


def _problem(program: Program) -> Problem | None:
    return next((problem for _, problem in program.installation.problems), None)


def _explained(what: str, why: str, by_hand: str) -> Explanation:
    reads = "The PATHs of the probed shells, package.json files, `--version` in a scratch home."
    return Explanation(what, why, reads, by_hand)


CHECKS = (
    Check(
        "cli.duplicates",
        Group.AGENTS,
        "several copies of one agent",
        _explained(
            "The copies of each agent, told apart by real path, and which one wins in which shell.",
            "An older copy in front of a newer one makes updates seem to do nothing.",
            "Put the wanted directory first in PATH. Look where a link leads before removing"
            " anything: two names are often one copy.",
        ),
        duplicates,
        least_s=45,
    ),
    Check(
        "cli.exec",
        Group.AGENTS,
        "each agent starts",
        _explained(
            "Whether `--version` of each copy that wins ends with an answer.",
            "A file that is found may still lack its interpreter, its loader or its version.",
            "Run the command that the row shows and follow what it says.",
        ),
        starts,
        slow=True,
        least_s=45,
    ),
    Check(
        "cli.version",
        Group.AGENTS,
        "version against the minimum, Node against what it asks for",
        _explained(
            "The version of each agent against what tfx relies on, and its Node.",
            "npm silently installs an old agent where Node is too old for the new one.",
            "Upgrade the agent with its own installer; upgrade Node first if the row says so.",
        ),
        versions,
        slow=True,
        least_s=45,
    ),
    Check(
        "cli.arch",
        Group.AGENTS,
        "made for this machine",
        _explained(
            "The machine in the header of each binary against this host's.",
            "A binary of another architecture does not start.",
            "Install the build for this machine.",
        ),
        architecture,
    ),
    Check(
        "cli.shim",
        Group.AGENTS,
        "shims and links lead somewhere",
        _explained(
            "Whether the shims of asdf, mise, nodenv, volta and npm lead to a program.",
            "A shim stays when its target is removed.",
            "Reinstall with the manager, or let it rebuild its shims.",
        ),
        shims,
    ),
    Check(
        "cli.method",
        Group.AGENTS,
        "how each agent was installed",
        _explained(
            "npm, a version manager, Homebrew or the agent's own installer, told by the real"
            " file and its package.json, and whether npm would update that very copy.",
            "An updater that writes into another prefix changes nothing that you run.",
            "Update with the program that installed the copy which wins.",
        ),
        method,
    ),
    Check(
        "cli.auth",
        Group.AGENTS,
        "login, by files and variable names only",
        Explanation(
            "Whether a credential file exists, whose it is, and its mode; else whether a variable"
            " of a known name is set.",
            "An agent without a login fails in every tool call.",
            "Names, owners and modes of files. Never a value, never a keyring.",
            "Log in with the agent's own command.",
        ),
        login,
    ),
)
