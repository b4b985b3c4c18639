from __future__ import annotations

import pytest

from tfx.config import jsonc
from tfx.config.jsonc import Dialect
from tfx.errors import JsonValue

# before → after set_key(("k",), 1): one row per way a place can look
SET = {
    "pretty": ('{\n  "a": 1\n}\n', '{\n  "a": 1,\n  "k": 1\n}\n'),
    "no final newline": ('{\n  "a": 1\n}', '{\n  "a": 1,\n  "k": 1\n}'),
    "four spaces": ('{\n    "a": 1\n}', '{\n    "a": 1,\n    "k": 1\n}'),
    "tabs": ('{\n\t"a": 1\n}', '{\n\t"a": 1,\n\t"k": 1\n}'),
    "no indentation": ('{\n"a": 1\n}', '{\n"a": 1,\n"k": 1\n}'),
    "crlf": ('{\r\n  "a": 1\r\n}\r\n', '{\r\n  "a": 1,\r\n  "k": 1\r\n}\r\n'),
    "one line": ('{"a": 1}', '{"a": 1, "k": 1}'),
    "one line, padded": ('{ "a": 1 }', '{ "a": 1, "k": 1 }'),
    "minified": ('{"a":1,"b":2}', '{"a":1,"b":2,"k":1}'),
    "spaced colons": ('{"a" : 1}', '{"a" : 1, "k" : 1}'),
    "compact colons on lines": ('{\n "a":1\n}', '{\n "a":1,\n "k":1\n}'),
    "empty": ("{}", '{\n  "k": 1\n}'),
    "empty, final newline": ("{}\n", '{\n  "k": 1\n}\n'),
    "empty, blank inside": ("{ }", '{\n  "k": 1 \n}'),
    "empty, on two lines": ("{\n}\n", '{\n  "k": 1\n\n}\n'),
    "zero bytes": ("", '{\n\n  "k": 1\n}\n'),
    "white space": (" \r\n", '{\r\n\r\n  "k": 1\r\n} \r\n\r\n'),
    "last value spans lines": ('{"a": {\n  "x": 1\n}}', '{"a": {\n  "x": 1\n}, "k": 1}'),
    "comma first": ('{ "a": 1\n, "b": 2\n}', '{ "a": 1\n, "b": 2, "k": 1\n}'),
}
SET_JSONC = {
    "trailing comma": ('{\n  "a": 1,\n}', '{\n  "a": 1,\n  "k": 1,\n}'),
    "trailing comma, one line": ('{ "a": 1, }', '{ "a": 1, "k": 1, }'),
    "line comment behind": ('{\n  "a": 1 // x\n}', '{\n  "a": 1, // x\n  "k": 1\n}'),
    "block comment behind": ('{"a": 1 /* x */}', '{"a": 1, /* x */ "k": 1}'),
    "comment behind comma": ('{\n  "a": 1, // x\n}', '{\n  "a": 1, // x\n  "k": 1,\n}'),
    "comment around comma": (
        '{\n  "a": 1 /* x */ , // y\n  // z\n}',
        '{\n  "a": 1 /* x */ , // y\n  "k": 1,\n  // z\n}',
    ),
    "comment line before brace": (
        '{\n  "a": 1\n  // old: 2\n}',
        '{\n  "a": 1,\n  "k": 1\n  // old: 2\n}',
    ),
    "line comment in one line": ('{ "a": 1 // x\n}', '{ "a": 1, // x\n  "k": 1\n}'),
    "comment inside, empty": ("{\n\t// x\n}", '{\n\t// x\n\t"k": 1\n}'),
    "comment behind brace": ("{ // x\n}", '{ // x\n  "k": 1\n}'),
    "block comment inside": ("{ /* x */ }", '{ /* x */ "k": 1 }'),
    "two comments inside": ("{ /* x */ // y\r\n}", '{ /* x */ // y\r\n  "k": 1\r\n}'),
    "comments around": ("// a\n{} // b\n// c", '// a\n{\n  "k": 1\n} // b\n// c'),
}


@pytest.mark.parametrize(("before", "after"), [*SET.values(), *SET_JSONC.values()])
def test_s55_a_new_member_is_written_like_its_neighbours(before: str, after: str) -> None:
    assert jsonc.set_key(before.encode(), ("k",), 1).decode() == after
    assert jsonc.delete_key(after.encode(), ("k",)).decode() == before


