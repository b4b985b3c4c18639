"""`tfx backup create`: by the running hub itself, or by the worker when it is stopped (K-22).

Opens no database: the hub copies, a worker checks the copy.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tfx import __version__
from tfx.core import clock, database, files
from tfx.core.identity import identify
from tfx.hub.client import HubClient
from tfx.hub.daemon import probe
from tfx.hub.daemon.probe import State as HubState
from tfx.hub.schema import registry
from tfx.hub.wire.admin import SnapshotRequest, SnapshotResult
from tfx.result import Result
from tfx.upgrade import backup, ground, manifest, run, stores
from tfx.upgrade.ground import os_errors
from tfx.upgrade.manifest import Manifest, Reason, Stage
from tfx.upgrade.model import Phase, PhaseTime, Progress, Receipt, State, Task
from tfx.upgrade.orders import Places, Told, phased

if TYPE_CHECKING:
    from tfx.core.paths import Paths

COPY_MS: Final = 600_000


def create(paths: Paths, places: Places, told: Told) -> Result[Receipt]:
    """Return the receipt of one new verified backup (U-76)."""
    with phased():
        if places.is_hub and probe.probe(paths).state is HubState.RUNNING:
            receipt = _by_hub(paths, places, told)
        else:
            receipt = run.run(paths, places.request(Task.BACKUP), told)
        stores.remember(paths, receipt.backup_directory)
        return Result(receipt)


def _by_hub(paths: Paths, places: Places, told: Told) -> Receipt:
    ground.check_store(places.store)
    ground.check_apart(places.store, places.root, paths.home)
    with os_errors(places.store):
        files.make_store(places.store)
        backup.clean(places.store)
    schema = registry.HASHES[registry.CURRENT]
    now_ms = clock.SystemClock().now_ms()
    directory = backup.new_directory(places.store, places.database.stem, schema, now_ms)
    pending = _pending(places.database, directory.name, schema, now_ms)
    try:
        return _filled(paths, places, directory, pending, told)
    except BaseException:
        backup.discard(directory)
        raise


def _filled(
    paths: Paths, places: Places, directory: Path, pending: Manifest, told: Told
) -> Receipt:
    partial = directory / f".{pending.file}.partial"
    with os_errors(directory):
        manifest.write(directory, pending)
        files.write_new(partial, b"", files.PRIVATE_FILE)
    began = time.monotonic()
    told(Progress(Phase.BACKUP))
    with HubClient.of(paths, operator=True) as hub:
        asked = SnapshotRequest(path=str(partial))
        copied = hub.call("snapshot", asked, SnapshotResult, wait_ms=COPY_MS)
    with os_errors(partial):
        files.fsync_file(partial)
    copy_s = time.monotonic() - began
    checked = run.examine(paths, places.request(Task.VERIFY, partial), partial, told)
    done = replace(
        pending,
        stage=Stage.DONE,
        from_schema_hash=checked.schema_hash,
        from_version=checked.version,
        user_version=checked.version or 0,
        rows=checked.rows,
        size=checked.size,
        sha256=checked.sha256,
        last_phase=Phase.CONFIRM.value,
    )
    backup.publish(directory, partial, done)
    return Receipt(
        state=State.BACKED_UP,
        database=str(places.database),
        from_version=checked.version,
        from_schema_hash=checked.schema_hash,
        backup_directory=str(directory),
        backup_sha256=checked.sha256,
        bytes_before=copied.bytes,
        notes=(f"made by the running hub; its last event is {copied.seq}",),
        phases=(
            PhaseTime(Phase.BACKUP, round(copy_s, 3), 0),
            PhaseTime(Phase.VERIFY_BACKUP, round(time.monotonic() - began - copy_s, 3), 0),
        ),
    )


def _pending(source: Path, name: str, schema: str, now_ms: int) -> Manifest:
    me = identify()
    return Manifest(
        stage=Stage.PENDING,
        reason=Reason.MANUAL,
        made_at_ms=now_ms,
        pid=os.getpid(),
        start_token=me.start_token if me else "",
        boot_id=me.boot_id if me else "",
        tfx=__version__,
        sqlite=database.sqlite_version(),
        source=str(source),
        file=f"{name}.db",
        from_version=registry.CURRENT,
        to_version=None,
        from_schema_hash=schema,
        to_schema_hash=None,
        fold_version=registry.FOLD,
        journal_mode="wal",
        page_size=4096,
        pages=0,
        encoding="UTF-8",
        application_id=registry.APPLICATION_ID,
        user_version=registry.CURRENT,
    )
