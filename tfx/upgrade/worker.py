"""The worker process: one request on standard input, lines of JSON on standard output (U-25).

Runs alone in its group; a parent that dies stops nothing, a signal rolls back.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType

import msgspec

from tfx.core import paths
from tfx.errors import InvalidRequest, OperationFailed, TfxError
from tfx.upgrade import ground, run, tasks
from tfx.upgrade.check import Checked
from tfx.upgrade.model import Failure, Line, Receipt, Request
from tfx.upgrade.reporter import Reporter, to_stdout

_MOST_BYTES = 1_000_000


class Interrupted(OperationFailed):
    """A signal ended the run; what was not committed is rolled back."""

    code = "interrupted"


def main() -> int:
    """Do what standard input asks for; return the exit status of its error, or 0."""
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, _interrupt)
    with Reporter(to_stdout) as report:
        line = _line(report)
    report.send(line)  # the last line: the beat has stopped
    return 0 if line.failure is None else line.failure.exit


def _line(report: Reporter) -> Line:
    try:
        with ground.os_errors(Path("/")):
            return Line(receipt=_work(report))
    except TfxError as error:
        return Line(failure=failure_of(error, report))


def failure_of(error: TfxError, report: Reporter) -> Failure:
    """Return an error with the phase it happened in and the verified backup, if any (U-3, U-23)."""
    details: dict[str, object] = {
        **error.details,
        "phase": report.phase.value,
        "backup_directory": report.backup_directory,
    }
    return Failure(
        code=error.reason,
        kind=error.kind.value,
        exit=int(error.exit),
        message=error.message,
        hint=error.hint,
        details=details,
    )


def request_of(data: bytes) -> Request:
    """Return a request; an unknown key or a wrong type is InvalidRequest (U-22)."""
    try:
        document = msgspec.json.decode(data)
        request = msgspec.convert(document, Request)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise InvalidRequest(f"the request is malformed: {error}", code="bad-request") from error
    unknown = sorted(set(document) - set(Request.__slots__))
    if unknown:
        raise InvalidRequest(f"the request has unknown keys: {unknown}", code="bad-request")
    return request


def _work(report: Reporter) -> Receipt:
    request = request_of(sys.stdin.buffer.read(_MOST_BYTES))
    where = paths.Paths.resolve()

    def examine(file: Path) -> Checked:
        return run.examine(where, request, file, report.relay)

    return tasks.run(request, report, examine, where.home)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    del frame
    raise Interrupted(f"ended by {signal.Signals(signum).name}", hint="run the command again")


if __name__ == "__main__":
    sys.exit(main())