@pytest.mark.parametrize(("before", "after"), SET.values())
def test_s67_strict_json_is_written_the_same_way(before: str, after: str) -> None:
    assert jsonc.set_key(before.encode(), ("k",), 1, dialect=Dialect.JSON).decode() == after


VALUE: JsonValue = {"b": {"c": [1, {}], "d": []}}
TABS = """{
\t"a": {
\t\t"k": {
\t\t\t"b": {
\t\t\t\t"c": [
\t\t\t\t\t1,
\t\t\t\t\t{}
\t\t\t\t],
\t\t\t\t"d": []
\t\t\t}
\t\t}
\t}
}"""
CRLF = """{
    "a": {
        "x": 1,
        "k": {
            "b": {
                "c": [
                    1,
                    {}
                ],
                "d": []
            }
        }
    }
}
""".replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{\n\t"a": {}\n}', TABS),
        ('{\r\n    "a": {\r\n        "x": 1\r\n    }\r\n}\r\n', CRLF),
        ('{"a": {}, "z": 1}', '{"a": {"k": {"b": {"c": [1, {}], "d": []}}}, "z": 1}'),
        ('{"a":{},"z":1}', '{"a":{"k":{"b":{"c":[1,{}],"d":[]}}},"z":1}'),
    ],
    ids=["tabs", "crlf", "one line", "minified"],
)
def test_s55_nested_values_follow_indentation_and_line_ending(before: str, after: str) -> None:
    assert jsonc.set_key(before.encode(), ("a", "k"), VALUE).decode() == after
    assert jsonc.delete_key(after.encode(), ("a", "k")).decode() == before


def test_s55_indentation_is_taken_from_near_the_place() -> None:
    before = '{\n  "a": {\n  },\n  "b": {\n      "c": {}\n  }\n}'
    after = before.replace('"c": {}', '"c": {\n          "k": 1\n      }')
    assert jsonc.set_key(before.encode(), ("b", "c", "k"), 1).decode() == after


def test_s61_parents_are_created() -> None:
    before = b'{\n  "a": 1\n}\n'
    after = jsonc.set_key(before, ("x", "y", "z"), None)
    assert after == (b'{\n  "a": 1,\n  "x": {\n    "y": {\n      "z": null\n    }\n  }\n}\n')
    empty = jsonc.delete_key(after, ("x", "y", "z"))
    assert empty == b'{\n  "a": 1,\n  "x": {\n    "y": {}\n  }\n}\n'
    assert jsonc.delete_key(empty, ("x",)) == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"k": 1}', '{"k": {"x": [1]}}'),
        ('{\n  "k": 1 // x\n}', '{\n  "k": {\n    "x": [\n      1\n    ]\n  } // x\n}'),
        ('{"a":[],"k":{}}', '{"a":[],"k":{"x":[1]}}'),
        ('{"k": [\n  2\n]}', '{"k": {\n  "x": [\n    1\n  ]\n}}'),
    ],
)
def test_s61_a_value_is_replaced_in_the_style_of_the_place(before: str, after: str) -> None:
    assert jsonc.set_key(before.encode(), ("k",), {"x": [1]}).decode() == after


