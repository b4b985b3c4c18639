"""Properties of the TOML editor over generated documents."""

from __future__ import annotations

import tomllib
from collections import Counter
from itertools import permutations, takewhile

import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from tests.config.toml_strategies import ARRAY_KEY, Written, documents, json_values, paths, tables
from tfx.config import toml
from tfx.config.keypath import MISSING, KeyPath
from tfx.config.toml.document import load, same, to_json
from tfx.errors import JsonValue, UnparsableFile

PATH = (ARRAY_KEY,)
PROFILE = settings(max_examples=150, deadline=None)


def tomllib_values(data: bytes) -> dict[str, object]:
    return tomllib.loads(data.decode("utf-8-sig"))


def expected(data: bytes, path: KeyPath, value: JsonValue) -> object:
    """Return what tomllib has to say after a set_key."""
    root = tomllib_values(data)
    table: dict[str, object] = root
    for step in path[:-1]:
        inner = table.setdefault(step, {})
        assert isinstance(inner, dict)
        table = inner
    table[path[-1]] = value
    return root


def parents_made(data: bytes, path: KeyPath) -> list[KeyPath]:
    above = [path[:depth] for depth in range(1, len(path))]
    return [parent for parent in above if load(data).value(parent) is MISSING]


def implied_only(data: bytes, path: KeyPath) -> bool:
    """Say whether the table above a path has sub-tables but no header of its own."""
    doc = load(data)
    above = path[:-1]
    if not above or doc.value(above) is MISSING or doc.section(above) is not None:
        return False
    return doc.item(above) is None and not any(
        item.path[: len(above)] == above and len(section.path) < len(above)
        for section in doc.sections
        for item in section.pairs
    )


def try_set(data: bytes, path: KeyPath, value: JsonValue) -> bytes:
    doc = load(data)
    above = [doc.value(path[:depth]) for depth in range(1, len(path))]
    if all(value is MISSING or isinstance(value, dict) for value in above):
        return toml.set_key(data, path, value)
    with pytest.raises(UnparsableFile, match="not a table"):
        toml.set_key(data, path, value)
    return reject()


@PROFILE
@given(documents(), paths(), st.one_of(json_values(), tables()))
def test_s57_set_gives_the_path_its_value_and_leaves_all_other_values(
    written: Written, path: KeyPath, value: JsonValue
) -> None:
    after = try_set(written.data, path, value)
    assert same(tomllib_values(after), expected(written.data, path, value))
    assert toml.get(after, path) == value


@PROFILE
@given(documents(), paths(), st.one_of(json_values(), tables()))
def test_s4_setting_the_same_again_returns_the_same_bytes(
    written: Written, path: KeyPath, value: JsonValue
) -> None:
    after = try_set(written.data, path, value)
    assert toml.set_key(after, path, value) == after
    assert toml.merge_key(after, path, value) == after


@PROFILE
@given(documents(), paths(), st.one_of(json_values(), tables()))
def test_s69_set_then_delete_restores_the_bytes(
    written: Written, path: KeyPath, value: JsonValue
) -> None:
    data = written.data
    assume(load(data).value(path) is MISSING)
    made = parents_made(data, path)
    after = toml.delete_key(try_set(data, path, value), path)
    for parent in reversed(made):
        if toml.get(after, parent) == {}:
            after = toml.delete_key(after, parent)
    if implied_only(data, path) and not isinstance(value, dict):
        assert same(tomllib_values(after), tomllib_values(data))
    else:
        assert after == data


@PROFILE
@given(
    documents(),
    st.lists(st.tuples(paths(), st.one_of(json_values(), tables())), min_size=2, max_size=3),
    st.data(),
)
def test_s69_several_entries_go_in_any_order(
    written: Written, entries: list[tuple[KeyPath, JsonValue]], data: st.DataObject
) -> None:
    places = [path for path, _ in entries]
    assume(all(load(written.data).value(path) is MISSING for path in places))
    assume(not any(a[: len(b)] == b for a, b in permutations(places, 2)))
    after = written.data
    for path, value in entries:
        is_section = isinstance(value, dict)
        assume(is_section or not (parents_made(after, path) or implied_only(after, path)))
        after = try_set(after, path, value)
    for path in data.draw(st.permutations(places)):
        after = toml.delete_key(after, path)
    assert after == written.data


@PROFILE
@given(documents(), paths(), st.one_of(json_values(), tables()))
def test_s82_a_new_entry_is_one_insertion(
    written: Written, path: KeyPath, value: JsonValue
) -> None:
    data = written.data
    assume(load(data).value(path) is MISSING)
    after = try_set(data, path, value)
    assert shared_start(data, after) + shared_start(data[::-1], after[::-1]) >= len(data)


def shared_start(one: bytes, other: bytes) -> int:
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


