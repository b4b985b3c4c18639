#!/usr/bin/env python3
"""Status line for Claude Code: reads its JSON on standard input, prints one line.

Standard library only, started for every refresh. What is not known is left out, and nothing that
goes wrong is ever printed into the line.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import unicodedata

TYPE_CHECKING = False  # `typing` costs more than this whole script
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SEPARATOR = " · "
BIGGEST = 1e12
MOST_DIGITS = 6
DEFAULT_WIDTH = 80
HUB_LIMIT_S = 0.15  # for everything that is asked of the hub
MOST_BYTES = 262144
JOBS_READ = 60
LONGEST_JOB_S = 90000
JOB_NAME = re.compile(r"(\d{8}-\d{6})-[0-9a-f]{6}")
LOOPBACK = re.compile(r"http://(?:127\.0\.0\.1|localhost|\[::1\]):(\d{1,5})(?:/.*)?")
START_TIME_FIELD = 19  # of /proc/<pid>/stat, counted behind the command name
PARENT_FIELD = 1
MOST_ANCESTORS = 12


def at(document: object, *path: str) -> object:
    """Return what is at a key path, or None."""
    for key in path:
        if not isinstance(document, dict):
            return None
        document = document.get(key)
    return document


def text_at(document: object, *path: str) -> str:
    """Return the text at a key path, or an empty string."""
    found = at(document, *path)
    return found if isinstance(found, str) else ""


def number_at(document: object, *path: str) -> float | None:
    """Return the number at a key path, or None."""
    found = at(document, *path)
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return None
    return found if abs(found) < BIGGEST else None


# --- jobs -----------------------------------------------------------------------------------


def read_json(path: str) -> dict[str, object]:
    """Return the object in a small JSON file, or an empty one."""
    try:
        with open(path, "rb") as file:
            found = json.loads(file.read(MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def stat_fields(pid: object) -> list[bytes]:
    """Return the fields of a process behind its name, or an empty list."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields: list[bytes] = file.read().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return []
    return fields


def boot_id() -> str:
    """Return the id of this boot, or an empty string."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""


def runs(worker: object) -> bool:
    """Say whether the recorded process is still that one and runs."""
    if not isinstance(worker, dict) or worker.get("boot_id") != boot_id():
        return False
    fields = stat_fields(worker.get("pid"))
    return (
        len(fields) > START_TIME_FIELD
        and fields[0] not in (b"Z", b"X")
        and fields[START_TIME_FIELD].decode() == worker.get("start_token")
    )


def running_jobs(state_dir: str) -> int:
    """Return how many runs of `tfx route` are on; only the newest are looked at."""
    oldest = time.strftime("%Y%m%d-%H%M%S", time.gmtime(time.time() - LONGEST_JOB_S))
    try:
        names = os.listdir(os.path.join(state_dir, "jobs"))
    except OSError:
        return 0
    recent = sorted((n for n in names if JOB_NAME.fullmatch(n) and n >= oldest), reverse=True)
    records = (
        read_json(os.path.join(state_dir, "jobs", n, "job.json")) for n in recent[:JOBS_READ]
    )
    return sum(job.get("status") == "running" and runs(job.get("worker")) for job in records)


# --- hub ------------------------------------------------------------------------------------


class Hub:
    """One connection to the hub of this user; any trouble ends it."""

    def __init__(self, port: int, token: str, deadline: float) -> None:
        """Connect; raises OSError."""
        import socket  # noqa: PLC0415  (only when there is a hub to ask)

        self.deadline = deadline
        self.headers = f"Host: 127.0.0.1:{port}\r\n"
        if token:
            self.headers += f"Authorization: Bearer {token}\r\n"
        self.buffer = b""
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=self.left_s())

    def left_s(self) -> float:
        """Return the seconds that are left; raises TimeoutError when there are none."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def ask(self, method: str, path: str, body: object = None) -> dict[str, object]:
        """Return the JSON object of an answer with status 200; raises OSError or ValueError."""
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\n{self.headers}Content-Length: {len(data)}\r\n"
        if body is not None:
            head += "Content-Type: application/json\r\n"
        self.socket.settimeout(self.left_s())
        self.socket.sendall(head.encode("ascii") + b"\r\n" + data)
        head_end = self._read_until(lambda: self.buffer.find(b"\r\n\r\n"))
        answer = self.buffer[:head_end].decode("latin-1")
        length = re.search(r"(?im)^content-length:\s*(\d+)\s*$", answer)
        if not re.match(r"HTTP/1\.1 200 ", answer) or length is None:
            raise ValueError
        size = head_end + 4 + int(length[1])
        self._read_until(lambda: size if len(self.buffer) >= size else -1)
        document = json.loads(self.buffer[head_end + 4 : size])
        self.buffer = self.buffer[size:]
        answered = at(document, "data") or document
        return answered if isinstance(answered, dict) else {}

    def _read_until(self, found: Callable[[], int]) -> int:
        while (place := found()) < 0:
            self.socket.settimeout(self.left_s())
            chunk = self.socket.recv(65536)
            if not chunk or len(self.buffer) > MOST_BYTES:
                raise ValueError
            self.buffer += chunk
        return place


