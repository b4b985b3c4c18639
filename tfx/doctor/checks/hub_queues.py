"""What waits in the hub for a person: questions, dead letters, agents that went silent.

Asks a running hub, else the database; claims and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from tfx.doctor.facts import Facts
from tfx.doctor.model import MANUAL, Finding, Remedy, Status
from tfx.errors import JsonValue


def queues(facts: Facts) -> Iterator[Finding]:
    """Yield what waits: questions to people, dead letters, agents that went silent."""
    seen = facts.probe
    counts: dict[str, int] = {}
    if facts.hub_runs:
        shown = seen.status.get("queues")
        queue = shown if isinstance(shown, dict) else {}
        for name in ("pending_human_requests", "dead_letters", "queued"):
            counts[name] = _whole(queue.get(name))
        if counts["dead_letters"]:
            counts["dead_letters"] -= _unheard(facts)
        counts["stale_agents"] = _stale_agents(facts)
    elif seen.files.database.exists():
        inside = facts.inspection.counts
        if inside is None:
            yield Finding("queues", Status.UNKNOWN, "the schema is not this program's")
            return
        counts = {
            "pending_human_requests": inside.pending_human_requests,
            "dead_letters": inside.dead_letters,
            "queued": inside.queued,
        }
    else:
        yield Finding("queues", Status.SKIP, "there is no hub database yet")
        return
    yield from _waiting(counts)


def _whole(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0


def _waiting(counts: dict[str, int]) -> Iterator[Finding]:
    words = {
        "pending_human_requests": (
            "questions wait for an answer of yours",
            Remedy("read them", "tfx hub human list"),
        ),
        "dead_letters": (
            "messages could not be delivered",
            Remedy("see why", "tfx hub dead list"),
        ),
        "stale_agents": (
            "agents have a session and went silent",
            Remedy("see which", "tfx hub agents"),
        ),
    }
    found = False
    for name, (what, remedy) in words.items():
        if number := counts.get(name, 0):
            found = True
            summary = f"{number} {what}"
            details: dict[str, JsonValue] = {"count": number}
            yield Finding(name.replace("_", " "), Status.WARN, summary, details, (remedy,), MANUAL)
    if not found:
        queued = counts.get("queued", 0)
        yield Finding("queues", Status.OK, f"nothing waits for you; {queued} messages queued")


def _unheard(facts: Facts) -> int:
    """Return how many dead letters went to a topic without readers: each run of route is one."""
    from tfx.hub.client import HubClient  # noqa: PLC0415  (start-up rule)
    from tfx.hub.models import DeadReason  # noqa: PLC0415
    from tfx.hub.wire.views import DeadLettersRequest, DeadLettersResult  # noqa: PLC0415

    number, after = 0, 0
    with HubClient.of(facts.paths) as client:
        while True:
            request = DeadLettersRequest(
                reason=DeadReason.NO_SUBSCRIBER, after=after, limit=500, max_bytes=262_144
            )
            page = client.call("dead_letters", request, DeadLettersResult)
            number += sum(each.replayed_as is None for each in page.dead_letters)
            if page.next_after is None:
                return number
            after = page.next_after


def _stale_agents(facts: Facts) -> int:
    """Return how many registered agents the running hub calls stale."""
    from tfx.hub.models import AgentState  # noqa: PLC0415  (start-up rule)

    return sum(each.state is AgentState.STALE for each in facts.hub_agents)