@PROFILE
@given(documents(), paths(), st.one_of(json_values(), tables()))
def test_s55_new_lines_have_the_line_end_of_the_file_and_the_bom_stays(
    written: Written, path: KeyPath, value: JsonValue
) -> None:
    data = written.data
    assume(load(data).value(path) is MISSING)
    after = try_set(data, path, value)
    windows, unix = data.count(b"\r\n"), data.count(b"\n") - data.count(b"\r\n")
    new = Counter(windows=after.count(b"\r\n") - windows, all=after.count(b"\n") - windows - unix)
    assert new["windows"] == (new["all"] if windows > unix else 0)
    assert after.startswith(b"\xef\xbb\xbf") == data.startswith(b"\xef\xbb\xbf")
    if data.strip(b"\xef\xbb\xbf"):
        assert after.endswith(b"\n") == data.endswith(b"\n")


@PROFILE
@given(documents(), st.data())
def test_s82_delete_takes_one_path_and_keeps_every_surviving_line(
    written: Written, data: st.DataObject
) -> None:
    path = data.draw(existing_paths(written))
    after = toml.delete_key(written.data, path)
    assert toml.get(after, path) is MISSING
    assert toml.delete_key(after, path) == after
    assert is_pruned(written.data, after, path)
    for line in foreign_lines(written, path):
        assert line in after
    assert is_subsequence(after, written.data)


def existing_paths(written: Written) -> st.SearchStrategy[KeyPath]:
    found: list[KeyPath] = []

    def walk(table: dict[str, object], at: KeyPath) -> None:
        for key, value in table.items():
            found.append((*at, key))
            if isinstance(value, dict):
                walk(value, (*at, key))

    walk(tomllib_values(written.data), ())
    assume(found)
    return st.sampled_from(found)


def is_pruned(before: bytes, after: bytes, path: KeyPath) -> bool:
    """Say whether two documents differ in a path and in tables that held nothing else."""

    def pruned(table: object, path: KeyPath) -> object:
        if not isinstance(table, dict) or path[0] not in table:
            return table
        rest = {key: value for key, value in table.items() if key != path[0]}
        inner = pruned(table[path[0]], path[1:]) if len(path) > 1 else {}
        return rest if inner == {} else rest | {path[0]: inner}

    return same(pruned(tomllib_values(before), path), pruned(tomllib_values(after), path))


def foreign_lines(written: Written, path: KeyPath) -> list[bytes]:
    """Return the pairs and headers outside a path as they are written, trailing comment and all."""
    doc = load(written.data)
    lines: list[bytes] = []
    for section in doc.sections:
        if section.path[: len(path)] == path:
            continue
        lines.append(doc.text[section.start : section.body].rstrip("\r\n").encode())
        for pair in section.pairs:
            if pair.path[: len(path)] != path and path[: len(pair.path)] != pair.path:
                end = doc.text.find("\n", pair.value.end)
                line = doc.text[pair.start : end if end >= 0 else None]
                lines.append(line.rstrip("\r").encode())
    return lines


def is_subsequence(part: bytes, whole: bytes) -> bool:
    rest = iter(whole)
    return all(byte in rest for byte in part)


@PROFILE
@given(documents(), paths(), tables())
def test_s56_merge_sets_each_leaf_and_keeps_the_keys_of_others(
    written: Written, path: KeyPath, value: dict[str, JsonValue]
) -> None:
    try_set(written.data, path, value)
    old = toml.get(written.data, path)
    after = toml.merge_key(written.data, path, value)
    assert same(toml.get(after, path), merged(old, value))
    assert toml.merge_key(after, path, value) == after


def merged(old: object, new: JsonValue) -> object:
    if isinstance(old, dict) and isinstance(new, dict):
        return old | {key: merged(old.get(key), inner) for key, inner in new.items()}
    return new


@PROFILE
@given(documents(with_array=True), json_values(), tables())
def test_s63_append_then_remove_restores_the_bytes(
    written: Written, single: JsonValue, table: dict[str, JsonValue]
) -> None:
    before = load(written.data)
    array = before.value(PATH)
    assert isinstance(array, list)
    value = table if before.item(PATH) is None else single
    assume(not any(same(item, value) for item in array))
    after = toml.append(written.data, PATH, value)
    assert same(toml.get(after, PATH), [*map(to_json, array), value])
    assert toml.remove_element(after, PATH, value) == written.data


@PROFILE
@given(documents(with_array=True), st.data())
def test_s64_remove_element_takes_the_first_equal_one(
    written: Written, data: st.DataObject
) -> None:
    array = load(written.data).value(PATH)
    assert isinstance(array, list)
    assume(array)
    element = data.draw(st.sampled_from(array))
    value = to_json(element)
    assume(same(value, element))
    first = next(i for i, item in enumerate(array) if same(item, value))
    after = toml.remove_element(written.data, PATH, value)
    rest = load(after).value(PATH)
    assert same(rest, [*array[:first], *array[first + 1 :]]) or (
        len(array) == 1 and rest is MISSING
    )
    assert is_subsequence(after, written.data)
    assert is_pruned(written.data, after, PATH)


@PROFILE
@given(st.one_of(st.binary(max_size=40), st.text(max_size=40).map(str.encode)))
def test_s54_anything_is_read_or_refused(data: bytes) -> None:
    refusal = None
    try:
        toml.parse(data)
    except UnparsableFile as error:
        refusal = error
    assert refusal is None or refusal.details.keys() == {"line", "column"}
