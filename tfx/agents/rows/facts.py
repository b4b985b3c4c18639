"""Short spellings that the rows share; knows no agent."""

from __future__ import annotations

import re

from tfx.agents.model import Evidence, Expansion, LoginFile, MovedBy, Package, Place, Registry

TESTED = Evidence.TESTED
DOCUMENTED = Evidence.DOCUMENTED
UNVERIFIED = Evidence.UNVERIFIED


def npm(name: str, evidence: Evidence = TESTED) -> Package:
    """Return a package of the npm registry."""
    return Package(Registry.NPM, name, evidence)


def pypi(name: str, evidence: Evidence) -> Package:
    """Return a package of PyPI."""
    return Package(Registry.PYPI, name, evidence)


def fixed(default: str, evidence: Evidence = TESTED) -> Place:
    """Return a place that no variable moves."""
    return Place(default, None, evidence)


def movable(default: str, variable: str, inside: str = "", evidence: Evidence = TESTED) -> Place:
    """Return a place that lies at `inside` in the directory a variable names, once it is set."""
    return Place(default, MovedBy(variable, inside, evidence), evidence)


def login(place: Place) -> LoginFile:
    """Return a file that exists only after a login."""
    return LoginFile(place, proves_login=True)


# `${VAR}` and `${VAR:-default}` inside any value of an entry.
EXPANDS_BRACES = Expansion(
    re.compile(r"\$\{(?P<name>\w+)(?P<default>:-[^}]*)?\}"), keeps_unset=True, evidence=TESTED
)

SHARED_SKILLS = fixed(".agents/skills")
