"""Disks on which something that usually works does not."""

from __future__ import annotations

import os
from pathlib import Path

from tfx.plan.disk import Disk


class NoRename(Disk):
    """A target on another device than its directory pretends to be: EXDEV."""

    def __init__(self, code: int) -> None:
        self.code = code
        self.renames = 0

    def rename(self, source: Path, target: Path) -> None:
        if source.suffix == ".new":
            self.renames += 1
            raise OSError(self.code, os.strerror(self.code), str(target))
        super().rename(source, target)
