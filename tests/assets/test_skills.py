"""The bundled skills as every loader has to accept them, and the commands that they name."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from ruamel.yaml import YAML

from tests.support import Machine, tfx
from tfx.doctor.model import FixClass
from tfx.doctor.model import Status as RowStatus
from tfx.doctor.registry import CHECKS
from tfx.plan.outcomes import _WORDS
from tfx.result import Status
from tfx.route.table import bundled as route_table

ASSETS: Final = Path(__file__).parents[2] / "assets"
SKILLS: Final = sorted(path.parent for path in (ASSETS / "skills").glob("*/SKILL.md"))
FORMAT_KEYS: Final = {
    "name",
    "description",
    "license",
    "compatibility",
    "metadata",
    "allowed-tools",
}
NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

GROUPS: Final = {"hub", "jobs", "config", "backup", "task", "lease"}
GLOBAL: Final = {"--json", "--quiet", "--verbose", "--help", "-q", "-v", "-h"}
SUBGROUPS: Final = {("hub", "dead"), ("hub", "token"), ("hub", "human"), ("lease", "review")}


def parts(skill: Path) -> tuple[str, str]:
    """Front matter and body; the block is split here, not by a loader that forgives."""
    text = (skill / "SKILL.md").read_text("utf-8")
    found = re.fullmatch(r"---\n(.*?\n)---\n(.*)", text, re.DOTALL)
    assert found, "no front matter between two lines of three dashes"
    return found[1], found[2]


def front_matter(skill: Path) -> dict[str, object]:
    reader = YAML(typ="safe", pure=True)
    reader.version = (1, 2)
    reader.allow_duplicate_keys = False
    loaded = reader.load(parts(skill)[0])
    assert isinstance(loaded, dict)
    return loaded


def commands_in(text: str) -> list[list[str]]:
    """Every `tfx …` in code spans and code blocks, up to what ends a command in a shell."""
    block = re.compile(r"^```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    lines = [line for code in block.findall(text) for line in code.splitlines()]
    spans = re.findall(r"`([^`\n]+)`", block.sub("", text))
    commands = [part for piece in lines + spans for part in re.split(r"[;|]|&&|\d?>", piece)]
    return [shlex.split(part)[1:] for part in commands if re.match(r"\s*tfx(\s|$)", part)]


def verb_of(words: list[str]) -> tuple[str, ...]:
    """The words of a command line that name the command."""
    depth = 1 + (words[0] in GROUPS) + (tuple(words[:2]) in SUBGROUPS)
    return tuple(word for word in words[:depth] if not word.startswith("-"))


@pytest.fixture(scope="module")
def help_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., set[str] | None]:
    """The options that a command's own help names; None for a command that does not exist."""
    home = tmp_path_factory.mktemp("home")

    @cache
    def ask(*verb: str) -> set[str] | None:
        ran = tfx(home, *verb, "--help")
        if ran.code:
            return None
        return set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", ran.out + ran.err))

    return ask


