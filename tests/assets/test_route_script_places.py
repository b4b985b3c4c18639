"""Where the route script finds CLIs and keeps its files, also with an empty PATH (R-13)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.assets.scripted import Bench


@pytest.mark.parametrize(
    "place",
    [
        ".local/bin",
        "bin",
        ".npm-global/bin",
        ".nvm/versions/node/v22.1.0/bin",
        ".local/share/fnm/aliases/default/bin",
        ".local/share/fnm/node-versions/v22.1.0/installation/bin",
        ".volta/bin",
        ".asdf/shims",
        ".local/share/mise/shims",
        ".local/share/pnpm",
        ".bun/bin",
        ".claude/local",
        ".linuxbrew/bin",
    ],
)
def test_r13_a_cli_in_a_usual_directory_is_found_with_an_empty_path(
    plain: Bench, place: str
) -> None:
    where = plain.home / place
    plain.install("codex", into=where)
    env = {"HOME": str(plain.home), "FAKE_DIR": str(plain.notes), "PATH": ""}
    ended = plain.run("executor", "p", env=env)
    assert (ended.code, ended.stderr) == (0, "")
    assert ended.fields["path"] == str(where / "codex")
    given = (plain.notes / "codex.path").read_text().split(":")
    assert given[0] == str(where)
    assert {"/usr/bin", "/bin"} <= set(given)


EMPTY_PATHS: list[dict[str, str]] = [{}, {"PATH": ""}, {"PATH": "relative:.:"}]


@pytest.mark.parametrize("path", EMPTY_PATHS, ids=["unset", "empty", "relative"])
def test_r13_it_works_in_each_shell_with_an_empty_path(bench: Bench, path: dict[str, str]) -> None:
    bench.install("codex", into=bench.home / ".local/bin")
    env = {"HOME": str(bench.home), "FAKE_DIR": str(bench.notes)} | path
    ended = bench.run("executor", "p", env=env)
    assert (ended.code, ended.stderr) == (0, "")
    assert bench.stdin("codex") == b"p"


def test_a_cli_in_the_working_directory_is_never_run(bench: Bench) -> None:
    bench.install("codex", into=bench.cwd)
    bench.extra |= {"PATH": ":.:/usr/bin:/bin", "TFX_CLI_MODE": "codex"}
    assert bench.run("executor", "p").code == 4
    assert bench.ran() == set()


def test_a_cli_outside_path_brings_its_own_node_before_that_of_path(bench: Bench) -> None:
    where = bench.home / ".nvm/versions/node/v22.1.0/bin"
    bench.install("codex", into=where)
    env = bench.env | {"PATH": "/usr/bin:/bin"}
    del env["TFX_ROUTE_DIRS"]
    assert bench.run("executor", "p", env=env).code == 0
    assert (bench.notes / "codex.path").read_text().startswith(f"{where}:/usr/bin:/bin")


def test_path_comes_first_and_keeps_its_order_for_the_agent(bench: Bench) -> None:
    bench.install("codex")
    bench.install("codex", into=bench.home / ".local/bin")
    bench.extra |= {"PATH": f"/no/such:{bench.bin}:/usr/bin:/bin"}
    env = bench.env
    del env["TFX_ROUTE_DIRS"]
    ended = bench.run("executor", "p", env=env)
    assert ended.fields["path"] == str(bench.bin / "codex")
    given = (bench.notes / "codex.path").read_text()
    assert given.startswith(f"/no/such:{bench.bin}:/usr/bin:/bin:{bench.home}/.local/bin")


@pytest.mark.parametrize(
    ("alias", "chosen"),
    [(None, "v22.10.1"), ("20", "v20.19.0"), ("v9.1.0", "v9.1.0"), ("lts/*", "v22.10.1")],
)
def test_nvm_takes_the_default_alias_else_the_newest_version(
    bench: Bench, alias: str | None, chosen: str
) -> None:
    root = bench.home / ".nvm"
    for version in ("v9.1.0", "v20.3.0", "v20.19.0", "v22.9.0", "v22.10.1"):
        bench.install("codex", into=root / "versions/node" / version / "bin")
    if alias:
        (root / "alias").mkdir()
        (root / "alias/default").write_text(f"{alias}\n")
    env = {"HOME": str(bench.home), "FAKE_DIR": str(bench.notes), "PATH": ""}
    ended = bench.run("executor", "p", env=env)
    assert ended.fields["path"] == str(root / "versions/node" / chosen / "bin/codex")


@pytest.mark.parametrize("line", ["prefix={}", 'prefix = "{}"', "prefix=~/else where"])
def test_the_prefix_of_npmrc_is_looked_into(bench: Bench, line: str) -> None:
    where = bench.home / "else where"
    bench.install("codex", into=where / "bin")
    (bench.home / ".npmrc").write_text(f"# mine\n//host/:_auth=x\n{line.format(where)}")
    env = {"HOME": str(bench.home), "FAKE_DIR": str(bench.notes), "PATH": ""}
    assert bench.run("executor", "p", env=env).fields["path"] == str(where / "bin/codex")


def test_s94_a_home_with_every_awkward_character_works(bench: Bench, tmp_path: Path) -> None:
    home = tmp_path / 'it\'s a "home" $HOME `x` ü'
    bench.install("codex", into=home / ".local/bin")
    env = {"HOME": str(home), "FAKE_DIR": str(bench.notes), "PATH": ""}
    ended = bench.run("executor", "p", env=env)
    assert (ended.code, ended.stderr) == (0, "")
    assert ended.fields["path"] == str(home / ".local/bin/codex")


@pytest.mark.parametrize("home", [None, "", "relative", "/no/such/home"])
def test_k9_without_a_usable_home_it_is_refused(bench: Bench, home: str | None) -> None:
    bench.install("codex")
    env = bench.env
    if home is None:
        del env["HOME"]
    else:
        env["HOME"] = home
    ended = bench.run("executor", "p", env=env)
    assert ended.code == 5
    assert "HOME" in ended.stderr


def test_an_unusable_state_directory_is_replaced_by_the_temporary_one(bench: Bench) -> None:
    bench.install("codex")
    bench.extra |= {"XDG_STATE_HOME": "/dev/null"}
    bench.behave("exit 1")
    ended = bench.run("executor", "p")
    assert ended.code == 1
    assert Path(ended.fields["log"]).parent == bench.home
    assert stat.S_IMODE(Path(ended.fields["log"]).stat().st_mode) == 0o700


def test_no_place_to_write_is_a_failure_that_runs_nothing(bench: Bench) -> None:
    bench.install("codex")
    bench.extra |= {"XDG_STATE_HOME": "/dev/null", "TMPDIR": "/dev/null"}
    ended = bench.run("executor", "p")
    assert ended.code == 1
    assert "cannot write" in ended.stderr
    assert bench.ran() == set()


def test_logs_of_more_than_a_week_ago_go_and_files_of_others_stay(bench: Bench) -> None:
    bench.install("codex")
    logs = bench.home / ".local/state/tfx/route"
    for name, extra in (("run.1.1", False), ("run.2.2", True), ("other", False)):
        (logs / name).mkdir(parents=True)
        (logs / name / "stdout").touch()
        if extra:
            (logs / name / "mine.txt").touch()
        os.utime(logs / name, (1, 1))
    (logs / "run.3.3").mkdir()
    (logs / "run.4.4").symlink_to(bench.cwd)
    assert bench.run("executor", "p").code == 0
    left = {str(path.relative_to(logs)) for path in logs.rglob("*")}
    assert left == {
        *("run.2.2", "run.2.2/mine.txt", "run.3.3", "run.4.4"),
        *("other", "other/stdout"),
    }


def test_the_prompt_of_a_killed_run_goes_with_the_next_one(bench: Bench) -> None:
    bench.install("codex")
    logs = bench.home / ".local/state/tfx/route"
    killed, running = logs / "run.1.99999999", logs / f"run.1.{os.getpid()}"
    for log in (killed, running):
        log.mkdir(parents=True)
        (log / "prompt").touch()
        (log / "stdout").touch()
    assert bench.run("executor", "p").code == 0
    assert not (killed / "prompt").exists()
    assert (killed / "stdout").exists()
    assert (running / "prompt").exists()
