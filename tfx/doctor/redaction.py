"""Take out of a report what must not be pasted: home, user, host, tokens (D-27).

The one place where rows, remedies and tracebacks are cleaned; knows no check.
"""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Mapping
from dataclasses import replace
from socket import gethostname

from tfx.core.paths import Paths
from tfx.doctor.model import Finding, Remedy
from tfx.doctor.secrets import HIDDEN, is_harmless, is_secret_name, without_secrets
from tfx.errors import JsonValue
from tfx.result import printable

_SHORTEST_SECRET = 6
_SHORTEST_NAME = 3
# Names that identify nobody and stand in paths and messages of every machine.
_COMMON = frozenset({"root", "user", "users", "home", "admin", "localhost", "host", "tmp", "tfx"})


class Redactor:
    """Cleans every text of a report; made once for each run."""

    def __init__(self, paths: Paths, *, user: str | None = None, host: str | None = None) -> None:
        home = str(paths.home)
        homes = sorted({home, os.path.realpath(home)} - {"/", ""}, key=len, reverse=True)
        self._homes = [re.compile(re.escape(each) + r"(?![\w.-])") for each in homes]
        self._names = [
            (re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])"), mark)
            for name, mark in (
                (user if user is not None else _user(paths), "<user>"),
                (host if host is not None else gethostname(), "<host>"),
            )
            if len(name) >= _SHORTEST_NAME and name.casefold() not in _COMMON
        ]
        self._secrets = sorted(
            {
                value
                for name, value in paths.env.items()
                if is_secret_name(name)
                and len(value) >= _SHORTEST_SECRET
                and not is_harmless(value)
            },
            key=len,
            reverse=True,
        )

    def text(self, text: str) -> str:
        """Return a text without what identifies the user or opens a door."""
        text = self._opened(text)
        for name, mark in self._names:
            text = name.sub(mark, text)
        return printable(text)

    def _opened(self, text: str) -> str:
        """Return a text without secrets and with the home directory as `~`."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        text = without_secrets(text)
        for home in self._homes:
            text = home.sub("~", text)
        return text

    def value(self, value: JsonValue) -> JsonValue:
        """Return a JSON value with every text in it cleaned."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return self.details(value)
            case list():
                return [self.value(item) for item in value]
            case _:
                return value

    def details(self, details: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return details with every text in them cleaned."""
        return {self.text(name): self._under(name, item) for name, item in details.items()}

    def _under(self, name: str, value: JsonValue) -> JsonValue:
        secret = isinstance(value, str) and is_secret_name(name) and not is_harmless(value)
        return HIDDEN if secret else self.value(value)

    def finding(self, finding: Finding) -> Finding:
        """Return a finding with all its texts cleaned."""
        return replace(
            finding,
            target=self.text(finding.target),
            summary=self.text(finding.summary),
            details=self.details(finding.details),
            remedies=tuple(self._remedy(remedy) for remedy in finding.remedies),
        )

    def _remedy(self, remedy: Remedy) -> Remedy:
        text = self.text(remedy.text)
        if remedy.command is None or self._is_clean(remedy.command):
            return Remedy(text, remedy.command, remedy.shell)
        return Remedy(f"{text} (the command would tell a name that is hidden here)")

    def _is_clean(self, command: str) -> bool:
        """Say whether a command may be shown; a mark in it would be another command (D-20).

        A name counts as a part of a path only: `hub` in `tfx hub start` is nobody.
        """
        words = (word for word in command.split(" ") if "/" in word)
        named = any(name.search(word) for word in words for name, _ in self._names)
        return not named and self._opened(command) == command == printable(command)


def _user(paths: Paths) -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return paths.env.get("USER", "")
