from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import bare_env
from tfx.config import jsonc
from tfx.config.jsonc import Dialect
from tfx.config.keypath import MISSING, KeyPath
from tfx.errors import Exit, InvalidRequest, JsonValue, UnparsableFile

ENTRY: JsonValue = {"type": "stdio", "command": "/opt/tfx", "args": ["hub", "bridge"]}

OPENCODE = """\
// my opencode configuration
{
  "$schema": "https://opencode.ai/config.json",
  "theme": "gruvbox", // not "dark"
  "mcp": {
    // servers I trust
    "files": {
      "type": "local",
      "command": ["npx", "files"], /* pinned
                                      by hand */
    },
  },
  "keybinds": { "leader": "ctrl+x" },
}
"""


def refusal(data: bytes, dialect: Dialect = Dialect.JSONC) -> UnparsableFile:
    with pytest.raises(UnparsableFile) as caught:
        jsonc.set_key(data, ("mcpServers", "tfx-hub"), ENTRY, dialect=dialect)
    assert caught.value.exit is Exit.REFUSED
    return caught.value


# ---- reading ----


def test_get_finds_a_value_by_its_unescaped_key_and_tells_missing_from_null() -> None:
    data = rb'{"amp.mcpServers": {"\u0061": null, "b": [1, -2.5e3, true, "\ud83d\ude00\/"]}}'
    assert jsonc.get(data, ("amp.mcpServers", "a")) is None
    assert jsonc.get(data, ("amp.mcpServers", "b")) == [1, -2500.0, True, "😀/"]
    assert jsonc.get(data, ("amp.mcpServers", "c")) is MISSING
    assert jsonc.get(data, ("c", "d", "e")) is MISSING
    assert jsonc.get(b"", ()) == {}


def test_a_document_may_be_any_value_but_only_an_object_is_edited() -> None:
    assert jsonc.parse(b"[1, 2,]") == [1, 2]
    assert jsonc.parse(b' "x" ') == "x"
    error = refusal(b"\n[1]")
    assert error.details == {"line": 2, "column": 1, "reason": "wrong-type"}


def test_of_a_doubled_key_off_the_path_the_last_one_counts_and_both_stay() -> None:
    data = b'{"a": 1, "a": 2, "b": {"x": 1, "x": 1}}'
    assert jsonc.parse(data) == {"a": 2, "b": {"x": 1}}
    new = jsonc.set_key(data, ("c",), 3)
    assert new == b'{"a": 1, "a": 2, "b": {"x": 1, "x": 1}, "c": 3}'


def test_numbers_beyond_counting_and_lone_surrogates_of_others_do_no_harm() -> None:
    data = b'{"n": ' + b"9" * 5000 + rb', "f": 1e999, "cut": "emoji \ud83d"}'
    new = jsonc.set_key(data, ("mcp",), {}, dialect=Dialect.JSON)
    assert new == data[:-1] + b', "mcp": {}}'
    assert jsonc.get(data, ("n",)) == math.inf


# ---- refusals ----


@pytest.mark.parametrize(
    ("data", "line", "column", "words"),
    [
        (b'{\n  "a": \n', 3, 1, "ends where a value"),
        (b'{"a": 1', 1, 8, "ends where a comma or a closing brace"),
        (b'{"a": 1 "b": 2}', 1, 9, "comma or a closing brace"),
        (b'{"a": [1 2]}', 1, 10, "comma or a closing bracket"),
        (b'{"a" 1}', 1, 6, "a colon"),
        (b"{a: 1}", 1, 2, "a key in double quotes"),
        (b"{'a': 1}", 1, 2, "a single quote where a key"),
        (b'{"a": 01}', 1, 8, "comma or a closing brace"),
        (b'{"a": .5}', 1, 7, "a value"),
        (b'{"a": +1}', 1, 7, "a value"),
        (b'{"a": NaN}', 1, 7, "NaN"),
        (b'{"a": -Infinity}', 1, 7, "Infinity"),
        (b'{"a": "x\ny"}', 1, 9, "not closed"),
        (b'{"a": "x', 1, 9, "not closed"),
        (b'{"a": "\x01"}', 1, 8, "control character"),
        (b'{"a": "\\x41"}', 1, 8, "escape"),
        (b'{"a": "\\u12g4"}', 1, 8, "escape"),
        (b'{"a": 1} {}', 1, 10, "end of the file"),
        (b'{"a": 1,,}', 1, 9, "a key"),
        (b'{"a": [,]}', 1, 8, "a value"),
        (b"{,}", 1, 2, "a key"),
        (b'{"a": [1}', 1, 9, "comma or a closing bracket"),
        (b'{"a": 1 /* open', 1, 9, "comment that is not closed"),
        (b'{"a": 1 # no\n}', 1, 9, "comma or a closing brace"),
        (b'{"a": 1 // x\ry\n}', 1, 9, "take for its end"),
        ('{"a": 1 // x\u2028y\n}'.encode(), 1, 9, "take for its end"),
        ('{"a":\u00a01}'.encode(), 1, 6, "a value"),
        (b'{"a": \xef\xbb\xbf1}', 1, 7, "a value"),
        (b'{"a": "\x00"}', 1, 8, "NUL"),
        ('{\n"é": "'.encode() + b'\xff"}', 2, 7, "not UTF-8"),
        (b'{"a": "\xed\xa0\x80"}', 1, 8, "not UTF-8"),
        (b"\xff\xfe{\x00}\x00", 1, 1, "not UTF-8"),
        (b"<<<<<<< HEAD\n{}", 1, 1, "a value"),
    ],
)
def test_s54_a_broken_document_is_refused_with_its_position(
    data: bytes, line: int, column: int, words: str
) -> None:
    error = refusal(data)
    assert (error.details["line"], error.details["column"]) == (line, column)
    assert words in error.message
    assert f"line {line}, column {column}" in error.message