def hub_files(state_dir: str) -> tuple[str, str]:
    """Return the state file of the hub of this environment, and the file of its token."""
    directory = os.path.join(state_dir, "hub")
    mark = ""
    database = os.environ.get("TFX_HUB_DB", "")
    if database:
        import hashlib  # noqa: PLC0415  (rarely needed)

        home = os.path.expanduser("~")
        inside = database.removeprefix("~/")
        real = os.path.realpath(os.path.join(home, inside))
        if real != os.path.realpath(os.path.join(directory, "hub.db")):
            mark = "-" + hashlib.sha256(os.fsencode(real)).hexdigest()[:8]
    token = os.environ.get("TFX_HUB_TOKEN_FILE") or os.path.join(directory, "token")
    return os.path.join(directory, f"state{mark}.json"), token


def hub_port(state_file: str) -> int:
    """Return the port of the hub on this machine, or 0."""
    given = os.environ.get("TFX_HUB_URL", "")
    found = LOOPBACK.fullmatch(given or text_at(read_json(state_file), "url"))
    return int(found[1]) if found else 0


def token_of(file: str) -> str:
    """Return the bus token, or an empty string."""
    given = os.environ.get("TFX_HUB_TOKEN", "").strip()
    if not given:
        try:
            with open(file, encoding="ascii") as stream:
                given = stream.read(4096).strip()
        except (OSError, ValueError):
            given = ""
    return given if re.fullmatch(r"[\x21-\x7e]+", given) else ""


def claude_process() -> dict[str, object] | None:
    """Return the facts of the nearest ancestor that is Claude Code, or None."""
    pid = os.getppid()
    for _ in range(MOST_ANCESTORS):
        fields = stat_fields(pid)
        if len(fields) <= START_TIME_FIELD or pid <= 1:
            return None
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read(4096).split(b"\0")[:2]
        except OSError:
            return None
        if any(b"claude" in os.path.basename(word) or b"claude-code" in word for word in words):
            return {
                "pid": pid,
                "start_token": fields[START_TIME_FIELD].decode(),
                "boot_id": boot_id(),
                "host": os.uname().nodename,
                "pid_namespace": os.readlink("/proc/self/ns/pid"),
            }
        pid = int(fields[PARENT_FIELD])
    return None


def unread(hub: Hub, place: str) -> int:
    """Return how many messages wait for the agent of this session, or 0."""
    name = os.environ.get("TFX_AGENT_ID", "")
    process = claude_process()
    if process is not None and process["boot_id"]:
        wish = {
            "cli": "claude",
            "workspace": place or "/",
            "process": process,
            "agent_id": name or None,
            "find_only": True,
        }
        name = text_at(hub.ask("POST", "/v1/attach", wish), "agent_id")
    if not name:
        return 0
    answer = hub.ask("POST", "/v1/status", {"scope": "agent", "agent_id": name})
    return int(number_at(answer, "agent", "unread") or 0)


