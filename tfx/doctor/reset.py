"""`--reset`: delete the files of tfx's own cache directory, and nothing else.

Names each file before it goes; follows no link and leaves directories that are not empty.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from tfx.core.clock import SystemClock, iso
from tfx.core.paths import Paths, refuse_home_of_another
from tfx.doctor.model import Finding, Group, Row, Status
from tfx.doctor.options import Options
from tfx.doctor.redaction import Redactor
from tfx.doctor.report import DoctorData, data_of, result_of
from tfx.result import Result


def reset(paths: Paths, options: Options, *, show: Callable[[str], None]) -> Result[DoctorData]:
    """Delete the caches; `show` hears each path first (D-187).

    Raises UnsafeEnvironment where the home directory is somebody else's.
    """
    options.validate()
    refuse_home_of_another(Paths.resolve(paths.env).home)
    started_at, started = iso(SystemClock().now_ms()), time.monotonic()
    files = cached(paths)
    for path in files:
        show(f"clears {paths.display(path)}")
    redactor = Redactor(paths)
    rows = tuple(_row(redactor.finding(_cleared(paths, path))) for path in files)
    for directory, _, _ in os.walk(paths.cache_dir, topdown=False):
        with contextlib.suppress(OSError):
            Path(directory).rmdir()
    if not files:
        rows = (_row(Finding("caches", Status.OK, "there are none")),)
    took = round((time.monotonic() - started) * 1000)
    data = data_of(rows, options, started_at=started_at, duration_ms=took)
    return result_of(data, strict=False)


def cached(paths: Paths) -> tuple[Path, ...]:
    """Return the files in tfx's own cache directory; a link in its place has none of ours."""
    if paths.cache_dir.is_symlink():
        return ()
    return tuple(
        Path(directory, name)
        for directory, _, names in sorted(os.walk(paths.cache_dir))
        for name in sorted(names)
    )


def _cleared(paths: Paths, path: Path) -> Finding:
    target = paths.display(path)
    try:
        size = path.lstat().st_size
        path.unlink()
    except OSError as error:
        return Finding(target, Status.FAIL, f"cannot be deleted: {error.strerror or error}")
    return Finding(target, Status.OK, f"deleted, {size} bytes", {"bytes": size})


def _row(finding: Finding) -> Row:
    return Row(
        "cache",
        Group.SETUP,
        finding.target,
        finding.status,
        finding.summary,
        finding.details,
        finding.remedies,
        None,
        0,
    )
