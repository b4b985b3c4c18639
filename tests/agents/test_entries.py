from __future__ import annotations

import re

import pytest

from tfx.agents.catalogue import AGENTS, find
from tfx.agents.entries import entry_by_variable, mcp_entry
from tfx.agents.model import Http, Stdio
from tfx.errors import InvalidRequest, JsonValue

COMMAND = "/opt/tfx/bin/tfx"
STDIO = Stdio(COMMAND, ("hub", "bridge"), {})
STDIO_ENV = Stdio(COMMAND, ("hub", "bridge"), {"TFX_HOME": "/srv/tfx"})
URL = "http://127.0.0.1:7337/mcp"
HTTP = Http(URL, "tok_A-1")

BEARER: JsonValue = {"Authorization": "Bearer tok_A-1"}
PLAIN: JsonValue = {"command": COMMAND, "args": ["hub", "bridge"]}

STDIO_ENTRIES: dict[str, JsonValue] = {
    "claude": {"type": "stdio", "command": COMMAND, "args": ["hub", "bridge"]},
    "codex": PLAIN,
    "gemini": PLAIN,
    "antigravity": PLAIN,
    "copilot": {
        "tools": ["*"],
        "type": "local",
        "command": COMMAND,
        "args": ["hub", "bridge"],
    },
    "cursor": PLAIN,
    "opencode": {"type": "local", "command": [COMMAND, "hub", "bridge"]},
    "amp": PLAIN,
    "goose": {"type": "stdio", "cmd": COMMAND, "args": ["hub", "bridge"]},
    "qwen": PLAIN,
    "grok": PLAIN,
}
HTTP_ENTRIES: dict[str, JsonValue] = {
    "claude": {"type": "http", "url": URL, "headers": BEARER},
    "codex": {"url": URL, "http_headers": BEARER},
    "gemini": {"type": "http", "url": URL, "headers": BEARER},
    "antigravity": {"serverUrl": URL, "headers": BEARER},
    "copilot": {"tools": ["*"], "type": "http", "url": URL, "headers": BEARER},
    "cursor": {"url": URL, "headers": BEARER},
    "opencode": {"type": "remote", "url": URL, "headers": BEARER},
    "amp": {"url": URL, "headers": BEARER},
    "qwen": {"httpUrl": URL, "headers": BEARER},
}
NAMES = [agent.name for agent in AGENTS]


@pytest.mark.parametrize("name", STDIO_ENTRIES)
def test_s20_stdio_entry_has_the_clients_own_shape(name: str) -> None:
    assert mcp_entry(find(name), STDIO) == STDIO_ENTRIES[name]


@pytest.mark.parametrize("name", HTTP_ENTRIES)
def test_s20_http_entry_has_the_clients_own_shape(name: str) -> None:
    assert mcp_entry(find(name), HTTP) == HTTP_ENTRIES[name]


@pytest.mark.parametrize("name", sorted(STDIO_ENTRIES.keys() - {"goose"}))
def test_s20_environment_is_there_only_when_it_holds_something(name: str) -> None:
    key = "environment" if name == "opencode" else "env"
    with_env = mcp_entry(find(name), STDIO_ENV)
    assert isinstance(with_env, dict)
    assert with_env.pop(key) == {"TFX_HOME": "/srv/tfx"}
    assert with_env == STDIO_ENTRIES[name]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in STDIO_ENTRIES])
def test_s10_an_unknown_stdio_shape_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        mcp_entry(find(name), STDIO)
    assert caught.value.reason == "shape-unknown"


@pytest.mark.parametrize("name", [name for name in NAMES if name not in HTTP_ENTRIES])
def test_s10_an_unknown_http_shape_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        mcp_entry(find(name), HTTP)
    assert caught.value.details == {"agent": name, "transport": "http"}


@pytest.mark.parametrize("token", ["", "q w", "a$HOME", "{env:X}", "ü", "a.b", "q\n"])
def test_s21_a_token_that_is_not_url_safe_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        mcp_entry(find("claude"), Http(URL, token))
    shown = f"{caught.value.message} {caught.value.hint} {caught.value.details}"
    assert not token or token not in shown


def test_k18_a_relative_command_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="absolute"):
        mcp_entry(find("claude"), Stdio("tfx", ("hub", "bridge"), {}))


@pytest.mark.parametrize(
    ("name", "home"),
    [
        ("claude", "/h/${USER}"),
        ("copilot", "/h/${USER}"),
        ("gemini", "/h/${USER:-x}"),
        ("gemini", "/h/$USER"),
        ("gemini", "/h/${USER}"),
        ("qwen", "/h/a$USER b"),
        ("opencode", "/h/{env:USER}"),
        ("opencode", "/h/{file:/etc/hostname}"),
    ],
)
def test_s21_a_command_the_client_would_rewrite_is_refused(name: str, home: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(home)) as caught:
        mcp_entry(find(name), Stdio(f"{home}/bin/tfx", (), {}))
    assert caught.value.reason == "value-expanded"


@pytest.mark.parametrize(
    ("name", "home"),
    [
        ("claude", "/h/$USER"),
        ("claude", "/h/{env:USER}"),
        ("copilot", "/h/$USER"),
        ("gemini", "/h/{env:USER}"),
        ("gemini", "/h/$ /5$"),
        ("opencode", "/h/$USER/${USER}"),
        ("codex", "/h/$USER/${USER}/{env:USER}"),
    ],
)
def test_s94_text_that_the_client_leaves_alone_is_written_as_it_is(name: str, home: str) -> None:
    command = f'{home}/it\'s "ü"/tfx'
    entry = mcp_entry(find(name), Stdio(command, (), {}))
    assert isinstance(entry, dict)
    assert entry["command"] in (command, [command])


def test_s94_a_variable_that_is_not_set_is_no_obstacle_where_it_stays_as_written() -> None:
    connection = Stdio("/h/$NOBODY/tfx", (), {})
    assert mcp_entry(find("gemini"), connection, env={"USER": "u"}) == {
        "command": "/h/$NOBODY/tfx",
        "args": [],
    }
    with pytest.raises(InvalidRequest):
        mcp_entry(find("gemini"), connection, env={"NOBODY": ""})
    with pytest.raises(InvalidRequest):
        mcp_entry(find("claude"), Stdio("/h/${NOBODY:-x}/tfx", (), {}), env={})
    with pytest.raises(InvalidRequest):
        mcp_entry(find("opencode"), Stdio("/h/{env:NOBODY}/tfx", (), {}), env={})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("claude", {"type": "http", "url": URL, "headers": {"Authorization": "Bearer ${TFX_T}"}}),
        ("gemini", {"type": "http", "url": URL, "headers": {"Authorization": "Bearer ${TFX_T}"}}),
        (
            "opencode",
            {"type": "remote", "url": URL, "headers": {"Authorization": "Bearer {env:TFX_T}"}},
        ),
        ("codex", {"url": URL, "bearer_token_env_var": "TFX_T"}),
        (
            "copilot",
            {
                "tools": ["*"],
                "type": "http",
                "url": URL,
                "headers": {"Authorization": "Bearer ${TFX_T}"},
            },
        ),
        ("qwen", {"httpUrl": URL, "headers": {"Authorization": "Bearer ${TFX_T}"}}),
        ("amp", None),
        ("aider", None),
    ],
)
def test_s23_the_token_can_stay_in_a_variable_where_that_was_tested(
    name: str, expected: JsonValue | None
) -> None:
    assert entry_by_variable(find(name), URL, "TFX_T") == expected
