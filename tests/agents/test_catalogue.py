from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.fakes import paths_of
from tfx.agents.catalogue import AGENTS, find, nearest_names
from tfx.agents.model import Agent, Evidence, FileFormat, Place
from tfx.agents.roots import SkillsRoot, known_roots, written_roots
from tfx.errors import InvalidRequest, JsonValue

BY_NAME = {agent.name: agent for agent in AGENTS}

# config directory, skills root, MCP file: by default, and under the variable of the row.
PLACES = {
    "claude": (".claude", ".claude/skills", ".claude.json"),
    "codex": (".codex", ".agents/skills", ".codex/config.toml"),
    "gemini": (".gemini", ".agents/skills", ".gemini/settings.json"),
    "antigravity": (".gemini/antigravity-cli", None, ".gemini/config/mcp_config.json"),
    "copilot": (".copilot", ".agents/skills", ".copilot/mcp-config.json"),
    "cursor": (".cursor", None, ".cursor/mcp.json"),
    "opencode": (".config/opencode", ".agents/skills", ".config/opencode/opencode.jsonc"),
    "amp": (".config/amp", None, ".config/amp/settings.json"),
    "goose": (".config/goose", None, ".config/goose/config.yaml"),
    "qwen": (".qwen", None, ".qwen/settings.json"),
    "kimi": (".kimi-code", None, ".kimi-code/mcp.json"),
    "grok": (".grok", None, ".grok/config.toml"),
    "aider": (None, None, None),
}
MOVED = {
    "claude": ("CLAUDE_CONFIG_DIR", "M", "M/skills", "M/.claude.json"),
    "codex": ("CODEX_HOME", "M", "H/.agents/skills", "M/config.toml"),
    "gemini": ("GEMINI_CLI_HOME", "M/.gemini", "M/.agents/skills", "M/.gemini/settings.json"),
    "copilot": ("COPILOT_HOME", "M", "M/skills", "M/mcp-config.json"),
    "opencode": ("XDG_CONFIG_HOME", "M/opencode", "H/.agents/skills", "M/opencode/opencode.jsonc"),
    "amp": ("XDG_CONFIG_HOME", "M/amp", None, "M/amp/settings.json"),
    "qwen": ("QWEN_HOME", "M", None, "M/settings.json"),
}


def never(_: Path) -> bool:
    return False


def places_of(agent: Agent) -> list[Place]:
    places = [*agent.skills_read, *(file.place for file in agent.auth.files)]
    places += [place for place in (agent.config, agent.skills) if place is not None]
    if agent.hooks is not None:
        places.append(agent.hooks.file)
    return places + ([] if agent.mcp is None else [*agent.mcp.files])


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_s17_places_lie_in_home_unless_a_variable_moves_them(agent: Agent, home: Path) -> None:
    paths = paths_of(home)
    config, skills, mcp = PLACES[agent.name]
    assert (agent.config and agent.config.resolve(paths)) == (config and home / config)
    assert (agent.skills and agent.skills.resolve(paths)) == (skills and home / skills)
    assert (agent.mcp and agent.mcp.choose(paths, never)) == (mcp and home / mcp)


@pytest.mark.parametrize("name", MOVED)
def test_s17_a_tested_variable_moves_config_skills_and_mcp_file(
    name: str, home: Path, tmp_path: Path
) -> None:
    variable, *expected = MOVED[name]
    moved = tmp_path / "moved to here"
    paths = paths_of(home, **{variable: str(moved)})
    agent = BY_NAME[name]
    assert agent.config is not None
    assert agent.mcp is not None
    found = (
        agent.config.resolve(paths),
        agent.skills and agent.skills.resolve(paths),
        agent.mcp.choose(paths, never),
    )
    roots = {"M": moved, "H": home}
    assert list(found) == [
        text and roots[text[0]] / text[2:] if text is not None else None for text in expected
    ]


