"""Run the command tree and account for every way it can end.

Usage errors become the envelope too; an unexpected exception becomes a log without values.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import typer

from tfx.errors import Exit, InvalidRequest, TfxError
from tfx.result import Result, Status, failure

if TYPE_CHECKING:
    from collections.abc import Sequence

_ClickError = typer.BadParameter.__mro__[2]  # typer bundles click and exports only BadParameter


def run(arguments: Sequence[str]) -> int:
    """Run tfx with these arguments and return the exit status."""
    _prepare_streams()
    from tfx.cli.app import app

    command = typer.main.get_command(app)
    # rc files are never written (K-15): the completion script is shown, not installed
    command.params = [p for p in command.params if p.name != "install_completion"]
    try:
        code = command.main(list(arguments), prog_name="tfx", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        from tfx.core.process import end_all

        end_all()
        _say("interrupted")
        return Exit.INTERRUPTED
    except SystemExit as end:  # the command tree's own word for a reader that went away
        if isinstance(end.__context__, BrokenPipeError):
            return Exit.OK
        raise
    except Exception as error:  # noqa: BLE001  (the one place where bugs end)
        return _failed(arguments, error)
    return code if isinstance(code, int) else Exit.OK


def _failed(arguments: Sequence[str], error: Exception) -> int:
    match error:
        case BrokenPipeError():  # a reader that went away
            return Exit.OK
        case OSError(filename=None):
            return _unheard(error)
        case TfxError():
            return _report(arguments, failure(error))
        case _ if isinstance(error, _ClickError):
            return _usage(arguments, error)
        case _:
            return _crash(arguments, error)


class _Stderr(io.TextIOWrapper):
    """Standard error that may be full: a message nobody can read changes no exit status."""

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError:
            _silence(self)
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            _silence(self)


def _prepare_streams() -> None:
    """Let standard error never fail; open the null device for a stream that was closed (`>&-`)."""
    if isinstance(sys.stderr, io.TextIOWrapper):
        old = sys.stderr
        sys.stderr = _Stderr(old.buffer, old.encoding, old.errors, line_buffering=True)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115  (it stays open to the end)


def _silence(stream: TextIO) -> None:
    """Send the rest of a stream nowhere, also what is flushed at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _unheard(error: OSError) -> int:
    """Say on stderr that the output could not be written: a full disk behind a redirection."""
    _silence(sys.stdout)
    _say(f"error: cannot write the output: {error.strerror or error}")
    return Exit.FAILED


def _usage(arguments: Sequence[str], error: Exception) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":  # the help was the answer
        _say(str(error))
        return Exit.USAGE
    text = str(getattr(error, "format_message", error.__str__)())
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else _command_in(arguments)
    problem = InvalidRequest(text, code="usage", hint=f"{path} --help")
    return _report(arguments, failure(problem), path.removeprefix("tfx").strip())


def _command_in(arguments: Sequence[str]) -> str:
    """Return the command line's first words that name a command, for an error without context."""
    from tfx.cli.app import app

    names = {command.name for command in app.registered_commands}
    word = next((word for word in arguments if not word.startswith("-")), "")
    return f"tfx {word}" if word in names else "tfx"


def _report(arguments: Sequence[str], result: Result[None], command: str = "") -> int:
    from tfx.cli.context import Globals
    from tfx.cli.output import Screen

    wishes = Globals(json="--json" in arguments)
    screen = Screen(wishes, sys.stdin, sys.stdout, sys.stderr)
    screen.show(command or "tfx", result, lambda _screen, _data: None)
    return result.exit


def _crash(arguments: Sequence[str], error: Exception) -> int:
    from tfx.cli.crash import write_log

    where = write_log(arguments, error)
    problem = TfxError(
        f"this is a bug in tfx ({type(error).__name__}); nothing more was done",
        code="internal",
        hint=f"please report it with this log, which holds no values: {where}",
    )
    result = failure(problem)
    _report(arguments, Result(None, Status.INTERNAL, result.problems))
    return Exit.INTERNAL


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
