from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import NoReturn, TypeVar

import jsonc as json_with_comments  # type: ignore[import-untyped]  # it has no py.typed
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.config.strategies import (
    DOUBLED,
    KEYS,
    NEW,
    PROPERTY,
    SCALARS,
    Written,
    blank_files,
    documents,
    values,
)
from tfx.config import jsonc
from tfx.config.jsonc import Dialect
from tfx.config.jsonc.layout import container_at, locate
from tfx.config.jsonc.reader import read
from tfx.config.keypath import MISSING, KeyPath, canonical, leaves
from tfx.errors import JsonValue, UnparsableFile

Result = TypeVar("Result")

# The oracle's own words for the tokens of JSONC; the editor's expressions are not used here.
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n\r]*|/\*.*?\*/|[\[\]{},:]|[^\s,:\[\]{}"/]+', re.DOTALL)


def tokens(text: str) -> list[str]:
    return TOKEN.findall(text)


def comments(text: str) -> list[str]:
    return [token for token in tokens(text) if token.startswith("/")]


def text_of(data: bytes) -> str:
    return data.decode("utf-8-sig")


def independent(data: bytes, dialect: Dialect) -> JsonValue:
    loads = json.loads if dialect is Dialect.JSON else json_with_comments.loads
    loaded: JsonValue = loads(text_of(data))
    return loaded


def result_of(call: Callable[[], Result]) -> Result | UnparsableFile:
    try:
        return call()
    except UnparsableFile as error:
        return error


def is_subsequence(part: Iterable[str], whole: Iterable[str]) -> bool:
    rest = iter(whole)
    return all(token in rest for token in part)


def assert_means(data: bytes, dialect: Dialect, expected: JsonValue) -> None:
    wanted = canonical(expected)
    assert canonical(jsonc.parse(data, dialect=dialect)) == wanted
    if text_of(data).strip():
        assert canonical(independent(data, dialect)) == wanted


def with_key(document: JsonValue, path: KeyPath, value: JsonValue) -> JsonValue:
    assert isinstance(document, dict)
    if len(path) == 1:
        return document | {path[0]: value}
    return document | {path[0]: with_key(document.get(path[0], {}), path[1:], value)}


def without_key(document: JsonValue, path: KeyPath) -> JsonValue:
    assert isinstance(document, dict)
    if len(path) == 1:
        return {key: value for key, value in document.items() if key != path[0]}
    return document | {path[0]: without_key(document[path[0]], path[1:])}


def at(document: JsonValue, path: KeyPath) -> JsonValue:
    for key in path:
        assert isinstance(document, dict)
        document = document[key]
    return document


@PROPERTY
@given(documents())
def test_s65_reading_agrees_with_an_independent_parser(written: Written) -> None:
    assert_means(written.data, written.dialect, written.value)


@PROPERTY
@given(st.one_of(documents(), blank_files()), st.data())
def test_s61_set_key_changes_nothing_else(written: Written, data: st.DataObject) -> None:
    parent = data.draw(st.sampled_from(written.objects()))
    path = (*parent, *data.draw(st.lists(KEYS, max_size=2)), NEW)
    assume(not any(key == DOUBLED for key in path))
    value = data.draw(values())
    new = result_of(lambda: jsonc.set_key(written.data, path, value, dialect=written.dialect))
    if isinstance(new, UnparsableFile):
        assert new.details["reason"] == "wrong-type"
        return
    assert_means(new, written.dialect, with_key(written.value, path, value))
    assert is_subsequence(tokens(text_of(written.data)), tokens(text_of(new)))
    assert jsonc.set_key(new, path, value, dialect=written.dialect) == new
    assert jsonc.get(new, path, dialect=written.dialect) == value


@PROPERTY
@given(st.one_of(documents(), blank_files()), st.data())
def test_s62_set_then_delete_restores_the_bytes(written: Written, data: st.DataObject) -> None:
    parent = data.draw(st.sampled_from(written.objects()))
    below = data.draw(st.lists(st.sampled_from(["x", "y z"]), max_size=2))
    path = (*parent, NEW, *below)
    new = jsonc.set_key(written.data, path, data.draw(values()), dialect=written.dialect)
    for length in range(len(path), len(parent), -1):
        new = jsonc.delete_key(new, path[:length], dialect=written.dialect)
    assert new == written.data


@PROPERTY
@given(st.one_of(documents(), blank_files()), st.data())
def test_s62_several_edits_are_taken_back_in_any_order(
    written: Written, data: st.DataObject
) -> None:
    where = data.draw(st.lists(st.sampled_from(written.objects()), min_size=2, max_size=5))
    paths = [(*parent, f"{NEW}-{number}") for number, parent in enumerate(where)]
    new = written.data
    for path in paths:
        new = jsonc.set_key(new, path, data.draw(values(3)), dialect=written.dialect)
    for path in data.draw(st.permutations(paths)):
        new = jsonc.delete_key(new, path, dialect=written.dialect)
    assert new == written.data


@PROPERTY
@given(documents(), st.data())
def test_s63_append_keeps_earlier_elements_and_remove_restores(
    written: Written, data: st.DataObject
) -> None:
    arrays = written.arrays()
    assume(arrays)
    path = data.draw(st.sampled_from(arrays))
    old = at(written.value, path)
    assert isinstance(old, list)
    value = data.draw(values())
    assume(canonical(value) not in [canonical(element) for element in old])
    new = jsonc.append(written.data, path, value, dialect=written.dialect)
    assert_means(new, written.dialect, with_key(written.value, path, [*old, value]))
    assert elements(new, path, written.dialect)[:-1] == elements(
        written.data, path, written.dialect
    )
    assert jsonc.append(new, path, value, dialect=written.dialect) == new
    assert jsonc.remove_element(new, path, value, dialect=written.dialect) == written.data


@PROPERTY
@given(documents(), st.data())
def test_s64_appended_elements_are_removed_in_any_order(
    written: Written, data: st.DataObject
) -> None:
    arrays = written.arrays()
    assume(arrays)
    path = data.draw(st.sampled_from(arrays))
    added: list[JsonValue] = [{"command": f"tfx {number}"} for number in range(3)]
    new = written.data
    for value in added:
        new = jsonc.append(new, path, value, dialect=written.dialect)
    for value in data.draw(st.permutations(added)):
        new = jsonc.remove_element(new, path, value, dialect=written.dialect)
    assert new == written.data


@PROPERTY
@given(st.one_of(documents(), blank_files()), st.data())
def test_s63_an_array_is_created_and_taken_back(written: Written, data: st.DataObject) -> None:
    parent = data.draw(st.sampled_from(written.objects()))
    path = (*parent, NEW, "SessionStart")
    value = data.draw(values())
    another: JsonValue = ["another"]
    assume(value != another)
    new = jsonc.append(written.data, path, value, dialect=written.dialect)
    new = jsonc.append(new, path, another, dialect=written.dialect)
    for element in (value, another):
        new = jsonc.remove_element(new, path, element, dialect=written.dialect)
    assert jsonc.get(new, path, dialect=written.dialect) == []
    new = jsonc.delete_key(new, path, dialect=written.dialect)
    assert jsonc.delete_key(new, path[:-1], dialect=written.dialect) == written.data


def elements(data: bytes, path: KeyPath, dialect: Dialect) -> list[str]:
    """The elements of an array as they are written."""
    document = read(data, dialect)
    array = container_at(document, locate(document, path).item.value)
    return [document.text[item.start : item.end] for item in array.items]


@PROPERTY
@given(documents(), st.data())
def test_s64_removing_an_element_keeps_neighbours_and_all_comments(
    written: Written, data: st.DataObject
) -> None:
    arrays = [path for path in written.arrays() if at(written.value, path)]
    assume(arrays)
    path = data.draw(st.sampled_from(arrays))
    old = at(written.value, path)
    assert isinstance(old, list)
    index = data.draw(st.integers(0, len(old) - 1))
    value = old[index]
    index = [canonical(element) for element in old].index(canonical(value))
    before = elements(written.data, path, written.dialect)
    new = jsonc.remove_element(written.data, path, value, dialect=written.dialect)
    rest = old[:index] + old[index + 1 :]
    assert_means(new, written.dialect, with_key(written.value, path, rest))
    gone = before.pop(index)
    assert elements(new, path, written.dialect) == before
    assert_comments_kept(text_of(written.data), text_of(new), gone)


@PROPERTY
@given(documents(), st.data())
def test_s62_deleting_any_member_keeps_the_others_and_all_comments(
    written: Written, data: st.DataObject
) -> None:
    members = written.members()
    assume(members)
    path = data.draw(st.sampled_from(members))
    document = read(written.data, written.dialect)
    item = locate(document, path).item
    new = jsonc.delete_key(written.data, path, dialect=written.dialect)
    assert_means(new, written.dialect, without_key(written.value, path))
    assert_comments_kept(document.text, text_of(new), document.text[item.start : item.end])
    assert is_subsequence(tokens(text_of(new)), tokens(document.text))
    assert jsonc.delete_key(new, path, dialect=written.dialect) == new


def assert_comments_kept(old: str, new: str, gone: str) -> None:
    """Only comments inside the removed text may go, all others stay in their order."""
    kept = comments(new)
    assert is_subsequence(kept, comments(old))
    assert len(kept) == len(comments(old)) - len(comments(gone))


@PROPERTY
@given(documents(), st.data())
def test_s61_setting_an_existing_key_touches_its_value_only(
    written: Written, data: st.DataObject
) -> None:
    members = written.members()
    assume(members)
    path = data.draw(st.sampled_from(members))
    document = read(written.data, written.dialect)
    item = locate(document, path).item
    value = data.draw(values())
    new = jsonc.set_key(written.data, path, value, dialect=written.dialect)
    assert_means(new, written.dialect, with_key(written.value, path, value))
    text = text_of(new)
    tail = document.text[item.end :]
    assert text.startswith(document.text[: item.value])
    assert text.endswith(tail)
    assert jsonc.set_key(new, path, value, dialect=written.dialect) == new


@PROPERTY
@given(documents(), st.data())
def test_s61_setting_an_equal_value_gives_identical_bytes(
    written: Written, data: st.DataObject
) -> None:
    members = written.members()
    assume(members)
    path = data.draw(st.sampled_from(members))
    value = at(written.value, path)
    assume(f'"{DOUBLED}"' not in canonical(value).decode())
    assert jsonc.set_key(written.data, path, value, dialect=written.dialect) == written.data


@PROPERTY
@given(documents(), st.data())
def test_s56_merge_key_sets_each_leaf_and_leaves_other_keys_alone(
    written: Written, data: st.DataObject
) -> None:
    path = (*data.draw(st.sampled_from(written.objects())), NEW)
    first = data.draw(st.dictionaries(st.sampled_from("abc"), values(3), max_size=3))
    second = data.draw(st.dictionaries(st.sampled_from("abc"), values(3), max_size=3))
    assume(DOUBLED not in str(second))
    new = jsonc.set_key(written.data, path, first, dialect=written.dialect)
    after = result_of(lambda: jsonc.merge_key(new, path, second, dialect=written.dialect))
    if isinstance(after, UnparsableFile):
        assert after.details["reason"] == "wrong-type"
        return
    found = jsonc.get(after, path, dialect=written.dialect)
    assert isinstance(found, dict)
    for leaf, value in leaves(second).items():
        if value != {}:
            assert canonical(at(found, leaf)) == canonical(value)
    for key in first.keys() - second.keys():
        assert canonical(found[key]) == canonical(first[key])
    assert jsonc.merge_key(after, path, second, dialect=written.dialect) == after
    assert jsonc.delete_key(after, path, dialect=written.dialect) == written.data


def no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def strict_value(text: str) -> JsonValue:
    loaded: JsonValue = json.loads(text, parse_constant=no_constant)
    return loaded


SPOILERS = st.sampled_from([*"{}[]:,\"'/\\*-+.eE0129tfn \n\t\r\0\x01\x7f\ufeff\u00a0\u2028", "//"])


@st.composite
def spoiled(draw: st.DrawFn) -> tuple[str, Dialect]:
    """A document with a few characters taken out, put in or cut off."""
    written = draw(documents())
    text = text_of(written.data)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 2)))
        put = draw(st.one_of(st.just(""), SPOILERS))
        text = text[:start] + put + text[end:]
    if draw(st.booleans()):
        text = text[: draw(st.integers(0, len(text)))]
    return text, written.dialect


