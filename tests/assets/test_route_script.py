"""The route script's table: which CLI a role gets and how it is called (R-1 … R-3)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest

from tests.assets.scripted import HELPS, ROOT, SCRIPT, Bench

# Section 1 of the routing design: role -> CLI, verb, effort class, time-out, mode, profile.
TABLE = {
    "executor": ("codex", "run", "high", 1080, "foreground", "implement"),
    "build-fixer": ("codex", "run", "fast", 540, "foreground", "implement"),
    "debugger": ("codex", "run", "high", 900, "background", "implement"),
    "deep-executor": ("codex", "run", "deep", 3600, "background overseen", "implement"),
    "architect": ("codex", "run", "deep", 3600, "background overseen", "analyze"),
    "critic": ("codex", "run", "deep", 3600, "background overseen", "analyze"),
    "planner": ("codex", "run", "deep", 3600, "foreground overseen", "analyze"),
    "analyst": ("codex", "run", "deep", 3600, "foreground overseen", "analyze"),
    "code-reviewer": ("codex", "review", "deep", 1800, "background", "review"),
    "quality-reviewer": ("codex", "review", "deep", 1800, "background", "review"),
    "security-reviewer": ("codex", "review", "deep", 1800, "background overseen", "review"),
    "scientist": ("codex", "run", "high", 1440, "background", "analyze"),
    "document-specialist": ("codex", "run", "high", 1440, "background", "analyze"),
    "scientist-deep": ("codex", "run", "deep", 3600, "background", "analyze"),
    "designer": ("gemini", "run", "high", 900, "background", "docs"),
    "writer": ("gemini", "run", "fast", 900, "background", "docs"),
    "spark": ("codex", "run", "light", 180, "foreground", "minimal"),
    "explore": ("claude", "native", "normal", 300, "foreground", "minimal"),
    "verifier": ("claude", "native", "normal", 300, "foreground", "minimal"),
    "test-engineer": ("claude", "native", "normal", 300, "background", "minimal"),
    "qa-tester": ("claude", "native", "normal", 300, "background", "minimal"),
}


CODEX_LEVEL = {"light": "low", "fast": "low", "high": "high", "deep": "xhigh"}


GEMINI_ALIAS = {"light": "flash-lite", "fast": "flash", "high": "pro", "deep": "pro"}


def expected_argv(cli: str, verb: str, effort: str) -> list[str]:
    if cli == "gemini":
        return ["-m", GEMINI_ALIAS[effort]]
    if cli == "claude":
        return ["-p"]
    review = ["review"] if verb == "review" else []
    return ["exec", *review, "-c", f'model_reasoning_effort="{CODEX_LEVEL[effort]}"', "-"]


@pytest.mark.parametrize("role", TABLE)
def test_r1_each_role_runs_what_the_table_says(plain: Bench, role: str) -> None:
    cli, verb, effort, _, _, profile = TABLE[role]
    plain.install(*HELPS)
    ended = plain.run(role, "do it")
    assert (ended.code, ended.stderr) == (0, "")
    assert plain.ran() == {cli}
    assert plain.argv(cli) == expected_argv(cli, verb, effort)
    assert plain.stdin(cli) == b"do it"
    assert ended.fields["agent"] == role
    assert ended.fields["cli"] == cli
    assert ended.fields["profile"] == profile
    assert ended.fields["status"] == "success"


def test_r1_help_shows_the_whole_table_and_every_exit_code(bench: Bench) -> None:
    for option in ("-h", "--help"):
        ended = bench.run(option, env={"PATH": ""})
        assert (ended.code, ended.stderr) == (0, "")
        text = ended.stdout.decode()
        assert max(len(line) for line in text.splitlines()) <= 80
        for role, (cli, verb, effort, timeout_s, mode, _) in TABLE.items():
            shown = cli if verb == "run" else f"{cli} {verb}"
            row = rf"^{role} +{shown} +{effort} +{timeout_s}  {mode}$"
            assert re.search(row, text, re.MULTILINE), role
        for code in ("0 success", "1 the agent", "2 usage", "4 no usable", "5 refused", "130"):
            assert code in text


def test_r1_an_unknown_role_lists_the_known_ones(bench: Bench) -> None:
    ended = bench.run("wizard\nx", "prompt")
    assert ended.code == 2
    assert "unknown role wizard?x" in ended.stderr
    for role in TABLE:
        assert f" {role} " in ended.stderr


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((), "ROLE and PROMPT"),
        (("executor",), "ROLE and PROMPT"),
        (("executor", "p", "", "", "", "six"), "ROLE and PROMPT"),
        (("--wrong", "p"), "--wrong"),
        (("executor", ""), "empty"),
        (("executor", "-"), "empty"),
        (("executor", "p", "everything"), "auto implement analyze review docs minimal"),
        (("executor", "p", "auto implement"), "unknown profile"),
        (("executor", "p", "", "0"), "TIMEOUT"),
        (("executor", "p", "", "000"), "TIMEOUT"),
        (("executor", "p", "", "-5"), "TIMEOUT"),
        (("executor", "p", "", "1.5"), "TIMEOUT"),
        (("executor", "p", "", "10m"), "TIMEOUT"),
        (("executor", "p", "", "86401"), "TIMEOUT"),
        (("executor", "p", "", "9" * 40), "TIMEOUT"),
    ],
)
def test_k9_wrong_usage_exits_two_and_runs_nothing(
    bench: Bench, args: tuple[str, ...], named: str
) -> None:
    bench.install("codex")
    ended = bench.run(*args)
    assert ended.code == 2
    assert ended.stdout == b""
    assert named in ended.stderr
    assert ended.stderr.startswith("tfx-route: ")
    assert ended.stderr.count("\n") == 1
    assert bench.ran() == set()
    assert bench.logs() == []


def test_a_time_out_with_leading_zeros_is_decimal(bench: Bench) -> None:
    bench.install("claude")
    bench.extra["CLAUDECODE"] = "1"
    assert b"TIMEOUT=89\n" in bench.run("explore", "p", "", "0089").stdout


def test_r2_the_first_installed_cli_of_the_order_replaces_a_missing_one(bench: Bench) -> None:
    for cli in ("opencode", "copilot", "claude", "gemini", "codex"):
        bench.install(cli)
        assert bench.run("executor", "p").fields["cli"] == cli


def test_r2_a_preferred_cli_comes_before_the_order(bench: Bench) -> None:
    bench.install(*HELPS)
    assert bench.run("writer", "p").fields["cli"] == "gemini"


@pytest.mark.parametrize("cli", HELPS)
def test_r2_a_forced_cli_is_used_for_every_role(plain: Bench, cli: str) -> None:
    plain.install(*HELPS)
    plain.extra |= {"TFX_CLI_MODE": cli, "CLAUDECODE": "1"}
    for role in ("executor", "writer", "explore", "code-reviewer"):
        assert plain.run(role, "p").fields["cli"] == cli
    assert plain.ran() == {cli}


def test_k9_no_usable_cli_exits_four_and_names_what_was_looked_for(bench: Bench) -> None:
    bench.extra |= {"PATH": "/no/such/dir", "TFX_ROUTE_DIRS": "/not/here:/nor/there"}
    ended = bench.run("writer", "p")
    assert ended.code == 4
    assert ended.stdout == b""
    for named in (
        "gemini codex claude copilot opencode",
        "/no/such/dir",
        "/not/here",
        "/nor/there",
    ):
        assert named in ended.stderr
    assert bench.logs() == []


def test_k9_a_forced_cli_that_is_missing_exits_four(bench: Bench) -> None:
    bench.install("codex")
    bench.extra |= {"TFX_CLI_MODE": "gemini"}
    ended = bench.run("executor", "p")
    assert ended.code == 4
    assert "TFX_CLI_MODE=gemini" in ended.stderr
    assert "looked for gemini in" in ended.stderr
    assert bench.ran() == set()


def test_r2_an_unknown_mode_lists_the_known_ones(bench: Bench) -> None:
    bench.extra |= {"TFX_CLI_MODE": "clippy"}
    ended = bench.run("executor", "p")
    assert ended.code == 2
    assert "auto codex gemini claude copilot opencode" in ended.stderr


def test_r2_a_native_role_is_handed_back_to_claude_code(bench: Bench) -> None:
    bench.install(*HELPS)
    bench.extra |= {"CLAUDECODE": "1"}
    ended = bench.run("qa-tester", b"line\nPROMPT=x\n\xff", "docs", "77")
    assert ended.code == 0
    assert ended.stdout == (
        b"ROUTE_TYPE=claude-native\nAGENT=qa-tester\nMODEL=normal\nRUN_MODE=background\n"
        b"TIMEOUT=77\nMCP_PROFILE=docs\nPROMPT=line\nPROMPT=x\n\xff\n"
    )
    assert bench.ran() == set()


def test_r2_a_native_role_falls_back_when_claude_is_not_there(bench: Bench) -> None:
    bench.install("codex")
    assert bench.run("explore", "p").fields["cli"] == "codex"
    assert bench.argv("codex") == ["exec", "-"]


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
    plain: Bench, cli: str, argv: list[str]
) -> None:
    plain.install(cli)
    assert plain.run("architect", "p").code == 0
    assert plain.argv(cli) == argv


@pytest.mark.parametrize(
    ("role", "cli", "old_help", "argv"),
    [
        ("code-reviewer", "codex", "  resume\n", ["exec", "-c", None, "-"]),
        ("architect", "claude", "  --model <model>\n", ["-p"]),
        ("architect", "copilot", "GitHub Copilot CLI\n", ["-s"]),
    ],
)
def test_r1_a_flag_that_the_installed_version_does_not_know_is_left_out(
    bench: Bench, role: str, cli: str, old_help: str, argv: list[str | None]
) -> None:
    bench.install(cli)
    (bench.notes / f"{cli}.help").write_text(old_help)
    assert bench.run(role, "p").code == 0
    given = bench.argv(cli)
    assert len(given) == len(argv)
    assert all(want in (None, got) for want, got in zip(argv, given, strict=True))


def test_s15_a_namesake_of_copilot_is_left_out(bench: Bench) -> None:
    bench.install("copilot", "opencode")
    (bench.notes / "copilot.help").write_text("Launch and manage containers\n")
    ended = bench.run("executor", "p")
    assert ended.fields["cli"] == "opencode"
    assert "not the GitHub Copilot CLI" in ended.stderr


SAFEGUARDS_OFF = """
    dangerous bypass yolo full-auto auto-edit allow-all allow-tool skip-trust skip-git
    skip-permission --auto acceptEdits danger-full-access
"""


@pytest.mark.parametrize("words", SAFEGUARDS_OFF.split())
def test_r3_no_flag_that_switches_a_safeguard_off_is_in_the_script(words: str) -> None:
    assert words not in SCRIPT.read_text()


@pytest.mark.shells
def test_r13_shellcheck_has_nothing_to_say() -> None:
    tool = shutil.which("shellcheck")
    if tool is None:
        pytest.skip("shellcheck is not installed")
    ended = subprocess.run(
        [tool, "--severity=style", str(SCRIPT)], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "")


def test_s93_scripts_are_executable_on_disk_and_in_git() -> None:
    for script in SCRIPT.parent.iterdir():
        assert os.access(script, os.X_OK), script
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout")
    listed = subprocess.run(
        ["git", "ls-files", "--stage", "assets/scripts"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert listed
    assert all(line.startswith("100755 ") for line in listed)
