"""`tfx hub install-service` and `tfx hub token`: the service unit and the credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tfx.cli.context import Command, finish, new_app
from tfx.cli.hub.life import PortOption

if TYPE_CHECKING:
    from tfx.cli.output import Screen
    from tfx.core.paths import Paths
    from tfx.hub.daemon.service import ServiceData
    from tfx.result import Result

TokenData = dict[str, str]

token_app = new_app("token", "Where the credentials lie; renew one.")
token_app.info.no_args_is_help = False


def install_service(
    ctx: typer.Context,
    port: PortOption = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Disable the unit and remove its file.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the unit and the commands.")
    ] = False,
) -> None:
    """Install the hub as a systemd user service.

    systemd starts it at login and again after a failure.
    """

    def feature(screen: Screen, paths: Paths) -> Result[ServiceData]:
        from tfx.hub.daemon import service

        screen.progress("talking to the service manager")
        if remove:
            return service.remove(paths, dry_run=dry_run)
        return service.install(paths, port=port, dry_run=dry_run)

    def render(screen: Screen, data: ServiceData) -> None:
        if not dry_run:
            screen.line(f"{data.path}: {data.done}", sign="ok")
        else:
            does = "remove" if remove else "write"
            screen.line(f"would {does} {data.path} and run:", sign="changed")
            screen.line(data.unit)
            for command in data.commands:
                screen.line(f"  {command}")

    finish(ctx, "hub install-service", feature, render)


@token_app.callback(invoke_without_command=True)
def token(ctx: typer.Context) -> None:
    """Say where the bus token and the operator credential lie; their values are never printed."""
    if ctx.invoked_subcommand is not None:
        return

    def feature(_screen: Screen, paths: Paths) -> Result[TokenData]:
        from tfx.hub import tokens
        from tfx.hub.places import HubFiles
        from tfx.result import Result

        files = HubFiles.of(paths)
        overridden = tokens.bus_override(paths) is not None
        return Result(
            {
                "bus": "environment" if overridden else str(files.token),
                "operator": str(files.operator),
            }
        )

    def render(screen: Screen, data: TokenData) -> None:
        screen.line(f"bus token            {data['bus']}")
        screen.line(f"operator credential  {data['operator']}")

    finish(ctx, "hub token", feature, render)


@token_app.command("rotate", cls=Command)
def rotate(
    ctx: typer.Context,
    operator: Annotated[
        bool,
        typer.Option("--operator", help="Renew the operator credential, not the bus token."),
    ] = False,
) -> None:
    """Renew the bus token, or the operator credential.

    A running hub takes only the new one from then on.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[TokenData]:
        from tfx.hub.daemon import rotation
        from tfx.hub.tokens import Credential
        from tfx.result import Result

        which = Credential.OPERATOR if operator else Credential.BUS
        return Result(rotation.rotate(paths, which))

    def render(screen: Screen, data: TokenData) -> None:
        screen.line(f"renewed the {data['renewed']} credential in {data['path']}", sign="ok")
        if data["hub"] == "running":
            screen.note("agents with the old token in their configuration need `tfx setup`")

    finish(ctx, "hub token rotate", feature, render)
