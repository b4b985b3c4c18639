from __future__ import annotations

import json
import sys

import pytest

from tfx.config import jsonc
from tfx.config.jsonc import Dialect
from tfx.config.jsonc.text import MAX_BYTES, MAX_DEPTH
from tfx.errors import InvalidRequest, JsonValue, UnparsableFile


def nested(depth: int) -> bytes:
    """An object that holds arrays in each other, `depth` containers in all."""
    return b'{"a": ' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


@pytest.mark.parametrize("dialect", list(Dialect))
def test_s66_nesting_up_to_the_limit_is_edited(dialect: Dialect) -> None:
    data = nested(MAX_DEPTH)
    new = jsonc.set_key(data, ("k",), 1, dialect=dialect)
    assert new == data[:-1] + b', "k": 1}'
    assert jsonc.delete_key(new, ("a",), dialect=dialect) == b'{"k": 1}'


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 100_000])
@pytest.mark.parametrize("opening", [b"[", b'{"x":'])
def test_s66_excessive_nesting_is_refused_and_exhausts_no_stack(depth: int, opening: bytes) -> None:
    with pytest.raises(UnparsableFile, match="levels of nesting") as caught:
        jsonc.set_key(opening * depth, ("k",), 1)
    assert caught.value.details["reason"] == "too-deep"
    assert caught.value.details["line"] == 1


def deep_value(depth: int) -> JsonValue:
    value: JsonValue = 1
    for level in range(depth):
        value = [value] if level % 2 else {"x": value}
    return value


def test_s66_a_value_is_nested_as_deeply_as_a_document_may_be() -> None:
    path = ("a", "b")
    value = deep_value(MAX_DEPTH - len(path))
    new = jsonc.set_key(b"{}", path, value)
    assert jsonc.get(new, path) == value
    assert jsonc.merge_key(new, path, value) == new
    changed = jsonc.set_key(new, path, deep_value(MAX_DEPTH - len(path) - 2))
    assert jsonc.delete_key(changed, ("a",)) == b"{}"
    for depth in (MAX_DEPTH - 1, 100_000):
        with pytest.raises(InvalidRequest, match="levels of nesting"):
            jsonc.set_key(b"{}", path, deep_value(depth))
    with pytest.raises(InvalidRequest, match="levels of nesting"):
        jsonc.append(b"{}", path, value)


def test_s66_the_longest_path_is_created_and_taken_back() -> None:
    path = ("a",) * MAX_DEPTH
    new = jsonc.set_key(b"{}", path, 1)
    assert jsonc.get(new, path) == 1
    for length in range(MAX_DEPTH, 0, -1):
        new = jsonc.delete_key(new, path[:length])
    assert new == b"{}"


def test_s110_a_file_beyond_the_limit_is_refused() -> None:
    blank = b" " * (MAX_BYTES - 2)
    assert jsonc.parse(b"{}" + blank) == {}
    with pytest.raises(UnparsableFile, match="limit") as caught:
        jsonc.parse(b"{} " + blank)
    assert caught.value.details["reason"] == "too-large"


def test_s110_a_large_file_is_edited() -> None:
    project = b'"/home/user/%d": {"history": [{"display": "x\\n"}], "cost": 0.5, "ok": true}'
    data = b"{" + b",\n".join(project % number for number in range(20_000)) + b"}"
    new = jsonc.set_key(data, ("mcpServers", "tfx-hub"), {"command": "tfx"}, dialect=Dialect.JSON)
    assert new.startswith(data[:-1])
    assert jsonc.delete_key(new, ("mcpServers",), dialect=Dialect.JSON) == data


# What a slow expression, or a search from the start at every step, would choke on. With quadratic
# work each of them takes longer than the suite's time-out, which is the judge.
LONG, MANY = 3_000_000, 100_000
HOSTILE = {
    "white space": b"{" + b" " * LONG + b"}",
    "blank lines": b"{" + b"\n" * LONG + b"}",
    "slashes": b"{" + b"/" * LONG + b"\n}",
    "stars": b"{ /" + b"*" * LONG + b"/}",
    "nested comments": b"{ /*" + b" /*" * LONG + b" */}",
    "unclosed comments": b"{" + b"/*" * LONG,
    "backslashes": b'{"a": "' + b"\\\\" * LONG + b'"}',
    "unclosed string": b'{"a": "' + b'\\"' * LONG,
    "digits": b'{"a": ' + b"1" * LONG + b"}",
    "blank key": b'{"' + b" " * LONG + b'": 1}',
    "comma and blanks": b'{"a": [1,' + b" " * LONG + b"]}",
    "surrogates": b'{"a": "' + b"\\ud83d" * MANY + b'"}',
    "comments": b"{" + b"/**/" * MANY + b"}",
    "comment lines": b"{" + b"//\n" * MANY + b"}",
    "elements": b'{"a": [' + b"1," * MANY + b"]}",
    "members": b'{"b": 0' + b"".join(b',"%d":1' % number for number in range(MANY)) + b"}",
    "doubled keys": b'{"b": 0' + b',"x": 1' * MANY + b"}",
    "closing brackets": b'{"a": []' + b"]" * LONG + b"}",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_s66_hostile_documents_take_linear_time(data: bytes) -> None:
    try:
        new = jsonc.set_key(data, ("k",), 1)
    except UnparsableFile:
        return
    assert jsonc.delete_key(new, ("k",)) == data


@pytest.mark.parametrize("indent", [None, 2])
def test_s66_many_leaves_are_merged_in_linear_time(indent: int | None) -> None:
    value: JsonValue = {str(number): {"x": number} for number in range(20_000)}
    wider: JsonValue = {str(number): {"x": number, "y": 1} for number in range(20_000)}
    data = json.dumps({"a": value}, indent=indent).encode()
    new = jsonc.merge_key(data, ("a",), wider)
    assert new == json.dumps({"a": wider}, indent=indent).encode()


def test_s66_no_edit_depends_on_the_recursion_limit() -> None:
    old = sys.getrecursionlimit()
    data, value = nested(MAX_DEPTH), deep_value(MAX_DEPTH - 2)

    def call(frames: int) -> bytes:
        return call(frames - 1) if frames else jsonc.set_key(data, ("k",), value)

    new = call(old // 3)
    assert jsonc.delete_key(new, ("k",)) == data


def test_objects_that_hold_a_key_twice_are_told_by_place() -> None:
    data = b'{"a": 1,\n "b": [{"x": 1, "x": 2}], // two\n "a": 3}'
    assert jsonc.doubled(data) == ((1, 1), (2, 8))
    assert jsonc.doubled(b'{"a": {"a": 1}}') == ()
