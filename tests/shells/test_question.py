from __future__ import annotations

import pwd
import secrets
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shells.world import EVERY_SHELL, World, the_shell
from tfx.errors import InvalidRequest
from tfx.shells.flavours import BASH, FISH, FLAVOURS, ZSH
from tfx.shells.names import Kind
from tfx.shells.probe import tail
from tfx.shells.question import Question, Words, base_environment, check_names


def asked(*names: str) -> Question:
    return Question(BASH, names, secrets.token_hex(8))


def test_d43_nothing_of_our_own_environment_is_passed_on(home: Path) -> None:
    world = World.at(
        home,
        USER="me",
        TMPDIR="/t",
        XDG_DATA_HOME="/d",
        SOME_TOOL="s",
        BASH_ENV="/b",
        VIRTUAL_ENV="/v",
        NVM_DIR="/n",
        TERM="xterm",
        ZDOTDIR="/z",
    )
    env = base_environment(world.paths)
    assert env["PATH"] == "/usr/bin:/bin"
    assert env["TERM"] == "dumb"
    assert (env["HOME"], env["USER"], env["LOGNAME"]) == (str(home), "me", "me")
    assert (env["TMPDIR"], env["XDG_DATA_HOME"], env["LANG"]) == ("/t", "/d", "C.UTF-8")
    assert not {"SOME_TOOL", "BASH_ENV", "VIRTUAL_ENV", "NVM_DIR", "ZDOTDIR"} & set(env)


def test_d43_the_user_is_named_though_our_environment_does_not(home: Path) -> None:
    env = base_environment(World.at(home).paths)
    assert env["USER"] == env["LOGNAME"] == pwd.getpwuid(home.stat().st_uid).pw_name


def test_d44_dotfiles_are_told_to_be_quiet(home: Path) -> None:
    env = base_environment(World.at(home).paths)
    assert env["TFX_RESOLVING_ENVIRONMENT"] == env["VSCODE_RESOLVING_ENVIRONMENT"] == "1"
    assert env["DISABLE_AUTO_UPDATE"] == "true"
    assert env["HISTFILE"] == ""


def test_d51_a_shell_complains_in_words_we_know(home: Path) -> None:
    assert base_environment(World.at(home, LANG="de_DE.UTF-8").paths)["LC_MESSAGES"] == "C"


@pytest.mark.parametrize("flavour", FLAVOURS, ids=lambda flavour: flavour.name)
def test_d46_no_echo_of_the_question_is_a_mark(home: Path, flavour: object) -> None:
    del home
    for row in FLAVOURS:
        if row is flavour:
            question = Question(row, ("claude",), secrets.token_hex(8))
            text = question.text(Words.of("/usr/bin/printf", "/usr/bin/env"))
            assert question.nonce not in text
            assert len(question.nonce) == 16


def test_the_last_word_for_a_name_is_the_shells_own() -> None:
    question = asked("claude", "codex", "gemini")
    output = (
        b"noise\0PATH=/evil\0"
        + question.begin
        + b"A=1\0PATH=/usr/bin:/a b\0SECRET=x\0\0K:claude=file\n/x\n\0K:codex=\0"
        + question.end
        + b"K:gemini=file\0"
    )
    answer = question.read(output)
    assert answer.path == "/usr/bin:/a b"
    kinds = {name: said.kind for name, said in answer.names.items()}
    assert kinds == {"claude": Kind.FILE, "codex": Kind.NONE, "gemini": Kind.UNCLEAR}
    assert "SECRET" not in repr(answer)


@given(st.binary(max_size=200), st.binary(max_size=200), st.binary(max_size=200))
def test_whatever_is_printed_around_an_answer_changes_nothing(
    before: bytes, behind: bytes, inside: bytes
) -> None:
    question = asked("tool")
    body = b"PATH=/p\0" + inside.replace(b"\0", b"") + b"=\0\0K:tool=file\n/p/tool\n\0"
    answer = question.read(before + question.begin + body + question.end + behind)
    assert answer.path == "/p"
    assert answer.names["tool"].kind is Kind.FILE


@pytest.mark.parametrize("name", ["", "-c", "a b", "a;b", "a'b", "$(x)", "a/b", "ä", "a\n"])
def test_a_name_that_is_no_program_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match="not the name of a program"):
        check_names(["claude", name])


@pytest.mark.parametrize("shell", EVERY_SHELL)
@pytest.mark.parametrize("missing", ["printf", "env", "both"])
def test_d47_an_interpreter_stands_in_for_a_missing_program(
    world: World, shell: str, missing: str
) -> None:
    chosen = the_shell(shell)
    assert chosen.flavour is not None
    words = Words.of(
        None if missing != "env" else "/usr/bin/printf",
        None if missing != "printf" else "/usr/bin/env",
    )
    question = Question(chosen.flavour, ("ls",), secrets.token_hex(8))
    done = subprocess.run(
        [chosen.program, "-c", question.text(words)],
        env=base_environment(world.paths),
        cwd=world.home,
        capture_output=True,
        check=False,
    )
    answer = question.read(done.stdout)
    assert question.end in done.stdout, done
    assert answer.path == "/usr/bin:/bin"
    assert answer.names["ls"].kind in {Kind.FILE, Kind.FUNCTION}


def test_d51_the_tail_is_clean_and_short() -> None:
    stderr = (
        b"bash: cannot set terminal process group (-1): Inappropriate ioctl for device\n"
        b"bash: no job control in this shell\n"
        b"[1] 4711\n+ set +eux\n"
        b"\x1b[31mred\x1b[0m \x1b]0;title\x07text\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\r\n"
        b"\n\x07bell\xff\n1\n2\n3\n" + b"x" * 1000
    )
    told = tail(stderr, BASH.noise)
    assert told == ("bell\ufffd", "1", "2", "3", "x" * 300)
    assert tail(stderr.partition(b"\n\x07")[0], BASH.noise) == ("red textlink",)


def test_d141_the_line_to_add_is_of_the_shell_it_is_for(home: Path) -> None:
    inside = f"{home}/.local/bin"
    assert BASH.path_line(inside, str(home)) == 'export PATH="$HOME/.local/bin:$PATH"'
    assert ZSH.path_line("/opt/x", str(home)) == 'export PATH="/opt/x:$PATH"'
    assert FISH.path_line(inside, str(home)) == 'fish_add_path "$HOME/.local/bin"'


@pytest.mark.parametrize("shell", EVERY_SHELL)
def test_d20_the_line_to_add_survives_any_directory_name(world: World, shell: str) -> None:
    directory = world.home / "a b$x`c`\"d\\e'f"
    world.tool(str(directory.relative_to(world.home) / "odd"))
    flavour = the_shell(shell).flavour
    assert flavour is not None
    line = flavour.path_line(str(directory), str(world.home))
    world.startup(shell, f"{line}\n", prepend=False)
    (cell,) = world.probe(shell, names=("odd",)).cells
    assert cell.names[0].path == directory / "odd"