# before → after delete_key(("k",)) where a person, not tfx, wrote the document
DELETE = {
    "first of several lines": ('{\n  "k": 1,\n  "b": 2\n}', '{\n  "b": 2\n}'),
    "first, with a comment": (
        '{\n  "k": 1, // mine\n  "b": 2\n}',
        '{\n  // mine\n  "b": 2\n}',
    ),
    "middle": ('{\n  "a": 1,\n  "k": 2,\n  "b": 3\n}', '{\n  "a": 1,\n  "b": 3\n}'),
    "middle, neighbours' comments": (
        '{\n  "a": 1, // A\n  "k": 2, // K\n  // about b\n  "b": 3\n}',
        '{\n  "a": 1, // A\n  // K\n  // about b\n  "b": 3\n}',
    ),
    "middle of a line": ('{"a": 1, "k": 2, "b": 3}', '{"a": 1, "b": 3}'),
    "middle, comment before comma": (
        '{"a": 1, "k": 2 /* k */, "b": 3}',
        '{"a": 1, /* k */ "b": 3}',
    ),
    "first of a line": ('{ "k": 2, "b": 3 }', '{ "b": 3 }'),
    "last, with a comment": (
        '{\n  "a": 1,\n  "k": 2 // mine\n}',
        '{\n  "a": 1\n  // mine\n}',
    ),
    "last, comment line before": (
        '{\n  "a": 1,\n  // about k\n  "k": 2\n}',
        '{\n  "a": 1\n  // about k\n}',
    ),
    "last, comment line before, brace on the line": (
        '{\n  "a": 1, // A\n  "k": 2 }',
        '{\n  "a": 1 // A\n   }',
    ),
    "last, behind a comment line, then blanks": (
        '{\n  "a": 1, // A\n  "k": 2 \t\n}',
        '{\n  "a": 1 // A\n}',
    ),
    "last, trailing comma": ('{\n  "a": 1,\n  "k": 2,\n}', '{\n  "a": 1,\n}'),
    "last, comment before trailing comma": (
        '{\n  "a": 1,\n  "k": 2 /* k */ ,\n}',
        '{\n  "a": 1,\n  /* k */ \n}',
    ),
    "last, comma first": ('{ "a": 1\n, "k": 2\n}', '{ "a": 1\n}'),
    "last, blank line before": ('{\n  "a": 1,\n\n  "k": 2\n}', '{\n  "a": 1\n}'),
    "the only one": ('{\n    "k": 1,\n}', "{}"),
    "the only one, on one line": ('{ "k": 1 }', "{ }"),
    "the only one, uneven": ('{ "k": 1}', "{}"),
    "the only one, with a comment": ('{\n  "k": 1 // mine\n}', "{\n  // mine\n}"),
    "the only one, comment line after": ('{\n  "k": 1\n  // end\n}', "{\n  // end\n}"),
    "the only one, comment line before": ('{\n  // begin\n  "k": 1\n}', "{\n  // begin\n}"),
    "the only one, between comments": (
        '{ // begin\n  "k": 1, // mine\n  // end\n}',
        "{ // begin\n  // mine\n  // end\n}",
    ),
    "the only one, blank first line, not ours": (
        '{\n\n  "k": 1\n}\n// end\n',
        "{}\n// end\n",
    ),
    "comments inside the entry go with it": (
        '{"a": 1, "k": { /* x */ "b": 1 } /* y */}',
        '{"a": 1 /* y */}',
    ),
}


@pytest.mark.parametrize(("before", "after"), DELETE.values(), ids=DELETE.keys())
def test_s62_deleting_keeps_layout_and_every_comment_around(before: str, after: str) -> None:
    assert jsonc.delete_key(before.encode(), ("k",)).decode() == after
    assert jsonc.delete_key(after.encode(), ("k",)).decode() == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[]", '[\n  {\n    "x": 1\n  }\n]'),
        ("[1, 2]", '[1, 2, {"x": 1}]'),
        ("[1,2]", '[1,2,{"x": 1}]'),
        ("[\n  1, 2,\n  3, 4\n]", '[\n  1, 2,\n  3, 4, {"x": 1}\n]'),
        ("[\n  1 // one\n  // more\n]", '[\n  1, // one\n  {\n    "x": 1\n  }\n  // more\n]'),
        ("[ /* none */ ]", '[ /* none */ {"x": 1} ]'),
    ],
)
def test_s63_an_element_is_added_in_the_style_of_the_array(before: str, after: str) -> None:
    def document(array: str) -> bytes:
        return ('{\n"a": ' + array + "\n}").encode()

    new = jsonc.append(document(before), ("a",), {"x": 1})
    assert new == document(after)
    assert jsonc.remove_element(new, ("a",), {"x": 1}) == document(before)


def test_s62_a_created_array_is_taken_back() -> None:
    before = b'{\n  "theme": "dark"\n}\n'
    new = jsonc.append(before, ("hooks", "Stop"), "x")
    assert new == (
        b'{\n  "theme": "dark",\n  "hooks": {\n    "Stop": [\n      "x"\n    ]\n  }\n}\n'
    )
    new = jsonc.remove_element(new, ("hooks", "Stop"), "x")
    assert new == b'{\n  "theme": "dark",\n  "hooks": {\n    "Stop": []\n  }\n}\n'
    assert jsonc.delete_key(new, ("hooks",)) == before


def test_s55_mixed_line_endings_keep_theirs() -> None:
    before = '{\n  "a": 1,\r\n  "b": {\r\n  }\r\n}'
    new = jsonc.set_key(before.encode(), ("b", "k"), 1)
    assert jsonc.delete_key(new, ("b", "k")).decode() == before
    assert jsonc.set_key(before.encode(), ("k",), 1).decode() == before.replace(
        "  }\r\n}", '  },\n  "k": 1\r\n}'
    )