def hub_parts(state_dir: str, place: str) -> dict[str, str]:
    """Return the words for the hub: its state, what waits for a person, what waits for us."""
    state_file, token_file = hub_files(state_dir)
    port = hub_port(state_file)
    if not port:
        was_used = os.path.exists(os.path.join(state_dir, "hub", "hub.db"))
        return {"hub": "hub off"} if was_used else {}
    known = {}
    try:
        hub = Hub(port, token_of(token_file), time.monotonic() + HUB_LIMIT_S)
        status = hub.ask("GET", "/status")
        state = text_at(status, "hub", "state")
        known["hub"] = "hub" if state in ("ready", "") else f"hub {state}"
        asked = int(number_at(status, "queues", "pending_human_requests") or 0)
        if asked:
            known["asked"] = f"{asked} ask{'s' if asked == 1 else ''} you"
        waiting = unread(hub, place)
        if waiting:
            known["unread"] = f"{waiting} unread"
    except ConnectionRefusedError:
        known["hub"] = "hub off"
    except TimeoutError:
        known.setdefault("hub", "hub slow")
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        pass  # a shorter line, never a message
    return known


# --- the line -------------------------------------------------------------------------------

# as they stand in the line, and which of them go first when it is too long
ORDER = ("model", "context", "cost", "place", "hub", "asked", "unread", "jobs")
FIRST_TO_GO = ("cost", "place", "hub", "jobs", "unread", "asked", "context")


def parts(document: object) -> dict[str, str]:
    """Return what is known of the session by name."""
    context = number_at(document, "context_window", "used_percentage")
    cost = number_at(document, "cost", "total_cost_usd")
    return {
        "model": text_at(document, "model", "display_name") or text_at(document, "model", "id"),
        "context": "" if context is None else f"context {context:.0f}%",
        "cost": f"${cost:.2f}" if cost else "",
        "place": os.path.basename(place_of(document).rstrip("/")),
    }


def place_of(document: object) -> str:
    """Return the directory of the session."""
    return text_at(document, "workspace", "current_dir") or text_at(document, "cwd")


def columns_of(text: str) -> int:
    """Return how many columns a text takes on a terminal."""
    return sum(
        0 if unicodedata.combining(ch) else 2 if unicodedata.east_asian_width(ch) in "WF" else 1
        for ch in text
    )


def fitted(known: dict[str, str], width: int) -> str:
    """Return the line with as many parts as fit; a part is shown whole or not at all."""
    shown = {
        name: "".join(ch for ch in known[name] if ch.isprintable())
        for name in ORDER
        if known.get(name)
    }
    for going in (*FIRST_TO_GO, "model"):
        line = SEPARATOR.join(shown.values())
        if columns_of(line) <= width:
            return line
        shown.pop(going, None)
    return ""


def state_dir_of(env: Mapping[str, str]) -> str:
    """Return where tfx keeps its state."""
    base = env.get("XDG_STATE_HOME", "")
    home = env.get("HOME", "")
    if base.startswith("/"):
        return os.path.join(base, "tfx")
    return os.path.join(home, ".local", "state", "tfx") if home.startswith("/") else ""


def main() -> None:
    """Print the line; unreadable input gives a shorter one."""
    try:
        document = json.loads(sys.stdin.buffer.read(16 * MOST_BYTES))
    except (ValueError, RecursionError, OSError):
        document = None
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and len(columns) <= MOST_DIGITS else DEFAULT_WIDTH
    known = parts(document)
    state_dir = state_dir_of(os.environ)
    if state_dir:
        known.update(hub_parts(state_dir, place_of(document)))
        jobs = running_jobs(state_dir)
        known["jobs"] = f"{jobs} job{'' if jobs == 1 else 's'}" if jobs else ""
    line = fitted(known, width)
    sys.stdout.buffer.write(line.encode("utf-8", "replace") + b"\n")


if __name__ == "__main__":
    try:
        main()
    except Exception:  # noqa: BLE001  (whatever it is, it does not belong into the line)
        sys.stdout.buffer.write(b"\n")
