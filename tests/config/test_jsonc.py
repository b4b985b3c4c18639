"""JSON and JSONC are read whole or refused with a place; wrong containers refuse every verb."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from tests.config.jsonc_documents import ENTRY, OPENCODE
from tfx.config import jsonc
from tfx.config.jsonc import Dialect
from tfx.config.keypath import MISSING, KeyPath
from tfx.errors import Exit, InvalidRequest, JsonValue, UnparsableFile


def refusal(data: bytes, dialect: Dialect = Dialect.JSONC) -> UnparsableFile:
    with pytest.raises(UnparsableFile) as caught:
        jsonc.set_key(data, ("mcpServers", "tfx-hub"), ENTRY, dialect=dialect)
    assert caught.value.exit is Exit.REFUSED
    return caught.value


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
