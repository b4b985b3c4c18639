"""One call of an operation about work, by whoever speaks, and its answer.

Fills in who and where; draws nothing and decides no right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

import msgspec

from tfx.cli.durations import milliseconds_within
from tfx.cli.hub.calls import Answered
from tfx.cli.work.conflicts import helped
from tfx.cli.work.who import Speaker, Wishes, absolute, board_of, speaker
from tfx.errors import InvalidRequest, TfxError
from tfx.hub.client import HubClient
from tfx.hub.wire.work import WORK_TTL_MS
from tfx.result import Result

if TYPE_CHECKING:
    from tfx.core.paths import Paths

T = TypeVar("T", bound=msgspec.Struct)
E = TypeVar("E", bound=StrEnum)
Fields = Mapping[str, object]


def worked(
    paths: Paths,
    wishes: Wishes,
    name: str,
    response: type[T],
    fields: Fields | Callable[[HubClient, Speaker], Fields],
) -> Result[Answered[T]]:
    """Call an operation as the one who speaks; `fields` may depend on who that is.

    Raises what the hub raises, with a hint in words of the command line.
    """
    with HubClient.of(paths) as client:
        who = speaker(paths, client, wishes)
        more = fields if isinstance(fields, Mapping) else fields(client, who)
        return Result(Answered(called(client, name, {**who.fields, **more}, response)))


def decided(
    paths: Paths, wishes: Wishes, name: str, response: type[T], fields: Fields, *, operator: bool
) -> Result[Answered[T]]:
    """Call an operation as the one who speaks, or as the person at the machine (WK-L20).

    Raises InvalidRequest when both are named.
    """
    if not operator:
        return worked(paths, wishes, name, response, fields)
    if wishes.agent is not None or wishes.session is not None:
        raise InvalidRequest("--operator is the person and no agent", code="usage")
    return ordered(paths, wishes.room, name, response, fields)


def seen(
    paths: Paths,
    wishes: Wishes,
    name: str,
    response: type[T],
    fields: Fields | Callable[[Speaker], Fields],
) -> Result[Answered[T]]:
    """Call an operation that only looks, as the one who speaks."""
    with HubClient.of(paths) as client:
        who = speaker(paths, client, wishes)
        more = fields if isinstance(fields, Mapping) else fields(who)
        return Result(Answered(called(client, name, {**who.place, **more}, response)))


def ordered(
    paths: Paths,
    room: str | None,
    name: str,
    response: type[T],
    fields: Fields | Callable[[HubClient, str], Fields],
) -> Result[Answered[T]]:
    """Call a privileged operation as the person at the machine, with that credential (K-28)."""
    board = board_of(Wishes(room=room))
    with HubClient.of(paths, operator=True) as client:
        more = fields if isinstance(fields, Mapping) else fields(client, board)
        return Result(Answered(called(client, name, {"room": board, **more}, response)))


def called(client: HubClient, name: str, fields: Fields, response: type[T]) -> T:
    """Call an operation; raises what the hub raises, with a hint that is a command."""
    try:
        return client.call_with(name, fields, response)
    except TfxError as error:
        task = fields.get("task")
        raise helped(error, task if isinstance(task, int) else None) from None


def word_of(kind: type[E], given: str, option: str) -> E:
    """Return a word of a fixed set; `-` may stand for `_`.

    Raises InvalidRequest `usage` that names the set.
    """
    text = given.strip().lower().replace("-", "_")
    for each in kind:
        if each.value == text:
            return each
    known = ", ".join(each.value for each in kind)
    raise InvalidRequest(
        f"{option}: {given!r} is none of {known}",
        code="usage",
        details={"field": option, "allowed": [each.value for each in kind]},
    )


def words_of(kind: type[E], given: Iterable[str] | None, option: str) -> list[str]:
    """Return the values of repeated words."""
    return [word_of(kind, each, option).value for each in given or ()]


def ttl_of(text: str | None) -> int | None:
    """Return `--ttl` in milliseconds."""
    return None if text is None else milliseconds_within(text, "--ttl", *WORK_TTL_MS)


def path_of(text: str | None) -> str | None:
    """Return a path as an absolute one (K-4)."""
    return None if text is None else absolute(text)
