"""triflux's four paths in its shapes, under the same doors (H-32)."""

from __future__ import annotations

from tests.hub.running import RunningHub
from tests.hub.waiting import until


def test_h_32_a_client_of_triflux_registers_reports_reads_and_leaves(hub: RunningHub) -> None:
    registered = hub.post(
        "/bridge/register",
        {
            "agent_id": "codex-worker-1",
            "cli": "codex",
            "timeout_sec": 600,
            "topics": ["task.result"],
        },
    ).data
    assert set(registered) == {"agent_id", "lease_id", "lease_expires_ms", "server_time_ms"}
    lease_ms = registered["lease_expires_ms"] - registered["server_time_ms"]
    assert lease_ms == 720_000
    hub.post("/bridge/register", {"agent_id": "lead", "cli": "claude", "topics": ["task.result"]})
    result = hub.post(
        "/bridge/result",
        {
            "agent_id": "codex-worker-1",
            "topic": "task.result",
            "payload": {"exit_code": 0, "output_preview": "done"},
            "trace_id": "trace-1",
        },
    ).data
    assert result["fanout_count"] >= 1
    context = hub.post("/bridge/context", {"agent_id": "lead", "max_messages": 10}).data
    assert context["count"] == 1
    [message] = context["messages"]
    assert message["from_agent"] == "codex-worker-1"
    assert message["payload"] == {"exit_code": 0, "output_preview": "done"}
    assert {
        "id", "type", "from_agent", "to_agent", "topic", "priority", "ttl_ms", "created_at_ms",
        "expires_at_ms", "correlation_id", "trace_id", "payload", "status",
    } <= set(message)  # fmt: skip
    assert (message["topic"], message["priority"], message["ttl_ms"]) == (
        "task.result",
        5,
        3_600_000,
    )
    gone = hub.post("/bridge/deregister", {"agent_id": "codex-worker-1"}).data
    assert gone == {"agent_id": "codex-worker-1", "status": "offline"}


def test_h_32_what_was_read_is_acked_because_that_client_never_acks(hub: RunningHub) -> None:
    hub.post("/bridge/register", {"agent_id": "lead", "cli": "claude"})
    hub.call("publish", from_="operator", to="lead", topic="x", payload={"n": 1})
    assert hub.post("/bridge/context", {"agent_id": "lead"}).data["count"] == 1

    def left() -> tuple[int, int]:
        queues = hub.get("/status").document["queues"]
        return queues["queued"], queues["claimed"]

    until(lambda: left() == (0, 0))  # the ack is a commit of its own
    assert hub.post("/bridge/context", {"agent_id": "lead"}).data["count"] == 0
    assert left() == (0, 0)
    assert hub.get("/status").document["queues"]["dead_letters"] == 0


def test_h_32_an_answer_by_correlation_goes_to_its_asker_or_is_refused(hub: RunningHub) -> None:
    hub.post("/bridge/register", {"agent_id": "worker", "cli": "codex"})
    reply = hub.post("/bridge/result", {"agent_id": "worker", "correlation_id": "never-asked"})
    assert reply.status in {200, 404}
