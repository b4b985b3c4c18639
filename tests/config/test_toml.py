"""Our entry in Codex's TOML: every spelling is recognised, the rest of the file stays."""

from __future__ import annotations

import tomllib

import pytest
import tomlkit

from tests.config.toml_documents import ENTRY, STDIO
from tfx.config import toml
from tfx.config.keypath import MISSING, value_digest
from tfx.errors import JsonValue

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