@pytest.mark.parametrize("name", ["claude", "amp"])
def test_s17_an_empty_variable_moves_nothing(name: str, home: Path) -> None:
    paths = paths_of(home, CLAUDE_CONFIG_DIR="", XDG_CONFIG_HOME="")
    config = BY_NAME[name].config
    assert config is not None
    assert config.resolve(paths) == config.resolve(paths_of(home))


def test_s17_a_relative_xdg_variable_counts_as_unset(home: Path) -> None:
    config = BY_NAME["opencode"].config
    assert config is not None
    assert config.resolve(paths_of(home, XDG_CONFIG_HOME="etc")) == home / ".config/opencode"


def test_s12_resolving_places_creates_nothing(home: Path) -> None:
    paths = paths_of(home)
    for agent in AGENTS:
        for place in places_of(agent):
            place.resolve(paths)
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_s10_only_tested_facts_are_written_by(agent: Agent) -> None:
    used: list[Evidence] = []
    if agent.writes.mcp:
        assert agent.mcp is not None
        assert agent.mcp.stdio is not None
        assert agent.mcp.http is not None
        used += [agent.mcp.stdio.evidence, agent.mcp.http.evidence]
        used += [evidence for file in agent.mcp.files for evidence in evidence_of(file)]
    if agent.writes.skills:
        assert agent.skills is not None
        used += evidence_of(agent.skills)
    if agent.writes.hooks:
        assert agent.hooks is not None
        used += [agent.hooks.evidence, *evidence_of(agent.hooks.file)]
    assert set(used) <= {Evidence.TESTED}


def evidence_of(place: Place) -> list[Evidence]:
    return [place.evidence, *([] if place.moved_by is None else [place.moved_by.evidence])]


def test_s11_the_write_levels_are_those_of_the_design() -> None:
    assert {a.name for a in AGENTS if a.writes.mcp} == {
        "claude",
        "codex",
        "gemini",
        "copilot",
        "opencode",
        "amp",
        "qwen",
    }
    assert {a.name for a in AGENTS if a.writes.skills} == {
        "claude",
        "codex",
        "gemini",
        "copilot",
        "opencode",
    }
    assert [a.name for a in AGENTS if a.writes.hooks] == ["claude"]


def test_k16_no_yaml_file_is_written() -> None:
    yaml = [a for a in AGENTS if a.mcp is not None and a.mcp.format is FileFormat.YAML]
    assert [agent.name for agent in yaml if agent.writes.mcp] == []


def test_s68_claude_lists_34_hook_events() -> None:
    hooks = BY_NAME["claude"].hooks
    assert hooks is not None
    assert len(set(hooks.events)) == 34
    assert {"SessionStart", "PreToolUse", "Stop"} <= set(hooks.events)


def test_amp_keeps_its_servers_under_one_key_with_a_dot() -> None:
    amp = BY_NAME["amp"].mcp
    assert amp is not None
    assert amp.entry_key == ("amp.mcpServers", "tfx-hub")


@pytest.mark.parametrize(
    ("present", "holding", "expected"),
    [
        ([], [], "opencode.jsonc"),
        (["opencode.json"], [], "opencode.json"),
        (["opencode.jsonc"], [], "opencode.jsonc"),
        (["opencode.json", "opencode.jsonc"], [], "opencode.jsonc"),
        (["opencode.json", "opencode.jsonc"], ["opencode.json"], "opencode.json"),
        (
            ["opencode.json", "opencode.jsonc"],
            ["opencode.json", "opencode.jsonc"],
            "opencode.jsonc",
        ),
    ],
)
def test_s19_opencode_keeps_the_entry_where_it_is(
    present: list[str], holding: list[str], expected: str, home: Path
) -> None:
    assert chosen("opencode", home, home / ".config/opencode", present, holding) == expected


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        ([], "settings.json"),
        (["settings.jsonc"], "settings.jsonc"),
        (["settings.json", "settings.jsonc"], "settings.json"),
    ],
)
def test_amp_settings_jsonc_is_used_while_it_is_the_only_one(
    present: list[str], expected: str, home: Path
) -> None:
    # Amp stops reading settings.jsonc as soon as there is a settings.json.
    directory = home / ".config/amp"
    assert chosen("amp", home, directory, present, ["settings.jsonc"]) == expected


