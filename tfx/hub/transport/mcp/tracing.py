"""The trace of a call as MCP clients write it: a W3C `traceparent` to a trace id, and back (H-60).

Knows neither eras nor the protocol's frames; where a trace is kept is the store's matter.
Source: W3C Trace Context; MCP 2026-07-28 keeps the key free for it in `_meta`, and every older
revision lets a server put a key without a prefix there.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from tfx.hub.wire.humans import HumanInputResult
from tfx.hub.wire.messages import AskResult, HandoffResult, PollResult, PublishResult
from tfx.hub.wire.views import ReadMessageResult
from tfx.hub.wire.work import TaskResult

_TRACEPARENT: Final = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-[0-9a-f]{2}"
    r"(?P<rest>-.*)?",
    re.DOTALL,
)
_NO_TRACE: Final = "0" * 32
_NO_SPAN: Final = "0" * 16


def trace_in(traceparent: str) -> str | None:
    """Return the trace id of a traceparent; None for a text that is none, which is ignored.

    A later version may go on behind the flags; `ff` and ids of zeros are never valid.
    """
    found = _TRACEPARENT.fullmatch(traceparent)
    if found is None or found["version"] == "ff" or (found["version"] == "00" and found["rest"]):
        return None
    if found["trace"] == _NO_TRACE or found["span"] == _NO_SPAN:
        return None
    return found["trace"]


def traceparent_of(result: msgspec.Struct) -> str | None:
    """Return the traceparent of a result that tells of one trace; None for every other.

    The span is the message or question, the latter half of its id; a task is the root of its
    trace. The hub keeps every one, so all count as sampled. A trace id that is no W3C one, made
    up by an agent or taken over from triflux, has none.
    """
    trace, subject = _subject(result)
    traceparent = f"00-{trace}-{subject[-16:]}-01"
    return None if trace_in(traceparent) is None else traceparent


def _subject(result: msgspec.Struct) -> tuple[str, str]:
    """Return the trace of a result and the hub's id of what it tells of, or two empty texts."""
    trace = subject = ""
    match result:
        case PublishResult() | ReadMessageResult():
            trace, subject = result.trace_id, result.message_id
        case PollResult(messages=(message,)):
            trace, subject = message.trace_id, message.message_id
        case AskResult():
            trace, subject = result.trace_id, result.request_message_id
        case HandoffResult():
            trace, subject = result.trace_id, result.handoff_message_id
        case HumanInputResult():
            trace, subject = result.trace_id, result.request_id
        case TaskResult():
            trace = subject = result.task.trace_id
        case _:
            pass
    return trace, subject
