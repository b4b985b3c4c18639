"""The Python client: the example of its page, and when it sends something again (H-30)."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.hub.running import RunningHub
from tfx.errors import AgentUnavailable
from tfx.hub.client import Address, HubClient
from tfx.hub.models import AgentId, OpId
from tfx.hub.wire.messages import AckRequest, AckResult

PAGE = Path(__file__).parents[2] / "docs" / "hub.md"
DONE = b'{"ok":true,"data":{"acked_ids":[],"not_acked":[]}}'
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(DONE), DONE)


def test_the_example_of_the_readme_runs(hub: RunningHub) -> None:
    found = re.search(
        r"<!-- example: client -->\n```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL
    )
    assert found is not None
    done = subprocess.run(
        [sys.executable, "-c", found[1]], env=hub.env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    identity, payload = done.stdout.splitlines()
    assert len(identity) == 32
    assert "hello" in payload


@pytest.mark.parametrize("op_id", [None, "key"])
def test_h_30_only_what_carries_a_key_is_sent_again_on_a_broken_connection(
    op_id: str | None,
) -> None:
    again = op_id is not None
    bodies: list[bytes] = []

    def serve(listener: socket.socket) -> None:
        # one whole answer, then a connection that dies after it has read the request
        for _ in range(2 if again else 1):
            connection, _ = listener.accept()
            with connection:
                for turn in range(2):
                    data = b""
                    while not data.endswith(b"}"):  # head and body come apart
                        chunk = connection.recv(65_536)
                        if not chunk:
                            return
                        data += chunk
                    bodies.append(data)
                    if turn == 0:
                        connection.sendall(ANSWER)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = threading.Thread(target=serve, args=(listener,), daemon=True)
        serving.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        request = AckRequest(
            agent_id=AgentId("one"),
            message_ids=("x",),
            op_id=None if op_id is None else OpId(op_id),
        )
        with HubClient(Address(url, None), "token") as client:
            client.call("ack", request, AckResult)
            if again:
                client.call("ack", request, AckResult)
            else:
                with pytest.raises(AgentUnavailable):
                    client.call("ack", request, AckResult)
        serving.join(60)
        assert not serving.is_alive()
    assert len(bodies) == (3 if again else 2)
