"""The entry point: `tfx` and `python -m tfx`.

Answers `--version` and `--help` by itself (D-182), runs the bridge without the command tree (K-21),
and hands everything else to that tree. Ctrl-C exits 130 also while modules are loaded (K-9);
SIGTERM and SIGHUP do what Ctrl-C does.
"""

from __future__ import annotations

import sys

from tfx import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

_HELP_COLUMNS = 80
_INTERRUPTED = 130


def main() -> None:
    """Run the command line and exit with its status."""
    try:
        code = _run(sys.argv[1:])
    except KeyboardInterrupt:
        if not _say("interrupted\n", sys.stderr):
            _silence_errors()
        code = _INTERRUPTED
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    if arguments == ["--version"] and _say(f"tfx {__version__}\n", sys.stdout):
        return 0
    if arguments in (["--help"], ["-h"]) and _say(_help(), sys.stdout):
        return 0
    if arguments[:2] == ["hub", "bridge"]:
        from tfx.hub.bridge.run import main as bridge  # noqa: PLC0415  (neither typer nor msgspec)

        return bridge(arguments[2:])
    from tfx.core import ending  # noqa: PLC0415  (the fast path above needs none of it)

    ending.as_interrupts()
    from tfx.cli.entry import run  # noqa: PLC0415  (the same)

    return run(arguments)


def _help() -> str:
    """Return the help as the command tree prints it, or nothing where its lines would not fit."""
    import shutil  # noqa: PLC0415  (not for --version)

    if shutil.get_terminal_size().columns < _HELP_COLUMNS:
        return ""
    try:
        with open(f"{__file__.rpartition('/')[0]}/cli/help.txt", encoding="ascii") as file:  # noqa: PTH123  (no pathlib on this path)
            return file.read()
    except OSError:
        return ""


def _say(text: str, stream: TextIO | None) -> bool:
    """Print a text; False when there is none or nobody to print to: then the tree says why."""
    try:
        if text and stream is not None:
            stream.write(text)
            stream.flush()
    except OSError:  # the stream is full, or its reader went away
        return False
    return bool(text) and stream is not None


def _silence_errors() -> None:
    """Send what is left for standard error nowhere: a flush that fails would change the status."""
    import os  # noqa: PLC0415  (not for --version)

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


if __name__ == "__main__":
    main()
