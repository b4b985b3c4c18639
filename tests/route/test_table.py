"""The route table: what each role runs, what the user may change, what is never in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.route.fakes import HELPS, Bench, fields_of
from tfx.agents.catalogue import find
from tfx.config import settings_keys
from tfx.route.table import Verb, bundled

TABLE = bundled()
ROOT = Path(__file__).parents[2]
LEVELS = {"light": "low", "fast": "low", "high": "high", "deep": "xhigh"}
ALIASES = {"light": "flash-lite", "fast": "flash", "high": "pro", "deep": "pro"}


def expected_argv(role: str) -> list[str]:
    row = TABLE.roles[role]
    if row.cli == "gemini":
        return ["-m", ALIASES[row.effort]]
    if row.cli == "claude":
        return ["-p"]
    review = ["review"] if row.verb is Verb.REVIEW else []
    return ["exec", *review, "-c", f'model_reasoning_effort="{LEVELS[row.effort]}"', "-"]


@pytest.mark.parametrize("role", TABLE.roles)
def test_r1_each_role_runs_what_the_table_says(bench: Bench, role: str) -> None:
    row = TABLE.roles[role]
    bench.install(*HELPS)
    data = bench.json(role, "do it")
    assert (data["role"], data["cli"], data["status"]) == (role, row.cli, "success")
    assert (data["timeout_s"], data["profile"]) == (row.timeout_s, row.profile)
    assert bench.ran() == {row.cli}
    assert bench.argv(row.cli) == expected_argv(role)
    assert bench.stdin(row.cli) == b"do it"


def test_r1_the_script_and_the_program_have_one_table() -> None:
    script = (ROOT / "assets/scripts/tfx-route.sh").read_text()
    rows = re.search(r"^ROLES='(.*?)'$", script, re.MULTILINE | re.DOTALL)
    assert rows
    assert [row.split("|") for row in rows[1].splitlines()] == [
        [r.name, r.cli, r.verb, r.effort, str(r.timeout_s), r.mode, r.profile]
        for r in TABLE.roles.values()
    ]
    assert f"CLIS='{' '.join(TABLE.order)}'" in script
    assert f"PROFILES='auto {' '.join(TABLE.profiles)}'" in script


def test_r1_the_settings_know_the_words_of_the_table() -> None:
    assert tuple(TABLE.roles) == settings_keys.ROUTE_ROLES
    assert settings_keys.ROUTE_CLIS == TABLE.order == tuple(TABLE.clis)
    assert tuple(TABLE.profiles) == settings_keys.ROUTE_PROFILES
    efforts = {row.effort for row in TABLE.roles.values()}
    assert efforts == set(settings_keys.ROUTE_EFFORTS)


def test_r1_no_model_name_is_frozen_in_the_table() -> None:
    """Effort words and a CLI's own aliases only: nothing with a version number in it."""
    values = {value for row in TABLE.clis.values() for value in row.efforts.values()}
    assert not any(re.search(r"\d|gpt|claude|gemini|opus|sonnet", value) for value in values)
    for row in TABLE.roles.values():
        assert row.cli in TABLE.order
        assert row.profile in TABLE.profiles
    assert all(find(name).name == name for name in TABLE.order)


@pytest.mark.parametrize(
    ("cli", "argv"),
    [
        ("codex", ["exec", "-c", 'model_reasoning_effort="xhigh"', "-"]),
        ("claude", ["-p", "--effort", "xhigh"]),
        ("copilot", ["-s", "--reasoning-effort", "xhigh"]),
        ("gemini", ["-m", "pro"]),
        ("opencode", ["run"]),
    ],
)
def test_r1_an_effort_class_maps_to_flags_of_each_cli(
    bench: Bench, cli: str, argv: list[str]
) -> None:
    bench.install(*HELPS)
    assert bench.json("architect", "p", "--cli", cli)["cli"] == cli
    assert bench.argv(cli) == argv


