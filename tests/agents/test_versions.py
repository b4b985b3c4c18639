from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.agents.fakes import paths_of, script
from tests.clock import late_once_there
from tests.support import listing
from tfx.agents.catalogue import find
from tfx.agents.model import VersionRule
from tfx.agents.versions import AgentVersion, Unknown, find_version, parse_version, probe_version

GENERAL = VersionRule()
PATIENT = VersionRule(timeout_s=60)

OUTPUTS = [  # setup 2.1, word for word; the update hint of Copilot stands in a line of its own
    ("claude", "2.1.332 (Claude Code)\n", "2.1.332"),
    ("codex", "codex-cli 0.171.0\n", "0.171.0"),
    ("gemini", "0.61.0\n", "0.61.0"),
    (
        "copilot",
        "GitHub Copilot CLI 1.0.102.\nRun 'copilot update' to check for updates.\n",
        "1.0.102",
    ),
    ("opencode", "1.18.33\n", "1.18.33"),
    (
        "amp",
        "0.0.1790142911-g7618fb (released 2026-09-23T05:55:11.000Z, 2mo ago)\n",
        "0.0.1790142911",
    ),
    ("qwen", "0.15.10\n", "0.15.10"),
    ("codex", "codex-cli 0.62.0-alpha.22\n", "0.62.0a22"),
    ("copilot", "GitHub Copilot CLI 1.0.103-2.\n", "1.0.103"),
    ("claude", "\x1b[1m2.1.332 (Claude Code)\x1b[0m\r\n", "2.1.332"),
]

SAMPLES = [  # D-88
    ("2.0.14 (Claude Code)", "2.0.14"),
    ("codex-cli 0.62.0-alpha.22", "0.62.0-alpha.22"),
    ("0.17.1", "0.17.1"),
    ("v22.2.0", "v22.2.0"),
    ("git version 2.39.2", "2.39.2"),
    (
        "(node:1) [DEP0040] DeprecationWarning: old in v21.0.0\n2.0.14 (Claude Code)",
        "2.0.14",
    ),
    ("mise WARN node@22.1.0 is not installed\n1.2.3", "1.2.3"),
    ("Server at 127.0.0.1\n0.9.0-nightly.20251129.abc", "0.9.0-nightly.20251129.abc"),
    ("╭──────────╮\n│ 1.0 -> 2.0 │\n╰──────────╯\n0.9.1", "0.9.1"),
    ("", None),
    ("node 20.1.0\n2.0.14 (Claude Code)", "2.0.14"),
    ("Server at 127.0.0.1", None),
    ("three whole words 1.2.3", None),
    ("1.2", None),
]


@pytest.mark.parametrize(("name", "output", "public"), OUTPUTS)
def test_s14_version_output_of_the_real_clients_is_read(
    name: str, output: str, public: str
) -> None:
    version = find_version(output, find(name).version)
    assert version is not None
    assert version.public == public


@pytest.mark.parametrize(("output", "text"), SAMPLES)
def test_d88_the_version_is_on_the_last_line_that_is_nothing_else(
    output: str, text: str | None
) -> None:
    version = find_version(output, GENERAL)
    assert (version and version.text) == (text and text.removeprefix("v"))


@pytest.mark.parametrize("name", ["claude", "codex", "copilot", "amp"])
def test_s15_a_namesakes_version_line_is_not_the_agents(name: str) -> None:
    assert find_version("7.8.9\nother-tool 1.2.3 (other)\n", find(name).version) is None


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("0.61.9", "0.61.10"),
        ("2.0.20-alpha.22", "2.0.20"),
        ("2.0.20-alpha.9", "2.0.20-alpha.22"),
        ("2.0.20-rc.1", "2.0.20"),
        ("1.0.102", "1.0.103-2"),
        ("1.2.3-dev.1", "1.2.3-beta.2"),
        ("1.2.2", "1.2.3-nightly.20251129.abc"),
    ],
)
def test_d89_versions_compare_as_their_numbers(older: str, newer: str) -> None:
    low, high = version_of(older), version_of(newer)
    assert high.is_newer_than(low)
    assert not low.is_newer_than(high)
    assert high.is_at_least(low.public)
    assert not low.is_at_least(high.public)


@pytest.mark.parametrize(
    ("text", "public"),
    [
        ("1.2.3-nightly.20251129.abc", "1.2.3"),
        ("1.2.3-2", "1.2.3"),
        ("1.2.3-preview.4", "1.2.3rc4"),
        ("1.2.3-weird", "1.2.3"),
    ],
)
def test_d89_a_prerelease_is_marked_and_keeps_what_can_be_compared(text: str, public: str) -> None:
    version = version_of(text)
    assert (version.text, version.public, version.is_prerelease) == (text, public, True)
    assert version.is_at_least("1.2.2")


@pytest.mark.parametrize("text", ["1.2.3+build.5", "v1.2.3", " 1.2.3 "])
def test_d89_build_metadata_and_a_leading_v_do_not_count(text: str) -> None:
    version = version_of(text)
    assert (version.public, version.is_prerelease) == ("1.2.3", False)


def test_d89_amps_build_mark_is_dropped_by_its_row() -> None:
    version = parse_version("0.0.1790142911-g7618fb", find("amp").version.build_mark)
    assert version == AgentVersion("0.0.1790142911-g7618fb", "0.0.1790142911", is_prerelease=False)


