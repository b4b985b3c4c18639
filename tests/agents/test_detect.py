from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.agents.fakes import npm_package, paths_of, script
from tests.support import listing
from tfx.agents.catalogue import AGENTS, find
from tfx.agents.detect import Detected, Login, Presence, Proof, detect
from tfx.agents.model import Agent, Registry
from tfx.agents.versions import AgentVersion, Unknown
from tfx.core.paths import Paths

PACKAGED = [a for a in AGENTS if any(p.registry is Registry.NPM for p in a.packages)]
NAMESAKES = [a for a in AGENTS if a.has_namesakes]
IDENTIFYING = {
    "claude": "2.1.332 (Claude Code)",
    "codex": "codex-cli 0.171.0",
    "copilot": "GitHub Copilot CLI 1.0.102.",
    "amp": "0.0.1790142911-g7618fb (released 2026-09-23T05:55:11.000Z, 2mo ago)",
}


def one(paths: Paths, name: str, *, probe: bool = False) -> Detected:
    (found,) = detect(paths, [find(name)], probe=probe)
    return found


def test_s12_on_an_empty_machine_every_agent_is_absent_and_nothing_is_created(home: Path) -> None:
    before = listing(home)
    found = detect(Paths.resolve({"PATH": "/nonexistent", "HOME": str(home)}), AGENTS, probe=True)
    assert [d.agent for d in found] == list(AGENTS)
    assert {d.presence for d in found} == {Presence.ABSENT}
    assert all(d.version == Unknown("its program is not on PATH") for d in found)
    assert listing(home) == before == {}


def test_s12_without_a_path_nothing_is_installed(home: Path) -> None:
    assert one(Paths.resolve({"HOME": str(home)}), "claude").presence is Presence.ABSENT


@pytest.mark.parametrize(
    "agent", [agent for agent in AGENTS if agent.config], ids=lambda agent: agent.name
)
def test_s12_a_config_directory_alone_proves_only_claude(agent: Agent, home: Path) -> None:
    assert agent.config is not None
    paths = Paths.resolve({"PATH": "/nonexistent", "HOME": str(home)})
    agent.config.resolve(paths).mkdir(parents=True)
    found = one(paths, agent.name)
    assert found.config_existed
    assert found.is_installed is (agent.name == "claude")
    assert found.proof is (Proof.CONFIG if agent.name == "claude" else None)


def test_s12_claude_config_dir_is_looked_for_where_its_variable_says(
    home: Path, tmp_path: Path
) -> None:
    (home / ".claude").mkdir()
    moved = {"PATH": "/nonexistent", "HOME": str(home), "CLAUDE_CONFIG_DIR": str(tmp_path / "m")}
    assert not one(Paths.resolve(moved), "claude").is_installed


@pytest.mark.parametrize("agent", PACKAGED, ids=lambda agent: agent.name)
def test_s14_version_and_identity_come_from_the_package_json(
    agent: Agent, home: Path, tmp_path: Path
) -> None:
    package = agent.packages[0].name
    link = npm_package(tmp_path / "npm", package, "1.2.3", agent.binaries[0])
    paths = paths_of(home, link.parent)
    quick, full = one(paths, agent.name), one(paths, agent.name, probe=True)
    assert quick == full  # the program, which fails, was not run
    assert (quick.presence, quick.proof) == (Presence.INSTALLED, Proof.PACKAGE)
    assert quick.version == AgentVersion("1.2.3", "1.2.3", is_prerelease=False)
    assert (quick.program, quick.real) == (link, link.resolve())
    assert list(home.iterdir()) == []


def test_s14_amps_shim_package_is_recognised_by_the_package_inside_it(
    home: Path, tmp_path: Path
) -> None:
    outer = tmp_path / "lib/node_modules/@sourcegraph/amp"
    inner = npm_package(outer, "@ampcode/cli", "0.0.1790142911-g7618fb", "amp")
    (outer / "package.json").write_text('{"name": "@sourcegraph/amp", "version": "9.9.9"}')
    found = one(paths_of(home, inner.parent), "amp")
    assert isinstance(found.version, AgentVersion)
    assert found.version.public == "0.0.1790142911"


