"""The one rule for which version a program has: its package.json, else its `--version` (K-11).

Runs no other verb, writes nothing into the real HOME and gives up on nobody: what cannot be
known is an Unknown with its reason.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tfx.agents.binaries import PackageFile
from tfx.agents.model import VersionRule
from tfx.core.paths import Paths
from tfx.core.process import Completed, run

# D-88: a line that is nothing but `[name] [v]X.Y.Z[suffix] [(…)]`; a name is up to two words.
_GENERAL_LINE = re.compile(
    r"(?:[A-Za-z][\w.-]* ){0,2}"
    r"v?(?P<version>\d+\.\d+\.\d+(?:[-+.]?[A-Za-z][\w.+-]*|[-+][\w.+-]+)?)"
    r"(?: \([^()]*\))?"
)
_RELEASE = re.compile(r"\d+(?:\.\d+)+")
_NUMBERED_PRERELEASE = re.compile(r"-\d")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")

_OUTPUT_LIMIT_BYTES = 64 * 1024
_TAIL_CHARACTERS = 400
_KEPT_VARIABLES = ("PATH", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "NIX_LD", "LOCALE_ARCHIVE")
# D-91: a shim asks its manager, which must find its real data although HOME is elsewhere.
_MANAGER_DIRECTORIES: Mapping[str, str] = {
    "ASDF_DATA_DIR": ".asdf",
    "BUN_INSTALL": ".bun",
    "FNM_DIR": ".local/share/fnm",
    "MISE_CONFIG_DIR": ".config/mise",
    "MISE_DATA_DIR": ".local/share/mise",
    "NODENV_ROOT": ".nodenv",
    "NVM_DIR": ".nvm",
    "PNPM_HOME": ".local/share/pnpm",
    "PYENV_ROOT": ".pyenv",
    "VOLTA_HOME": ".volta",
}


@dataclass(frozen=True, slots=True)
class AgentVersion:
    """A version as its program spells it, and the part of it that can be compared (D-89).

    `public` is a PEP 440 version without build marks. A pre-release that PEP 440 cannot say
    (`-nightly.…`) keeps its release there and is marked in `is_prerelease`.
    """

    text: str
    public: str
    is_prerelease: bool

    def is_at_least(self, minimum: str) -> bool:
        """Say whether this version is not older than a PEP 440 minimum."""
        from packaging.version import Version  # noqa: PLC0415  (lazy: start-up rule)

        return Version(self.public) >= Version(minimum)

    def is_newer_than(self, other: AgentVersion) -> bool:
        """Say whether this version is newer; two nightlies of one release count as equal."""
        return self.public != other.public and self.is_at_least(other.public)


@dataclass(frozen=True, slots=True)
class Unknown:
    """Why a version is not known, and the end of what the program printed instead.

    `says_otherwise`: it ended well and printed something that is not the agent's version line.
    """

    reason: str
    tail: str = ""
    says_otherwise: bool = False


def parse_version(text: str, build_mark: re.Pattern[str] | None = None) -> AgentVersion | None:
    """Return a version that can be compared, or None when the text does not hold one (D-89)."""
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415  (lazy: start-up rule)

    spelled = text.strip()
    plain = spelled.removeprefix("v").partition("+")[0]
    if build_mark is not None:
        plain = build_mark.sub("", plain)
    release = _RELEASE.match(plain)
    if release is None:
        return None
    # For npm `1.2.3-4` comes before 1.2.3, for PEP 440 after it.
    if _NUMBERED_PRERELEASE.match(plain, release.end()) is None:
        try:
            version = Version(plain)
        except InvalidVersion:
            pass
        else:
            return AgentVersion(spelled, str(version), version.is_prerelease)
    return AgentVersion(spelled, release[0], is_prerelease=True)


def package_version(package: PackageFile, rule: VersionRule) -> AgentVersion | None:
    """Return the version that a package.json states, or None when it states none."""
    return parse_version(package.version, rule.build_mark)


def find_version(output: str, rule: VersionRule) -> AgentVersion | None:
    """Return the version in the output of `--version`, by the row's line or the general rule."""
    line_pattern = rule.line or _GENERAL_LINE
    for line in reversed(output.splitlines()):
        found = line_pattern.fullmatch(_ESCAPES.sub("", line).strip())
        version = None if found is None else parse_version(found["version"], rule.build_mark)
        if version is not None:
            return version
    return None


def probe_version(
    program: Path, rule: VersionRule, paths: Paths, cancel: threading.Event | None = None
) -> AgentVersion | Unknown:
    """Run `PROGRAM --version` in a scratch HOME and return what it says (S-13, D-91).

    Its input is closed and the row's time-out ends it with all its children. Once `cancel` is set
    it is not started any more.
    """
    from tfx.core import scratch as folders  # noqa: PLC0415  (the quick look never needs it)

    with folders.scratch("probe") as scratch:
        try:
            done = run(
                [str(program), "--version"],
                env=scratch_env(paths, scratch),
                timeout_s=rule.timeout_s,
                cwd=paths.home,
                limit_bytes=_OUTPUT_LIMIT_BYTES,
                cancel=cancel,
            )
        except OSError as error:
            return Unknown(f"cannot be started: {error.strerror or error}")
    return _verdict(done, rule)


def _verdict(done: Completed, rule: VersionRule) -> AgentVersion | Unknown:
    output = done.stdout.decode("utf-8", "replace")
    tail = _ESCAPES.sub("", output or done.stderr.decode("utf-8", "replace")).strip()
    tail = tail[-_TAIL_CHARACTERS:]
    if done.code is None:
        return Unknown(f"--version did not end within {rule.timeout_s:g} s", tail)
    if done.code < 0:
        return Unknown(f"--version was killed by signal {-done.code}", tail)
    if done.code > 0:
        return Unknown(f"--version ended with status {done.code}", tail)
    return find_version(output, rule) or Unknown(
        "no line of --version is a version", tail, says_otherwise=bool(output.strip())
    )


def scratch_env(paths: Paths, scratch: Path) -> dict[str, str]:
    """Return the environment of a program that shall not find the real home directory (D-91)."""
    env = {
        name: value
        for name, value in paths.env.items()
        if name in _KEPT_VARIABLES or name.startswith("LC_")
    }
    for name, inside in _MANAGER_DIRECTORIES.items():
        directory = paths.variable(name) or paths.home / inside
        if os.path.isdir(directory):  # noqa: PTH112  (Path.is_dir raises without permission)
            env[name] = str(directory)
    env |= {
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "XDG_CONFIG_HOME": str(scratch / ".config"),
        "XDG_DATA_HOME": str(scratch / ".local" / "share"),
        "XDG_STATE_HOME": str(scratch / ".local" / "state"),
        "XDG_CACHE_HOME": str(scratch / ".cache"),
        "NO_COLOR": "1",
        "NO_UPDATE_NOTIFIER": "1",
    }
    return env
