"""`tfx config`: where the configuration lies, what holds and why, and whether it is right."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tfx.cli.context import Command, finish, new_app
from tfx.result import Problem, Result, Status

if TYPE_CHECKING:
    from tfx.cli.output import Screen
    from tfx.config.settings import Setting
    from tfx.core.paths import Paths

app = new_app("config", "Show and check tfx's own configuration; nothing here writes it.")


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """The configuration file, there or not."""

    path: Path
    exists: bool


@dataclass(frozen=True, slots=True)
class ConfigChecked:
    """How many errors there are; they are the problems of the result."""

    path: Path
    exists: bool
    errors: int


@dataclass(frozen=True, slots=True)
class ConfigShown:
    """Every setting with its origin."""

    path: Path
    exists: bool
    settings: tuple[Setting, ...]


@app.command("path", cls=Command)
def path(ctx: typer.Context) -> None:
    """Print the path of config.toml, whether it exists or not."""

    def feature(_screen: Screen, paths: Paths) -> Result[ConfigFile]:
        return Result(_file(paths))

    finish(ctx, "config path", feature, lambda screen, data: screen.value(str(data.path)))


@app.command("show", cls=Command)
def show(ctx: typer.Context) -> None:
    """Print every setting with its value and where it comes from.

    A flag wins over the environment, that over config.toml, that over the default.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[ConfigShown]:
        from tfx.config import settings

        found = settings.describe(paths)
        return Result(ConfigShown(paths.config_file, _file(paths).exists, found))

    finish(ctx, "config show", feature, _render_settings)


@app.command("check", cls=Command)
def check(ctx: typer.Context) -> None:
    """Name every error in config.toml and in the variables over it.

    Exit status 2 when there is one.
    """

    def feature(_screen: Screen, paths: Paths) -> Result[ConfigChecked]:
        from tfx.config import settings
        from tfx.setup.survey import unknown_skips

        errors = settings.problems(paths) or unknown_skips(paths, settings.load(paths))
        status = Status.FAILED if errors else Status.OK
        problems = tuple(Problem.of(error) for error in errors)
        data = ConfigChecked(paths.config_file, _file(paths).exists, len(errors))
        return Result(data, status, problems, errors[0].exit if errors else None)

    finish(ctx, "config check", feature, _render_check)


def _file(paths: Paths) -> ConfigFile:
    return ConfigFile(paths.config_file, os.path.lexists(paths.config_file))


def _render_settings(screen: Screen, data: ConfigShown) -> None:
    note = "" if data.exists else " (does not exist: defaults)"
    screen.line(f"# {data.path}{note}")
    width = max(len(setting.key) for setting in data.settings)
    for setting in data.settings:
        value = "-" if setting.value is None else json.dumps(setting.value, ensure_ascii=False)
        origin = setting.origin.value + (f", {setting.source}" if setting.source else "")
        screen.line(f"{setting.key:<{width}}  {value}  ({origin})")
        if screen.wishes.verbose:
            screen.line(f"    {setting.meaning}")


def _render_check(screen: Screen, data: ConfigChecked) -> None:
    if data.errors:
        screen.line(f"{data.path}: errors found: {data.errors}", sign="bad")
    else:
        what = "is right" if data.exists else "does not exist, the defaults hold"
        screen.line(f"{data.path}: {what}", sign="ok")