@pytest.mark.parametrize(
    ("role", "cli", "old_help", "left"),
    [
        ("code-reviewer", "codex", "  resume\n", ["exec", "-c", None, "-"]),
        ("architect", "claude", "  --model <model>\n", ["-p"]),
        ("architect", "copilot", "GitHub Copilot CLI\n", ["-s"]),
        ("writer", "gemini", "  --verbose\n", []),
    ],
)
def test_r1_a_flag_that_the_installed_version_does_not_know_is_left_out(
    bench: Bench, role: str, cli: str, old_help: str, left: list[str | None]
) -> None:
    bench.install(cli)
    (bench.notes / f"{cli}.help").write_text(old_help)
    assert bench.json(role, "p")["status"] == "success"
    given = bench.argv(cli)
    assert len(given) == len(left)
    assert all(want in (None, got) for want, got in zip(left, given, strict=True))


def test_r1_help_is_asked_once_per_installed_version(bench: Bench) -> None:
    bench.install("claude")
    bench.extra["TFX_CLI_MODE"] = "claude"
    for _ in range(3):
        bench.json("architect", "p")
    asked = (bench.notes / "claude.helped").read_text()
    assert asked.count("x") == 1
    real = (bench.bin / "claude").resolve()
    real.write_text(real.read_text() + "# a newer version\n")
    (bench.notes / "claude.help").write_text("no such flag any more\n")
    bench.json("architect", "p")
    assert bench.argv("claude") == ["-p"]


def test_r1_a_role_is_overridden_in_config_toml(bench: Bench) -> None:
    bench.install(*HELPS)
    bench.write(
        ".config/tfx/config.toml",
        '[route.roles.writer]\ncli = "claude"\neffort = "deep"\n'
        'timeout_s = 77\nprofile = "minimal"\n',
    )
    data = bench.json("writer", "p")
    assert (data["cli"], data["timeout_s"], data["profile"]) == ("claude", 77, "minimal")
    assert bench.argv("claude") == ["-p", "--effort", "xhigh"]
    assert bench.json("designer", "p")["cli"] == "gemini"


def test_r1_an_error_in_an_override_carries_line_and_column(bench: Bench) -> None:
    bench.install("codex")
    bench.write(".config/tfx/config.toml", "[route.roles.writer]\neffort = 'wild'\n")
    ran = bench.route("executor", "p")
    assert ran.code == 2
    assert "line 2, column 10" in ran.err
    assert bench.ran() == set()


def test_r1_an_unknown_role_lists_the_known_ones(bench: Bench) -> None:
    ran = bench.route("wizard", "p", "--json")
    assert ran.code == 2
    (problem,) = ran.document["problems"]
    assert problem["code"] == "unknown-role"
    assert problem["details"]["known"] == list(TABLE.roles)


def test_r1_roles_are_listed_with_their_overrides(bench: Bench) -> None:
    bench.write(".config/tfx/config.toml", "[route.roles.writer]\ntimeout_s = 77\n")
    rows = {row["name"]: row for row in bench.tfx("route", "roles", "--json").data}
    assert list(rows) == list(TABLE.roles)
    assert rows["writer"]["timeout_s"] == 77


def test_r2_the_first_installed_cli_of_the_order_replaces_a_missing_one(bench: Bench) -> None:
    for cli in reversed(TABLE.order):
        bench.install(cli)
        assert bench.json("executor", "p")["cli"] == cli


def test_r2_a_preferred_cli_comes_before_the_order(bench: Bench) -> None:
    bench.install(*HELPS)
    assert bench.json("writer", "p")["cli"] == "gemini"


def test_r2_a_typed_cli_wins_over_the_variable_and_that_over_the_file(bench: Bench) -> None:
    bench.install(*HELPS)
    bench.write(".config/tfx/config.toml", "[route]\ncli = 'claude'\n")
    assert bench.json("executor", "p")["cli"] == "claude"
    bench.extra["TFX_CLI_MODE"] = "gemini"
    assert bench.json("executor", "p")["cli"] == "gemini"
    assert bench.json("executor", "p", "--cli", "copilot")["cli"] == "copilot"
    assert bench.json("executor", "p", "--cli", "auto")["cli"] == "codex"


@pytest.mark.parametrize("extra", [{}, {"TFX_CLI_MODE": "gemini"}])
def test_r2_k9_nothing_usable_exits_four_and_names_what_was_looked_for(
    bench: Bench, extra: dict[str, str]
) -> None:
    bench.extra |= {"PATH": "/no/such/dir", "TFX_ROUTE_DIRS": "/not/here:/nor/there"} | extra
    ran = bench.route("writer", "p", "--json")
    assert ran.code == 4
    (problem,) = ran.document["problems"]
    assert problem["details"]["directories"] == ["/no/such/dir", "/not/here", "/nor/there"]
    wanted = ["gemini", "codex", "claude", "copilot", "opencode"]
    assert problem["details"]["looked_for"] == (["gemini"] if extra else wanted)
    assert list(bench.jobs.glob("2*")) == []


