"""The entry point: `tfx` and `python -m tfx`.

Answers `--version` and `--help` by itself (D-182), runs the bridge without the command tree (K-21),
and hands everything else to that tree.
"""

from __future__ import annotations

import sys

from tfx import __version__

_HELP_COLUMNS = 80


def main() -> None:
    """Run the command line and exit with its status."""
    arguments = sys.argv[1:]
    if arguments == ["--version"] and _say(f"tfx {__version__}\n"):
        return
    if arguments in (["--help"], ["-h"]) and _say(_help()):
        return
    if arguments[:2] == ["hub", "bridge"]:
        from tfx.hub.bridge.run import main as bridge  # noqa: PLC0415  (neither typer nor msgspec)

        sys.exit(bridge(arguments[2:]))
    from tfx.cli.entry import run  # noqa: PLC0415  (the fast path above needs none of it)

    sys.exit(run(arguments))


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


def _say(text: str) -> bool:
    """Print a text; False when there is none or nobody to print to: then the tree says why."""
    try:
        if text:
            sys.stdout.write(text)
            sys.stdout.flush()
    except (AttributeError, OSError):  # standard output is closed, or full
        return False
    return bool(text)


if __name__ == "__main__":
    main()