@pytest.fixture(params=SKILLS, ids=[skill.name for skill in SKILLS])
def skill(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


def test_the_bundle_has_the_skills_of_this_release() -> None:
    assert [skill.name for skill in SKILLS] == [
        *("auto-verify", "manage-skills", "tfx-auto", "tfx-codex", "tfx-doctor", "tfx-gemini"),
        *("tfx-hub", "tfx-setup", "tfx-upgrade", "tfx-work", "verify-implementation"),
    ]
    folders = {path for path in (ASSETS / "skills").iterdir() if path.is_dir()}
    assert folders == set(SKILLS), "a folder without SKILL.md is no skill"


def test_s24_front_matter_has_only_keys_of_the_format_and_string_values(skill: Path) -> None:
    fields = front_matter(skill)
    assert {"name", "description"} <= set(fields) <= FORMAT_KEYS
    for key, value in fields.items():
        if key == "metadata":
            assert isinstance(value, dict)
            assert all(isinstance(item, str) for pair in value.items() for item in pair)
        else:
            assert isinstance(value, str)
            assert value
    if "compatibility" in fields:
        assert len(str(fields["compatibility"])) <= 500


def test_s24_s104_description_is_quoted_on_one_line_and_short(skill: Path) -> None:
    description = front_matter(skill)["description"]
    assert isinstance(description, str)
    assert re.search(r'^description: "[^"\\]+"$', parts(skill)[0], re.MULTILINE)
    assert 40 <= len(description) <= 300


def test_s25_text_is_utf8_with_lf_without_bom_and_ends_in_one_newline() -> None:
    for path in ASSETS.rglob("*"):
        if not path.is_file():
            continue
        data = path.read_bytes()
        assert data.decode("utf-8")
        assert not data.startswith(b"\xef\xbb\xbf"), path
        assert b"\r" not in data, path
        assert b"\0" not in data, path
        assert data.endswith(b"\n"), path
        assert not data.endswith(b"\n\n"), path
        assert not any(line.endswith((b" ", b"\t")) for line in data.splitlines()), path


def test_s25_line_endings_are_guarded_against_checkout_conversion() -> None:
    attributes = (ASSETS.parent / ".gitattributes").read_text("utf-8").splitlines()
    assert "* text=auto eol=lf" in attributes


def test_s25_no_placeholder_but_the_one_of_setup_is_used() -> None:
    for path in ASSETS.rglob("*"):
        if path.is_file():
            used = set(re.findall(rb"@[A-Z][A-Z0-9_]*@", path.read_bytes()))
            assert used <= {b"@TFX@"}, path


def test_s26_name_is_the_directory_and_matches_the_format(skill: Path) -> None:
    name = front_matter(skill)["name"]
    assert name == skill.name
    assert NAME.fullmatch(skill.name)
    assert len(skill.name) <= 64


def test_s26_names_are_unique_across_the_bundle() -> None:
    names = [front_matter(skill)["name"] for skill in SKILLS]
    assert len(set(names)) == len(names)


def test_r12_a_skill_stays_under_200_lines(skill: Path) -> None:
    assert len((skill / "SKILL.md").read_text("utf-8").splitlines()) < 200


def test_r12_every_command_a_skill_names_exists_and_takes_its_options(
    skill: Path, help_of: Callable[..., set[str] | None]
) -> None:
    commands = commands_in(parts(skill)[1])
    assert len(commands) >= 3
    for words in (command for command in commands if command):
        verb = verb_of(words)
        options = help_of(*verb)
        assert options is not None, f"tfx {' '.join(verb)}"
        given = {word for word in words[len(verb) :] if re.match(r"--?[a-z]", word)}
        assert given <= options, words


def test_r12_the_roles_and_options_in_commands_are_those_of_the_table() -> None:
    table = route_table()
    for skill in SKILLS:
        for words in commands_in(parts(skill)[1]):
            if words[:1] == ["route"] and len(words) > 1 and not words[1].startswith("-"):
                assert words[1] in {*table.roles, "roles"}, words
                if "--cli" in words:
                    name = words[words.index("--cli") + 1]
                    assert name in {*table.order, "NAME"}, words


def test_the_auto_skill_names_every_role_and_state() -> None:
    _, body = parts(ASSETS / "skills" / "tfx-auto")
    table = body.partition("## 2. Pick the role")[2].partition("## 3.")[0]
    assert set(re.findall(r"`([a-z-]+)`", table)) >= set(route_table().roles)
    known = {row.code for row in route_table().issues} | {"timeout", "not-started"}
    for name in ("tfx-codex", "tfx-gemini"):
        _, body = parts(ASSETS / "skills" / name)
        rows = body.partition("| Issue | What helps |")[2].partition("## Never")[0]
        assert set(re.findall(r"^\| `([a-z-]+)` \|", rows, re.MULTILINE)) <= known


def test_r12_the_search_for_commands_sees_spans_and_blocks() -> None:
    text = "`tfx a`\n```sh\nx; tfx b --c >/dev/null\n```\n| `tfx d | e` | `nottfx f` `tfx`"
    assert commands_in(text) == [["b", "--c"], ["a"], ["d"], []]


def test_the_setup_skill_explains_every_option_of_setup(
    help_of: Callable[..., set[str] | None],
) -> None:
    _, body = parts(ASSETS / "skills" / "tfx-setup")
    of_all = {"--quiet", "--verbose", "--ascii", "--help"}
    for option in {name for name in help_of("setup") or () if name.startswith("--")} - of_all:
        assert f"`{option}" in body or f" {option}`" in body, option


def conflict_rows() -> dict[str, str]:
    _, body = parts(ASSETS / "skills" / "tfx-setup")
    table = body.partition("## Conflicts")[2].partition("|---|")[2].partition("\n\n")[0]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines()[1:]]
    return {reason: resolves for reason, _, resolves in rows}


