"""What every command gets: the global options, the screen, and the one way to end.

Knows no feature; each command hands one in and names its renderer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from tfx.cli.output import Screen
from tfx.errors import Exit, TfxError
from tfx.result import Result, failure

if TYPE_CHECKING:
    from tfx.core.paths import Paths

T = TypeVar("T")

HELP_NAMES = {"help_option_names": ["-h", "--help"]}

_GLOBALS = (
    (("--json",), "Print one JSON document on stdout; everything else goes to stderr."),
    (("--quiet", "-q"), "Print only what went wrong."),
    (("--verbose", "-v"), "Print also what is as it should be."),
    (("--ascii",), "Use ASCII signs and no colour."),
)


@dataclass(slots=True)
class Globals:
    """The global options; they may stand before or after the command."""

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    ascii: bool = False


def globals_of(ctx: typer.Context) -> Globals:
    """Return the global options of this call."""
    root = ctx.find_root()
    if not isinstance(root.obj, Globals):
        root.obj = Globals()
    return root.obj


def _note(ctx: typer.Context, parameter: TyperOption, value: object) -> None:
    if value and parameter.name:
        setattr(globals_of(ctx), parameter.name, True)


def _global_options() -> list[TyperOption]:
    return [
        TyperOption(
            param_decls=list(names),
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_note,
            help=text,
        )
        for names, text in _GLOBALS
    ]


class Command(TyperCommand):
    """A command that also takes the global options."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.params.extend(_global_options())


class Group(TyperGroup):
    """A group of commands that also takes the global options."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.params.extend(_global_options())

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]  # typer hides its own
        """Run the command; an interrupt is told by who started it all."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Abort from None


def new_app(name: str, summary: str) -> typer.Typer:
    """Return a group whose help is plain text (start-up rule: no rich for `--help`)."""
    return typer.Typer(
        name=name,
        help=summary,
        cls=Group,
        rich_markup_mode=None,
        no_args_is_help=True,
        context_settings=dict(HELP_NAMES),
        pretty_exceptions_enable=False,
    )


def finish(
    ctx: typer.Context,
    command: str,
    feature: Callable[[Screen, Paths], Result[T]],
    render: Callable[[Screen, T], None],
    *,
    told: frozenset[str] = frozenset(),
) -> NoReturn:
    """Run a feature, show its result once in the wanted form, and exit with its status.

    `told` are the codes of problems that the renderer shows in its own way.
    `feature` gets the screen (progress, questions) and the resolved paths. Errors of the tree
    become the same envelope as results; anything else is a bug and ends in `tfx.__main__`.
    """

    def resolved(screen: Screen) -> Result[T]:
        from tfx.core.paths import Paths

        paths = Paths.resolve()
        screen.home = str(paths.home)
        return feature(screen, paths)

    finish_anywhere(ctx, command, resolved, render, told=told)


def finish_anywhere(
    ctx: typer.Context,
    command: str,
    feature: Callable[[Screen], Result[T]],
    render: Callable[[Screen, T], None],
    *,
    told: frozenset[str] = frozenset(),
    watched: bool = True,
) -> NoReturn:
    """Do as `finish` does for a feature that resolves the paths by itself.

    Without `watched` nothing is announced while it works.
    """
    screen = Screen(globals_of(ctx), sys.stdin, sys.stdout, sys.stderr)
    result: Result[T] | Result[None]
    try:
        with screen if watched else nullcontext():
            result = feature(screen)
    except TfxError as error:
        result = failure(error)
    screen.show(command, result, render, told=told)
    leave(result.exit)


def leave(code: Exit) -> NoReturn:
    """Flush and exit; a reader that went away (`tfx list | head`) is not an error of ours."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise typer.Exit(int(code))
