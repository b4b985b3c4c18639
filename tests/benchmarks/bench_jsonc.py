"""Measure an edit of a JSONC file: `python -m tests.benchmarks.bench_jsonc`.

CPU time, best of several rounds. Only the ratios within one run mean something: to the standard
library reading equal content, and of 1 MB to 100 kB (S-66).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

from tfx.config import jsonc
from tfx.config.jsonc import Dialect
from tfx.errors import JsonValue

ENTRY: JsonValue = {"type": "stdio", "command": "/opt/tfx", "args": ["hub", "bridge"]}
PATH = ("mcpServers", "tfx-hub")


def document(size: int) -> bytes:
    """A JSONC file of about this size, like a client's state file with remarks in it."""
    lines = ["{", "  // settings", '  "projects": {']
    length = number = 0
    while length < size:
        project = f"""\
    "/home/user/project-{number}": {{ // project {number}
      "allowedTools": ["Bash", "Read", "Edit"],
      "history": [
        {{ "display": "mend the \\"parser\\" é", "pastedContents": {{}} }},
        {{ "display": "run the tests", "at": {number}, "cost": 0.{number} }},
      ],
      /* asked once */
      "trusted": true,
    }},"""
        lines.append(project)
        length += len(project.encode())
        number += 1
    return "\n".join([*lines, "  },", '  "mcpServers": {},', "}", ""]).encode()


def cpu_ms(work: Callable[[], object], rounds: int = 7) -> float:
    """The least CPU time of one call, in milliseconds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best * 1000


def main() -> None:
    commented = document(200_000)
    plain = json.dumps(jsonc.parse(commented), indent=2, ensure_ascii=False).encode()
    loads = cpu_ms(lambda: json.loads(plain))
    present = jsonc.set_key(commented, PATH, ENTRY)
    rows = {
        "set_key, JSONC": cpu_ms(lambda: jsonc.set_key(commented, PATH, ENTRY)),
        "set_key, strict JSON": cpu_ms(
            lambda: jsonc.set_key(plain, PATH, ENTRY, dialect=Dialect.JSON)
        ),
        "set_key, nothing to do": cpu_ms(lambda: jsonc.set_key(present, PATH, ENTRY)),
        "delete_key": cpu_ms(lambda: jsonc.delete_key(present, PATH)),
        "parse": cpu_ms(lambda: jsonc.parse(commented)),
    }
    out = [f"{len(commented)} bytes of JSONC; json.loads of equal content: {loads:.1f} ms CPU"]
    out += [f"  {name:24}{ms:7.1f} ms CPU {ms / loads:6.1f} x" for name, ms in rows.items()]
    small, large = document(100_000), document(1_000_000)
    ratio = cpu_ms(lambda: jsonc.set_key(large, PATH, ENTRY), 3) / cpu_ms(
        lambda: jsonc.set_key(small, PATH, ENTRY)
    )
    out.append(f"  1 MB to 100 kB: {ratio:.1f} x (linear: {len(large) / len(small):.1f} x)")
    sys.stdout.write("\n".join((*out, "")))


if __name__ == "__main__":
    main()
