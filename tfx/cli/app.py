"""The command tree: every group and command by name, each importing its feature when run.

Knows no feature at import time, so that `--help` stays fast (start-up test).
"""

from __future__ import annotations

from typing import Annotated

import typer

from tfx import __version__
from tfx.cli.context import Command, new_app

SUMMARY = """Bring every coding-agent CLI on this machine to one described state.

Exit status: 0 done, 1 failed or a conflict was left, 2 usage, 3 a bug in tfx,
4 no hub or no such agent CLI, 5 refused, 130 interrupted.
"""

app = new_app("tfx", SUMMARY)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"tfx {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Take the global options that stand before the command."""


def _add_commands() -> None:
    from tfx.cli import backup, config, jobs
    from tfx.cli.doctor import EPILOG as DOCTOR_EPILOG
    from tfx.cli.doctor import doctor
    from tfx.cli.hub.commands import app as hub
    from tfx.cli.inventory import list_skills, version
    from tfx.cli.route import EPILOG as ROUTE_EPILOG
    from tfx.cli.route import route
    from tfx.cli.setup import EPILOG, setup
    from tfx.cli.update import update
    from tfx.cli.upgrade import EPILOG as UPGRADE_EPILOG
    from tfx.cli.upgrade import upgrade
    from tfx.cli.work.commands import lease_app, task_app

    app.command("setup", cls=Command, epilog=EPILOG)(setup)
    app.command("doctor", cls=Command, epilog=DOCTOR_EPILOG)(doctor)
    app.command("list", cls=Command)(list_skills)
    app.command("version", cls=Command)(version)
    app.command("update", cls=Command)(update)
    app.command("upgrade", cls=Command, epilog=UPGRADE_EPILOG)(upgrade)
    app.add_typer(backup.app)
    app.add_typer(hub, name="hub")
    app.add_typer(task_app)
    app.add_typer(lease_app)
    app.command("route", cls=Command, epilog=ROUTE_EPILOG)(route)
    app.add_typer(jobs.app)
    app.add_typer(config.app)


_add_commands()
