"""Does the thing that a shim stands for exist? Read from the shim, nothing is run.

A shim that is whole may still refuse to run (no version chosen); only running it tells (D-93).
"""

from __future__ import annotations

import re
from pathlib import Path

from tfx.core.files import read_plain
from tfx.shells.binaries import Fault, Problem

_SMALL = 16384
_ASDF_VERSION = re.compile(r"^# asdf-plugin: (\S+) (\S+)", re.MULTILINE)
_EXEC = re.compile(
    r"^\s*exec\s+(?P<quote>[\"']?)(?P<path>/[^\"'\s]+)(?P=quote)(?:\s|$)", re.MULTILINE
)
_ANY_EXEC = re.compile(r"^\s*exec\s+\S", re.MULTILINE)
_BESIDE = re.compile(r"\"\$basedir/(?P<path>[^\"$]+)\"")
_VOLTA_OWN = frozenset({"node", "npm", "npx", "yarn", "yarnpkg", "pnpm", "pnpx", "volta"})


def broken(path: Path, real: Path) -> Problem | None:
    """Say what a shim leads to that is not there, or None when it is whole or no shim.

    `path` is the file on PATH, `real` what it resolves to. Understood: asdf, volta, the sh
    wrappers that npm, pnpm and installers write.
    """
    if real.name == "volta-shim":
        return _volta(path)
    text = _script(real)
    if text is None:
        return None
    versions = _ASDF_VERSION.findall(text)
    if versions:
        return _asdf(path, versions)
    return _wrapper(real, text)


def _script(real: Path) -> str | None:
    try:
        if real.stat().st_size > _SMALL:
            return None
        text = read_plain(real, _SMALL).decode("utf-8", "replace")
    except OSError:
        return None
    first = text.partition("\n")[0]
    return text if first.startswith("#!") and re.search(r"\b(?:sh|bash|dash)\b", first) else None


def _volta(path: Path) -> Problem | None:
    if path.name in _VOLTA_OWN:
        return None
    record = path.parent.parent / "tools" / "user" / "bins" / f"{path.name}.json"
    if record.exists():
        return None
    return Problem(Fault.BROKEN_SHIM, f"volta has no package that provides {path.name}")


def _asdf(path: Path, versions: list[tuple[str, str]]) -> Problem | None:
    installs = path.parent.parent / "installs"
    for plugin, version in versions:
        if version == "system" or version.startswith(("path:", "ref:")):
            return None
        root = installs / plugin / version
        if (root / "bin" / path.name).exists() or (root / path.name).exists():
            return None
        if root.is_dir() and plugin not in {"nodejs", "bun", "deno"}:
            return None  # other plugins may keep their programs elsewhere
    told = ", ".join(f"{plugin} {version}" for plugin, version in versions)
    return Problem(Fault.BROKEN_SHIM, f"{path.name} is not in {told}; asdf reshim drops the shim")


def _wrapper(real: Path, text: str) -> Problem | None:
    beside = [match["path"] for match in _BESIDE.finditer(text) if match["path"] != "node"]
    if beside:
        if any((real.parent / target).exists() for target in beside):
            return None
        return Problem(Fault.BROKEN_SHIM, str(real.parent / beside[0]))
    targets = [match["path"] for match in _EXEC.finditer(text)]
    if not targets or len(targets) != len(_ANY_EXEC.findall(text)):
        return None  # no exec, or one whose target only the shell can tell
    if any("$" in target or Path(target).exists() for target in targets):
        return None
    return Problem(Fault.BROKEN_SHIM, targets[0])
