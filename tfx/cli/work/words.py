"""Texts that other programs wrote, made safe for a terminal, and the few phrases of all views.

Draws nothing.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

from tfx.cli.durations import duration
from tfx.core.clock import iso

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfx.hub.wire.work import LeaseView, LockView

_MS_PER_S: Final = 1_000
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def safe(text: str) -> str:
    """Return a text in one line without controls: an agent wrote it, and a terminal obeys."""
    return _CONTROL.sub(" ", text)


def ago(at_ms: int) -> str:
    """Return how long ago something was; what seems to come from the future is now."""
    past_ms = _now_ms() - at_ms
    return "just now" if past_ms < _MS_PER_S else f"{duration(past_ms)} ago"


def ends_in(at_ms: int) -> str:
    """Return how soon a lease ends by itself."""
    return f"ends in {duration(max(0, at_ms - _now_ms()))}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def until(lease: LeaseView) -> str:
    """Return when a lease ends by itself."""
    if lease.expires_at_ms is None:
        return "until it is given back"
    return f"until {iso(lease.expires_at_ms)}"


def standing(waits_for: Sequence[str], *, ready: bool) -> str:
    """Return whether a task can be claimed, else what it waits for beside status and holder.

    Those two stand beside it in every view.
    """
    told = ("status ", "held by ")
    return "ready" if ready else safe(", ".join(w for w in waits_for if not w.startswith(told)))


def lock_line(lock: LockView) -> str:
    """Return what stands still, since when and why."""
    what = "the whole room" if lock.task is None else f"task {lock.task}"
    note = f" ({safe(lock.note)})" if lock.note else ""
    return f"{what} is locked by {lock.set_by}, {ago(lock.set_at_ms)}: {lock.reason.value}{note}"
