"""`tfx list` and `tfx version`: what is installed, and in which version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from tfx.cli.context import finish

if TYPE_CHECKING:
    from tfx.cli.output import Screen
    from tfx.core.paths import Paths
    from tfx.result import Result
    from tfx.setup.inventory import ListData, VersionData

_SIGN_OF = {
    "installed": "ok",
    "bundled": "changed",
    "outdated": "changed",
    "deleted": "warn",
    "modified": "warn",
    "foreign": "info",
    "unreadable": "warn",
}


def list_skills(ctx: typer.Context) -> None:
    """List the skills: bundled, installed, modified and your own.

    Each directory is shown once, with the agents that read it.
    """

    def feature(screen: Screen, paths: Paths) -> Result[ListData]:
        from tfx.setup import inventory

        screen.progress("looking at the skills")
        return inventory.list_skills(paths)

    finish(ctx, "list", feature, _render_list)


def _render_list(screen: Screen, data: ListData) -> None:
    if not data.roots:
        screen.line("no agent CLI that reads skills was found on PATH")
    for root in data.roots:
        screen.line(f"{root.root}  ({', '.join(root.agents)})")
        for skill in root.skills:
            whose = "" if skill.bundled or skill.state.value != "foreign" else ", your own"
            screen.line(f"  {skill.name}: {skill.state.value}{whose}", sign=_SIGN_OF[skill.state])


def version(ctx: typer.Context) -> None:
    """Show the versions of tfx, of its assets and of every agent CLI."""

    def feature(screen: Screen, paths: Paths) -> Result[VersionData]:
        from tfx.setup import inventory

        screen.progress("asking the agent CLIs for their versions")
        return inventory.versions(paths)

    finish(ctx, "version", feature, _render_version)


def _render_version(screen: Screen, data: VersionData) -> None:
    screen.line(f"tfx {data.tfx} (Python {data.python})")
    assets = data.assets
    screen.line(
        f"assets: {assets.installed} installed, {assets.pending} pending,"
        f" {assets.conflicts} in conflict"
    )
    for agent in data.agents:
        screen.line(f"{agent.label} {agent.version or f'version unknown: {agent.note}'}")
