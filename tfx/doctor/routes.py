"""Would the route script find a CLI that a shell does not? It searches usual places itself.

Only looks; the list of places is the one that the script's own help gives.
"""

from __future__ import annotations

from pathlib import Path

from tfx.core.paths import Paths
from tfx.plan.records import Manifest
from tfx.shells.binaries import runnable
from tfx.shells.managers import npm_prefix, strays

SCRIPT = "scripts/tfx-route.sh"
ROUTED = frozenset({"codex", "gemini", "claude", "copilot", "opencode"})
_SYSTEM = ("/usr/local/bin", "/usr/bin", "/bin", "/snap/bin", "/run/current-system/sw/bin")
_HOME = ("bin", "n/bin", ".yarn/bin", ".opencode/bin", ".nix-profile/bin")


def is_needed(name: str, manifest: Manifest) -> bool:
    """Say whether the route script is installed here and may be asked for this CLI."""
    installed = any(record.asset == SCRIPT for record in manifest.files.values())
    return installed and name in ROUTED


def finds(name: str, paths: Paths, path: str) -> bool:
    """Say whether the script, started with this PATH, would find a CLI."""
    directories = [Path(entry) for entry in path.split(":") if entry.startswith("/")]
    own = paths.env.get("TFX_ROUTE_DIRS")
    if own is not None:
        directories += [Path(entry) for entry in own.split(":") if entry.startswith("/")]
        return any(runnable(directory / name) for directory in directories)
    directories += [*map(Path, _SYSTEM), *(paths.home / inside for inside in _HOME)]
    prefix = npm_prefix(paths)
    directories += [prefix / "bin"] if prefix is not None else []
    return any(runnable(each / name) for each in directories) or bool(strays(name, paths))
