"""Edits of TOML by key and element, and what is refused (S-54 … S-64)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.toml_documents import ENTRY, STDIO
from tfx.config import toml
from tfx.config.keypath import KeyPath
from tfx.config.toml.document import load
from tfx.config.toml.splices import Splice
from tfx.errors import InvalidRequest, JsonValue, OperationFailed, UnparsableFile


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("x = 1\nmcp_servers = 3\n", (2, 1)),
        ("mcp_servers = [{}]\n", (1, 1)),
        ("\n  [[mcp_servers]]\n", (2, 1)),
        ("mcp_servers.tfx-hub = 3\n", None),
    ],
)
def test_s54_a_parent_that_is_no_table_is_refused(text: str, place: tuple[int, int] | None) -> None:
    if place is None:
        assert toml.get(toml.set_key(text.encode(), ENTRY, STDIO), ENTRY) == STDIO
        return
    with pytest.raises(UnparsableFile, match="not a table") as refusal:
        toml.set_key(text.encode(), ENTRY, STDIO)
    assert refusal.value.details == {"line": place[0], "column": place[1]}
    with pytest.raises(UnparsableFile):
        toml.append(text.encode(), (*ENTRY, "args"), 1)
    with pytest.raises(UnparsableFile):
        toml.get(text.encode(), ENTRY)
    with pytest.raises(UnparsableFile):
        toml.delete_key(text.encode(), ENTRY)


@pytest.mark.parametrize(
    ("data", "line", "column"),
    [
        (b"a = 1\n[mcp_servers.x]\n[mcp_servers.x]\n", 3, 15),
        (b"a = 1\na = 2\n", 2, 6),
        (b"a = 1\r\nb =\r\n", 2, 4),
        (b"\xef\xbb\xbfa = \xff\n", 1, 5),
        ("é = 1\n".encode(), 1, 1),
        (b"k = 'caf\xe9'\n", 1, 9),
        (b"a = [1,\n", 2, 1),
        (b"\xff\xfea\x00", 1, 1),
        (b"\x00", 1, 1),
        (b"{}", 1, 1),
        (b"a = 1\rb = 2", 1, 6),
        (b"a = " + b"[" * 5000, 1, 69),
        (b"a = " + b"[" * 70 + b"]" * 70, 1, 69),
        (b"a = " + b"{b=" * 70 + b"1" + b"}" * 70, 1, 197),
        (b"[" + b"a." * 70 + b"a]\n", 1, 130),
    ],
)
def test_s54_what_is_not_toml_is_refused_with_its_place(
    data: bytes, line: int, column: int
) -> None:
    for refused in (
        lambda: toml.parse(data),
        lambda: toml.set_key(data, ENTRY, STDIO),
        lambda: toml.delete_key(data, ENTRY),
    ):
        with pytest.raises(UnparsableFile) as refusal:
            refused()
        assert refusal.value.details == {"line": line, "column": column}


def test_s110_a_very_large_file_is_refused() -> None:
    with pytest.raises(UnparsableFile, match="larger than"):
        toml.parse(b"#" * (8 * 1024 * 1024 + 1))


@pytest.mark.parametrize(
    "value",
    [None, {"a": [None]}, float("nan"), {"a": float("inf")}, 2**63, -(2**63) - 1, "\ud800"],
)
def test_a_value_that_toml_cannot_say_is_an_invalid_request(value: JsonValue) -> None:
    with pytest.raises(InvalidRequest):
        toml.set_key(b"", ("a",), value)


def test_a_value_nested_too_deeply_is_an_invalid_request() -> None:
    value: JsonValue = 1
    for _ in range(70):
        value = [value]
    with pytest.raises(InvalidRequest, match="deep"):
        toml.set_key(b"", ("a",), value)


@pytest.mark.parametrize("path", [(), ("\ud800",)])
def test_a_path_that_toml_cannot_say_is_an_invalid_request(path: KeyPath) -> None:
    with pytest.raises(InvalidRequest):
        toml.delete_key(b"a = 1", path)
    with pytest.raises(InvalidRequest):
        toml.set_key(b"a = 1", path, 1)


def test_get_of_the_empty_path_is_the_document() -> None:
    assert toml.get(b"a = 1", ()) == {"a": 1}


def test_s56_merge_keeps_what_others_added_inside() -> None:
    text = (
        "[mcp_servers.tfx-hub]\ncommand = 'old' # by tfx\nstartup_timeout_sec = 20\n\n"
        "[mcp_servers.tfx-hub.env]\nMINE = '1' # mine\n"
    )
    after = toml.merge_key(text.encode(), ENTRY, STDIO).decode()
    assert after == (
        '[mcp_servers.tfx-hub]\ncommand = "/home/é u/bin/tfx" # by tfx\nstartup_timeout_sec = 20\n'
        'args = ["hub", "bridge"]\n\n'
        "[mcp_servers.tfx-hub.env]\nMINE = '1' # mine\nTFX_AGENT = \"codex\"\n"
    )


def test_s56_merge_gives_an_implied_table_its_header_above_its_children() -> None:
    text = "[a]\nx = 1\n\n# mine\n[mcp_servers.tfx-hub.env]\nMINE = '1'\n"
    after = toml.merge_key(text.encode(), ENTRY, {"url": "u", "env": {"B": "2"}}).decode()
    assert after == (
        '[a]\nx = 1\n\n[mcp_servers.tfx-hub]\nurl = "u"\n\n'
        "# mine\n[mcp_servers.tfx-hub.env]\nMINE = '1'\nB = \"2\"\n"
    )


def test_set_takes_keys_out_that_the_value_does_not_have() -> None:
    text = "[t]\na = 1\nb = 2 # two\n[t.c]\nd = 1\n"
    assert toml.set_key(text.encode(), ("t",), {"b": 2}) == b"[t]\nb = 2 # two\n"
    assert toml.set_key(text.encode(), ("t",), {}) == b"[t]\n"
    assert toml.set_key(b"t.a = 1\n", ("t",), {}) == b"[t]\n"
    assert toml.set_key(b"t = { a = 1 }\n", ("t",), {}) == b"t = {}\n"


def test_set_tells_types_apart() -> None:
    assert toml.set_key(b"a = 1\n", ("a",), 1.0) == b"a = 1.0\n"
    assert toml.set_key(b"a = 1\n", ("a",), value=True) == b"a = true\n"
    assert toml.set_key(b"a = 1979-05-27\n", ("a",), "1979-05-27") == b'a = "1979-05-27"\n'


def test_key_at_the_top_goes_below_the_comment_that_heads_the_file() -> None:
    text = "#:schema https://example.com/s.json\n# mine\n\n# about t\n[t]\n"
    after = toml.set_key(text.encode(), ("k",), "v")
    assert after.decode() == (
        '#:schema https://example.com/s.json\n# mine\n\nk = "v"\n\n# about t\n[t]\n'
    )
    assert toml.delete_key(after, ("k",)) == text.encode()


def test_s63_append_follows_the_layout_of_the_array() -> None:
    path = ("a",)
    assert toml.append(b"", path, 1) == b"a = [1]\n"
    assert toml.append(b"a = []\n", path, "x") == b'a = ["x"]\n'
    assert toml.append(b"a = [1, 2,]\n", path, 3) == b"a = [1, 2, 3,]\n"
    assert toml.append(b"a = [\n  1, # one\n  2 # two\n]\n", path, 3) == (
        b"a = [\n  1, # one\n  2, # two\n  3\n]\n"
    )
    assert toml.append(b"a = [\n\t1,\n\t2, # two\n]\n", path, {"b": 3}) == (
        b"a = [\n\t1,\n\t2, # two\n\t{ b = 3 },\n]\n"
    )
    assert toml.append(b"[[a]]\nb = 1\n", path, {"b": 2}) == b"[[a]]\nb = 1\n\n[[a]]\nb = 2\n"


def test_s61_append_of_an_equal_element_does_nothing() -> None:
    assert toml.append(b"a = [1, 2]\n", ("a",), 1) == b"a = [1, 2]\n"
    assert toml.append(b"a = [1]\n", ("a",), 1.0) == b"a = [1, 1.0]\n"


def test_s63_append_to_something_else_is_refused() -> None:
    with pytest.raises(UnparsableFile, match="not an array"):
        toml.append(b"a = 1\n", ("a",), 1)
    with pytest.raises(UnparsableFile, match="array of tables"):
        toml.append(b"[[a]]\n", ("a",), 1)


def test_s64_remove_element_keeps_the_neighbours_and_their_comments() -> None:
    path = ("a",)
    text = b"a = [\n  1, # one\n  2, # two\n  3 # three\n]\n"
    assert toml.remove_element(text, path, 2) == b"a = [\n  1, # one\n  3 # three\n]\n"
    assert toml.remove_element(text, path, 3) == b"a = [\n  1, # one\n  2 # two\n]\n"
    assert toml.remove_element(b"a = [1, 2, 1]\n", path, 1) == b"a = [2, 1]\n"
    assert toml.remove_element(b"a = [1, 2]\n", path, 2) == b"a = [1]\n"
    assert toml.remove_element(b"a = [1]\n", path, value=True) == b"a = [1]\n"
    assert toml.remove_element(b"a = 1\n", path, 1) == b"a = 1\n"
    assert toml.remove_element(b"a = [1, # one\n 2]\n", path, 1) == b"a = [ # one\n 2]\n"
    tables = b"[[a]]\nb = 1\n[a.c]\nd = 1\n\n[[a]]\nb = 2\n"
    assert toml.remove_element(tables, path, {"b": 1, "c": {"d": 1}}) == b"\n[[a]]\nb = 2\n"


def test_s57_a_file_with_every_form_of_value_keeps_all_of_them(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    text = (
        'a = """\n[not.a.header]\nx = 1 # not a comment\n"""\nb = \'\'\'"""\'\'\'\n'
        "c = [ [1, 2], ['#', \"]\"] ] # c\nd = 1979-05-27 07:32:00\ne = nan\nf = 0x_F\n"
    ).replace("0x_F", "0xF_F")
    file.write_bytes(text.encode())
    after = toml.set_key(file.read_bytes(), ENTRY, STDIO)
    assert after.startswith(text.encode())
    assert toml.delete_key(after, ENTRY) == text.encode()


def test_s57_an_edit_that_would_move_something_else_is_not_returned() -> None:
    before, after = load(b"a = 1\nb = 2\n"), load(b"a = 1\nb = 3\n")
    with pytest.raises(OperationFailed, match="elsewhere"):
        toml._committed(before, after, ("a",), 1)
    with pytest.raises(OperationFailed, match="another value"):
        toml._committed(before, before, ("a",), 2)
    with pytest.raises(OperationFailed, match="break the file"):
        toml._spliced(before, [Splice(0, 1, "b")])


def test_s69_a_key_and_a_section_below_a_head_comment_go_in_any_order() -> None:
    before = b"# one\n# two\n"
    both = toml.set_key(toml.set_key(before, ("",), {}), ("a",), False)  # noqa: FBT003  (a value)
    for first, second in ((("",), ("a",)), (("a",), ("",))):
        assert toml.delete_key(toml.delete_key(both, first), second) == before