@pytest.mark.parametrize("name", IDENTIFYING)
def test_s14_without_a_package_json_the_program_is_asked_only_on_request(
    name: str, home: Path, tmp_path: Path
) -> None:
    script(tmp_path / "bin", name, f"touch {tmp_path}/ran; echo '{IDENTIFYING[name]}'")
    paths = paths_of(home, tmp_path / "bin")
    quick = one(paths, name)
    assert (quick.presence, quick.proof) == (Presence.INSTALLED, Proof.NAME)
    assert isinstance(quick.version, Unknown)
    assert not (tmp_path / "ran").exists()
    full = one(paths, name, probe=True)
    assert (full.presence, full.proof) == (Presence.INSTALLED, Proof.OUTPUT)
    assert isinstance(full.version, AgentVersion)


@pytest.mark.parametrize("name", ["gemini", "opencode", "qwen"])
def test_s14_a_bare_version_is_taken_from_an_agent_without_namesakes(
    name: str, home: Path, tmp_path: Path
) -> None:
    script(tmp_path / "bin", name, "echo 0.61.0")
    found = one(paths_of(home, tmp_path / "bin"), name, probe=True)
    assert (found.presence, found.proof) == (Presence.INSTALLED, Proof.NAME)
    assert isinstance(found.version, AgentVersion)


@pytest.mark.parametrize("name", IDENTIFYING)
def test_s15_a_program_that_prints_another_name_is_unknown(
    name: str, home: Path, tmp_path: Path
) -> None:
    script(tmp_path / "bin", name, "echo 'other-tool 7.8.9'")
    found = one(paths_of(home, tmp_path / "bin"), name, probe=True)
    assert (found.presence, found.proof) == (Presence.UNKNOWN, None)
    assert found.agent.label in found.note


@pytest.mark.parametrize("agent", NAMESAKES, ids=lambda agent: agent.name)
def test_s15_a_name_that_others_use_proves_nothing_and_is_not_run(
    agent: Agent, home: Path, tmp_path: Path
) -> None:
    for binary in agent.binaries:
        script(tmp_path / "bin", binary, f"touch {tmp_path}/ran; echo 1.2.3")
    found = one(paths_of(home, tmp_path / "bin"), agent.name, probe=True)
    assert found.presence is Presence.UNKNOWN
    assert found.note
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("name", "foreign"), [("kimi", "kimi-cli"), ("grok", "grok"), ("gemini", "gemini")]
)
def test_s15_a_program_of_another_npm_package_is_unknown_and_not_run(
    name: str, foreign: str, home: Path, tmp_path: Path
) -> None:
    body = f"touch {tmp_path}/ran; echo 1.2.3"
    link = npm_package(tmp_path / "npm", foreign, "1.2.3", name, body)
    found = one(paths_of(home, link.parent), name, probe=True)
    assert found.presence is Presence.UNKNOWN
    assert foreign in found.note
    assert isinstance(found.version, Unknown)
    assert not (tmp_path / "ran").exists()


def test_s15_a_package_json_of_some_project_above_is_no_evidence_against(
    home: Path, tmp_path: Path
) -> None:
    (tmp_path / "package.json").write_text('{"name": "dotfiles", "version": "1.0.0"}')
    script(tmp_path / "bin", "gemini", "echo 0.61.0")
    assert one(paths_of(home, tmp_path / "bin"), "gemini").is_installed


@pytest.mark.parametrize("body", ["exit 1", "kill -KILL $$", "printf '\\377\\376'"])
def test_s13_a_failing_probe_leaves_the_agent_installed_or_unknown_and_never_aborts(
    body: str, home: Path, tmp_path: Path
) -> None:
    for agent in AGENTS:
        script(tmp_path / "bin", agent.binaries[0], body)
    found = detect(paths_of(home, tmp_path / "bin"), AGENTS, probe=True)
    assert len(found) == len(AGENTS)
    assert all(isinstance(d.version, Unknown) for d in found)
    assert Presence.ABSENT not in {d.presence for d in found}
    assert list(home.iterdir()) == []