@pytest.mark.parametrize("how", ["flag", "variable"])
def test_r2_an_unknown_cli_lists_the_known_ones(bench: Bench, how: str) -> None:
    bench.install("codex")
    if how == "variable":
        bench.extra["TFX_CLI_MODE"] = "clippy"
    ran = bench.route("executor", "p", *(["--cli", "clippy"] if how == "flag" else []))
    assert ran.code == 2
    for name in TABLE.order:
        assert name in ran.err


def test_r2_s15_a_program_of_another_package_is_passed_over(bench: Bench) -> None:
    bench.install("copilot", "opencode")
    package = (bench.bin / "copilot").resolve().parent / "package.json"
    package.write_text('{"name": "aws-copilot", "version": "1.0.0"}')
    assert bench.json("executor", "p")["cli"] == "opencode"


def test_r2_a_cli_without_a_package_is_asked_for_its_version_once(bench: Bench) -> None:
    fake = bench.bin / "codex"
    bench.program(fake)
    asked = bench.notes / "asked"
    says = f'[ "$1" = --version ] && {{ echo x >>"{asked}"; echo codex-cli 9.8.7; exit; }}\n'
    fake.write_text(fake.read_text().replace("note=", says + "note=", 1))
    for _ in range(3):
        assert bench.json("executor", "p")["version"] == "9.8.7"
    assert asked.read_text() == "x\n"


def test_r2_a_native_role_is_handed_back_to_claude_code(bench: Bench) -> None:
    bench.install(*HELPS)
    bench.extra["CLAUDECODE"] = "1"
    ran = bench.route("qa-tester", "-", "--profile", "docs", "--timeout", "77",
                      stdin=b"line\nPROMPT=x\n\xff")  # fmt: skip
    assert ran.code == 0
    assert ran.out == (
        "ROUTE_TYPE=claude-native\nAGENT=qa-tester\nMODEL=normal\nRUN_MODE=background\n"
        "TIMEOUT=77\nMCP_PROFILE=docs\nPROMPT=line\nPROMPT=x\n\udcff\n"
    )
    assert bench.ran() == set()
    assert fields_of(bench.route("qa-tester", "p", "--cli", "claude"))["cli"] == "claude"


SAFEGUARDS_OFF = re.compile(r"danger|bypass|yolo|full-auto|allow-all|--auto\b|skip-(trust|perm)")


def test_r3_no_role_or_effort_has_a_flag_that_switches_a_safeguard_off() -> None:
    for row in TABLE.clis.values():
        words = (*row.argv, *row.last, *row.review, *row.effort, *row.server_off, *row.servers_only)
        assert not any(SAFEGUARDS_OFF.search(word) for word in words)
        assert any(SAFEGUARDS_OFF.search(word) for word in row.skip_approvals)


@pytest.mark.parametrize("cli", TABLE.order)
def test_r3_skipping_approvals_is_refused_without_a_terminal_unless_the_file_allows_it(
    bench: Bench, cli: str
) -> None:
    bench.install(cli)
    typed = ("executor", "p", "--dangerously-skip-approvals")
    ran = bench.route(*typed, "--json")
    assert ran.code == 5
    assert ran.document["problems"][0]["code"] == "approvals-needed"
    assert bench.ran() == set()
    bench.write(".config/tfx/config.toml", "[route]\nallow_skip_approvals = true\n")
    ran = bench.route(*typed)
    assert ran.code == 0
    assert "notice: approvals and sandbox were switched off by the caller\n" in ran.out
    assert set(TABLE.clis[cli].skip_approvals) <= set(bench.argv(cli))


def test_r3_a_version_without_the_flag_is_refused_rather_than_run_with_approvals(
    bench: Bench,
) -> None:
    bench.install("claude")
    (bench.notes / "claude.help").write_text("--effort <level>\n")
    bench.write(".config/tfx/config.toml", "[route]\nallow_skip_approvals = true\n")
    ran = bench.route("executor", "p", "--dangerously-skip-approvals")
    assert ran.code == 2
    assert bench.ran() == set()
