"""assets/scripts/tfx-route.sh against fake CLIs that record argv and standard input."""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "assets" / "scripts" / "tfx-route.sh"

# A fake CLI notes what it got in $FAKE_DIR/<its name>, then behaves as $FAKE_DIR/behave says.
FAKE = r"""#!/bin/sh
note=$FAKE_DIR/${0##*/}
for arg in "$@"; do
    case $arg in --help) cat "$note.help" 2>/dev/null; exit 0 ;; esac
done
umask >"$note.umask"
printf '%s' "$PATH" >"$note.path"
printf '%s\0' "$@" >"$note.argv"
cat >"$note.stdin"
[ -r "$FAKE_DIR/behave" ] && . "$FAKE_DIR/behave"
exit 0
"""
HELPS = {
    "codex": "Commands:\n  resume  Resume\n  review  Run a code review\n",
    "gemini": "  -m, --model   Model\n",
    "claude": "  --effort <level>   Effort level\n",
    "copilot": "GitHub Copilot CLI\n      --reasoning-effort <level>\n",
    "opencode": "opencode run [message..]\n",
}

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

PROMPTS = {
    "quotes": b"say \"hi\" and 'ho' and \\\"both\\'",
    "substitution": b"$(touch pwned) `touch pwned` ${HOME} $((1+1)) ~ !!",
    "newlines": b"\n\nfirst\n\n  second\r\nthird\n\n\n",
    "leading-dash": b"--dangerous -n -e",
    "option": b"--help",
    "echo-traps": b"-n \\c \\n \\0101 %s %d %%",
    "glob": b"* ? [a-z] {a,b} > file < file | & ; # not a comment",
    "emoji": "\U0001f469\u200d\U0001f4bb naïve 漢字 e\u0301".encode(),
    "not-utf8": b"latin \xe9 and \xff\xfe\x80 bytes",
    "control": b"tab\t bell\x07 escape\x1b[31m",
    "space": b" ",
    "end-of-heredoc": b"END\nEOF\n",
}


@dataclass(frozen=True)
class Ended:
    code: int
    stdout: bytes
    stderr: str

    @property
    def fields(self) -> dict[str, str]:
        block = self.stdout.partition(b"=== OUTPUT ===\n")[0].decode()
        return dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)

    @property
    def output(self) -> bytes:
        return self.stdout.partition(b"=== OUTPUT ===\n")[2]


