"""Run the command tree and account for every way it can end.

Usage errors become the envelope too; an unexpected exception becomes a log without values.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tfx.errors import Exit, InvalidRequest, TfxError
from tfx.result import Result, failure

if TYPE_CHECKING:
    from collections.abc import Sequence

_ClickError = typer.BadParameter.__mro__[2]  # typer bundles click and exports only BadParameter


def run(arguments: Sequence[str]) -> int:
    """Run tfx with these arguments and return the exit status."""
    from tfx.cli.app import app

    _open_missing_streams()
    command = typer.main.get_command(app)
    # rc files are never written (K-15): the completion script is shown, not installed
    command.params = [p for p in command.params if p.name != "install_completion"]
    try:
        code = command.main(list(arguments), prog_name="tfx", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        _say("interrupted")
        return Exit.INTERRUPTED
    except BrokenPipeError:
        return Exit.OK
    except TfxError as error:
        return _report(arguments, failure(error))
    except Exception as error:  # noqa: BLE001  (the one place where bugs end)
        if isinstance(error, _ClickError):
            return _usage(arguments, error)
        return _crash(arguments, error)
    return code if isinstance(code, int) else Exit.OK


def _open_missing_streams() -> None:
    """Put the null device where a standard stream was closed: the exit status still tells."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115  (to the end)
            setattr(sys, name, stream)


def _usage(arguments: Sequence[str], error: Exception) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":  # the help was the answer
        _say(str(error))
        return Exit.USAGE
    text = str(getattr(error, "format_message", error.__str__)())
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "tfx"
    problem = InvalidRequest(text, code="usage", hint=f"{path} --help")
    return _report(arguments, failure(problem), path.removeprefix("tfx").strip())


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
    _report(arguments, Result(None, problems=result.problems, exit_override=Exit.INTERNAL))
    return Exit.INTERNAL


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
