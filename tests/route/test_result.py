"""The result: statuses, cut output, recognised issues, tokens, the issue log, the advice."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.route.fakes import Bench, fields_of, output_of
from tfx.route.excerpt import boundary, first_bytes
from tfx.route.ledger import _CAP_BYTES
from tfx.route.table import bundled

SAID = {
    "not-logged-in": [
        "Not logged in · Please run /login",
        "Please set an Auth method in your settings.json or specify one of: GEMINI_API_KEY",
        "Error: No authentication information found.",
        "unexpected status 401 Unauthorized: Missing bearer or basic authentication in header",
        "Invalid API key · Please run /login",
        "Incorrect API key provided: sk-…",
    ],
    "rate-limit": [
        "Error: 429 Too Many Requests",
        "rate_limit_exceeded",
        "You've hit your usage limit.",
        "RESOURCE_EXHAUSTED: quota exceeded",
    ],
    "context-too-long": ["Prompt is too long", "context_length_exceeded", "input is too long"],
    "mcp-server": [
        "MCP client for `docs` failed to start: timed out",
        "Error: failed to connect to MCP server",
    ],
    "untrusted-directory": ["Not inside a trusted directory and --skip-… was not specified."],
    "network": ["getaddrinfo ENOTFOUND api.example", "ERROR: Reconnecting... waiting for network"],
    "deprecated-flag": ["warning: --full-auto is deprecated", "error: unexpected argument '-z'"],
}


@pytest.mark.parametrize(
    ("code", "line"), [(code, line) for code, lines in SAID.items() for line in lines]
)
def test_r10_what_clis_say_is_recognised(code: str, line: str) -> None:
    found = [row.code for row in bundled().issues if row.is_in(line)]
    assert code in found


@pytest.mark.parametrize(
    "line", ["", "All done.", "I wrote login.py and its tests", "line 4012 of 14290", "the rate"]
)
def test_r10_plain_words_are_not(line: str) -> None:
    assert [row.code for row in bundled().issues if row.is_in(line)] == []


def test_r10_every_issue_of_the_table_has_a_sample_and_a_remedy() -> None:
    rows = bundled().issues
    assert {row.code for row in rows} == set(SAID)
    assert all(row.remedy.format(cli="codex") for row in rows)


@pytest.mark.parametrize("stream", ["", ">&2"])
def test_r10_the_reason_of_a_failure_is_in_the_result_and_in_the_issue_log(
    bench: Bench, stream: str
) -> None:
    bench.install("claude")
    bench.behave(f"echo 'Not logged in · Please run /login' {stream}; exit 1")
    ran = bench.route("explore", "my secret plan")
    assert ran.code == 1
    assert fields_of(ran)["issue"] == "not-logged-in: log in with claude itself, in a terminal"
    log = bench.jobs / "issues.jsonl"
    assert log.stat().st_mode & 0o777 == 0o600
    (entry,) = map(json.loads, log.read_text().splitlines())
    assert (entry["code"], entry["role"], entry["cli"]) == ("not-logged-in", "explore", "claude")
    assert "secret" not in log.read_text()


def test_r10_a_successful_run_may_talk_about_anything(bench: Bench) -> None:
    bench.install("claude")
    bench.behave("echo 'Not logged in, 429, prompt is too long'; echo 'rate limit' >&2")
    data = bench.json("explore", "p")
    assert (data["status"], data["issues"]) == ("success", [])
    assert not (bench.jobs / "issues.jsonl").exists()


def test_r10_a_deprecated_flag_is_noticed_in_a_successful_run(bench: Bench) -> None:
    bench.install("claude")
    bench.behave("echo 'warning: --effort is deprecated' >&2")
    data = bench.json("explore", "p")
    assert data["status"] == "success"
    assert [issue["code"] for issue in data["issues"]] == ["deprecated-flag"]


def test_r10_the_issue_log_is_rotated(bench: Bench) -> None:
    bench.install("claude")
    bench.behave("echo 429; exit 1")
    bench.jobs.mkdir(parents=True)
    log = bench.jobs / "issues.jsonl"
    log.write_text("x" * _CAP_BYTES)
    bench.route("explore", "p")
    assert len(log.read_text().splitlines()) == 1
    assert (bench.jobs / "issues.jsonl.1").stat().st_size == _CAP_BYTES


@pytest.mark.parametrize(
    ("said", "tokens"),
    [("tokens used\\n12,345\\n", 12345), ("tokens used: 7\\n", 7), ("none\\n", None)],
)
def test_r10_tokens_are_read_where_the_cli_prints_them(
    bench: Bench, said: str, tokens: int | None
) -> None:
    bench.install("codex", "gemini")
    bench.behave(f"printf '{said}' >&2")
    assert bench.json("executor", "p")["tokens"] == tokens
    assert bench.json("writer", "p")["tokens"] is None


def test_k9_the_childs_own_code_is_in_the_result_and_ours_is_one(bench: Bench) -> None:
    bench.install("codex")
    bench.behave("echo half; echo because >&2; exit 7")
    ran = bench.route("executor", "work")
    assert ran.code == 1
    fields = fields_of(ran)
    assert (fields["exit_code"], fields["status"]) == ("7", "failed")
    assert output_of(ran) == b"half\n"
    assert "the last error output of codex:\nbecause\n" in ran.err
    assert (Path(fields["log"]).parent / "stderr").read_text() == "because\n"


def test_k9_a_cli_that_cannot_be_started_is_a_failure_with_a_reason(bench: Bench) -> None:
    bench.install("claude")
    real = (bench.bin / "claude").resolve()
    real.write_text("#!/no/such/interpreter\n")
    data = bench.json("explore", "p")
    assert (data["status"], data["exit_code"]) == ("failed", 127)
    assert data["issues"][0]["code"] == "not-started"


def test_k8_the_document_of_a_failure_has_the_result_and_the_problem(bench: Bench) -> None:
    bench.install("codex")
    bench.behave("exit 7")
    document = bench.route("executor", "p", "--json").document
    assert (document["command"], document["status"], document["exit"]) == ("route", "failed", 1)
    assert document["data"]["exit_code"] == 7
    assert document["problems"][0]["code"] == "run-failed"


@pytest.mark.parametrize(("before", "kept"), [(51_200, 51_200), (51_199, 51_199)])
def test_output_is_cut_on_a_character_boundary_and_the_whole_stays(
    bench: Bench, before: int, kept: int
) -> None:
    bench.install("codex")
    whole = b"x" * before + "é".encode() * 10
    (bench.notes / "long").write_bytes(whole)
    bench.behave('cat "$FAKE_DIR/long"')
    ran = bench.route("executor", "p")
    assert output_of(ran) == whole[:kept]
    fields = fields_of(ran)
    assert fields["notice"] == f"output has {len(whole)} bytes, the first {kept} are below"
    assert Path(fields["log"]).read_bytes() == whole


@pytest.mark.parametrize("text", ["é", "漢", "\U0001f600", "a"])
def test_a_cut_never_splits_a_character(tmp_path: Path, text: str) -> None:
    data = (text * 9).encode()
    file = tmp_path / "f"
    file.write_bytes(data)
    for cap in range(len(data) + 1):
        found = first_bytes(file, cap)
        assert found.data.decode() == text * (cap // len(text.encode()))
        assert found.whole_bytes == len(data)


def test_a_cut_of_what_is_no_text_is_at_the_cap() -> None:
    assert boundary(b"\x80" * 20, 10) == 10
    assert boundary(b"\xff" * 20, 10) == 10


CODEX_SERVERS = """
[mcp_servers.context7]
command = "x"
[mcp_servers.playwright]
command = "y"
[mcp_servers.mine]
command = "z"
[mcp_servers.deepwiki]
url = "u"
enabled = false
"""
SETTINGS = '{"mcpServers": {"context7": {}, "playwright": {}, "mine": {}, "brave-search": {}}}'


def test_the_advice_of_a_profile_names_only_servers_that_are_configured(bench: Bench) -> None:
    bench.install("codex", "gemini")
    bench.write(".codex/config.toml", CODEX_SERVERS)
    bench.write(".gemini/settings.json", "// mine\n" + SETTINGS)
    bench.route("executor", "p")
    assert bench.stdin("codex").decode() == (
        "p\n\n--- advice ---\n"
        "Look up the interfaces of libraries in context7 before you rely on memory.\n"
    )
    bench.route("writer", "p")
    lines = bench.stdin("gemini").decode().splitlines()[3:]
    assert [line.split()[-1] for line in lines] == ["memory.", "here.", "playwright."]
    bench.route("spark", "p")
    assert bench.stdin("codex") == b"p"


def test_servers_of_a_kind_that_the_profile_has_no_use_for_are_left_out(bench: Bench) -> None:
    bench.install("codex", "gemini", "copilot")
    bench.write(".codex/config.toml", CODEX_SERVERS)
    bench.write(".gemini/settings.json", SETTINGS)
    bench.write(".copilot/mcp-config.json", SETTINGS)
    bench.route("executor", "p")
    off = ["-c", "mcp_servers.playwright.enabled=false"]
    assert bench.argv("codex")[3:5] == off
    bench.route("executor", "p", "--cli", "gemini")
    allowed = ["--allowed-mcp-server-names", "context7", "--allowed-mcp-server-names", "mine"]
    assert bench.argv("gemini")[2:] == allowed
    bench.route("executor", "p", "--cli", "copilot")
    assert "--disable-mcp-server playwright" in " ".join(bench.argv("copilot"))
    assert "mine" not in " ".join(bench.argv("copilot"))


@pytest.mark.parametrize("text", ["{", "[1]", '{"mcpServers": 3}', "\xff"])
def test_an_unreadable_configuration_of_a_cli_gives_no_advice_and_no_error(
    bench: Bench, text: str
) -> None:
    bench.install("gemini")
    bench.write(".gemini/settings.json", text)
    assert bench.route("writer", "p").code == 0
    assert bench.stdin("gemini") == b"p"


def test_a_directory_with_undecodable_bytes_works_in_the_background_too(bench: Bench) -> None:
    bench.install("codex")
    bench.behave("pwd")
    place = os.fsencode(bench.root) + b"/d\xff"
    os.mkdir(place)  # noqa: PTH102  (bytes)
    job = bench.route("executor", "p", "--background", "--cwd", place).out.strip()
    ran = bench.tfx("jobs", "wait", job)
    assert output_of(ran) == place + b"\n"
