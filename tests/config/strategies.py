"""Documents as hypothesis makes them: a value, and one of the many ways people write it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st

from tfx.config.jsonc import Dialect
from tfx.config.keypath import KeyPath
from tfx.errors import JsonValue

PROPERTY = settings(max_examples=100, deadline=None)

DIALECTS = st.sampled_from(list(Dialect))
DOUBLED = "twice"  # the only key that generated documents hold twice
NEW = "tfx-hub"  # a key that generated documents never hold

_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
KEYS = st.one_of(
    st.sampled_from(["a", "b", "mcpServers", "amp.mcpServers", "", 'q"uote', "ключ", "a b", "😀"]),
    _TEXT,
)
_NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20), st.floats(allow_nan=False, allow_infinity=False)
)
SCALARS = st.one_of(st.none(), st.booleans(), _NUMBERS, _TEXT)


def values(leaves: int = 6) -> st.SearchStrategy[JsonValue]:
    """JSON values that tfx may write."""
    return st.recursive(
        SCALARS,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)
        ),
        max_leaves=leaves,
    )


@dataclass(frozen=True, slots=True)
class Written:
    """A document and what it means; `path` leads to an object or array, `data` holds it."""

    data: bytes
    value: JsonValue
    dialect: Dialect

    def objects(self) -> list[KeyPath]:
        """Paths of the objects that can be reached without a doubled key."""
        return [at for at, value in _walk(self.value, ()) if isinstance(value, dict)]

    def arrays(self) -> list[KeyPath]:
        """Paths of the arrays that can be reached without a doubled key."""
        return [at for at, value in _walk(self.value, ()) if isinstance(value, list)]

    def members(self) -> list[KeyPath]:
        """Paths of all members that can be reached without a doubled key."""
        return [at for at, _ in _walk(self.value, ()) if at]


def _walk(value: JsonValue, at: KeyPath) -> Iterator[tuple[KeyPath, JsonValue]]:
    yield at, value
    if isinstance(value, dict):
        for key, item in value.items():
            if key != DOUBLED:
                yield from _walk(item, (*at, key))


class _Writer:
    """Writes a value in a way of its own at every gap."""

    def __init__(self, draw: Callable[[st.SearchStrategy[str]], str], dialect: Dialect) -> None:
        self.draw = draw
        self.commented = dialect is Dialect.JSONC
        eol = draw(st.sampled_from(["\n", "\r\n"]))
        unit = draw(st.sampled_from(["  ", "    ", "\t", ""]))
        self.eol, self.unit = eol, unit
        plain = ["", " ", f"{eol}", f"{eol}{unit}", f"{eol}{eol}{unit} ", "\t", "\r", " \n"]
        comments = [
            f' // c, {{}} "x{eol}',
            f"{eol}{unit}// own line{eol}{unit}",
            f" // one{eol}{eol}// two é{eol}",
            "/**/",
            " /* a, */ ",
            f'{eol}/* x{eol} * "y" // z */{eol}',
            f" /*1*/ /*2*/{eol}",
            f" /*1*/ // 2 */{eol}",
            f"//{eol}",
            " // odd\r\r\n",
        ]
        self.gaps = st.sampled_from(plain + comments if self.commented else plain)
        self.tidy = draw(st.sampled_from(["tidy", "wild", "one-line"]))

    def gap(self, tidy: str, one_line: str) -> str:
        """What stands between two tokens; `tidy` most of the time in a tidy document."""
        if self.tidy == "wild":
            return self.draw(self.gaps)
        usual = tidy if self.tidy == "tidy" else one_line
        if self.draw(st.sampled_from("uuuuuuuw")) == "w":
            return self.draw(self.gaps)
        return usual

    def write(self, value: JsonValue, depth: int) -> str:
        if isinstance(value, dict):
            members = []
            for key, item in value.items():
                if key == DOUBLED:
                    members.append(self.member(key, None, depth))
                members.append(self.member(key, item, depth))
            return self.container("{}", members, depth)
        if isinstance(value, list):
            return self.container("[]", [self.write(item, depth + 1) for item in value], depth)
        if isinstance(value, str):
            return self.string(value)
        return json.dumps(value)

    def member(self, key: str, item: JsonValue, depth: int) -> str:
        colon = f"{self.gap('', '')}:{self.gap(' ', ' ')}"
        return f"{self.string(key)}{colon}{self.write(item, depth + 1)}"

    def container(self, brackets: str, items: list[str], depth: int) -> str:
        inner, outer = self.eol + self.unit * (depth + 1), self.eol + self.unit * depth
        if not items:
            return f"{brackets[0]}{self.gap('', '')}{brackets[1]}"
        pieces = [brackets[0]]
        for index, item in enumerate(items):
            first, last = index == 0, index == len(items) - 1
            pieces += [self.gap(inner, "" if first else " "), item]
            if not last or (self.commented and self.draw(st.sampled_from("nny")) == "y"):
                pieces += [self.gap("", ""), ","]
        return "".join((*pieces, self.gap(outer, ""), brackets[1]))

    def string(self, text: str) -> str:
        way = self.draw(st.sampled_from(["plain", "plain", "ascii", "slash", "codes"]))
        if way == "codes":
            units = text.encode("utf-16-be")
            pairs = [units[index : index + 2] for index in range(0, len(units), 2)]
            return '"' + "".join(f"\\u{int.from_bytes(pair):04X}" for pair in pairs) + '"'
        written = json.dumps(text, ensure_ascii=way == "ascii")
        return written.replace("/", "\\/") if way == "slash" else written


@st.composite
def documents(
    draw: st.DrawFn,
    dialect: Dialect | None = None,
    roots: st.SearchStrategy[JsonValue] | None = None,
) -> Written:
    """Documents whose root is an object, with all that S-65 names."""
    if dialect is None:
        dialect = draw(DIALECTS)
    keys = st.one_of(KEYS, st.just(DOUBLED))
    inner = st.recursive(
        SCALARS,
        lambda below: st.one_of(
            st.lists(below, max_size=4), st.dictionaries(keys, below, max_size=4)
        ),
        max_leaves=10,
    )
    value: JsonValue = draw(roots or st.dictionaries(keys, inner, max_size=4))
    writer = _Writer(draw, dialect)
    text = f"{writer.gap('', '')}{writer.write(value, 0)}{writer.gap(writer.eol, '')}"
    bom = draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf"]))
    return Written(bom + text.encode(), value, dialect)


@st.composite
def blank_files(draw: st.DrawFn) -> Written:
    """Files of white space only, with and without a BOM (S-60)."""
    text = draw(st.text(" \t\r\n", max_size=5))
    bom = draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    return Written(bom + text.encode(), {}, draw(DIALECTS))
