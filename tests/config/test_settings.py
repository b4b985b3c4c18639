"""tfx's own config.toml: what is read, what is refused, and which source wins."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support import bare_env
from tfx.config import settings
from tfx.config.settings import Origin
from tfx.config.settings_keys import KEYS
from tfx.config.settings_model import Durability, RoleOverride
from tfx.core.paths import Paths
from tfx.errors import BadSettings, JsonValue

FULL = """\
[hub]
port = 4711
allow_hosts = ["devbox", "[::1]", "host.docker.internal"]
durability = "full"
notify = ["notify-send", "a b"]
review_rounds = 0
turns = 7

[hub.retention]
messages_days = 1
dead_letters_days = 2
human_requests_days = 3
agents_days = 0
tasks_days = 4

[setup]
tools = ["bus", "work"]
skip = ["statusline", "hooks", "skill:tfx-hub", "agent:gemini", "skill:tfx-auto"]

[doctor]

[route]
cli = "gemini"
allow_skip_approvals = true
log_mib = 64
hub_answer_s = 9

[route.roles.executor]
cli = "claude"
effort = "deep"
timeout_s = 60
profile = "docs"
"""


def paths_of(home: Path, **env: str) -> Paths:
    return Paths.resolve(bare_env(home, **env))


def write(home: Path, data: bytes | str) -> Paths:
    paths = paths_of(home)
    paths.config_dir.mkdir(parents=True, exist_ok=True)
    paths.config_file.write_bytes(data.encode() if isinstance(data, str) else data)
    return paths


def refused(paths: Paths) -> BadSettings:
    with pytest.raises(BadSettings) as refusal:
        settings.load(paths)
    assert refusal.value.exit == 2
    return refusal.value


def test_k19_without_a_file_the_defaults_hold(home: Path) -> None:
    found = settings.load(paths_of(home))
    assert found.hub.port is None
    assert found.hub.durability is Durability.NORMAL
    assert (found.hub.allow_hosts, found.hub.notify) == ((), ())
    days = found.hub.retention
    assert (days.messages_days, days.dead_letters_days) == (14, 30)
    assert (days.human_requests_days, days.agents_days, days.tasks_days) == (90, 30, 90)
    assert (found.hub.review_rounds, found.hub.turns) == (5, 50)
    assert found.setup.tools == ("bus",)
    assert not found.setup.skip_status_line
    assert not found.setup.skip_hooks
    assert (found.setup.skip_skills, found.setup.skip_agents) == ((), ())
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("prefix", [b"", b"\xef\xbb\xbf"], ids=["plain", "bom"])
@pytest.mark.parametrize("eol", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_k19_every_key_is_read(home: Path, prefix: bytes, eol: str) -> None:
    found = settings.load(write(home, prefix + FULL.replace("\n", eol).encode()))
    assert found.hub.port == 4711
    assert found.hub.allow_hosts == ("devbox", "[::1]", "host.docker.internal")
    assert found.hub.durability is Durability.FULL
    assert found.hub.notify == ("notify-send", "a b")
    days = found.hub.retention
    assert (days.messages_days, days.dead_letters_days) == (1, 2)
    assert (days.human_requests_days, days.agents_days, days.tasks_days) == (3, 0, 4)
    assert (found.hub.review_rounds, found.hub.turns) == (0, 7)
    assert found.setup.tools == ("bus", "work")
    assert found.setup.skip_status_line
    assert found.setup.skip_hooks
    assert found.setup.skip_skills == ("tfx-hub", "tfx-auto")
    assert found.setup.skip_agents == ("gemini",)
    assert (found.route.cli, found.route.allow_skip_approvals) == ("gemini", True)
    assert (found.route.log_mib, found.route.hub_answer_s) == (64, 9)
    assert found.route.roles == {"executor": RoleOverride("claude", "deep", 60, "docs")}


def test_k19_the_sample_of_this_test_names_every_key() -> None:
    assert [key.name for key in KEYS if key.path[-1] not in FULL] == []


@pytest.mark.parametrize("text", ["", "hub.port = 1\n", "hub = { port = 1 }\n"])
def test_k19_other_spellings_are_the_same(home: Path, text: str) -> None:
    assert settings.load(write(home, text)).hub.port == (1 if text else None)


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("[hub]\nprot = 1\n", (2, 1), "hub.prot is not a known key", "did you mean hub.port?"),
        ("port = 1\n", (1, 1), "port is not a known key", "did you mean hub.port?"),
        ("[hbu]\nport = 1\n", (1, 1), "hbu is not a known key", "did you mean hub?"),
        ("[hub]\nmessages_days = 1\n", (2, 1), "not a known key", "hub.retention.messages_days?"),
        ("[doctor]\n\n  x.y = 1\n", (3, 3), "doctor.x is not a known key", "has no keys so far"),
        ("[zzz]\n", (1, 1), "zzz is not a known key", "the file may have hub, setup"),
        ("schema = 1\n", (1, 1), "schema is not a known key", "the file may have"),
        ("[hub]\nport = '1'\n", (2, 8), "hub.port must be an integer from 0", "one port"),
        ("[hub]\nport = true\n", (2, 8), "hub.port must be an integer", "one port"),
        ("[hub]\nport = 65536\n", (2, 8), "from 0 to 65535", "one port"),
        ("[hub]\nport = 1.0\n", (2, 8), "hub.port must be an integer", "one port"),
        ("[hub]\ndurability = 'off'\n", (2, 14), 'must be "normal" or "full"', "survives"),
        ("hub = { allow_hosts = ['a', 'b:1'] }\n", (1, 29), "item 2 must be a host name", "Host"),
        ("[hub]\nallow_hosts = ['*']\n", (2, 16), "item 1 must be a host name", "Host"),
        ("[hub]\nallow_hosts = [1979-05-27]\n", (2, 16), "item 1 must be a host name", "Host"),
        ("[hub]\nallow_hosts = 'a'\n", (2, 15), "must be a list", "Host"),
        ("[hub]\nnotify = 'a'\n", (2, 10), "must be a list", "command"),
        ("[hub]\nnotify = ['a', 3]\n", (2, 16), "item 2 must be a text", "command"),
        ("[hub]\nnotify = ['']\n", (2, 11), "item 1 must be a text", "command"),
        ("[hub.retention]\nagents_days = -1\n", (2, 15), "from 0", "retired"),
        ("[hub]\nretention = 3\n", (2, 13), "hub.retention must be a table", "[hub.retention]"),
        ("[[hub]]\nport = 1\n", (1, 1), "hub must be a table", "[hub]"),
        ("[setup]\nskip = ['statusLine']\n", (2, 9), '"statusline"', "leaves out"),
        ("[setup]\nskip = ['skill:']\n", (2, 9), "skill:NAME", "leaves out"),
        ("[setup]\nskip = true\n", (2, 8), "must be a list", "leaves out"),
        ("[[setup.skip]]\n", (1, 1), "item 1 must be", "leaves out"),
        ("[setup]\ntools = []\n", (2, 9), "must be a list that is not empty", "offers to agents"),
        ("[setup]\ntools = ['bus', 'bus']\n", (2, 9), "has nothing twice", "offers to agents"),
        ("[setup]\ntools = ['buss']\n", (2, 10), 'item 1 must be "bus" or "work"', "offers"),
        ("[hub]\nturns = -1\n", (2, 9), "from 0 to", "0 for no limit"),
        ("[route]\ncli = 'clippy'\n", (2, 7), 'route.cli must be "auto" or "codex"', "every role"),
        ("[route.roles.exectuor]\n", (1, 1), "is not a known key", "route.roles.executor?"),
        ("[route.roles.writer]\ntimeout = 9\n", (2, 1), "not a known key", "writer.timeout_s?"),
        ("[route.roles.writer]\ntimeout_s = 0\n", (2, 13), "from 1 to 86400", "of writer"),
        ("[route]\nallow_skip_approvals = 1\n", (2, 24), "must be true or false", "terminal"),
    ],
)
def test_k19_an_error_names_place_key_and_remedy(
    home: Path, text: str, place: tuple[int, int], message: str, hint: str
) -> None:
    paths = write(home, text)
    error = refused(paths)
    where = f"~/.config/tfx/config.toml: line {place[0]}, column {place[1]}: "
    assert error.message.startswith(where)
    assert message in error.message
    assert hint in (error.hint or "")
    details = error.details
    assert details["path"] == str(paths.config_file)
    assert (details["line"], details["column"]) == place


@pytest.mark.parametrize(
    ("data", "place", "message"),
    [
        (b"[hub\n", (1, 5), "Expected ']'"),
        (b"[hub]\nport = 1\nport = 2\n", (3, 9), "Cannot overwrite a value"),
        (b"\xef\xbb\xbf[hub]\r\nport =\r\n", (2, 7), "Invalid value"),
        (b"# caf\xe9\n", (1, 6), "not UTF-8"),
        ("[hub]\n".encode("utf-16"), (1, 1), "not UTF-8"),
    ],
)
def test_k19_a_file_that_is_not_toml_is_refused_with_its_place(
    home: Path, data: bytes, place: tuple[int, int], message: str
) -> None:
    error = refused(write(home, data))
    assert message in error.message
    assert (error.details["line"], error.details["column"]) == place
    assert error.hint == "tfx config check"


def test_a_directory_a_fifo_and_a_dead_link_are_refused_at_once(home: Path) -> None:
    paths = paths_of(home)
    paths.config_file.mkdir(parents=True)
    assert "it is a directory" in refused(paths).message
    paths.config_file.rmdir()
    os.mkfifo(paths.config_file)
    assert "not a regular file" in refused(paths).message
    paths.config_file.unlink()
    paths.config_file.symlink_to("nowhere")
    assert "leads nowhere" in refused(paths).message
    paths.config_file.unlink()
    paths.config_file.symlink_to(paths.config_file)
    assert "cannot be read" in refused(paths).message
    paths.config_file.unlink()
    paths.config_dir.rmdir()
    paths.config_dir.write_bytes(b"")
    assert "Not a directory" in refused(paths).message


def test_a_file_without_permission_is_refused(home: Path) -> None:
    paths = write(home, "")
    paths.config_file.chmod(0)
    uid = os.geteuid()
    if uid == 0:  # modes do not bind root (K-44)
        os.seteuid(65534)
    try:
        error = refused(paths)
    finally:
        os.seteuid(uid)
    assert error.message == "~/.config/tfx/config.toml cannot be read: Permission denied"


def test_a_link_to_a_file_is_followed(home: Path) -> None:
    paths = write(home, "")
    (home / "dotfiles.toml").write_text("[hub]\nport = 9\n", "utf-8")
    paths.config_file.unlink()
    paths.config_file.symlink_to(home / "dotfiles.toml")
    assert settings.load(paths).hub.port == 9


def setting(paths: Paths, key: str, flags: dict[str, JsonValue] | None = None) -> settings.Setting:
    return next(found for found in settings.describe(paths, flags) if found.key == key)


def test_k19_flag_over_environment_over_file_over_default(home: Path) -> None:
    paths = paths_of(home)
    assert setting(paths, "hub.port").origin is Origin.DEFAULT
    write(home, "# mine\n[hub]\nport = 1\n")
    found = setting(paths, "hub.port")
    assert (found.value, found.origin, found.source) == (1, Origin.FILE, "line 3")
    environment = paths_of(home, TFX_HUB_PORT="2")
    found = setting(environment, "hub.port")
    assert (found.value, found.origin, found.source) == (2, Origin.ENVIRONMENT, "TFX_HUB_PORT")
    found = setting(environment, "hub.port", {"hub.port": 0})
    assert (found.value, found.origin) == (0, Origin.FLAG)
    assert settings.load(environment, {"hub.port": 0}).hub.port == 0
    assert setting(paths_of(home, TFX_HUB_PORT=""), "hub.port").origin is Origin.FILE


def test_k19_variables_are_read_in_the_form_of_their_key(home: Path) -> None:
    paths = paths_of(home, TFX_HUB_DURABILITY="full", TFX_HUB_ALLOW_HOSTS=" a, b.c ,")
    found = settings.load(paths)
    assert found.hub.durability is Durability.FULL
    assert found.hub.allow_hosts == ("a", "b.c")


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("TFX_HUB_PORT", "99999"),
        ("TFX_HUB_PORT", "abc"),
        ("TFX_HUB_PORT", "-1"),
        ("TFX_HUB_PORT", "1 "),
        ("TFX_HUB_DURABILITY", "FULL"),
        ("TFX_HUB_ALLOW_HOSTS", "a b"),
    ],
)
def test_k19_a_bad_variable_is_named(home: Path, variable: str, text: str) -> None:
    error = refused(paths_of(home, **{variable: text}))
    assert error.message.startswith(variable)
    assert error.details["source"] == variable


def test_k19_a_bad_flag_is_refused(home: Path) -> None:
    with pytest.raises(BadSettings, match="must be an integer"):
        settings.load(paths_of(home), {"hub.port": 70000})


def test_k19_a_broken_file_is_refused_even_when_the_environment_would_win(home: Path) -> None:
    write(home, "[hub]\nport = 'x'\n")
    refused(paths_of(home, TFX_HUB_PORT="1"))


def test_check_finds_all_errors_in_the_order_of_the_file(home: Path) -> None:
    write(home, "[setup]\nskip = ['x', 'y']\n[hub]\nport = -1\nprot = 1\n")
    found = settings.problems(paths_of(home, TFX_HUB_DURABILITY="none"))
    places = [(error.details.get("line"), error.details.get("column")) for error in found]
    assert places == [(2, 9), (2, 14), (4, 8), (5, 1), (None, None)]
    assert settings.problems(write(home, FULL)) == ()
