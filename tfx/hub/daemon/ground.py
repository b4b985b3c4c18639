"""What must hold before anything is opened: a private directory of ours on a local file system.

Knows nothing of the database's contents (H-22, H-45).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from tfx.core import files
from tfx.errors import OperationFailed, UnsafeEnvironment
from tfx.hub.places import HubFiles

_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "ncpfs", "afs", "coda", "ceph", "glusterfs"}
    | {"lustre", "gfs", "gfs2", "gpfs", "ocfs2", "orangefs", "pvfs2", "beegfs", "9p", "davfs"}
    | {"vboxsf", "vmhgfs", "prl_fs"}
    | {f"fuse.{name}" for name in ("sshfs", "glusterfs", "s3fs", "rclone", "davfs2", "ceph")}
    | {f"fuse.{name}" for name in ("ceph-fuse", "gcsfuse", "juicefs", "mfs", "vmhgfs-fuse")}
)
"""Where another host, or the host of a virtual machine, also writes; its locks are not ours."""
_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPE = re.compile(r"\\([0-7]{3})")

_LITTLE_BYTES = 65_536


def prepare(hub: HubFiles, mounts: Path = _MOUNTS) -> None:
    """Refuse what would lose data later, then make the directories.

    Raises UnsafeEnvironment for a directory or database of another owner, OperationFailed for a
    network file system (`network-file-system`) and where the directory cannot be made or written;
    what is refused is as it was.
    """
    try:
        for path in (hub.directory, hub.database.parent, hub.database):
            _check_owner(path)
        _refuse_strange(hub)
    except OSError as error:
        raise unusable(hub.directory, error) from error
    _refuse_network(hub, mounts)
    try:
        files.make_private_dir(hub.directory)
        hub.database.parent.mkdir(parents=True, exist_ok=True, mode=files.PRIVATE_DIR)
    except OSError as error:
        raise unusable(hub.directory, error) from error


def narrow(hub: HubFiles) -> None:
    """Take from others what they may do with the hub's files, however those came there (H-45)."""
    database = hub.database
    family = (database, *(database.with_name(database.name + end) for end in ("-wal", "-shm")))
    for path in (*family, hub.lock, hub.state, hub.log, hub.token, hub.operator):
        if path.is_file() and not path.is_symlink() and files.permissions(path) & 0o077:
            path.chmod(files.PRIVATE_FILE)


def _refuse_strange(hub: HubFiles) -> None:
    """Refuse directories, pipes and the like where a file of ours has its place."""
    for path in (hub.database, hub.state, hub.log, hub.token, hub.operator):
        if path.exists() and not path.is_file():
            raise OperationFailed(
                f"{path} is in the way: it is not a file",
                code="not-a-file",
                hint=f"ls -ld {path}",
                details={"path": str(path)},
            )


def _refuse_network(hub: HubFiles, mounts: Path) -> None:
    kind = file_system(hub.database.parent, mounts)
    if is_network(kind):
        raise OperationFailed(
            f"{hub.database} lies on a network file system ({kind}), where SQLite's locks do not"
            " hold",
            code="network-file-system",
            hint="set TFX_HUB_DB to a path on a local disk",
            details={"path": str(hub.database), "file_system": kind},
        )


def unusable(path: Path, error: OSError) -> OperationFailed:
    """Return the error of a path that cannot be made, locked or written, with its reason."""
    code = "disk-full" if error.errno in {28, 122} else "io"  # ENOSPC, EDQUOT
    where = error.filename if isinstance(error.filename, str) else str(path)
    return OperationFailed(
        f"{where} cannot be used: {error.strerror or error}",
        code=code,
        hint=f"ls -ld {path}" if code == "io" else f"df -h {path}",
        details={"path": str(where)},
    )


def blamed(error: OperationFailed, directory: Path) -> OperationFailed:
    """Return `disk-full` for an I/O error on a full disk: SQLite cannot tell when it maps memory.

    Called while what the start has written is still there.
    """
    if error.reason != "io":
        return error
    space = os.statvfs(directory)
    if space.f_bavail * space.f_frsize >= _LITTLE_BYTES:
        return error
    return OperationFailed(
        f"the disk is full: {error.message}",
        code="disk-full",
        hint=f"df -h {directory}",
        details=error.details,
    )


def is_network(kind: str) -> bool:
    """Say whether SQLite's locks do not hold on a file system of this type (H-22)."""
    return kind in _NETWORK


def file_system(path: Path, mounts: Path = _MOUNTS) -> str:
    """Return the type of the file system a path lies on, or an empty string where it is unknown.

    The one door to this fact: tests pass a table of their own (K-45).
    """
    try:
        lines = mounts.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    real = os.path.realpath(path)
    best, kind = -1, ""
    for line in lines:
        left, _, right = line.partition(" - ")
        point = _ESCAPE.sub(lambda found: chr(int(found[1], 8)), left.split(" ")[4])
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:  # a later mount covers an earlier one
            best, kind = len(point), right.split(" ")[0]
    return kind


def _check_owner(path: Path) -> None:
    try:
        owner = path.stat().st_uid
    except FileNotFoundError:
        return
    if owner != os.geteuid() and not _shared_parent(path):
        raise UnsafeEnvironment(
            f"{path} belongs to uid {owner}, not to you (uid {os.geteuid()})",
            code="wrong-owner",
            hint=f"ls -ld {path}",
            details={"path": str(path), "owner": owner, "uid": os.geteuid()},
        )


def _shared_parent(path: Path) -> bool:
    """Return True for a directory like /tmp: not ours, but nobody can take our files there."""
    return path.is_dir() and bool(path.stat().st_mode & 0o1000)
