"""The entry point: `tfx` and `python -m tfx`.

Answers `--version` by itself, runs the bridge without the command tree (K-21), hands everything
else to that tree, and turns what nobody expected into a short message and a pasteable log.
"""

from __future__ import annotations

import sys

from tfx import __version__


def main() -> None:
    """Run the command line and exit with its status."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        print(f"tfx {__version__}")  # noqa: T201  (no typer on this path)
        return
    if arguments[:2] == ["hub", "bridge"]:
        from tfx.hub.bridge.run import main as bridge  # noqa: PLC0415  (neither typer nor msgspec)

        sys.exit(bridge(arguments[2:]))
    from tfx.cli.entry import run  # noqa: PLC0415  (the fast path above needs none of it)

    sys.exit(run(arguments))


if __name__ == "__main__":
    main()
