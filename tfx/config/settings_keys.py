"""The keys of config.toml as rows: name, default, variable and what a value has to be (K-19).

Knows neither the file nor the environment; a new setting is one row and one field in settings.py.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tfx.config.settings_model import DEFAULT_HUB_ANSWER_S, DEFAULT_LOG_MIB
from tfx.errors import JsonValue

MAX_PORT = 65_535
MAX_DAYS = 36_500
MAX_ROUNDS = 1_000
MAX_TURNS = 1_000_000

# The words that [route] may use; a test holds them equal to the route table's own.
ROUTE_CLIS = ("codex", "gemini", "claude", "copilot", "opencode")
ROUTE_EFFORTS = ("light", "fast", "normal", "high", "deep")
ROUTE_PROFILES = ("implement", "analyze", "review", "docs", "minimal")
ROUTE_ROLES = (
    *("executor", "build-fixer", "debugger", "deep-executor", "architect", "critic", "planner"),
    *("analyst", "code-reviewer", "quality-reviewer", "security-reviewer", "scientist"),
    *("document-specialist", "scientist-deep", "designer", "writer", "spark", "explore"),
    *("verifier", "test-engineer", "qa-tester"),
)
MAX_ROUTE_TIMEOUT_S = 86_400
MAX_LOG_MIB = 65_536
MAX_HUB_ANSWER_S = 120

TABLES = (
    *("hub", "hub.retention", "setup", "doctor", "route", "route.roles"),
    *(f"route.roles.{role}" for role in ROUTE_ROLES),
)

Check: TypeAlias = Callable[[object], str | None]
"""Returns what a value would have to be, or None when it is that."""


@dataclass(frozen=True, slots=True)
class Key:
    """One setting: K-29 port, H-43 hosts, EV-D1 durability, H-68 notify, H-72 retention.

    `meaning` is for people. `each` checks the elements of a list, `check` everything else.
    `read` turns the text of the environment variable into a value, unchecked. `quiet` keys are
    one of many alike and are listed only where they are set.
    """

    name: str
    meaning: str
    default: JsonValue
    check: Check
    each: Check | None = None
    variable: str | None = None
    read: Callable[[str], JsonValue] = str
    quiet: bool = False

    @property
    def path(self) -> tuple[str, ...]:
        """The key path in the file."""
        return tuple(self.name.split("."))


def _integer(lowest: int, highest: int) -> Check:
    def check(value: object) -> str | None:
        if type(value) is int and lowest <= value <= highest:
            return None
        return f"an integer from {lowest} to {highest}"

    return check


def _word(*words: str) -> Check:
    def check(value: object) -> str | None:
        return None if value in words else " or ".join(f'"{word}"' for word in words)

    return check


def _text(pattern: str, what: str) -> Check:
    allowed = re.compile(pattern)

    def check(value: object) -> str | None:
        return None if isinstance(value, str) and allowed.fullmatch(value) else what

    return check


def _list(value: object) -> str | None:
    return None if isinstance(value, list) else "a list"


def _not_empty(value: object) -> str | None:
    if isinstance(value, list) and value and len({*map(str, value)}) == len(value):
        return None
    return "a list that is not empty and has nothing twice"


def _number(text: str) -> JsonValue:
    return int(text) if text.isascii() and text.isdecimal() else text


def _comma_separated(text: str) -> JsonValue:
    return [part.strip() for part in text.split(",") if part.strip()]


def _flag(value: object) -> str | None:
    return None if isinstance(value, bool) else "true or false"


def _role_keys(role: str) -> tuple[Key, ...]:
    """Return what may be changed of a role of the route table (R-1)."""

    def key(name: str, meaning: str, check: Check) -> Key:
        return Key(f"route.roles.{role}.{name}", f"{meaning} of {role}", None, check, quiet=True)

    return (
        key("cli", "the preferred CLI", _word(*ROUTE_CLIS)),
        key("effort", "the effort class", _word(*ROUTE_EFFORTS)),
        key("timeout_s", "the time-out in seconds", _integer(1, MAX_ROUTE_TIMEOUT_S)),
        key("profile", "the profile", _word(*ROUTE_PROFILES)),
    )


def _retention(name: str, what: str, days: int) -> Key:
    return Key(
        f"hub.retention.{name}_days",
        f"days that {what} are kept; 0 keeps them for ever",
        days,
        _integer(0, MAX_DAYS),
    )


KEYS = (
    Key(
        "hub.port",
        "the one port to listen on, 0 for any free one; without it 27888 is preferred",
        None,
        _integer(0, MAX_PORT),
        variable="TFX_HUB_PORT",
        read=_number,
    ),
    Key(
        "hub.allow_hosts",
        "names besides loopback that a request may have as its Host",
        [],
        _list,
        each=_text(r"[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]", "a host name without a port"),
        variable="TFX_HUB_ALLOW_HOSTS",
        read=_comma_separated,
    ),
    Key(
        "hub.durability",
        'what an answer promises: "normal" survives a crash of the hub, "full" a power loss too',
        "normal",
        _word("normal", "full"),
        variable="TFX_HUB_DURABILITY",
    ),
    Key(
        "hub.notify",
        "a command and its arguments, run once for each human request, text on stdin",
        [],
        _list,
        each=_text(r"[^\0]+", "a text that is not empty"),
    ),
    _retention("messages", "closed messages", 14),
    _retention("dead_letters", "dead letters", 30),
    _retention("human_requests", "closed human requests", 90),
    _retention("agents", "retired agents", 30),
    _retention("tasks", "tasks that are done or cancelled", 90),
    Key(
        "hub.review_rounds",
        "how often a task may go into review before it is blocked; 0 for no limit",
        5,
        _integer(0, MAX_ROUNDS),
    ),
    Key(
        "hub.turns",
        "how many automatic turns a task may take before it is blocked; 0 for no limit",
        50,
        _integer(0, MAX_TURNS),
    ),
    Key(
        "setup.skip",
        'what `tfx setup` leaves out: "statusline", "hooks", "skill:NAME", "agent:NAME"',
        [],
        _list,
        each=_text(
            r"statusline|hooks|(?:skill|agent):[a-z0-9]+(?:-[a-z0-9]+)*",
            '"statusline", "hooks", "skill:NAME" or "agent:NAME"',
        ),
    ),
    Key(
        "setup.tools",
        'the tools that the tfx-hub entry offers to agents: "bus", "work"',
        ["bus"],
        _not_empty,
        each=_word("bus", "work"),
    ),
    Key(
        "route.cli",
        'the CLI that `tfx route` uses for every role; "auto" lets each role choose',
        "auto",
        _word("auto", *ROUTE_CLIS),
        variable="TFX_CLI_MODE",
    ),
    Key(
        "route.allow_skip_approvals",
        "whether --dangerously-skip-approvals may be used without a terminal",
        default=False,
        check=_flag,
    ),
    Key(
        "route.log_mib",
        "MiB that each of the two logs of a run is kept to; a longer one loses its middle",
        DEFAULT_LOG_MIB,
        _integer(1, MAX_LOG_MIB),
    ),
    Key(
        "route.hub_answer_s",
        "seconds that the hub may take for an answer before a run goes on without it",
        DEFAULT_HUB_ANSWER_S,
        _integer(1, MAX_HUB_ANSWER_S),
        variable="TFX_ROUTE_HUB_ANSWER_S",
        read=_number,
    ),
    *(key for role in ROUTE_ROLES for key in _role_keys(role)),
)
BY_PATH = {key.path: key for key in KEYS}


def advice(name: str) -> str:
    """Return what helps with an unknown key: the one that was probably meant, or the choice."""
    known = [*TABLES, *(key.name for key in KEYS)]
    table, _, leaf = name.rpartition(".")
    leaves = {other.rpartition(".")[2]: other for other in known}
    siblings = [other for other in known if other.rpartition(".")[0] == table]
    close = difflib.get_close_matches(name, siblings, 1) or [
        leaves[match] for match in difflib.get_close_matches(leaf, leaves, 1)
    ]
    if close:
        return f"did you mean {close[0]}?"
    where = f"[{table}]" if table else "the file"
    return f"{where} may have {', '.join(siblings)}" if siblings else f"{where} has no keys so far"
