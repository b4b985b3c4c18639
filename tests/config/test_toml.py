"""The TOML editor on the cases that broke other tools."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import tomlkit

from tfx.config import toml
from tfx.config.keypath import MISSING, KeyPath, value_digest
from tfx.config.toml.document import load
from tfx.config.toml.splices import Splice
from tfx.errors import InvalidRequest, JsonValue, OperationFailed, UnparsableFile

ENTRY: KeyPath = ("mcp_servers", "tfx-hub")
STDIO: dict[str, JsonValue] = {
    "command": "/home/é u/bin/tfx",
    "args": ["hub", "bridge"],
    "env": {"TFX_AGENT": "codex"},
}
CODEX = """\
# My Codex configuration
model = "gpt-5"   # the big one
approval_policy = 'on-request'

[projects."/home/u/work"]
trust_level = "trusted"
since = 2026-01-31T10:00:00Z

# servers
[mcp_servers.docs]
command = "npx" # keep me
args = [
    "-y",   # yes
    "docs-mcp",
]

[mcp_servers.docs.env]
TOKEN = "x"
UNKNOWN_TO_CODEX = "kept"

[tui]
theme = "dark"
"""

SPELLINGS = {
    "sub-tables": """
[mcp_servers.tfx-hub]
url = "http://x"
[mcp_servers.tfx-hub.http_headers]
Authorization = "Bearer T"
""",
    "inline headers": """
[mcp_servers.tfx-hub]
url = "http://x"
http_headers = { Authorization = "Bearer T" }
""",
    "inline entry": """
[mcp_servers]
tfx-hub = { url = "http://x", http_headers = { Authorization = "Bearer T" } }
""",
    "inline parent": """
mcp_servers = { tfx-hub = { url = "http://x", http_headers.Authorization = "Bearer T" } }
""",
    "dotted in the root": """
mcp_servers.tfx-hub.url = "http://x"
mcp_servers.tfx-hub.http_headers.Authorization = "Bearer T"
""",
    "dotted in the parent": """
[mcp_servers]
tfx-hub.url = "http://x"
"tfx-hub"."http_headers" = { Authorization = "Bearer T" }
""",
    "quoted": """
["mcp_servers".'tfx-hub']
"url" = "http://x"
'http_headers' = { "Authorization" = "Bearer T" }
""",
    "escaped": """
[mcp_servers."tfx\\u002dhub"]
url = "http://x"
http_headers.Authorization = 'Bearer T'
""",
    "out of order": """
[mcp_servers.tfx-hub.http_headers]
Authorization = "Bearer T"

[other]
x = 1

