"""Samples of the last five minutes and counts of this run (H-75, H-76).

Holds no agent id and no payload; knows no store.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from random import randrange
from time import monotonic
from typing import TYPE_CHECKING, Final

from tfx.hub.wire.views import Timing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfx.hub.wire.views import QueuesView

SLOT_S: Final = 5.0
SLOTS: Final = 60
KEPT: Final = 32
FEW: Final = 200
BUCKETS_MS: Final = (1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 1_000.0, 5_000.0, 60_000.0)


class Samples:
    """Durations of the last five minutes, at most so many of each slot, chosen evenly.

    A histogram since the start stands beside them.
    """

    def __init__(self) -> None:
        self._slots: deque[tuple[int, int, list[float]]] = deque()
        self._known: tuple[float, int, Timing] | None = None
        self.buckets = [0] * (len(BUCKETS_MS) + 1)
        self.count = 0
        self.sum_ms = 0.0

    def add(self, value_ms: float) -> None:
        """Record one duration."""
        self.count += 1
        self.sum_ms += value_ms
        self.buckets[bisect_left(BUCKETS_MS, value_ms)] += 1
        slot = int(monotonic() // SLOT_S)
        if not self._slots or self._slots[-1][0] != slot:
            self._slots.append((slot, 0, []))
            if len(self._slots) > SLOTS + 1:
                self._slots.popleft()
        at, seen, kept = self._slots[-1]
        self._slots[-1] = (at, seen + 1, kept)
        if len(kept) < KEPT:
            kept.append(value_ms)
        elif (chosen := randrange(seen + 1)) < KEPT:  # noqa: S311  (a sample is no secret)
            kept[chosen] = value_ms

    def timing(self) -> Timing:
        """Return p50 and p95 of the last five minutes; null without a sample (H-75).

        Many samples are sorted at most once a second, so that status costs the same (H-24).
        """
        now = monotonic()
        if self._known is not None:
            at, count, timing = self._known
            if count == self.count and now - at < SLOT_S:
                return timing
            if timing.samples > FEW and now - at < 1:
                return timing
        since = int(now // SLOT_S) - SLOTS
        recent = [each for each in self._slots if each[0] >= since]
        values = sorted(value for _, _, kept in recent for value in kept)
        timing = Timing(
            samples=sum(seen for _, seen, _ in recent),
            p50_ms=_percentile(values, 50),
            p95_ms=_percentile(values, 95),
        )
        self._known = (now, self.count, timing)
        return timing


class Metrics:
    """What this run of the hub has seen."""

    def __init__(self) -> None:
        self.delivery = Samples()
        self.ask_wait = Samples()
        self.commit = Samples()
        self.refusals: Counter[str] = Counter()
        self.sweep_errors: Counter[str] = Counter()
        self.asks_waited = 0
        self.asks_timed_out = 0

    def asked(self, waited_ms: float, *, answered: bool, waited: bool) -> None:
        """Record how a wait for an answer ended."""
        if not waited:
            return
        self.asks_waited += 1
        if answered:
            self.ask_wait.add(waited_ms)
        else:
            self.asks_timed_out += 1

    @property
    def timeout_rate(self) -> float | None:
        """Asks whose wait ended without an answer, of all that waited; null when none did."""
        return self.asks_timed_out / self.asks_waited if self.asks_waited else None


def prometheus(metrics: Metrics, queues: QueuesView) -> str:
    """Return the metrics as Prometheus text: no label names an agent or a payload (H-76)."""
    lines: list[str] = []

    def family(name: str, kind: str, samples: Sequence[tuple[str, float]]) -> None:
        lines.append(f"# TYPE tfx_hub_{name} {kind}")
        lines.extend(f"tfx_hub_{name}{labels} {value:g}" for labels, value in samples)

    totals = queues.totals
    family("messages_total", "counter", [("", totals.get("messages", 0))])
    family(
        "deliveries_total",
        "counter",
        [
            (f'{{outcome="{name}"}}', totals.get(f"events.delivery_{name}", 0))
            for name in ("claimed", "returned", "acked", "dead", "purged")
        ],
    )
    family("redeliveries_total", "counter", [("", totals.get("redeliveries", 0))])
    for name, label in (("dead", "reason"), ("asks", "type"), ("human", "state")):
        family(
            f"{_FAMILIES[name]}_total",
            "counter",
            [
                (f'{{{label}="{key.partition(".")[2]}"}}', value)
                for key, value in totals.items()
                if key.startswith(f"{name}.")
            ],
        )
    for name, counter, label in (
        ("refusals_total", metrics.refusals, "code"),
        ("sweep_errors_total", metrics.sweep_errors, "chore"),
    ):
        family(name, "counter", [(f'{{{label}="{k}"}}', v) for k, v in sorted(counter.items())])
    for name, value in (
        ("queued", queues.queued),
        ("claimed", queues.claimed),
        ("dead_letters", queues.dead_letters),
        ("pending_human_requests", queues.pending_human_requests),
        ("owed_answers", queues.owed_answers),
        ("open_waits", queues.open_waits),
        ("wal_bytes", queues.wal_bytes),
        ("database_bytes", queues.database_bytes),
    ):
        family(name, "gauge", [("", value)])
    for name, samples in (("commit", metrics.commit), ("delivery", metrics.delivery)):
        family(f"{name}_ms", "histogram", [])
        lines.extend(_histogram(f"tfx_hub_{name}_ms", samples))
    return "\n".join(lines) + "\n"


_FAMILIES: Final = {"dead": "dead_letters", "asks": "asks", "human": "human_requests"}


def _histogram(name: str, samples: Samples) -> Iterator[str]:
    seen = 0
    for edge, count in zip((*BUCKETS_MS, float("inf")), samples.buckets, strict=True):
        seen += count
        yield f'{name}_bucket{{le="{"+Inf" if edge == float("inf") else f"{edge:g}"}"}} {seen}'
    yield f"{name}_sum {samples.sum_ms:g}"
    yield f"{name}_count {samples.count}"


def _percentile(values: Sequence[float], percent: int) -> float | None:
    if not values:
        return None
    return round(values[min(len(values) - 1, len(values) * percent // 100)], 3)