@PROPERTY
@given(spoiled())
@example(('{"a": 1e5, "b": -0, "c": 1E+2, "d": 1.50}', Dialect.JSON))
@example(('{"a": 01}', Dialect.JSON))
@example(('{"a": NaN}', Dialect.JSON))
@example(('{"a": "\\ud83d"}', Dialect.JSON))
@example(('{"a": "\\ud83d\\u0041 \\ude00\\ud83d\\ude00"}', Dialect.JSON))
@example(("{// c\r}", Dialect.JSONC))
@example(("{/*/}", Dialect.JSONC))
@example(('{"a": 1/*c*/2}', Dialect.JSONC))
def test_s54_what_is_accepted_is_what_an_independent_parser_accepts(
    case: tuple[str, Dialect],
) -> None:
    text, dialect = case
    assume(text.removeprefix("\ufeff").strip(" \t\r\n"))  # a blank file is an empty object
    data = text.encode()
    value = result_of(lambda: jsonc.parse(data, dialect=dialect))
    if isinstance(value, UnparsableFile):
        assert value.details["line"] in range(1, text.count("\n") + 2)
        if dialect is Dialect.JSON and "\0" not in text and not text.startswith("\ufeff"):
            with pytest.raises(ValueError, match=r".*"):
                strict_value(text)
        return
    assert canonical(value) == canonical(independent(data, dialect))


@PROPERTY
@given(st.binary(max_size=60), st.sampled_from(list(Dialect)))
def test_s96_any_bytes_are_read_or_refused(data: bytes, dialect: Dialect) -> None:
    value = result_of(lambda: jsonc.parse(data, dialect=dialect))
    if isinstance(value, UnparsableFile):
        assert {"line", "column", "reason"} <= value.details.keys()


@PROPERTY
@given(documents(), SCALARS)
def test_s54_a_doubled_key_on_the_path_is_refused(written: Written, value: JsonValue) -> None:
    assert isinstance(written.value, dict)
    path = (DOUBLED,)
    if DOUBLED in written.value:
        for verb in (jsonc.set_key, jsonc.merge_key, jsonc.append, jsonc.remove_element):
            with pytest.raises(UnparsableFile) as caught:
                verb(written.data, path, value, dialect=written.dialect)
            assert caught.value.details["reason"] == "duplicate-key"
        with pytest.raises(UnparsableFile):
            jsonc.delete_key(written.data, path, dialect=written.dialect)
    else:
        assert jsonc.get(written.data, path, dialect=written.dialect) is MISSING
