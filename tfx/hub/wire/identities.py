"""Branches, PRs and commits in one spelling each, so that the same thing is known as the same.

Pure; knows no task. The spelling is the one that is stored and shown: it still leads where the
author's own led.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_HEADS: Final = "refs/heads/"
_PORTS: Final = MappingProxyType({"http": 80, "https": 443})
_PAGE: Final = re.compile(
    r"(?P<page>.+/(?:pull|pulls|merge_requests|pull-requests)/\d+)(?P<tab>/.*)?", re.DOTALL
)
"""The page of a PR and what follows its number: a tab of the same page."""
_SHORT: Final = re.compile(r"[\w.-]+(?:/[\w.-]+)+[#!]\d+")
_HEX: Final = re.compile(r"[0-9A-Fa-f]{7,64}")


def branch_of(text: str) -> str:
    """Return a branch without space around it and without `refs/heads/` (WK-K5).

    `origin/x` stays: it may be the name of a local branch.
    """
    return text.strip().removeprefix(_HEADS) or text.strip()


def pr_of(text: str) -> str:
    """Return a PR's address as that of its page; other texts only without space around (WK-K5).

    Scheme and host are in lower case; the default port, a name or password, the fragment, `/` at
    the end and `.git` go; of a PR's page also its tabs and its query. The scheme stays: a forge may
    have no other.
    """
    kept = text.strip()
    if not is_web(kept):
        return kept
    try:
        parts = urlsplit(kept)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return kept
    if not host:
        return kept
    place = f"[{host}]" if ":" in host else host
    if port is not None and port != _PORTS[parts.scheme.lower()]:
        place = f"{place}:{port}"
    path, query = _path_of(parts)
    return urlunsplit((parts.scheme.lower(), place, path, query, ""))


def commit_of(text: str) -> str:
    """Return a commit without space around it, a hash in lower case."""
    kept = text.strip()
    return kept.lower() if _HEX.fullmatch(kept) else kept


def output_of(text: str) -> str:
    """Return what shall be brought about: the address of a PR as such, else the text."""
    return pr_of(text)


def any_text(text: str) -> str:
    """Return a text as it is: a file or a link is nobody's alone."""
    return text


NORMAL: Final[Mapping[str, Callable[[str], str]]] = MappingProxyType(
    {"branch": branch_of, "pr": pr_of, "commit": commit_of, "output": output_of}
)


def normal(kind: str, text: str) -> str:
    """Return the one spelling of what has a kind; what is blank becomes empty."""
    return NORMAL.get(kind, any_text)(text)


def spell(request: msgspec.Struct, **kinds: str) -> None:
    """Give fields of a request, each named with its kind, their one spelling.

    Raises ValueError naming a field that is blank: the decoder refuses the request with it (H-28).
    """
    for field, kind in kinds.items():
        text: str | None = getattr(request, field)
        if not text:
            continue
        spelled = normal(kind, text)
        if not spelled:
            raise ValueError(f"{field} is blank")
        msgspec.structs.force_setattr(request, field, spelled)


def is_web(text: str) -> bool:
    """Say whether a text is a web address."""
    return text[:8].lower().startswith(("http://", "https://"))


def spellings(kind: str, text: str) -> tuple[tuple[str, str, str], bool]:
    """Return three texts that all mean what the spelling means, and whether case tells them apart.

    `http` and `https` lead to the same page, and forges do not tell the case of owner and
    repository: so nothing but the case of addresses and of `owner/repo#7` is ignored.
    """
    if is_web(text):
        bare = text.partition("://")[2]
        return (bare, f"http://{bare}", f"https://{bare}"), False
    if kind == "pr" or _SHORT.fullmatch(text):
        return (text, f"http://{text}", f"https://{text}"), False
    return (text, text, text), True


def _path_of(parts: SplitResult) -> tuple[str, str]:
    path = parts.path.replace(".git/", "/").rstrip("/").removesuffix(".git")
    page = _PAGE.fullmatch(path)
    return (path, parts.query) if page is None else (page["page"], "")