@dataclass
class Bench:
    """A home, a directory of fake CLIs and the environment that knows nothing else."""

    home: Path
    notes: Path
    bin: Path
    cwd: Path
    shell: tuple[str, ...]
    extra: dict[str, str] = field(default_factory=dict)

    def install(self, *names: str, into: Path | None = None) -> None:
        into = into or self.bin
        into.mkdir(parents=True, exist_ok=True)
        for name in names:
            (into / name).write_text(FAKE)
            (into / name).chmod(0o755)
            (self.notes / f"{name}.help").write_text(HELPS[name])

    def behave(self, script: str) -> None:
        (self.notes / "behave").write_text(script)

    @property
    def env(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "FAKE_DIR": str(self.notes),
            "TMPDIR": str(self.home),
            "TFX_ROUTE_DIRS": "",
        } | self.extra

    def start(
        self, *args: str | bytes, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self.shell, str(SCRIPT), *args],
            env=self.env if env is None else dict(env),
            cwd=self.cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(
        self, *args: str | bytes, stdin: bytes = b"", env: Mapping[str, str] | None = None
    ) -> Ended:
        with self.start(*args, env=env) as process:
            try:
                out, err = process.communicate(stdin, timeout=60)
            finally:
                process.kill()
        return Ended(process.returncode, out, err.decode(errors="replace"))

    def argv(self, name: str) -> list[str]:
        return (self.notes / f"{name}.argv").read_text().split("\0")[:-1]

    def stdin(self, name: str) -> bytes:
        return (self.notes / f"{name}.stdin").read_bytes()

    def ran(self) -> set[str]:
        return {note.stem for note in self.notes.glob("*.argv")}

    def processes(self) -> list[psutil.Process]:
        """Return every living process that was started below the script; zombies are dead."""
        mine = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("FAKE_DIR") == str(self.notes):
                    mine.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return mine

    def left(self) -> list[psutil.Process]:
        """Return what is still there when everything that was killed has had time to go."""
        deadline = time.monotonic() + 3
        while (living := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return living

    def logs(self) -> list[Path]:
        return sorted((self.home / ".local/state/tfx/route").glob("run.*"))


SHELLS = [
    pytest.param(("dash",), id="dash"),
    pytest.param(("bash",), id="bash"),
    pytest.param(("ksh",), id="ksh", marks=pytest.mark.shells),
    pytest.param(("busybox", "sh"), id="busybox", marks=pytest.mark.shells),
]


def make_bench(tmp_path: Path, shell: tuple[str, ...]) -> Bench:
    made = Bench(
        home=tmp_path / "home",
        notes=tmp_path / "notes",
        bin=tmp_path / "bin",
        cwd=tmp_path / "cwd",
        shell=shell,
    )
    for place in (made.home, made.notes, made.bin, made.cwd):
        place.mkdir()
    return made


def end_all(bench: Bench) -> None:
    for process in bench.processes():
        process.kill()


@pytest.fixture(params=SHELLS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """In each shell that has to run the script."""
    shell: tuple[str, ...] = request.param
    found = shutil.which(shell[0])
    if found is None:
        pytest.skip(f"{shell[0]} is not installed")
    made = make_bench(tmp_path, (found, *shell[1:]))
    yield made
    end_all(made)


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Bench]:
    """In the shell of its first line, for what does not depend on the shell."""
    made = make_bench(tmp_path, ())
    yield made
    end_all(made)


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


@pytest.mark.parametrize("name", PROMPTS)
def test_r4_a_prompt_arrives_byte_exact(bench: Bench, name: str) -> None:
    bench.install("codex")
    ended = bench.run("executor", PROMPTS[name])
    assert (ended.code, ended.stderr) == (0, "")
    assert bench.stdin("codex") == PROMPTS[name]
    assert list(bench.cwd.iterdir()) == []


@pytest.mark.parametrize("cli", HELPS)
def test_r4_every_cli_gets_the_prompt_by_stdin_and_not_in_its_arguments(
    plain: Bench, cli: str
) -> None:
    prompt = b"".join(PROMPTS.values())
    plain.install(cli)
    ended = plain.run("executor", prompt)
    assert (ended.code, ended.stderr) == (0, "")
    assert plain.stdin(cli) == prompt
    given = (plain.notes / f"{cli}.argv").read_bytes()
    assert not any(part in given for part in prompt.split() if len(part) > 3)


def test_r4_a_megabyte_on_standard_input_arrives_byte_exact(bench: Bench) -> None:
    bench.install("codex")
    prompt = ("'\"$(x)\\ \U0001f600\n" * 90_000).encode()
    assert len(prompt) > 1 << 20
    ended = bench.run("executor", "-", stdin=prompt)
    assert (ended.code, ended.stderr) == (0, "")
    assert bench.stdin("codex") == prompt


def test_r4_nul_is_refused_before_anything_runs(bench: Bench) -> None:
    bench.install("codex")
    ended = bench.run("executor", "-", stdin=b"before\0after")
    assert ended.code == 5
    assert "NUL" in ended.stderr
    assert bench.ran() == set()
    assert not bench.logs()


def test_r4_the_prompt_file_is_private_while_it_exists_and_then_gone(bench: Bench) -> None:
    bench.install("codex")
    bench.behave('ls -ln "$HOME/.local/state/tfx/route/"*/ >"$FAKE_DIR/seen"; exit 9')
    ended = bench.run("executor", "secret")
    assert ended.code == 1
    modes = [line.split()[0] for line in (bench.notes / "seen").read_text().splitlines()[1:]]
    assert modes
    assert set(modes) == {"-rw-------"}
    (log,) = bench.logs()
    assert ended.fields["log"] == str(log)
    assert sorted(entry.name for entry in log.iterdir()) == ["stderr", "stdout"]
    assert stat.S_IMODE(log.stat().st_mode) == 0o700


def test_r5_the_time_out_ends_the_group_and_what_left_it(bench: Bench) -> None:
    bench.install("codex")
    bench.behave("""
        sleep 300 & sh -c 'trap "" TERM; while :; do sleep 1; done' &
        setsid sleep 300 &
        echo partial; trap "" TERM; while :; do sleep 1; done
    """)
    ended = bench.run("executor", "work", "", "1")
    assert bench.left() == []
    assert ended.code == 1
    assert ended.fields["status"] == "timeout"
    assert ended.fields["exit_code"] == "137"
    assert ended.fields["issue"] == "ended after the time-out of 1 s"
    assert ended.output == b"partial\n"


def test_r5_an_agent_that_obeys_term_ends_at_once_with_its_own_code(bench: Bench) -> None:
    bench.install("codex")
    bench.behave('trap "exit 3" TERM; sleep 300 & wait')
    ended = bench.run("executor", "work", "", "1")
    assert bench.left() == []
    assert ended.fields["status"] == "timeout"
    assert ended.fields["exit_code"] == "3"


def test_r5_nothing_of_the_script_outlives_a_run(bench: Bench) -> None:
    bench.install("codex")
    assert bench.run("executor", "work").code == 0
    assert bench.left() == []
    assert bench.logs() == []


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_r5_an_interrupt_ends_the_whole_group(bench: Bench, sent: signal.Signals) -> None:
    bench.install("codex")
    bench.behave('sleep 300 & : >"$FAKE_DIR/up"; wait')
    with bench.start("executor", "work") as process:
        wait_for(bench.notes / "up")
        process.send_signal(sent)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"interrupted" in err
    assert bench.left() == []
    assert bench.logs() == []


def test_r5_an_agent_does_not_outlive_a_killed_script(plain: Bench) -> None:
    plain.install("codex")
    plain.behave('sleep 300 & : >"$FAKE_DIR/up"; wait')
    with plain.start("executor", "work") as process:
        wait_for(plain.notes / "up")
        process.kill()
    deadline = time.monotonic() + 30
    while plain.processes():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_r5_what_a_failed_agent_left_is_ended_and_what_a_successful_one_left_stays(
    bench: Bench,
) -> None:
    bench.install("codex")
    bench.behave("sleep 300 & exit 1")
    assert bench.run("executor", "work").code == 1
    assert bench.left() == []
    bench.behave("sleep 300 & exit 0")
    assert bench.run("executor", "work").code == 0
    assert [process.name() for process in bench.processes()] == ["sleep"]


def test_r5_the_agent_leads_a_group_of_its_own_in_the_working_directory(bench: Bench) -> None:
    bench.install("codex")
    bench.behave('cut -d" " -f1,5,6 <"/proc/$$/stat"; pwd')
    ended = bench.run("executor", "work")
    ids, cwd = ended.output.decode().splitlines()
    assert len(set(ids.split())) == 1
    assert cwd == str(bench.cwd)


def test_k9_the_childs_own_code_is_in_the_result_and_ours_is_one(bench: Bench) -> None:
    bench.install("codex")
    bench.behave("echo half; echo because >&2; exit 7")
    ended = bench.run("executor", "work")
    assert ended.code == 1
    assert (ended.fields["exit_code"], ended.fields["status"]) == ("7", "failed")
    assert ended.output == b"half\n"
    assert ended.stderr.endswith("because\n")


def test_k9_a_crash_is_told_from_a_failure(bench: Bench) -> None:
    bench.install("codex")
    bench.behave("kill -SEGV $$")
    ended = bench.run("executor", "work")
    assert ended.code == 1
    assert (ended.fields["exit_code"], ended.fields["status"]) == ("139", "crashed")
    assert ended.stderr == ""


def test_a_cli_whose_interpreter_is_missing_fails_with_a_hint(bench: Bench) -> None:
    bench.install("codex")
    (bench.bin / "codex").write_text("#!/usr/bin/env no-such-interpreter\n")
    ended = bench.run("executor", "work")
    assert ended.code == 1
    assert "interpreter" in ended.fields["issue"]
    assert "no-such-interpreter" in ended.stderr


def test_only_the_end_of_a_long_error_output_is_repeated(bench: Bench) -> None:
    bench.install("codex")
    bench.behave('i=0; while [ $i -lt 2000 ]; do echo "line $i" >&2; i=$((i+1)); done; exit 1')
    ended = bench.run("executor", "work")
    assert len(ended.stderr) < 9000
    assert ended.stderr.endswith("line 1999\n")
    assert ended.stderr.splitlines()[1].startswith("line ")
    (log,) = bench.logs()
    assert len((log / "stderr").read_text().splitlines()) == 2000


@pytest.mark.parametrize(
    ("before", "char"), [(51198, "€"), (51199, "é"), (51197, "\U0001f600"), (51200, "é")]
)
def test_output_is_capped_on_a_character_boundary_and_kept_whole(
    bench: Bench, before: int, char: str
) -> None:
    bench.install("codex")
    whole = ("x" * before + char * 20).encode()
    (bench.notes / "long").write_bytes(whole)
    bench.behave('cat "$FAKE_DIR/long"')
    ended = bench.run("executor", "work")
    assert ended.code == 0
    assert ended.output == b"x" * before
    assert ended.fields["notice"] == f"output has {len(whole)} bytes, the first {before} are below"
    assert (Path(ended.fields["log"]) / "stdout").read_bytes() == whole


def test_output_that_is_no_text_is_cut_at_the_cap(bench: Bench) -> None:
    bench.install("codex")
    (bench.notes / "long").write_bytes(b"\x80" * 60_000)
    bench.behave('cat "$FAKE_DIR/long"')
    assert bench.run("executor", "work").output == b"\x80" * 51_200


def test_r7_a_context_file_follows_the_prompt_in_a_marked_block(bench: Bench) -> None:
    bench.install("codex")
    (bench.cwd / "-notes.md").write_bytes(b"# Notes\n\xff$(x)\n")
    ended = bench.run("executor", "prompt", "", "", "-notes.md")
    assert ended.code == 0
    assert bench.stdin("codex") == (
        b"prompt\n\n--- context: -notes.md ---\n# Notes\n\xff$(x)\n\n--- end of context ---\n"
    )
    assert "notice" not in ended.fields


def test_r7_a_long_context_file_is_capped_on_a_character_boundary_with_a_notice(
    bench: Bench,
) -> None:
    bench.install("codex")
    text = "x" * 32_767 + "é" * 100
    (bench.cwd / "c").write_text(text)
    ended = bench.run("executor", "prompt", "", "", "c")
    assert ended.fields["notice"] == "context file has 32967 bytes, the first 32767 were passed on"
    given = bench.stdin("codex").decode()
    assert given.endswith("x\n--- end of context ---\n")
    assert given.count("x") == 32_767 + "context".count("x") * 2
    assert "first 32767 of 32967 bytes" in given


def test_r7_an_empty_context_file_is_no_error(bench: Bench) -> None:
    bench.install("codex")
    (bench.cwd / "c").touch()
    assert bench.run("executor", "prompt", "", "", "c").code == 0


@pytest.mark.parametrize("kind", ["missing", "directory", "fifo"])
def test_r7_what_is_not_a_readable_file_is_a_usage_error(bench: Bench, kind: str) -> None:
    bench.install("codex")
    path = bench.cwd / "c"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    ended = bench.run("executor", "prompt", "", "", str(path))
    assert ended.code == 2
    assert str(path) in ended.stderr
    assert bench.ran() == set()


def test_r4_nul_in_a_context_file_is_refused(bench: Bench) -> None:
    bench.install("codex")
    (bench.cwd / "c").write_bytes(b"a\0b")
    assert bench.run("executor", "prompt", "", "", "c").code == 5
    assert bench.ran() == set()


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


def test_the_agent_keeps_the_callers_umask(bench: Bench) -> None:
    bench.install("codex")
    bench.shell = ("sh", "-c", 'umask 022; exec "$@"', "sh", *bench.shell)
    assert bench.run("executor", "p").code == 0
    assert (bench.notes / "codex.umask").read_text().strip() == "0022"


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


def test_two_runs_at_once_do_not_mix(bench: Bench) -> None:
    bench.install("codex", "gemini")
    bench.behave('cat "$FAKE_DIR/${0##*/}.stdin"; exit 1')
    with bench.start("executor", "one") as first, bench.start("writer", "two") as second:
        one, _ = first.communicate(timeout=30)
        two, _ = second.communicate(timeout=30)
    assert one.endswith(b"=== OUTPUT ===\none")
    assert two.endswith(b"=== OUTPUT ===\ntwo")
    assert len(bench.logs()) == 2


def test_a_flood_of_output_is_cut_and_leaves_memory_flat(plain: Bench) -> None:
    plain.install("codex")
    plain.behave("head -c 100000000 /dev/zero | tr '\\0' x")
    with plain.start("executor", "p") as process:
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
    assert out.endswith(b"=== OUTPUT ===\n" + b"x" * 51_200)
    (log,) = plain.logs()
    assert (log / "stdout").stat().st_size == 100_000_000


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