def test_s75_a_truncated_file_is_never_read_as_something_smaller() -> None:
    whole = OPENCODE.rstrip().encode()
    for cut in range(1, len(whole)):
        with pytest.raises(UnparsableFile):
            jsonc.set_key(whole[:cut], ("mcp", "tfx-hub"), ENTRY)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{\n  "a": 1 // x\n}', "a comment, which strict JSON"),
        (b'/* x */ {"a": 1}', "a comment, which strict JSON"),
        (b'{\n  "a": 1,\n}', "a trailing comma before it"),
        (b'{\n  "a": [1,]\n}', "a trailing comma before it"),
    ],
)
def test_s67_strict_json_refuses_comments_and_trailing_commas(data: bytes, words: str) -> None:
    assert words in refusal(data, Dialect.JSON).message
    assert jsonc.get(data, ("a",)) in (1, [1])


def test_s54_no_message_quotes_the_document() -> None:
    for data in (
        b'{"token": "sk-secret',
        b'{"token": "sk-secret" x',
        b"{sk-secret}",
        b'{"sk-secret\xff',
    ):
        error = refusal(data)
        assert "secret" not in f"{error.message} {error.details}"
        assert error.__context__ is None


VERBS: list[Callable[[bytes, KeyPath], object]] = [
    jsonc.get,
    lambda data, path: jsonc.set_key(data, path, 1),
    lambda data, path: jsonc.merge_key(data, path, {"x": {"y": 1}}),
    jsonc.delete_key,
    lambda data, path: jsonc.append(data, path, 1),
    lambda data, path: jsonc.remove_element(data, path, 1),
]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("value", [b"1", b'"x"', b"null", b"[1]", b"true"])
def test_s54_every_verb_refuses_a_wrong_container_on_the_path(
    verb: Callable[[bytes, KeyPath], object], value: bytes
) -> None:
    with pytest.raises(UnparsableFile, match=r"line 2, column 6: a is not an object") as caught:
        verb(b'{\n"a": ' + value + b"}", ("a", "b"))
    assert caught.value.details["reason"] == "wrong-type"


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("data", [b'{"a": {}, "a": {}}', rb'{"a": {"b": 1, "\u0062": 1}}'])
def test_s54_every_verb_refuses_a_doubled_key_on_the_path(
    verb: Callable[[bytes, KeyPath], object], data: bytes
) -> None:
    with pytest.raises(UnparsableFile, match="a second time") as caught:
        verb(data, ("a", "b"))
    assert caught.value.details["reason"] == "duplicate-key"


@pytest.mark.parametrize("verb", [jsonc.append, jsonc.remove_element])
def test_s54_array_verbs_refuse_what_is_not_an_array(
    verb: Callable[[bytes, KeyPath, JsonValue], bytes],
) -> None:
    with pytest.raises(UnparsableFile, match=r"hooks\.Stop is not an array"):
        verb(b'{"hooks": {"Stop": {}}}', ("hooks", "Stop"), 1)


CYCLE: list[JsonValue] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        {"a": [-math.inf]},
        "\ud800",
        {"\udfff": 1},
        "a\0b",
        10**700,
        CYCLE,
        ("tuple",),
        {1: 2},
        b"bytes",
    ],
    ids=repr,
)
def test_what_json_cannot_hold_is_never_written(value: JsonValue) -> None:
    for verb in (jsonc.set_key, jsonc.merge_key, jsonc.append, jsonc.remove_element):
        with pytest.raises(InvalidRequest):
            verb(b"{}", ("a",), value)