@pytest.mark.parametrize("text", ["", "unknown", "12", "abc1.2.3"])
def test_d89_text_without_a_version_is_none(text: str) -> None:
    assert parse_version(text) is None


def version_of(text: str) -> AgentVersion:
    version = parse_version(text)
    assert version is not None
    return version


def test_s13_a_probe_sees_a_scratch_home_and_closed_input(home: Path, tmp_path: Path) -> None:
    report = tmp_path / "seen"
    program = script(
        tmp_path / "bin",
        "gemini",
        f"env > {report}; ls -di . >> {report}; cat >> {report}\n"
        'mkdir -p "$HOME/.gemini" "$XDG_CONFIG_HOME/x" "$XDG_DATA_HOME" "$XDG_STATE_HOME"\n'
        'mkdir -p "$XDG_CACHE_HOME"; touch "$TMPDIR/t"; echo "$@" >&2\n'
        '[ "$1" = --version ] && echo 0.61.0',
    )
    (home / ".nvm").mkdir()
    before = listing(home)
    paths = paths_of(
        home, program.parent, GEMINI_CLI_HOME=str(home), GEMINI_API_KEY="secret", LC_ALL="C"
    )
    version = probe_version(program, GENERAL, paths)
    assert isinstance(version, AgentVersion)
    assert listing(home) == before
    seen = dict(line.split("=", 1) for line in report.read_text().splitlines() if "=" in line)
    scratch = seen["HOME"]
    assert not Path(scratch).exists()
    assert {name: seen[f"XDG_{name}_HOME"] for name in ("CONFIG", "DATA", "STATE", "CACHE")} == {
        "CONFIG": f"{scratch}/.config",
        "DATA": f"{scratch}/.local/share",
        "STATE": f"{scratch}/.local/state",
        "CACHE": f"{scratch}/.cache",
    }
    assert (seen["NVM_DIR"], seen["LC_ALL"]) == (str(home / ".nvm"), "C")
    assert (seen["NO_COLOR"], seen["NO_UPDATE_NOTIFIER"]) == ("1", "1")
    assert {"GEMINI_CLI_HOME", "GEMINI_API_KEY"} & seen.keys() == set()
    assert report.read_text().splitlines()[-1].split() == [str(home.stat().st_ino), "."]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("sleep 600 & echo >>LATE; sleep 600", "--version did not end within 60 s"),
        ("echo not logged in; exit 3", "--version ended with status 3"),
        ("echo 1.2.3; exit 1", "--version ended with status 1"),
        ("kill -SEGV $$", "--version was killed by signal 11"),
        ("echo welcome to the agent", "no line of --version is a version"),
        ("head -c 300000 /dev/urandom", "no line of --version is a version"),
        ("exit 0", "no line of --version is a version"),
    ],
)
def test_s13_a_hang_or_a_failure_is_an_unknown_version_with_its_reason(
    body: str, reason: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late_once_there(monkeypatch, tmp_path / "late")
    program = script(tmp_path / "bin", "gemini", body.replace("LATE", str(tmp_path / "late")))
    version = probe_version(program, PATIENT, paths_of(home))
    assert isinstance(version, Unknown)
    assert version.reason == reason
    assert len(version.tail) <= 400
    assert all(character.isprintable() or character in "\n\t" for character in version.tail) or (
        "urandom" in body
    )


def test_s13_the_end_of_the_output_is_kept_for_the_report(home: Path, tmp_path: Path) -> None:
    program = script(tmp_path / "bin", "gemini", "echo broken: libfoo.so missing >&2; exit 127")
    version = probe_version(program, PATIENT, paths_of(home))
    assert version == Unknown("--version ended with status 127", "broken: libfoo.so missing")


def test_d91_what_cannot_be_started_says_why(home: Path, tmp_path: Path) -> None:
    program = tmp_path / "gemini"
    program.write_text("#!/nonexistent/node\n", "utf-8")
    program.chmod(0o755)
    missing = probe_version(program, PATIENT, paths_of(home))
    program.write_bytes(b"\x7fELF nothing of the kind")
    garbage = probe_version(program, PATIENT, paths_of(home))
    assert missing == Unknown("cannot be started: No such file or directory")
    assert garbage == Unknown("cannot be started: Exec format error")


def test_s13_a_probe_leaves_no_scratch_folder_behind(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late_once_there(monkeypatch, tmp_path / "late")
    body = f'echo "$HOME" > {tmp_path}/where; mkdir "$HOME/a"; echo >{tmp_path}/late; sleep 600'
    program = script(tmp_path / "bin", "gemini", body)
    probe_version(program, PATIENT, paths_of(home))
    scratch = Path((tmp_path / "where").read_text().strip())
    assert not scratch.exists()
    assert list(home.iterdir()) == []


def test_s13_the_probe_folder_is_private(home: Path, tmp_path: Path) -> None:
    program = script(
        tmp_path / "bin", "gemini", f'stat -c %a "$HOME" > {tmp_path}/mode; echo 1.2.3'
    )
    probe_version(program, PATIENT, paths_of(home))
    assert int((tmp_path / "mode").read_text(), 8) & stat.S_IRWXO == 0
    assert list(home.iterdir()) == []
