"""A process that holds receivers: `python -m tests.hub.contender URL TOKEN`, one word a line.

Answers each line with one line of JSON: what the hub said, or the code of its refusal.
"""

from __future__ import annotations

import json
import sys

from tfx.core.identity import identify
from tfx.errors import JsonValue
from tfx.hub.ancestry import facts_of
from tfx.hub.exchange import Exchange


def main(url: str, token: str) -> int:
    """Say `ready`, then obey: `hold`, `beat`, `release`, `deliver`, `answer`, `quit`."""
    own = identify()
    assert own is not None
    held = ""
    print(json.dumps("ready"), flush=True)  # noqa: T201  (the protocol with the test)
    with Exchange(url, token) as exchange:
        for line in sys.stdin:
            word, *more = line.split()
            if word == "quit":
                break
            fields: dict[str, JsonValue] = {"agent_id": "bob"}
            match word:
                case "hold":
                    name = "receiver_hold"
                    fields["process"] = facts_of(own)
                    if more:
                        fields["message_id"] = more[0]
                case "answer":
                    name = "publish"
                    fields = {
                        "from": "bob",
                        "to": "ann",
                        "topic": "answers",
                        "payload": {"by": own.pid},
                        "correlation_id": more[0],
                    }
                case "beat":
                    name = "receiver_beat"
                    fields["hold_id"] = held
                case _:
                    name = "receiver_release"
                    fields |= {"hold_id": held, "delivered": word == "deliver"}
            answer = exchange.send("POST", f"/v1/{name}", json.dumps(fields).encode(), timeout_s=30)
            document = json.loads(answer.body)
            said = document["data"] if document["ok"] else document["error"]["code"]
            if name == "receiver_hold" and isinstance(said, dict):
                held = said["hold_id"]
            print(json.dumps(said), flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
