"""Every directory and file name of tfx, resolved once from an environment mapping.

The only module that reads the environment; it creates nothing.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tfx.core.files import is_dir, is_file
from tfx.errors import UnsafeEnvironment

APP = "tfx"


def environment() -> Mapping[str, str]:
    """Return a copy of this process's environment."""
    return dict(os.environ)


@dataclass(frozen=True, slots=True)
class Paths:
    """Where tfx keeps its things and where the user's home is.

    `env` is the environment they were resolved from; agents' own variables are read through it.
    XDG variables follow the base-directory specification: relative values are ignored.
    """

    env: Mapping[str, str]
    home: Path
    config_dir: Path
    state_dir: Path
    cache_dir: Path
    data_dir: Path

    @classmethod
    def resolve(cls, env: Mapping[str, str] | None = None, *, only_looking: bool = False) -> Paths:
        """Return the paths of an environment (this process's by default).

        Raises UnsafeEnvironment without a usable HOME (S-108) or, unless `only_looking`, under
        sudo with a HOME that is not the effective user's (S-103).
        """
        env = environment() if env is None else env
        home = _home(env)
        if not only_looking:
            _refuse_foreign_home(env, home)
        return cls(
            env=env,
            home=home,
            config_dir=_xdg(env, "XDG_CONFIG_HOME", home / ".config") / APP,
            state_dir=_xdg(env, "XDG_STATE_HOME", home / ".local" / "state") / APP,
            cache_dir=_xdg(env, "XDG_CACHE_HOME", home / ".cache") / APP,
            data_dir=_xdg(env, "XDG_DATA_HOME", home / ".local" / "share") / APP,
        )

    def variable(self, name: str) -> Path | None:
        """Return the absolute directory that an environment variable names, or None if unset.

        A leading `~` is the home directory; a relative value is taken from the home directory,
        never from the working directory, so that two calls agree.
        """
        value = self.env.get(name, "")
        if not value:
            return None
        if value == "~" or value.startswith("~/"):
            return self.home / value[2:]
        return self.home / value

    def program(self, name: str) -> Path | None:
        """Return the absolute path of a program on PATH, or None; relative entries are skipped."""
        for entry in self.env.get("PATH", "").split(os.pathsep):
            candidate = Path(entry) / name
            if entry.startswith("/") and is_file(candidate) and os.access(candidate, os.X_OK):
                return candidate
        return None

    @property
    def config_file(self) -> Path:
        """The configuration of tfx itself (K-19)."""
        return self.config_dir / "config.toml"

    @property
    def setup_dir(self) -> Path:
        """STATE of the setup page: manifest, journal, backups, staged versions."""
        return self.state_dir / "setup"

    @property
    def hub_dir(self) -> Path:
        """Database, lock, tokens, state file and log of the hub."""
        return self.state_dir / "hub"

    @property
    def jobs_dir(self) -> Path:
        """Runs of `tfx route`: their records and logs, the history and the issue log."""
        return self.state_dir / "jobs"

    @property
    def crash_dir(self) -> Path:
        """Pasteable logs of bugs in tfx."""
        return self.state_dir / "crash"

    @property
    def backup_dir(self) -> Path:
        """Verified database backups; outside the state root (U-14)."""
        return self.data_dir / "backups"

    @property
    def backup_stores(self) -> Path:
        """The list of other directories that backups were made in (`--backup-dir`)."""
        return self.state_dir / "backup-stores.json"

    @property
    def assets_dir(self) -> Path:
        """The bundled assets: inside the wheel, or beside the package in a checkout."""
        packaged = Path(__file__).resolve().parent.parent / "_assets"
        return packaged if packaged.is_dir() else packaged.parent.parent / "assets"

    def display(self, path: Path) -> str:
        """Return a path for people, with the home directory as `~`."""
        try:
            inside = path.relative_to(self.home)
        except ValueError:
            return str(path)
        return "~" if inside == Path() else f"~/{inside}"


def refuse_home_of_another(home: Path) -> None:
    """Refuse to write into the home directory of another user than the effective one (D-127).

    What root makes there its owner could no longer change. Raises UnsafeEnvironment.
    """
    owner = home.stat().st_uid
    if owner != os.geteuid():
        raise UnsafeEnvironment(
            f"the home directory {home} belongs to uid {owner}, and this runs as uid"
            f" {os.geteuid()}: what it writes there would not be its owner's",
            hint="run it as the owner of the home directory",
            details={"home": str(home), "owner": owner, "uid": os.geteuid()},
        )


def _home(env: Mapping[str, str]) -> Path:
    value = env.get("HOME", "")
    if not value or not Path(value).is_absolute():
        what = "is not set" if not value else f"is not an absolute path: {value!r}"
        raise UnsafeEnvironment(
            f"HOME {what}, so there is no place to work in",
            hint="set HOME to your home directory and run the command again",
        )
    if not (is_dir(Path(value)) and os.access(value, os.X_OK)):
        raise UnsafeEnvironment(
            f"HOME is not a directory that you may enter: {value}",
            hint="set HOME to your home directory and run the command again",
        )
    return Path(value)


def _refuse_foreign_home(env: Mapping[str, str], home: Path) -> None:
    if not env.get("SUDO_USER"):
        return
    try:
        own = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        own = Path("/nonexistent")
    if home.resolve() == own.resolve():
        return
    raise UnsafeEnvironment(
        f"sudo runs this as uid {os.geteuid()} with the home directory {home} of somebody else",
        hint="run it without sudo, or with `sudo -H` to work in the other user's home",
        details={"home": str(home), "uid": os.geteuid()},
    )


def _xdg(env: Mapping[str, str], name: str, default: Path) -> Path:
    value = env.get(name, "")
    return Path(value) if value and Path(value).is_absolute() else default
