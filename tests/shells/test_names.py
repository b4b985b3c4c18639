from __future__ import annotations

import pytest

from tfx.shells.names import Kind, Said, command_word, read_bash, read_fish, read_sentence, read_zsh

_SOURCED = "function\n# Defined in /h/f.fish @ line 3\n{}\n    echo --wraps=no\nend\n"
_ALIASED = "function\n# Defined via `source`\n{}\n  command x --q $argv\n        \nend\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", Said(Kind.NONE)),
        ("file\n/usr/bin/ls\n", Said(Kind.FILE)),
        ("builtin\ncd\n", Said(Kind.BUILTIN)),
        ("keyword\nif\n", Said(Kind.KEYWORD)),
        ("function\nclaude\n", Said(Kind.FUNCTION)),
        ("alias\nalias claude='~/x/claude --fast'\n", Said(Kind.ALIAS, "~/x/claude")),
        ("alias\nalias claude='it'\\''s --x'\n", Said(Kind.ALIAS, "it's")),
        ("alias\nalias claude='KEY=secret claude'\n", Said(Kind.ALIAS, "claude")),
        ("something else\n", Said(Kind.UNCLEAR)),
    ],
)
def test_d32_bash_is_understood(text: str, said: Said) -> None:
    assert read_bash(text) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x: none\nx not found\n", Said(Kind.NONE)),
        ("ls: command\nls is /usr/bin/ls\n", Said(Kind.FILE)),
        ("ls: hashed\nls is /usr/bin/ls\n", Said(Kind.FILE)),
        ("if: reserved\nif is a reserved word\n", Said(Kind.KEYWORD)),
        ("cd: builtin\ncd is a shell builtin\n", Said(Kind.BUILTIN)),
        ("x: alias\nx is an alias for ~/y/x -q\n", Said(Kind.ALIAS, "~/y/x")),
        ("x: alias\nx is a global alias for y\n", Said(Kind.ALIAS, "y")),
        (
            "x: function\nx is a shell function from /h/.zshrc\n",
            Said(Kind.FUNCTION, None, "/h/.zshrc"),
        ),
        ("x: function\nx is an autoload shell function\n", Said(Kind.FUNCTION)),
    ],
)
def test_d33_zsh_is_understood(text: str, said: Said) -> None:
    assert read_zsh(text) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", Said(Kind.NONE)),
        ("file\n", Said(Kind.FILE)),
        ("builtin\n", Said(Kind.BUILTIN)),
        (_SOURCED.format("function x"), Said(Kind.FUNCTION, None, "/h/f.fish")),
        (
            _SOURCED.format("function x --wraps=git --description 'My git'"),
            Said(Kind.FUNCTION, None, "/h/f.fish"),
        ),
        (
            _ALIASED.format("function x --wraps='~/y/x --q' --description 'alias x ~/y/x --q'"),
            Said(Kind.ALIAS, "~/y/x"),
        ),
        (
            _ALIASED.format("function x --description 'alias x=command x --q'"),
            Said(Kind.ALIAS, "x"),
        ),
    ],
)
def test_d34_fish_is_understood(text: str, said: Said) -> None:
    assert read_fish(text) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", Said(Kind.NONE)),
        ("x: not found\n", Said(Kind.NONE)),
        ("ls is /usr/bin/ls\n", Said(Kind.FILE)),
        ("ls is a tracked alias for /usr/bin/ls\n", Said(Kind.FILE)),
        ("ls is hashed (/usr/bin/ls)\n", Said(Kind.FILE)),
        ("cd is a shell builtin\n", Said(Kind.BUILTIN)),
        ("set is a special shell builtin\n", Said(Kind.BUILTIN)),
        ("if is a shell keyword\n", Said(Kind.KEYWORD)),
        ("if is a keyword\n", Said(Kind.KEYWORD)),
        ("x is a shell function\n", Said(Kind.FUNCTION)),
        ("x is a function\nx () \n{ \n    echo x is an alias for y\n}\n", Said(Kind.FUNCTION)),
        ("x is an alias for ~/y/x -q\n", Said(Kind.ALIAS, "~/y/x")),
        ("x is an alias for '~/y/x -q'\n", Said(Kind.ALIAS, "~/y/x")),
        ("x is an exported alias for $'y -q'\n", Said(Kind.ALIAS, "y")),
        ("x is aliased to `~/y/x -q'\n", Said(Kind.ALIAS, "~/y/x")),
        ("x ist wohl etwas\n", Said(Kind.UNCLEAR)),
    ],
)
def test_d35_d36_one_sentence_is_understood(text: str, said: Said) -> None:
    assert read_sentence(text) == said


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("claude --fast", "claude"),
        ("ANTHROPIC_API_KEY=secret B=2 claude", "claude"),
        ("env -u X A=1 claude", "claude"),
        ("noglob command claude", "claude"),
        ("exec -a x claude", "claude"),
        ("claude -u x", "claude"),
        ("'/a b/claude' -q", "/a b/claude"),
        ("it's open", "it's"),
        ("", None),
        ("A=1", None),
    ],
)
def test_d84_the_program_of_a_line_is_its_first_command_word(line: str, word: str | None) -> None:
    assert command_word(line) == word