def test_the_setup_skill_names_only_reasons_and_states_that_exist() -> None:
    assert len(conflict_rows()) >= 5
    assert set(conflict_rows()) <= set(_WORDS.values())
    _, body = parts(ASSETS / "skills" / "tfx-setup")
    listed = re.search(r"`status` is one of ([a-z, ]+)\.", body)
    assert listed
    assert listed[1].split(", ") == [status.value for status in Status]


def test_the_setup_skill_resolves_a_conflict_as_setup_itself_says(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "claude", "codex")
    machine.write(".claude/skills/tfx-doctor/SKILL.md", "mine")
    machine.setup()
    (machine.home / ".claude/skills/tfx-setup/SKILL.md").write_text("changed", "utf-8")
    (machine.home / ".agents/skills/tfx-setup/SKILL.md").unlink()
    conflicts = [row for row in machine.setup().data["actions"] if row["status"] == "conflict"]
    assert len(conflicts) == 3
    for row in conflicts:
        said = conflict_rows()[row["reason"]]
        for option in re.findall(r"--[a-z-]+", row["hint"]):
            assert option in said, row


def test_the_doctor_skill_explains_every_option_of_doctor(
    help_of: Callable[..., set[str] | None],
) -> None:
    _, body = parts(ASSETS / "skills" / "tfx-doctor")
    options = help_of("doctor")
    assert options
    for option in options - {*GLOBAL, "--ascii"}:
        assert option in body, option


def test_the_doctor_skill_names_only_checks_states_and_classes_that_exist() -> None:
    _, body = parts(ASSETS / "skills" / "tfx-doctor")
    ids = {check.id for check in CHECKS}
    named = set(re.findall(r"`((?:cli|shell|hub|mcp|db|setup|assets)\.[a-z]+)`", body))
    assert {"cli.matrix", "mcp.registration"} <= named <= ids
    section = body.partition("| status | meaning |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`([a-z]+)`", section)) == {status.value for status in RowStatus}
    classes = body.partition("| `fix.class` | meaning |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(.)`", classes, re.MULTILINE) == [each.value for each in FixClass]


def test_s35_the_rename_map_leads_from_retired_assets_to_bundled_ones() -> None:
    """`renames.json`: old path below assets/ → the path of its successor, file by file."""
    renames = json.loads((ASSETS / "renames.json").read_text("utf-8"))
    assert isinstance(renames, dict)
    for old, new in renames.items():
        assert old.partition("/")[0] in {"hooks", "hud", "scripts", "skills"}
        assert not (ASSETS / old).exists(), f"{old} is still bundled"
        assert (ASSETS / new).is_file(), f"{new} is not bundled"


def test_k14_no_asset_carries_the_mark_by_which_files_of_triflux_are_known() -> None:
    for path in ASSETS.rglob("*"):
        if path.is_file():
            assert b"triflux" not in path.read_bytes().lower(), path
