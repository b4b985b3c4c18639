"""assets/scripts/tfx-route.sh as setup writes it: it becomes `tfx route` where that works."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.assets.scripted import SCRIPT, SHELLS
from tests.prompts import PROMPTS
from tests.route.fakes import Bench, benching, fields_of, output_of, wait_until
from tests.support import Ran
from tfx.core.paths import Paths
from tfx.desired import bundled

TFX = str(Path(sysconfig.get_path("scripts")) / "tfx")


@dataclass
class Caller:
    """A shell that runs the script from a bench; `rendered` as setup would have written it."""

    bench: Bench
    shell: tuple[str, ...]
    script: Path
    extra: dict[str, str] = field(default_factory=dict)

    def start(self, *arguments: str | bytes) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self.shell, str(self.script), *arguments],
            env=self.bench.env | self.extra,
            cwd=self.bench.cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, *arguments: str | bytes, stdin: bytes = b"") -> Ran:
        with self.start(*arguments) as process:
            try:
                out, err = process.communicate(stdin, timeout=150)
            finally:
                process.kill()
        text = out.decode("utf-8", "surrogateescape")
        return Ran(process.returncode, text, err.decode("utf-8", "replace"))

    def ran_alone(self) -> bool:
        """True when the script did the work itself: it keeps no record."""
        return not list(self.bench.jobs.glob("2*"))


@pytest.fixture(params=SHELLS)
def caller(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Caller]:
    shell: tuple[str, ...] = request.param
    found = shutil.which(shell[0])
    if found is None:
        pytest.skip(f"{shell[0]} is not installed")
    with benching(tmp_path) as bench:
        paths = Paths.resolve(bench.env)
        (asset,) = (a for a in bundled(paths, "scripts") if a.name.endswith("tfx-route.sh"))
        script = tmp_path / "tfx-route.sh"
        script.write_bytes(asset.data)
        bench.install("codex")
        yield Caller(bench, (found, *shell[1:]), script)


@pytest.mark.parametrize("name", PROMPTS)
def test_r13_r4_the_prompt_reaches_the_cli_through_tfx_byte_exact(
    caller: Caller, name: str
) -> None:
    ran = caller.run("executor", PROMPTS[name])
    assert (ran.code, ran.err) == (0, "")
    assert caller.bench.stdin("codex") == PROMPTS[name]
    assert not caller.ran_alone()
    assert list(caller.bench.cwd.iterdir()) == []


def test_r13_the_five_arguments_are_those_of_tfx_route(caller: Caller) -> None:
    (caller.bench.cwd / "-notes.md").write_text("notes")
    ran = caller.run("executor", "-", "docs", "0077", "-notes.md", stdin=b"from stdin")
    assert (ran.code, ran.err) == (0, "")
    job = fields_of(ran)["job"]
    shown = caller.bench.tfx("jobs", "show", job, "--json").data
    assert (shown["role"], shown["profile"], shown["timeout_s"]) == ("executor", "docs", 77)
    assert caller.bench.stdin("codex").startswith(b"from stdin\n\n--- context: ")
    ran = caller.run("executor", "p", "", "", "")
    shown = caller.bench.tfx("jobs", "show", fields_of(ran)["job"], "--json").data
    assert (shown["profile"], shown["timeout_s"]) == ("implement", 1080)


def test_r13_the_result_has_the_fields_of_the_script_itself(caller: Caller) -> None:
    caller.bench.behave("echo out; echo because >&2; exit 7")
    through = caller.run("executor", "p")
    caller.extra["TFX_BIN"] = ""
    alone = caller.run("executor", "p")
    assert through.code == alone.code == 1
    both, own = fields_of(through), fields_of(alone)
    assert {name for name in own if name != "log"} <= set(both)
    for name in ("agent", "cli", "path", "profile", "exit_code", "status"):
        assert both[name] == own[name]
    assert output_of(through) == output_of(alone) == b"out\n"
    assert "because\n" in through.err
    assert "because\n" in alone.err


def test_r13_it_works_with_an_empty_path(caller: Caller) -> None:
    caller.bench.program(caller.bench.home / ".local/bin/codex")
    caller.bench.extra["PATH"] = ""
    env = caller.bench.env
    del env["TFX_ROUTE_DIRS"]
    done = subprocess.run(
        [*caller.shell, str(caller.script), "executor", "p"],
        env=env,
        capture_output=True,
        timeout=150,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert caller.bench.stdin("codex") == b"p"
    assert not caller.ran_alone()


@pytest.mark.parametrize("broken", ["gone", "another program", "dies"])
def test_r13_without_a_tfx_that_works_the_script_runs_on_its_own(
    caller: Caller, broken: str
) -> None:
    other = caller.bench.root / "broken"
    if broken != "gone":
        says = "echo 'TensorFlow Extended 1.2'" if broken == "another program" else "exit 3"
        other.write_text(f"#!/bin/sh\n{says}\n")
        other.chmod(0o755)
    text = SCRIPT.read_bytes().replace(b"@TFX@", os.fsencode(other))
    caller.script.write_bytes(text)
    caller.bench.behave("echo done")
    ran = caller.run("executor", "p")
    assert (ran.code, ran.err) == (0, "")
    assert output_of(ran) == b"done\n"
    assert caller.ran_alone()


def test_r13_tfx_bin_wins_and_path_is_the_last_resort(caller: Caller) -> None:
    caller.script.write_bytes(SCRIPT.read_bytes())
    assert caller.run("executor", "p").code == 0
    assert caller.ran_alone()
    (caller.bench.bin / "tfx").symlink_to(TFX)
    assert caller.run("executor", "p").code == 0
    assert not caller.ran_alone()
    marker = caller.bench.root / "mine"
    marker.write_text(f'#!/bin/sh\necho used >>"{marker}.used"\nexec "{TFX}" "$@"\n')
    marker.chmod(0o755)
    caller.extra["TFX_BIN"] = str(marker)
    assert caller.run("executor", "p").code == 0
    assert Path(f"{marker}.used").exists()


def test_r13_a_tfx_bin_that_cannot_route_is_named_and_passed_over(caller: Caller) -> None:
    caller.extra["TFX_BIN"] = "/bin/true"
    ran = caller.run("executor", "p")
    assert ran.code == 0
    assert "TFX_BIN is not a tfx that can route: /bin/true" in ran.err
    assert not caller.ran_alone()


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_r5_an_interrupt_reaches_the_run(caller: Caller, sent: signal.Signals) -> None:
    caller.bench.behave('sleep 300 & : >"$FAKE_DIR/up"; wait')
    with caller.start("executor", "work") as process:
        assert wait_until((caller.bench.notes / "up").exists)
        process.send_signal(sent)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert caller.bench.all_gone()


def test_r4_the_prompt_is_not_in_the_arguments_of_tfx(caller: Caller) -> None:
    # each run of this test has prompts of its own: another worker's shells are in the list, too
    mark = caller.bench.root.parent.name + caller.bench.root.name
    piped, given = f"{mark}-piped", f"{mark}-given"
    # the caller had it in its own arguments, and a shell that hands over may take a moment to end
    caller.bench.behave(
        'n=0; while ps -A -o args= >"$FAKE_DIR/ps"; [ "$n" -lt 600 ] && '
        f'grep -q -e "{mark}-pipe[d]" -e "{mark}-give[n]" "$FAKE_DIR/ps"; '
        "do n=$((n + 1)); sleep 0.1; done"
    )
    assert caller.run("executor", "-", stdin=piped.encode()).code == 0
    assert piped not in (caller.bench.notes / "ps").read_text()
    assert caller.run("executor", given).code == 0
    assert given not in (caller.bench.notes / "ps").read_text()


def test_r2_a_native_role_is_handed_back_to_claude_code(caller: Caller) -> None:
    caller.extra["CLAUDECODE"] = "1"
    ran = caller.run("explore", "find it")
    assert ran.code == 0
    assert ran.out.startswith("ROUTE_TYPE=claude-native\nAGENT=explore\n")
    assert ran.out.endswith("PROMPT=find it\n")


def test_k18_the_command_of_an_installation_with_odd_characters_is_used(caller: Caller) -> None:
    odd = caller.bench.root / 'it\'s a "$HOME" `x`'
    odd.mkdir()
    (odd / "tfx").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tfx "$@"\n')
    (odd / "tfx").chmod(0o755)
    quoted = shlex.join([str(odd / "tfx")])
    caller.script.write_bytes(SCRIPT.read_bytes().replace(b"@TFX@", quoted.encode()))
    assert caller.run("executor", "p").code == 0
    assert not caller.ran_alone()
