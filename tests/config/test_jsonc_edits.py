"""Edits of JSON and JSONC: one key, and everything else as it was."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.config.jsonc_documents import ENTRY, OPENCODE
from tests.support import bare_env
from tfx.config import jsonc
from tfx.config.jsonc import Dialect
from tfx.errors import JsonValue, UnparsableFile


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
