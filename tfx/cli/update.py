"""`tfx update`: print or run the command that updates this installation."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tfx.cli.context import finish

if TYPE_CHECKING:
    from tfx.cli.output import Screen
    from tfx.core.paths import Paths
    from tfx.result import Result
    from tfx.update import UpdateData


def update(
    ctx: typer.Context,
    yes: Annotated[bool, typer.Option("--yes", help="Run the command, then offer setup.")] = False,
) -> None:
    """Show how this installation of tfx is updated; with --yes, do it.

    The method is read from what the installer left: pipx, uv tool, pip or a git checkout.
    """

    def feature(screen: Screen, paths: Paths) -> Result[UpdateData]:
        from tfx import update as feature_module

        screen.progress("updating tfx")
        result = feature_module.update(paths, run=yes)
        if yes:
            _offer_setup(screen, paths)
        return result

    finish(ctx, "update", feature, _render)


def _offer_setup(screen: Screen, paths: Paths) -> None:
    """Run the new tfx's setup when a person says so: this process still is the old one."""
    from tfx.core import process

    if screen.interactive and screen.ask("Run `tfx setup` of the new version now?"):
        process.run_attached([sys.executable, "-m", "tfx", "setup"], env=paths.env)
    else:
        screen.note("next: tfx setup")


def _render(screen: Screen, data: UpdateData) -> None:
    if data.ran:
        screen.line(f"tfx {data.before} -> {data.after} ({data.method.value})", sign="ok")
        return
    screen.line(f"installed by {data.method.value} in {data.prefix}; to update it, run:")
    for command in data.commands:
        screen.line("  " + shlex.join(command))