def test_s13_probing_leaves_home_as_it_was(home: Path, tmp_path: Path) -> None:
    # what the real clients leave behind when they are asked for their version
    script(tmp_path / "bin", "gemini", "mkdir -p ~/.gemini && touch ~/.gemini/x && echo 0.61.0")
    script(
        tmp_path / "bin",
        "opencode",
        "mkdir -p ~/.config/opencode ~/.cache ~/.local/share/opencode && echo 1.18.33",
    )
    (home / ".claude").mkdir()
    (home / ".claude/settings.json").write_text("{}", "utf-8")
    before = listing(home)
    detect(paths_of(home, tmp_path / "bin"), AGENTS, probe=True)
    assert listing(home) == before


def test_s13_the_config_directory_is_looked_up_before_the_program_runs(
    home: Path, tmp_path: Path
) -> None:
    script(tmp_path / "bin", "gemini", f"mkdir -p {home}/.gemini; echo 0.61.0")
    assert not one(paths_of(home, tmp_path / "bin"), "gemini", probe=True).config_existed


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("claude", ".claude/.credentials.json"),
        ("codex", ".codex/auth.json"),
        ("gemini", ".gemini/oauth_creds.json"),
        ("opencode", ".local/share/opencode/auth.json"),
        ("qwen", ".qwen/oauth_creds.json"),
        ("kimi", ".kimi-code/credentials/a.json"),
        ("grok", ".grok/auth.json"),
        ("goose", ".config/goose/secrets.yaml"),
    ],
)
def test_s13_a_login_file_is_noticed_and_never_opened(name: str, file: str, home: Path) -> None:
    path = home / file
    path.parent.mkdir(parents=True)
    os.mkfifo(path, 0o600)  # reading it would block for ever
    auth = one(paths_of(home), name).auth
    assert auth.login is Login.PRESENT
    assert auth.file in (path, path.parent)
    assert auth.uid == os.geteuid()
    if auth.file == path:
        assert auth.mode == 0o600


def test_s13_claude_without_file_and_variable_is_logged_out(home: Path) -> None:
    assert one(paths_of(home), "claude").auth.login is Login.ABSENT


@pytest.mark.parametrize("name", ["codex", "gemini", "copilot", "opencode", "amp", "goose"])
def test_s13_absence_is_unknown_where_something_else_may_hold_the_login(
    name: str, home: Path
) -> None:
    auth = one(paths_of(home), name).auth
    assert (auth.login, auth.file) == (Login.UNKNOWN, None)
    assert auth.reason


def test_s13_copilots_config_file_proves_no_login(home: Path) -> None:
    (home / ".copilot").mkdir()
    (home / ".copilot/config.json").touch()
    auth = one(paths_of(home), "copilot").auth
    assert (auth.login, auth.reason) == (
        Login.UNKNOWN,
        "~/.copilot/config.json exists with and without a login",
    )


def test_d101_a_variable_counts_by_its_name_and_its_value_is_not_kept(home: Path) -> None:
    paths = paths_of(home, COPILOT_GITHUB_TOKEN="very-secret")  # noqa: S106  (it is none)
    found = one(paths, "copilot")
    assert (found.auth.login, found.auth.reason) == (
        Login.PRESENT,
        "COPILOT_GITHUB_TOKEN is set",
    )
    assert "very-secret" not in repr(found)


def test_d101_an_empty_credentials_directory_is_no_login(home: Path) -> None:
    (home / ".kimi-code/credentials").mkdir(parents=True)
    assert one(paths_of(home), "kimi").auth.login is Login.UNKNOWN


def test_s15_the_older_binary_name_is_taken_when_it_alone_is_there(
    home: Path, tmp_path: Path
) -> None:
    old = script(tmp_path / "bin", "cursor-agent", "exit 0")
    assert one(paths_of(home, tmp_path / "bin"), "cursor").program == old
