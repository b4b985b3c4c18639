"""Find in any text what opens a door, by its shape and by the name it stands under (D-27).

Knows no user, no home and no report. In doubt a value is hidden: a report loses a word, a door
stays shut.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

HIDDEN = "***"
_SHORTEST_NUMBER = 3

# A name is secret by a part of it, or by one of its words (`MY_KEY`, `dbPass`).
_PART = re.compile(
    r"token|secret|passw|passphrase|passcode|apikey|credential|cookie|bearer"
    r"|auth(?!ors?(?:$|[^a-z]))"
    r"|(?<!mon)(?<!tur)(?<!don)(?<!hot)key(?!board|map|ring|stroke|word)",
    re.IGNORECASE,
)
_WORDS = frozenset(
    {"pass", "pwd", "pw", "cred", "creds", "sig", "signature", "jwt", "otp", "pat", "dsn", "pin"}
)
_WORD_ENDS = ("pass", "pwd")
_NO_SECRETS = frozenset({"pwd", "oldpwd", "bypass", "compass"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# What tfx itself says of a secret, and types; none of them is a secret.
_STATES = frozenset(
    {
        "a",
        "absent",
        "an",
        "and",
        "basic",
        "bearer",
        "cannot",
        "couldn't",
        "did",
        "does",
        "env",
        "expired",
        "false",
        "gone",
        "has",
        "in",
        "is",
        "it",
        "line",
        "made",
        "missing",
        "mode",
        "no",
        "none",
        "not",
        "null",
        "of",
        "ok",
        "others",
        "permission",
        "present",
        "renew",
        "set",
        "text",
        "the",
        "there",
        "there's",
        "to",
        "true",
        "unset",
        "was",
        "which",
        "yes",
    }
)

_ESCAPED = r"\\(?:[\s\S]|\Z)"
_QUOTED = (
    r'\\"(?:(?!\\").)*(?:\\"|$)'
    rf'|"(?:{_ESCAPED}|[^"\\\n])*(?:"|$)'
    rf"|'(?:{_ESCAPED}|[^'\\\n])*(?:'|$)"
)
_BRACKETED = r"\[[^\]]*(?:\]|\Z)|\{[^}]*(?:\}|\Z)|\$\([^)]*(?:\)|$)"
_VALUE = rf"(?:(?:{_BRACKETED}|{_QUOTED}|\\.|[^\s\"'\\])+)"
_FLAGS = re.IGNORECASE | re.MULTILINE
_BETWEEN = r"(?:[ \t]*\\?\n[ \t]*|\\*[\"'],?\s*\\*[\"']|\\*[\"']?,?[ \t]+\\*[\"']?)"


def is_secret_name(name: str) -> bool:
    """Say whether a variable, key or option of this name holds a secret."""
    plain = name.strip("-").casefold()
    if plain in _NO_SECRETS:
        return False
    words = [word.casefold() for word in _WORD.findall(name)]
    return (
        _PART.search(name) is not None
        or not _WORDS.isdisjoint(words)
        or any(w.endswith(_WORD_ENDS) and w not in _NO_SECRETS for w in words)
    )


def is_harmless(value: str) -> bool:
    """Say whether a value under a secret name is none: a place, a state word, a count."""
    bare = value.strip("\"'\\`,;.:()[]{}")
    return (
        not bare
        or bare.startswith(HIDDEN)
        or bare.casefold() in _STATES
        or (bare.isdigit() and len(bare) < _SHORTEST_NUMBER)
        or _is_place(bare)
    )


def _is_place(value: str) -> bool:
    """Say whether it is a path: it starts like one and has the signs of a path only."""
    return re.fullmatch(r"~?(?:/[\w.@ <>-]+)+/?|~", value) is not None and (
        value.startswith("~") or value.count("/") > 1
    )


@dataclass(frozen=True, slots=True)
class _Rule:
    """Where a name ends, and what the value behind it looks like; without a name any value."""

    head: re.Pattern[str]
    value: re.Pattern[str]

    def hide(self, text: str) -> str:
        """Return the text with each value hidden; one under a harmless name is looked into."""
        parts, at = [], 0
        while (head := self.head.search(text, at)) is not None:
            value = self.value.match(text, head.end()) if self._is_secret(head) else None
            if value is None or self._is_harmless(head, value[0]):
                on = head.end() if head[0] else head.end() + 1
                parts.append(text[at:on])
                at = on
            else:
                parts += [text[at : head.end()], HIDDEN]
                at = value.end()
        return "".join([*parts, text[at:]])

    def _is_secret(self, head: re.Match[str]) -> bool:
        name = head.groupdict().get("name")
        return name is None or is_secret_name(name)

    def _is_harmless(self, head: re.Match[str], value: str) -> bool:
        user = head.groupdict().get("user", "")
        if user.isdigit() and value.isdigit():  # the ids of a user and a group
            return True
        return "name" in head.groupdict() and is_harmless(value)


def _rule(head: str, value: str = _VALUE, flags: int = 0) -> _Rule:
    return _Rule(re.compile(head, _FLAGS), re.compile(value, _FLAGS | flags))


_RULES: Sequence[_Rule] = (
    # -----BEGIN … PRIVATE KEY-----
    _rule(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----", r".+?(?=-----END|\Z)", re.DOTALL),
    # https://user:password@host, user:password@host, https://host/?name=value
    _rule(r"[a-z][a-z0-9+.-]{0,20}://(?=[^/\s'\"]+@)", r"[^/\s'\"]+(?=@)"),
    _rule(r"(?<![\w/@.:-])(?=[\w.+-]+:[^\s@/:'\"]+@[a-z0-9\[])", r"[\w.+-]+:[^\s@/:'\"]+(?=@)"),
    _rule(r"(?<=[?&;])(?P<name>[\w.%~-]+)=", r"[^&;\s\"'<>\\]+"),
    # a header runs to the end of its line or quote
    _rule(
        r"(?<![\w-])(?P<name>(?:proxy-)?authorization|(?:set-)?cookie2?|x-[\w-]++)[ \t]*:[ \t]*",
        r"[^\s\"'\\|>][^\"'\n\\]*",
    ),
    _rule(r"\b(?:bearer|basic|digest)\s+", r"[a-z0-9._~+/=-]{6,}"),
    # name=value, "name": "value", name: value
    _rule(
        r"(?<![\w.-])(?P<name>[\w.-]++)(?:\\*[\"'`\]])*[ \t]*(?::=|=>|[=:])[ \t]*"
        r"(?:[>|][+-]?[ \t]*)?(?:\n[ \t]+(?:-[ \t]+)?)?"
    ),
    # --name value, "--name", "value"; -u user:password
    _rule(rf"(?<![\w-])--?(?P<name>[a-z][\w.-]*){_BETWEEN}(?!--?[a-z])"),
    _rule(
        rf"(?<![\w-])(?:-u|--(?:proxy-)?user)(?:{_BETWEEN}|=|)(?P<user>[\w.@+\\-]+):",
        r"[^\s\"']+",
    ),
    _rule(r"\bsshpass[ \t]+-p[ \t]*"),
    # set -gx NAME value, setenv NAME value, … config set name value; a line of .netrc
    _rule(r"\b(?:set|setenv|config(?![ \t]+set\b))\b(?:[ \t]+-\S+)*[ \t]+(?P<name>\S+)[ \t]+"),
    _rule(r"\b(?:login|account)[ \t]+\S+\s+password[ \t]+"),
    # tokens that tell themselves
    _rule(
        r"\b(?=sk[-_]|gh[opsur]_|github_pat_|glpat-|xox[a-z]-|npm_|hf_|AIza|A[KS]IA|eyJ)",
        r"sk[-_][a-z0-9_-]{8,}|gh[opsur]_[a-z0-9]{8,}|github_pat_\w{8,}"
        r"|glpat-[\w-]{8,}|xox[a-z]-[\w-]{8,}|npm_[a-z0-9]{20,}|hf_[a-z0-9]{16,}|AIza[\w-]{20,}"
        r"|A[KS]IA[A-Z0-9]{12,}|eyJ[\w-]{8,}\.[\w-]+\.?[\w-]*",
    ),
)


def without_secrets(text: str) -> str:
    """Return a text in which each secret is `***`."""
    for rule in _RULES:
        text = rule.hide(text)
    return text
