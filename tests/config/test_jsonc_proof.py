from __future__ import annotations

import pytest

from tfx.config import jsonc
from tfx.config.jsonc import Dialect
from tfx.config.jsonc.edits import Edit
from tfx.config.jsonc.proof import independent_value, prove_splices, prove_value
from tfx.config.jsonc.splices import Splice
from tfx.errors import JsonValue, OperationFailed

DATA = b'{"a": 1, /* keep */ "b": 2}'
RIGHT: JsonValue = {"a": 3, "b": 2}


def edited(
    *splices: Splice, expected: JsonValue = RIGHT, dialect: Dialect = Dialect.JSONC
) -> bytes:
    edit = Edit(splices, expected, ((6, 7),))
    return jsonc._edit(DATA, dialect, lambda document: edit if document.text[6] == "1" else None)


def test_s61_a_right_edit_is_proven() -> None:
    assert edited(Splice(6, 7, "3")) == b'{"a": 3, /* keep */ "b": 2}'


@pytest.mark.parametrize(
    ("splices", "check"),
    [
        ((Splice(6, 7, "4"),), "not the expected one"),
        ((Splice(6, 7, ""),), "result is refused, line 1, column 7"),
        ((Splice(6, 7, "3"), Splice(8, 20, "")), "somebody else"),
        ((Splice(6, 7, "3"), Splice(20, 26, '"b": 2')), "somebody else"),
        ((Splice(6, 7, "3"), Splice(6, 7, "3")), "overlap"),
    ],
)
def test_s61_a_wrong_edit_never_returns_bytes(splices: tuple[Splice, ...], check: str) -> None:
    with pytest.raises(OperationFailed, match=check):
        edited(*splices)


def test_s61_an_edit_that_would_go_on_is_given_up() -> None:
    endless = Edit((Splice(6, 7, "3"),), RIGHT, ((6, 7),))
    with pytest.raises(OperationFailed, match="not a no-op"):
        jsonc._edit(DATA, Dialect.JSONC, lambda _document: endless)


def test_s61_text_outside_the_splice_is_compared() -> None:
    splices = (Splice(1, 2, "xy"),)
    prove_splices("abc", "axyc", splices, [(1, 2)])
    for wrong in ("bxyc", "axyd", "axycc", "axy"):
        with pytest.raises(OperationFailed, match="outside the splice changed"):
            prove_splices("abc", wrong, splices, [(1, 2)])


@pytest.mark.parametrize("number", ["1", "1.0", "true"])
def test_s61_values_are_compared_with_their_types(number: str) -> None:
    data = f'{{"a": {number}}}'.encode()
    for value in (1, 1.0, True):
        if repr(value).lower() == number:
            prove_value(data, Dialect.JSON, {"a": value}, {"a": value})
        else:
            with pytest.raises(OperationFailed, match="not the expected one"):
                prove_value(data, Dialect.JSON, {"a": value}, {"a": 2})
            with pytest.raises(OperationFailed, match="independent reader does not see"):
                prove_value(data, Dialect.JSON, {"a": value}, {"a": value})


def test_s61_the_independent_reader_has_a_veto() -> None:
    for data in (b'{"a": 1,}', b'{"a": 1} // x', b'{"a": NaN}', b"{"):
        with pytest.raises(OperationFailed, match="cannot read the result"):
            prove_value(data, Dialect.JSON, {"a": 1}, {"a": 1})


def test_the_independent_reader_takes_comments_and_trailing_commas_out() -> None:
    data = b'\xef\xbb\xbf// ,}\n{"a, // }": [1, /* ,] */ 2, // "\n ], /**/ "b": "/* \\" ,}",}\n'
    assert independent_value(data, Dialect.JSONC) == {"a, // }": [1, 2], "b": '/* " ,}'}
    assert independent_value(b" \n", Dialect.JSON) == {}


def test_a_failed_proof_names_the_check_and_nothing_of_the_document() -> None:
    with pytest.raises(OperationFailed) as caught:
        prove_value(b'{"a": "secret"}', Dialect.JSON, {"a": "secret"}, {})
    assert caught.value.reason == "edit-not-proven"
    assert "secret" not in f"{caught.value.message} {caught.value.details}"