def test_claude_reads_its_old_state_file_while_that_exists(home: Path) -> None:
    assert chosen("claude", home, home / ".claude", [".config.json"], []) == ".config.json"
    (home / ".claude.json").touch()
    assert chosen("claude", home, home / ".claude", [".config.json"], []) == ".config.json"


def chosen(name: str, home: Path, directory: Path, present: list[str], holding: list[str]) -> str:
    directory.mkdir(parents=True, exist_ok=True)
    for file in present:
        (directory / file).touch()
    target = BY_NAME[name].mcp
    assert target is not None
    path = target.choose(paths_of(home), lambda path: path.name in holding)
    assert path.parent == directory
    return path.name


def test_s27_one_root_per_agent(home: Path) -> None:
    assert written_roots(paths_of(home), AGENTS) == (
        SkillsRoot(home / ".claude/skills", ("claude",)),
        SkillsRoot(home / ".agents/skills", ("codex", "gemini", "copilot", "opencode")),
    )


def test_s28_copilot_home_and_gemini_cli_home_move_their_roots(home: Path, tmp_path: Path) -> None:
    paths = paths_of(home, COPILOT_HOME=str(tmp_path / "c"), GEMINI_CLI_HOME=str(tmp_path / "g"))
    assert written_roots(paths, AGENTS) == (
        SkillsRoot(home / ".claude/skills", ("claude",)),
        SkillsRoot(home / ".agents/skills", ("codex", "opencode")),
        SkillsRoot(tmp_path / "g/.agents/skills", ("gemini",)),
        SkillsRoot(tmp_path / "c/skills", ("copilot",)),
    )
    alone = written_roots(paths, [BY_NAME["copilot"]])
    assert alone == (SkillsRoot(tmp_path / "c/skills", ("copilot",)),)


def test_s29_roots_that_lead_to_one_directory_are_one_root(home: Path) -> None:
    (home / ".agents/skills").mkdir(parents=True)
    (home / ".claude").mkdir()
    (home / ".claude/skills").symlink_to("../.agents/skills")
    assert written_roots(paths_of(home), AGENTS) == (
        SkillsRoot(home / ".claude/skills", ("claude", "codex", "gemini", "copilot", "opencode")),
    )


def test_s30_every_root_an_agent_reads_is_known(home: Path) -> None:
    roots = known_roots(paths_of(home), AGENTS)
    assert len(set(roots)) == len(roots)
    for root in (".claude/skills", ".agents/skills", ".copilot/skills", ".gemini/skills"):
        assert home / root in roots
    assert {root.directory for root in written_roots(paths_of(home), AGENTS)} <= set(roots)


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_an_agent_is_found_by_its_name_and_its_binaries(agent: Agent) -> None:
    assert find(agent.name) is agent
    assert find(agent.name.upper()) is agent
    assert [find(binary) for binary in agent.binaries] == [agent] * len(agent.binaries)


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [
        ("cluade", "claude"),
        ("openc", "opencode"),
        ("geminy", "gemini"),
        ("antigravty", "antigravity"),
    ],
)
def test_an_unknown_agent_is_a_usage_error_that_names_the_nearest_first(
    wrong: str, nearest: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        find(wrong)
    known: list[JsonValue] = list(nearest_names(wrong))
    assert known[0] == nearest
    assert sorted(map(str, known)) == sorted(BY_NAME)
    assert caught.value.details == {"agent": wrong, "known": known}
    assert nearest in (caught.value.hint or "")
