from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfx.core import canonical_json
from tfx.errors import InvalidRequest, JsonValue

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abcé😀", max_size=4), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":1,"a":2}',
        b'{"b":[{"c":1,"c":1}]}',
        b'"a\\u0000b"',
        b'{"a\\u0000":1}',
        b'"\\ud800"',
        b'"\\udc00\\ud800"',
        b'"\xed\xa0\x80"',
        b'"\xff"',
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"1e999",
        b"[1,]",
        b"{'a':1}",
        b"{a:1}",
        b"// c\n1",
        b"0x10",
        b"+1",
        b"",
        b"1 2",
        b"[" * 100_000,
    ],
)
def test_ev_j1_to_ev_j4_what_readers_disagree_about_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidRequest) as refused:
        canonical_json.check(text)
    assert refused.value.reason == "bad-json"


@pytest.mark.parametrize("text", [b'"\\ud83d\\ude00"', b'"\\u00e9"', b'{"a":{"a":1}}', b" [1] "])
def test_sound_documents_pass(text: bytes) -> None:
    assert canonical_json.parse(text) == json.loads(text)


@given(VALUES)
def test_ev_l10_the_canonical_form_is_one_form(value: JsonValue) -> None:
    spaced = json.dumps(value, indent=2, ensure_ascii=True).encode()
    tight = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    canonical_json.check(tight)
    once = canonical_json.canonical(spaced)
    assert once == canonical_json.canonical(tight) == canonical_json.canonical(once)
    assert json.loads(once) == value
