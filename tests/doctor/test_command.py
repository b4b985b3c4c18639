"""`tfx doctor` as a user runs it: options, exit statuses, the document."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.doctor.world import Clinic, by_target, on_terminal, row
from tests.support import listing, tfx
from tfx.doctor.model import Status, worst
from tfx.doctor.registry import CHECKS

CHEAP = "locale"


def test_d1_looking_changes_nothing(clinic: Clinic) -> None:
    before = listing(clinic.home)
    temporary = clinic.root / "tmp"
    temporary.mkdir()
    ran = clinic.doctor("--all-shells", "--deep", TMPDIR=str(temporary))
    assert ran.code == 0, ran.out
    assert listing(clinic.home) == before
    assert list(temporary.iterdir()) == []


def test_d1_an_empty_home_stays_empty(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path)
    assert clinic.doctor().code == 0
    assert list(clinic.home.iterdir()) == []


def test_a_clean_machine_right_after_setup_has_no_failure(clinic: Clinic) -> None:
    ran = clinic.doctor()
    assert ran.code == 0
    assert ran.data["counts"]["fail"] == 0
    assert row(ran, "cli.matrix", "claude")["status"] == "ok"
    absent = row(ran, "cli.matrix", "gemini")
    assert (absent["status"], absent["remediation"]) == ("skip", [])
    assert "check-fail" not in ran.out


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("locale",), {"locale"}),
        (
            ("hub.*",),
            {
                *("hub.health", "hub.pid", "hub.port", "hub.tokens", "hub.queues"),
                *("hub.work", "hub.busy"),
            },
        ),
        (("--only", "locale", "--only", "time"), {"locale", "time"}),
        (("machine", "--skip", "time", "--skip", "runtime"), {"locale"}),
    ],
)
def test_d2_d3_checks_by_id_group_and_pattern(
    tmp_path: Path, words: tuple[str, ...], wanted: set[str]
) -> None:
    ran = Clinic(tmp_path).doctor(*words)
    assert ran.code == 0
    assert {each["id"] for each in ran.data["rows"]} == wanted


def test_d2_a_check_that_is_off_runs_when_it_is_named(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path)
    assert by_target(clinic.doctor("db.*"), "db.log") == {}
    assert set(by_target(clinic.doctor("db.log"), "db.log")) == {"log"}


@pytest.mark.parametrize("words", [("locale", "--skip", "locale"), ("--skip", "*", "--strict")])
def test_d3_d14_where_skip_leaves_nothing_it_is_a_usage_error(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    ran = Clinic(tmp_path).doctor(*words)
    assert (ran.code, ran.document["problems"][0]["code"]) == (2, "no-check")


def test_k47_a_machine_without_agents_is_told_in_one_line(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path)
    ran = clinic.tfx("doctor", "cli.matrix", PATH="/usr/bin:/bin")
    assert (ran.code, "agents that tfx knows is here" in ran.out) == (0, True)


@pytest.mark.parametrize("words", [("cli.matrx",), ("--only", "matrix"), ("--skip", "lokale")])
def test_d2_an_unknown_check_is_a_usage_error_with_the_nearest(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    ran = Clinic(tmp_path).doctor(*words)
    assert ran.code == 2
    problem = ran.document["problems"][0]
    nearest = {"cli.matrx": "cli.matrix", "matrix": "cli.matrix", "lokale": "locale"}
    assert nearest[words[-1]] in problem["message"]


@pytest.mark.parametrize(
    "words",
    [
        ("--dry-run",),
        ("--yes",),
        ("--fix", "--dry-run", "--yes"),
        ("--reset", "--fix"),
        ("--reset", "locale"),
        ("--timeout", "0"),
        ("--timeout", "-1"),
        ("--timeout", "121"),
        ("--timeout", "nan"),
        ("--timeout", "soon"),
        ("--no-such-option",),
    ],
)
def test_d5_d6_d11_contradictions_are_usage_errors(tmp_path: Path, words: tuple[str, ...]) -> None:
    clinic = Clinic(tmp_path)
    assert clinic.doctor(*words).code == 2
    assert list(clinic.home.iterdir()) == []


def test_d7_one_document_on_stdout_and_the_same_status_as_text(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path)
    clinic.write(".config/tfx/config.toml", "[hub]\nprot = 1\n")
    machine, people = clinic.doctor("config"), clinic.tfx("doctor", "config")
    assert (machine.code, people.code) == (1, 1)
    json.loads(machine.out)
    assert machine.err == ""


# An id is never renamed or used again: users skip by it, programs read it (D-176).
IDS = [
    "cli.matrix", "shell.rc", "shell.path", "shell.columns",
    "cli.duplicates", "cli.exec", "cli.version", "cli.arch", "cli.shim", "cli.method", "cli.auth",
    "settings.json", "mcp.registration", "mcp.servers", "skills",
    "self", "config", "assets.manifest", "setup.journal", "setup.lock", "setup.backups", "perm",
    "cache",
    "hub.health", "hub.pid", "hub.port", "hub.tokens", "hub.queues", "hub.work", "hub.busy",
    "db.file", "db.integrity", "db.backups", "db.log",
    "runtime", "locale", "time", "network",
]  # fmt: skip


def test_d17_d25_d31_d176_ids_are_stable_and_stand_in_one_tuple() -> None:
    assert isinstance(CHECKS, tuple)
    ids = [check.id for check in CHECKS]
    assert len(set(ids)) == len(ids)
    assert [each for each in ids if each in IDS] == IDS  # a new one may stand anywhere


def test_d8_the_list_shows_every_check_and_runs_none(tmp_path: Path) -> None:
    ran = Clinic(tmp_path).doctor("--list")
    assert [each["id"] for each in ran.data["checks"]] == [check.id for check in CHECKS]
    assert set(ran.data["checks"][0]) == {
        *("id", "group", "title", "default", "slow", "network", "deep", "fix", "explanation")
    }
    people = Clinic(tmp_path / "other").tfx("doctor", "--list")
    assert all(check.id in people.out for check in CHECKS)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_d9_each_check_explains_itself(check: object) -> None:
    explanation = check.explanation  # type: ignore[attr-defined]
    for text in (explanation.what, explanation.why, explanation.reads, explanation.by_hand):
        assert len(text) > 20
        assert text.endswith(".")


def test_d9_d176_explain_runs_nothing(tmp_path: Path) -> None:
    ran = tfx(tmp_path / "nowhere", "doctor", "--explain", "cli.matrix", env={"PATH": "/usr/bin"})
    assert ran.code == 0, ran.err
    assert "what:" in ran.out
    assert Clinic(tmp_path).doctor("--explain", "cli.matrx").code == 2


def test_d10_strict_makes_a_warning_count(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path)
    clinic.write(".profile", 'PATH=":/usr/bin:/bin"; export PATH\n')
    lax, strict = clinic.doctor("shell.path"), clinic.doctor("shell.path", "--strict")
    assert (lax.code, lax.document["status"]) == (0, "warning")
    assert (strict.code, strict.document["problems"][0]["code"]) == (1, "check-warn")


def test_d13_d29_plain_marks_without_a_terminal(clinic: Clinic) -> None:
    for extra in ((), ("--ascii",)):
        ran = clinic.tfx("doctor", "setup", *extra)
        assert "[ok] assets.manifest assets" in ran.out
        assert "\x1b" not in ran.out
        assert ran.out.splitlines()[-1].startswith(("7 ok", "8 ok", "9 ok"))
    assert ran.out.isascii()


def test_d14_no_home_is_a_row_and_exit_1(tmp_path: Path) -> None:
    ran = tfx(tmp_path, "doctor", "--json", env={"PATH": os.environ["PATH"]})
    assert ran.code == 1
    assert [(r["id"], r["target"]) for r in ran.data["rows"]] == [("self", "environment")]
    assert "HOME" in ran.data["rows"][0]["summary"]


def test_d14_doctor_itself_broken_is_3(home: Path) -> None:
    broken = (
        "import sys, tfx.doctor.examine as e\n"
        "def examine(*a, **k): raise RuntimeError('secret-canary')\n"
        "e.examine = examine\n"
        "from tfx.cli.entry import run\n"
        "sys.exit(run(['doctor', '--json']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", broken],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert "secret-canary" not in done.stdout + done.stderr


def test_d18_the_worst_status_wins() -> None:
    assert worst([Status.OK, Status.SKIP, Status.INFO]) is Status.INFO
    assert worst([Status.WARN, Status.UNKNOWN]) is Status.UNKNOWN
    assert worst([Status.UNKNOWN, Status.FAIL]) is Status.FAIL
    assert worst([Status.SKIP]) is worst([]) is Status.OK


def test_d17_d19_ids_and_targets_are_unique_and_summaries_short(clinic: Clinic) -> None:
    rows = clinic.doctor("--all-shells").data["rows"]
    assert len({(each["id"], each["target"]) for each in rows}) == len(rows)
    assert all(len(each["summary"]) <= 100 for each in rows)
    assert all("\n" not in each["summary"] for each in rows)


def test_d25_rows_come_in_the_order_of_the_registry(clinic: Clinic) -> None:
    ids = [each["id"] for each in clinic.doctor().data["rows"]]
    order = [check.id for check in CHECKS]
    assert sorted(ids, key=order.index) == ids


def test_d30_the_keys_of_the_document(clinic: Clinic) -> None:
    ran = clinic.doctor("cli.matrix", "assets.manifest")
    assert list(ran.document) == ["tfx", "command", "status", "exit", "data", "problems"]
    assert ran.document["command"] == "doctor"
    data = ran.data
    assert list(data) == [
        *("schema", "version", "platform", "started_at", "duration_ms", "options", "counts"),
        *("verdict", "rows", "slow", "fixes", "run", "redacted"),
    ]
    assert (data["schema"], data["redacted"]) == (1, True)
    assert list(data["options"]) == [
        *("checks", "only", "skip", "fix", "dry_run", "yes", "reset", "strict", "timeout_s"),
        *("network", "deep", "all_shells"),
    ]
    assert list(data["counts"]) == ["ok", "info", "warn", "fail", "unknown", "skip"]
    for each in data["rows"]:
        assert list(each) == [
            *("id", "group", "target", "status", "summary", "details", "remediation", "fix"),
            "duration_ms",
        ]
    remedy = row(clinic.doctor("hub.health"), "hub.health", "hub")["remediation"][0]
    assert list(remedy) == ["text", "command", "shell"]


def test_d30_text_and_document_name_the_same_checks(clinic: Clinic) -> None:
    machine = clinic.doctor()
    people = clinic.tfx("doctor", "--verbose")
    for each in machine.data["rows"]:
        assert f"{each['id']} " in people.out


def test_d187_reset_clears_the_caches_and_nothing_else(clinic: Clinic) -> None:
    clinic.write(".cache/tfx/a/b.json", "{}")
    clinic.write(".cache/other/keep", "mine")
    before = {name: v for name, v in clinic.users_files().items() if "cache/tfx" not in name}
    ran = clinic.tfx("doctor", "--reset")
    assert ran.code == 0
    assert ran.err.index("clears ~/.cache/tfx/a/b.json") >= 0
    assert not (clinic.home / ".cache/tfx").exists()
    assert clinic.users_files() == before
    again = clinic.doctor("--reset")
    assert [each["summary"] for each in again.data["rows"]] == ["there are none"]


def test_d187_reset_follows_no_link(tmp_path: Path) -> None:
    clinic = Clinic(tmp_path)
    treasure = clinic.write("treasure/gold", "mine")
    (clinic.home / ".cache").mkdir()
    (clinic.home / ".cache/tfx").symlink_to(treasure.parent)
    assert clinic.doctor("--reset").code == 0
    (clinic.home / ".cache/tfx").unlink()
    (clinic.home / ".cache/tfx").mkdir()
    (clinic.home / ".cache/tfx/link").symlink_to(treasure)
    assert clinic.doctor("--reset").code == 0
    assert treasure.read_text() == "mine"


def test_d28_the_picture_in_the_readme_is_of_this_command() -> None:
    root = Path(__file__).parents[2]
    assert "](.github/doctor.svg)" in (root / "README.md").read_text("utf-8")
    picture = (root / ".github" / "doctor.svg").read_text("utf-8").replace("&#160;", " ")
    assert picture.startswith("<svg")
    shown = {
        check.id for check in CHECKS if f">{check.id} " in picture or f"{check.id} " in picture
    }
    assert {"cli.matrix", "shell.rc", "assets.manifest", "hub.health"} <= shown
    assert str(Path.home()) not in picture
    assert set(re.findall(r"https?://([^/\"]+)", picture)) == {"www.w3.org"}


def test_d3_a_check_that_was_named_says_why_it_had_nothing_to_look_at(clinic: Clinic) -> None:
    said = clinic.tfx("doctor", "--only", "db.log", "--only", "hub.tokens").out
    assert re.search(r"db\.log .*not looked at: there is no hub database yet", said)
    assert said.count("not looked at") == 2
    assert "not looked at" not in clinic.tfx("doctor").out


def test_d9_a_group_is_explained_check_by_check(clinic: Clinic) -> None:
    said = clinic.tfx("doctor", "--explain", "hub").out
    assert [line.split()[0] for line in said.splitlines() if line.startswith("hub.")] == [
        check.id for check in CHECKS if check.group.value == "hub" and check.id.startswith("hub.")
    ]
    assert clinic.tfx("doctor", "--explain", "nope").code == 2


def test_d28_details_are_written_for_people(clinic: Clinic) -> None:
    said = clinic.tfx("doctor", "cli.matrix", "--verbose").out
    assert "{'" not in said
    assert re.search(r"bash -lc: answer found, path ~?/", said)


def test_d28_a_terminal_gets_groups_the_matrix_and_the_counts_last(clinic: Clinic) -> None:
    said = on_terminal(clinic)
    assert "\x1b[1mshells" in said
    grid = next(line for line in said.splitlines() if "bash -lic" in line)
    assert "sh -c" in grid
    assert " fail · " in said.strip().splitlines()[-1]


@pytest.mark.parametrize("columns", ["32", "40", "80"])
def test_d28_a_narrow_terminal_loses_neither_a_name_nor_a_summary(
    clinic: Clinic, columns: str
) -> None:
    said = re.sub(
        r"\x1b\[[0-9;]*m", "", on_terminal(clinic, "cli.matrix", "hub.*", env={"COLUMNS": columns})
    )
    words = " ".join(said.split())
    assert "bash -lic ✓" in words if columns != "80" else "bash -lic" in words
    assert "claude" in words
    assert "hub.pid ~/.local/state/tfx/hub/state.json no hub, and no state file of one" in words
    assert "…" not in said.replace("checking cli.matrix …", "")


@pytest.mark.parametrize(("words", "env"), [(("--ascii",), {}), ((), {"NO_COLOR": "1"})])
def test_d13_d29_no_colour_and_no_boxes_when_asked_for(
    clinic: Clinic, words: tuple[str, ...], env: dict[str, str]
) -> None:
    said = on_terminal(clinic, "machine", *words, env=env)
    assert "\x1b[" not in said
    assert "[ok] locale" in said


def test_d21_no_row_has_a_stronger_fix_than_its_check_declares(clinic: Clinic) -> None:
    (clinic.home / ".claude/scripts/tfx-route.sh").chmod(0o644)
    (clinic.home / ".claude/hud/tfx-hud.py").write_text("mine")
    declared = {check.id: check.fix.value for check in CHECKS}
    order = "MAC"
    fixes = [(r["id"], r["fix"]["class"]) for r in clinic.doctor().data["rows"] if r["fix"]]
    assert {kind for _, kind in fixes} == {"A", "M"}
    assert all(order.index(kind) <= order.index(declared[name]) for name, kind in fixes)


def test_d56_nothing_is_cached_between_two_looks(clinic: Clinic) -> None:
    assert row(clinic.doctor("cli.matrix"), "cli.matrix", "claude")["status"] == "ok"
    for name in (".bash_profile", ".bashrc", ".profile"):
        (clinic.home / name).unlink()
    assert row(clinic.doctor("cli.matrix"), "cli.matrix", "claude")["status"] == "warn"