@pytest.mark.parametrize("path", [(), ("a\0",), ("\ud800",), ("a",) * 201])
def test_a_path_that_no_document_can_have_is_refused(path: KeyPath) -> None:
    with pytest.raises(InvalidRequest):
        jsonc.set_key(b"{}", path, 1)


# ---- edits ----


def test_s77_one_key_is_edited_in_place_and_comments_are_kept() -> None:
    data = OPENCODE.encode()
    new = jsonc.set_key(data, ("mcp", "tfx-hub"), ENTRY).decode()
    lines = OPENCODE.splitlines(keepends=True)
    assert new == "".join(
        [
            *lines[:11],
            '    "tfx-hub": {\n',
            '      "type": "stdio",\n',
            '      "command": "/opt/tfx",\n',
            '      "args": [\n',
            '        "hub",\n',
            '        "bridge"\n',
            "      ]\n",
            "    },\n",
            *lines[11:],
        ]
    )
    assert jsonc.delete_key(new.encode(), ("mcp", "tfx-hub")) == data


def test_s76_a_trailing_comma_loses_nothing() -> None:
    data = b'{\n  "mcpServers": {\n    "a": {"x": [1, 2,],},\n  },\n}\n'
    new = jsonc.set_key(data, ("mcpServers", "b"), None)
    assert new == data.replace(b"},\n  },", b'},\n    "b": null,\n  },')
    assert jsonc.parse(new) == {"mcpServers": {"a": {"x": [1, 2]}, "b": None}}


def test_s78_other_settings_stay_beside_a_new_key() -> None:
    data = b'{\n\t"editor.fontSize": 14,\n\t"files.exclude": {"**/.git": true}\n}\n'
    new = jsonc.set_key(data, ("mcpServers", "tfx-hub"), ENTRY)
    assert new.startswith(data.rstrip(b"}\n"))
    assert jsonc.delete_key(new, ("mcpServers",)) == data


def test_s88_only_the_exact_element_is_removed() -> None:
    mine: JsonValue = {"hooks": [{"type": "command", "command": "caveman"}]}
    data = (
        b'{"hooks": {"Stop": [\n'
        b"  // about caveman\n"
        b'  {"hooks": [{"type": "command", "command": "grep caveman log"}]}, // theirs\n'
        b'  {"hooks": [{"command": "caveman", "type": "command"}]}, // same value\n'
        b'  {"hooks": [{"type": "command", "command": "caveman", "timeout": 5}]}\n'
        b"]}}"
    )
    new = jsonc.remove_element(data, ("hooks", "Stop"), mine)
    lines = data.splitlines(keepends=True)
    assert new == b"".join([*lines[:3], b"  // same value\n", *lines[4:]])
    assert jsonc.remove_element(new, ("hooks", "Stop"), mine) == new


def test_s89_appending_a_hook_keeps_the_others_and_their_order() -> None:
    data = b'{\n  "hooks": {\n    "SessionStart": [\n      {"a": 1}, {"b": 2}\n    ]\n  }\n}\n'
    new = jsonc.append(data, ("hooks", "SessionStart"), {"c": 3})
    assert new == data.replace(b'{"b": 2}', b'{"b": 2}, {"c": 3}')
    assert jsonc.append(new, ("hooks", "SessionStart"), {"c": 3}) == new


def test_s64_of_several_equal_elements_the_first_goes() -> None:
    data = b'{"a": [1, 2, /* x */ 1, 3]}'
    once = jsonc.remove_element(data, ("a",), 1)
    assert once == b'{"a": [2, /* x */ 1, 3]}'
    assert jsonc.remove_element(once, ("a",), 1) == b'{"a": [2, /* x */ 3]}'


def test_true_is_not_one_and_no_element_is_removed_for_it() -> None:
    data = b'{"a": [1, "1", true]}'
    yes: JsonValue = True
    assert jsonc.remove_element(data, ("a",), yes) == b'{"a": [1, "1"]}'
    assert jsonc.set_key(data, ("a",), [True, "1", True]) != data


@pytest.mark.parametrize("dialect", list(Dialect))
def test_s95_a_bom_is_kept_and_never_added(dialect: Dialect) -> None:
    for data in (b"{}", b'{"a": 1}', b"", b" "):
        for bom in (b"", b"\xef\xbb\xbf"):
            new = jsonc.set_key(bom + data, ("b",), 1, dialect=dialect)
            assert new.startswith(bom + b"{")
            assert new.count(b"\xef\xbb\xbf") == len(bom) // 3
            assert jsonc.delete_key(new, ("b",), dialect=dialect) == bom + data


