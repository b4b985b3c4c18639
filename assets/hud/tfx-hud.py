#!/usr/bin/env python3
"""Status line for Claude Code: reads its JSON on standard input, prints one line.

Standard library only, started for every refresh. What is not known is left out, and nothing that
goes wrong is ever printed into the line.
"""

import json
import os
import sys

SEPARATOR = " · "


def text_at(document: object, *path: str) -> str:
    """Return the text at a key path, or an empty string."""
    for key in path:
        if not isinstance(document, dict):
            return ""
        document = document.get(key)
    return document if isinstance(document, str) else ""


def percent_at(document: object, *path: str) -> str:
    """Return the number at a key path as `42%`, or an empty string."""
    for key in path:
        if not isinstance(document, dict):
            return ""
        document = document.get(key)
    if isinstance(document, bool) or not isinstance(document, (int, float)):
        return ""
    return f"{document:.0f}%"


def parts(document: object) -> list[str]:
    """Return what is known, the most important first."""
    model = text_at(document, "model", "display_name") or text_at(document, "model", "id")
    context = percent_at(document, "context_window", "used_percentage")
    place = text_at(document, "workspace", "current_dir") or text_at(document, "cwd")
    known = [model, context and f"context {context}", os.path.basename(place.rstrip("/"))]
    return ["".join(ch for ch in part if ch.isprintable()) for part in known if part]


def fitted(known: list[str], width: int) -> str:
    """Return as many parts as fit into the width; a part is shown whole or not at all."""
    line = ""
    for part in known:
        longer = line + SEPARATOR + part if line else part
        if len(longer) > width:
            break
        line = longer
    return line


def main() -> None:
    """Print the line; unreadable input gives an empty one."""
    try:
        document = json.loads(sys.stdin.buffer.read())
    except (ValueError, RecursionError, OSError):
        document = None
    columns = os.environ.get("COLUMNS", "")
    line = fitted(parts(document), int(columns) if columns.isdecimal() else 80)
    sys.stdout.buffer.write(line.encode("utf-8", "replace") + b"\n")


if __name__ == "__main__":
    main()
