"""Wire types of keeping the hub in order: rebuild, snapshot, prune, shutdown.

All of them need the operator credential (K-28).
"""

from __future__ import annotations

from tfx.hub.wire.fields import Repeatable, Request, Response


class RebuildRequest(Repeatable, frozen=True, kw_only=True):
    """Discard and refold the projections."""


class RebuildResult(Response, frozen=True, kw_only=True):
    """What was folded; `skipped` counts events of kinds this program does not know."""

    events: int
    skipped: int
    rows: dict[str, int]
    seconds: float


class RebuildCheckRequest(Request, frozen=True, kw_only=True):
    """Compare without writing."""


class SnapshotRequest(Request, frozen=True, kw_only=True):
    """Copy the database as it is at one moment into `path`: absolute, an empty file of ours."""

    path: str


class SnapshotResult(Response, frozen=True, kw_only=True):
    """What was copied; `seq` is the last event in it."""

    bytes: int
    seq: int


class Difference(Response, frozen=True, kw_only=True):
    """One row that differs, by its key; no values, which may be private."""

    table: str
    key: str
    what: str


class RebuildCheckResult(Response, frozen=True, kw_only=True):
    """`equal` is the answer; the first differences say where to look."""

    equal: bool
    events: int
    skipped: int
    rows: dict[str, int]
    differences: tuple[Difference, ...]
    seconds: float


class PruneRequest(Repeatable, frozen=True, kw_only=True):
    """Forget what is past its keep time."""

    dry_run: bool = True


class PruneResult(Response, frozen=True, kw_only=True):
    """What went, or would go."""

    messages: int
    dead_letters: int
    human_requests: int
    agents: int
    tasks: int
    invocations: int
    events: int
    dry_run: bool


class ShutdownRequest(Repeatable, frozen=True, kw_only=True):
    """Stop the hub in order (H-16)."""


class ShutdownResult(Response, frozen=True, kw_only=True):
    """The hub has begun to stop; it is gone when its lock is free."""

    stopping: bool
    pid: int
