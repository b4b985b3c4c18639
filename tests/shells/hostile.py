"""The hostile start-up files of the shell matrix, and what each shell is expected to answer."""

from __future__ import annotations

from dataclasses import dataclass, field

from tfx.core.listen import End
from tfx.shells.cell import Reason

Expected = tuple[Reason | None, End, int | None]
ANSWERS: Expected = (None, End.MARK, None)
TIMES_OUT: Expected = (Reason.TIMEOUT, End.DEADLINE, None)


@dataclass(frozen=True, slots=True)
class Case:
    """One start-up file: for the shells of the Bourne family, and for fish.

    `complains`: something is left of stderr; None: it may be. `config_lost`: where the file had no
    effect at all.
    The last three are exceptions by shell.
    """

    id: str
    bourne: str
    fish: str
    expects: Expected = ANSWERS
    complains: bool | None = False
    config_lost: frozenset[str] = frozenset()
    texts: dict[str, str] = field(default_factory=dict)
    exceptions: dict[str, Expected] = field(default_factory=dict)
    complaints: dict[str, bool] = field(default_factory=dict)

    def text(self, shell: str) -> str:
        return self.texts.get(shell, self.fish if shell == "fish" else self.bourne)

    def expected(self, shell: str) -> Expected:
        return self.exceptions.get(shell, self.expects)

    def expects_complaint(self, shell: str) -> bool | None:
        return self.complaints.get(shell, self.complains)


HIJACKERS = ("printf", "command", "env", "type", "alias", "unset")
_NO_SPECIAL_BUILTIN = HIJACKERS[:-1]  # dash and ksh let nothing replace `unset`
_NO_KEYWORD_OF_FISH = tuple(name for name in HIJACKERS if name != "command")
_LOUD = (
    r"printf '\033[31mred\033[0m\033]0;title\007'; printf '\0K:tool=alias\0PATH=/no\0no newline'"
)


def _functions(*names: str) -> str:
    return "\n".join(f"{name}() {{ echo hijacked; }}" for name in names)


CASES = (
    Case("d57_noise_without_a_newline", _LOUD, _LOUD),
    Case(
        "d57_noise_on_stderr",
        r"printf '\033[31mloud\033[0m, no newline' >&2",
        r"printf '\033[31mloud\033[0m, no newline' >&2",
        complains=True,
    ),
    Case(
        "d58_exits", "exit 1", "exit 1", (Reason.EXITED, End.EXIT, 1), exceptions={"fish": ANSWERS}
    ),
    Case(
        "d59_unknown_command_and_return",
        "no-such-command-here\nreturn 1",
        "no-such-command-here\nreturn 1",
        complains=True,
    ),
    Case(
        "d60_syntax_error",
        "if then fi fi )",
        "if (; end end",
        complains=True,
        config_lost=frozenset({"fish"}),
    ),
    Case("d61_execs_another_shell", "exec dash", "exec dash", (Reason.REPLACED, End.EXIT, 0)),
    Case(
        "d62_execs_tmux",
        "exec tmux -L tfx-test-never new-session",
        "exec tmux -L tfx-test-never new-session",
        (Reason.REPLACED, End.EXIT, 1),
        complains=True,
    ),
    Case(
        "d63_reexec_loop",
        'exec "$HOME/again"',
        'exec "$HOME/again"',
        TIMES_OUT,
        complains=None,  # the kill may meet a shell between two lives, which then says so
    ),
    Case("d64_reads_stdin", "read answer || :", "read answer"),
    Case(
        "d65_reads_the_terminal",
        "{ read answer </dev/tty; } 2>/dev/null || :",
        "read answer </dev/tty 2>/dev/null; or true",
        complaints={"fish": True},
    ),
    Case("d66_sleeps_forever", "sleep 1000", "sleep 1000", TIMES_OUT),
    Case("d66_infinite_loop", "while :; do :; done", "while true; end", TIMES_OUT),
    Case("d67_floods", "yes", "yes", (Reason.FLOOD, End.FLOOD, None)),
    Case("d68_background_job", "sleep 47 &", "sleep 47 &"),
    Case(
        "d68_background_job_of_a_subshell",
        "(nohup sleep 47 &)",
        "sh -c '(nohup sleep 47 &)'",
    ),
    Case(
        "d70_deaf_to_signals",
        "trap '' TERM INT HUP; sleep 1000",
        "trap '' TERM INT HUP; sh -c 'trap \"\" TERM INT HUP; sleep 1000'",
        TIMES_OUT,
    ),
    Case(
        "d71_slow_exit_handler",
        "trap 'sleep 1000' EXIT",
        "function leave --on-event fish_exit; sleep 1000; end",
    ),
    Case(
        "d72_functions_hijack",
        _functions(*HIJACKERS),
        "\n".join(f"function {name}; echo hijacked; end" for name in _NO_KEYWORD_OF_FISH),
        texts=dict.fromkeys(("dash", "ksh"), _functions(*_NO_SPECIAL_BUILTIN)),
    ),
    Case(
        "d73_aliases_hijack",
        "\n".join(f"alias {name}='echo no'" for name in ("printf", "command", "builtin", "unset")),
        "alias printf 'echo no'",
    ),
    Case("d74_strict_mode", "set -eu", "true"),
    Case(
        "d75_traces_into_stdout",
        "exec 2>&1; set -x",
        "set -g fish_trace 1",
        complaints={"fish": True},
    ),
    Case(
        "d76_closes_stdout",
        "exec >/dev/null",
        "exec sh -c 'exec >/dev/null'",
        (Reason.REPLACED, End.EXIT, 0),
    ),
    Case(
        "d77_path_not_exported",
        "typeset +x PATH",
        "set -gu PATH $PATH",
        (Reason.NO_PATH, End.MARK, None),
        texts={"bash": "export -n PATH", "dash": "unset PATH"},
    ),
    Case("d80_slow", "sleep 0.4", "sleep 0.4"),
)
