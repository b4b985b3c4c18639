"""TOML documents for property tests: every spelling of tables, with comments, BOM and CRLF."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass

from hypothesis import strategies as st

from tfx.config.keypath import KeyPath
from tfx.errors import JsonValue

KEYS = {
    "a": ("a", '"a"', "'a'", '"\\u0061"'),
    "b": ("b", '"b"'),
    "tfx-hub": ("tfx-hub", '"tfx-hub"', "'tfx-hub'"),
    "x.y": ('"x.y"', "'x.y'"),
    "": ('""', "''"),
    "é ]": ('"é ]"', "'é ]'"),
}
NEW_KEYS = ("new", "n w", 'quo"te', "тест", "back\\slash", "line\nend", "#", "=")

_SCALARS = (
    "{n}",
    '"s {n}"',
    "'l # {n}'",
    '"""m\n# no comment {n}\n[no.header]\n"""',
    "'''\nk = {n} \"\"\n'''",
    '"""quotes {n}"""""',
    '"e \\" \\\\ ] }} {n}"',
    "{n}.5",
    "1979-05-27 07:32:{n:02}",
    "1979-05-27T00:32:00.{n:03}-07:00",
    "true",
    "inf",
    "nan",
    "0xF{n}",
)
_ARRAYS = (
    "[]",
    "[ ]",
    "[{n}]",
    "[ {n}, 0 ]",
    "[{n}, 0,]",
    "[\n  {n},\n  0\n]",
    "[\n\t{n}, # one\n\t0, # two\n]",
    "[ # open\n]",
    "[\n {n}\n , 0\n , ]",
    "[{{ a = {n} }}, {{}}]",
    "[[{n}], []]",
)
_INLINE = (
    "{{}}",
    "{{ }}",
    "{{a={n}}}",
    "{{ a = {n}, b = 0 }}",
    "{{ a.b = {n}, 'tfx-hub' = {{ a = 0 }} }}",
    '{{ "x.y" = [\n {n}\n], b = {{}} }}',
)


@dataclass(frozen=True, slots=True)
class Written:
    """A document; `data` has its BOM and line ends."""

    text: str
    data: bytes


def keys() -> st.SearchStrategy[str]:
    return st.sampled_from(sorted(KEYS))


def paths(*, maximum: int = 3) -> st.SearchStrategy[KeyPath]:
    return st.lists(
        st.one_of(keys(), keys(), st.sampled_from(NEW_KEYS)), min_size=1, max_size=maximum
    ).map(tuple)


def json_values() -> st.SearchStrategy[JsonValue]:
    scalars: st.SearchStrategy[JsonValue] = st.one_of(
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(codec="utf-8"), max_size=8),
    )
    names = st.one_of(keys(), st.sampled_from(NEW_KEYS))
    return st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)
        ),
        max_leaves=6,
    )


def tables() -> st.SearchStrategy[dict[str, JsonValue]]:
    names = st.one_of(keys(), st.sampled_from(NEW_KEYS))
    return st.dictionaries(names, json_values(), max_size=3)


ARRAY_KEY = "list"


@st.composite
def documents(draw: st.DrawFn, *, with_array: bool = False) -> Written:
    """Draw statements and keep each one that leaves the document valid."""
    count = draw(st.integers(0, 9))
    text = draw(_arrays()) if with_array else ""
    for number in range(count):
        longer = text + draw(_statements(number + 10))
        if _is_valid(longer):
            text = longer
    if draw(st.booleans()) and draw(st.booleans()):
        text = text.removesuffix("\n")
    return _written(draw, text)


@st.composite
def _statements(draw: st.DrawFn, number: int) -> str:
    indent = draw(st.sampled_from(("", "", "", "  ", "\t")))
    trailer = draw(st.sampled_from(("", "", "", f" # trailing {number}", "  ")))
    kind = draw(st.sampled_from(("pair", "pair", "pair", "header", "header", "array", "trivia")))
    if kind == "trivia":
        return draw(st.sampled_from((f"{indent}# comment {number}\n", "\n", "\n\n", f"{indent}\n")))
    key = draw(_spelled_paths())
    if kind == "header":
        return f"{indent}[{key}]{trailer}\n"
    if kind == "array":
        return f"{indent}[[{key}]]{trailer}\n"
    form = draw(st.sampled_from((*_SCALARS, *_ARRAYS, *_INLINE)))
    equals = draw(st.sampled_from((" = ", "=", "\t= ")))
    return f"{indent}{key}{equals}{form.format(n=number)}{trailer}\n"


@st.composite
def _arrays(draw: st.DrawFn) -> str:
    if draw(st.booleans()):
        return f"{ARRAY_KEY} = {draw(st.sampled_from(_ARRAYS)).format(n=7)}\n"
    element = f"[[{ARRAY_KEY}]]\na = 7\n\n[{ARRAY_KEY}.b]\nc = 8\n"
    return "\n".join([element] * draw(st.integers(1, 3)))


@st.composite
def _spelled_paths(draw: st.DrawFn) -> str:
    path = draw(st.lists(keys(), min_size=1, max_size=3))
    dot = draw(st.sampled_from((".", ".", " . ")))
    return dot.join(draw(st.sampled_from(KEYS[key])) for key in path)


def _written(draw: st.DrawFn, text: str) -> Written:
    ends = draw(st.sampled_from(("unix", "unix", "windows", "mixed")))
    if ends == "windows":
        text = text.replace("\n", "\r\n")
    elif ends == "mixed":
        lines = text.split("\n")
        seams = draw(st.lists(st.booleans(), min_size=len(lines), max_size=len(lines)))
        text = "".join(
            line + ("\r\n" if windows else "\n")
            for line, windows in zip(lines[:-1], seams, strict=False)
        )
        text += lines[-1]
    bom = b"\xef\xbb\xbf" if draw(st.booleans()) and draw(st.booleans()) else b""
    return Written(text, bom + text.encode())


def _is_valid(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True