[ mcp_servers . tfx-hub ]
url = "http://x"
""",
}
HTTP: dict[str, JsonValue] = {"url": "http://x", "http_headers": {"Authorization": "Bearer T"}}


@pytest.mark.parametrize("text", SPELLINGS.values(), ids=SPELLINGS)
def test_s70_every_spelling_of_our_entry_is_recognised(text: str) -> None:
    data = text.encode()
    assert toml.get(data, ENTRY) == HTTP
    assert toml.set_key(data, ENTRY, HTTP) == data
    assert toml.merge_key(data, ENTRY, HTTP) == data


@pytest.mark.parametrize("text", SPELLINGS.values(), ids=SPELLINGS)
def test_s79_an_update_never_adds_a_second_definition(text: str) -> None:
    new: dict[str, JsonValue] = HTTP | {"http_headers": {"Authorization": "Bearer N"}}
    after = toml.set_key(text.encode(), ENTRY, new)
    assert (
        after == text.replace("Bearer T", "Bearer N").replace("'Bearer N'", '"Bearer N"').encode()
    )


@pytest.mark.parametrize("text", SPELLINGS.values(), ids=SPELLINGS)
def test_s81_another_form_replaces_the_entry_where_it_stands(text: str) -> None:
    after = toml.set_key(text.encode(), ENTRY, STDIO)
    assert tomllib.loads(after.decode())["mcp_servers"] == {"tfx-hub": STDIO}
    assert toml.set_key(after, ENTRY, STDIO) == after


@pytest.mark.parametrize("text", SPELLINGS.values(), ids=SPELLINGS)
def test_s70_deletion_finds_all_parts(text: str) -> None:
    after = toml.delete_key(text.encode(), ENTRY)
    left = tomllib.loads(after.decode())
    assert not left.pop("mcp_servers", {})
    assert left == ({"other": {"x": 1}} if "[other]" in text else {})


def test_s80_an_entry_survives_a_client_that_rewrites_the_whole_file() -> None:
    first = toml.set_key(CODEX.encode(), ENTRY, STDIO)
    rewritten = tomlkit.dumps(tomllib.loads(first.decode())).encode()
    assert b"# keep me" not in rewritten
    again = toml.set_key(rewritten, ENTRY, STDIO)
    assert again == rewritten
    assert again.count(b"tfx-hub") == 1 + again.count(b"tfx-hub.")


def test_s82_only_our_section_is_added_to_a_file_full_of_the_users_own_things() -> None:
    after = toml.set_key(CODEX.encode(), ENTRY, STDIO).decode()
    assert after == CODEX + (
        "\n[mcp_servers.tfx-hub]\n"
        'command = "/home/é u/bin/tfx"\n'
        'args = ["hub", "bridge"]\n'
        'env = { TFX_AGENT = "codex" }\n'
    )
    assert toml.delete_key(after.encode(), ENTRY) == CODEX.encode()


def test_s82_dates_elsewhere_survive_and_read_as_iso_text() -> None:
    after = toml.set_key(CODEX.encode(), ENTRY, STDIO)
    assert b"since = 2026-01-31T10:00:00Z\n" in after
    since = toml.get(after, ("projects", "/home/u/work", "since"))
    assert since == "2026-01-31T10:00:00+00:00"


def test_s106_a_rewrite_with_other_line_ends_and_comments_is_no_drift() -> None:
    before = toml.set_key(CODEX.encode(), ENTRY, STDIO)
    desktop = before.replace(b"# ", b"").replace(b"# keep me", b"").replace(b"\n", b"\r\n")
    desktop = desktop.replace(b"My Codex configuration\r\n", b"").replace(b"servers\r\n", b"", 1)
    desktop = desktop.replace(b"   the big one", b"").replace(b" keep me", b"")
    desktop = desktop.replace(b"   yes", b"")
    value = toml.get(desktop, ENTRY)
    assert value is not MISSING
    assert value_digest(value) == value_digest(STDIO)
    assert toml.set_key(desktop, ENTRY, STDIO) == desktop


def test_s69_crlf_and_bom_are_kept_and_new_lines_follow() -> None:
    data = b"\xef\xbb\xbf" + CODEX.replace("\n", "\r\n").encode()
    after = toml.set_key(data, ENTRY, STDIO)
    assert after.startswith(data)
    assert after.count(b"\n") == after.count(b"\r\n")
    assert after.count(b"\xef\xbb\xbf") == 1
    assert toml.delete_key(after, ENTRY) == data


def test_s69_mixed_line_ends_follow_the_majority_and_stay() -> None:
    data = b"a = 1\r\nb = 2\r\nc = 3\n"
    after = toml.set_key(data, ("d",), 4)
    assert after == data + b"d = 4\r\n"


def test_s69_comments_around_a_deleted_section_stay() -> None:
    text = "a = 1\n\n# ours?\n[t] # head\nk = 1 # tail\n\n# about u\n[u]\n"
    assert toml.delete_key(text.encode(), ("t",)).decode() == (
        "a = 1\n\n# ours?\n\n# about u\n[u]\n"
    )


def test_s60_an_empty_file_is_an_empty_document() -> None:
    assert toml.parse(b"") == {}
    after = toml.set_key(b"", ENTRY, {"command": "x"})
    assert after == b'[mcp_servers.tfx-hub]\ncommand = "x"\n'
    assert toml.delete_key(after, ENTRY) == b""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("mcp_servers = {}\n", "mcp_servers = { tfx-hub = { url = 1 } }\n"),
        ("mcp_servers={a={}} # c\n", "mcp_servers={a={}, tfx-hub = { url = 1 }} # c\n"),
        ("[mcp_servers]\na.b = 1\n", "[mcp_servers]\na.b = 1\n\n[mcp_servers.tfx-hub]\nurl = 1\n"),
        ("mcp_servers.a.b = 1\n", "mcp_servers.a.b = 1\nmcp_servers.tfx-hub = { url = 1 }\n"),
        ("[mcp_servers]", "[mcp_servers]\n\n[mcp_servers.tfx-hub]\nurl = 1"),
        ("[mcp_servers.a]\n", "[mcp_servers.a]\n\n[mcp_servers.tfx-hub]\nurl = 1\n"),
    ],
)
def test_s70_a_new_entry_goes_on_in_the_spelling_of_its_parent(text: str, wanted: str) -> None:
    after = toml.set_key(text.encode(), ENTRY, {"url": 1})
    assert after.decode() == wanted
    assert toml.delete_key(after, ENTRY) == text.encode()


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