def test_s96_other_scripts_are_written_as_they_are_and_escapes_left_alone() -> None:
    data = rb'{"p": "C:\\Users\\\u0416", "q": "\/\u00e9"}'
    new = jsonc.set_key(data, ("путь",), "/home/Ж/😀 \u2028")
    assert new == data[:-1] + ', "путь": "/home/Ж/😀 \u2028"}'.encode()
    lines = '{\n  "путь": {\n    "é": "😀"\n  }\n}'
    assert jsonc.set_key(b"{}", ("путь",), {"é": "😀"}).decode() == lines


def test_s96_the_locale_does_not_matter(home: Path) -> None:
    code = (
        "import sys; from tfx.config import jsonc;"
        "data = sys.stdin.buffer.read();"
        "sys.stdout.buffer.write(jsonc.set_key(data, ('k',), chr(0x416)))"
    )
    env = bare_env(home) | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        input='{"a": "é"}'.encode(),
        env=env,
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode() == '{"a": "é", "k": "Ж"}'


# ---- objects over objects ----


def test_s56_merge_key_edits_leaf_by_leaf() -> None:
    data = b"""{
  "tfx-hub": {
    "command": "/old/tfx", // moved by tfx
    "env": {
      "MINE": "1" // added by me
    },
    "timeout": 10
  }
}
"""
    value: JsonValue = {"command": "/new/tfx", "env": {"TFX": "2"}, "args": ["hub", "bridge"]}
    new = jsonc.merge_key(data, ("tfx-hub",), value)
    assert (
        new.decode()
        == """{
  "tfx-hub": {
    "command": "/new/tfx", // moved by tfx
    "env": {
      "MINE": "1", // added by me
      "TFX": "2"
    },
    "timeout": 10,
    "args": [
      "hub",
      "bridge"
    ]
  }
}
"""
    )
    assert jsonc.merge_key(new, ("tfx-hub",), value) == new


def test_s56_merge_key_into_nothing_is_set_key() -> None:
    assert jsonc.merge_key(b"{}", ("a", "b"), ENTRY) == jsonc.set_key(b"{}", ("a", "b"), ENTRY)


def test_s56_merging_an_empty_object_leaves_an_object_alone() -> None:
    data = b'{"a": {"env": {"MINE": 1}}}'
    assert jsonc.merge_key(data, ("a",), {"env": {}}) == data
    assert jsonc.merge_key(b'{"a": {"env": 1}}', ("a",), {"env": {}}) == b'{"a": {"env": {}}}'


def test_s54_merge_key_refuses_a_scalar_above_a_leaf_and_a_doubled_leaf() -> None:
    with pytest.raises(UnparsableFile, match=r"a\.env is not an object"):
        jsonc.merge_key(b'{"a": {"env": "x"}}', ("a",), {"env": {"T": 1}})
    with pytest.raises(UnparsableFile, match="a is not an object"):
        jsonc.merge_key(b'{"a": 1}', ("a",), {"env": 1})
    with pytest.raises(UnparsableFile, match=r"a\.b\.c a second time"):
        jsonc.merge_key(b'{"a": {"b": {"c": 1, "c": 2}}}', ("a",), {"b": {"c": 2}})


def test_set_key_drops_keys_that_the_value_does_not_have() -> None:
    data = b'{"a": {"x": 1, "mine": 2}, "z": 0}'
    assert jsonc.set_key(data, ("a",), {"x": 1}) == b'{"a": {"x": 1}, "z": 0}'


def test_set_key_keeps_comments_inside_when_no_key_has_to_go() -> None:
    data = b'{"a": {\n  "x": 1, // one\n  "y": {"z": 2} // two\n}}'
    new = jsonc.set_key(data, ("a",), {"x": 5, "y": {"z": 2, "w": []}, "v": None})
    assert new == (b'{"a": {\n  "x": 5, // one\n  "y": {"z": 2, "w": []}, // two\n  "v": null\n}}')


def test_set_key_writes_an_entry_with_doubled_keys_anew() -> None:
    data = b'{"a": {"x": 1, "x": 2}, "b": {"x": 1, "x": 1}}'
    new = jsonc.set_key(data, ("a",), {"x": 2})
    assert new == b'{"a": {"x": 2}, "b": {"x": 1, "x": 1}}'


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": 1.0}', 1.0),
        (b'{"a": "\\u0061"}', "a"),
        (b'{"a":[ {"y":1,"x":2} ]}', [{"x": 2, "y": 1}]),
    ],
)
def test_s61_an_equal_value_in_another_spelling_gives_the_same_bytes(
    data: bytes, value: JsonValue
) -> None:
    assert jsonc.set_key(data, ("a",), value) is data
