"""What the user does to a shared file between `tfx setup` and `tfx setup --remove` stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import Machine

CODEX = ".codex/config.toml"
GEMINI = ".gemini/settings.json"
TRANSPORTS = pytest.mark.parametrize("transport", ["stdio", "http"])


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, "codex", "gemini")


@TRANSPORTS
@pytest.mark.parametrize(
    ("own", "left"),
    [
        ('\n[mcp_servers.own]\ncommand = "c"\n', ""),
        ('\n[mcp_servers.own.env]\nA = "c"\n', ""),
        ('mcp_servers.own.command = "c"\n', ""),
        ('mcp_servers.own = { command = "c" }\n', ""),
        ('mcp_servers = { own = { command = "c" } }\n', None),
        ('\n[mcp_servers]\nown = { command = "c" }\n', "\n[mcp_servers]\n"),
    ],
)
def test_s56_own_toml_server_deleted_beside_ours(
    machine: Machine, transport: str, own: str, left: str | None
) -> None:
    head = 'model = "x"  # why\n'
    config = machine.write(CODEX, head + own)
    assert machine.setup("--mcp-transport", transport).code == 0
    text = config.read_text("utf-8")
    if left is None:
        config.write_text(text.replace('own = { command = "c" }, ', ""), "utf-8")
    elif left:
        config.write_text(text.replace('own = { command = "c" }\n', ""), "utf-8")
    else:
        config.write_text(text.replace(own, ""), "utf-8")
    assert machine.setup("--mcp-transport", transport, "--check").code == 0
    done = machine.setup("--remove")
    assert done.code == 0, done.out
    after = config.read_text("utf-8")
    assert "tfx-hub" not in after
    if left is None:
        assert after == head + "mcp_servers = {}\n"
    else:
        assert after.rstrip("\n") == (head + left).rstrip("\n")


@TRANSPORTS
def test_s56_own_jsonc_server_and_notes_around_ours(machine: Machine, transport: str) -> None:
    settings = machine.write(
        GEMINI, '{\n  "mcpServers": {\n    "own": {"command": "c"} // own\n  },\n}\n'
    )
    assert machine.setup("--mcp-transport", transport).code == 0
    text = settings.read_text("utf-8")
    text = text.replace('"own": {"command": "c"},', "/* gone */")
    text = text.replace('    "tfx-hub"', '    // the hub\n    "tfx-hub"')
    settings.write_text(text.replace("  },\n}", '  },\n  "late": [1],\n}'), "utf-8")
    assert machine.setup("--mcp-transport", transport, "--check").code == 0
    assert machine.setup("--remove").code == 0
    after = settings.read_text("utf-8")
    assert "tfx-hub" not in after
    for kept in ("/* gone */ // own", "// the hub", '"late": [1]'):
        assert kept in after


@TRANSPORTS
@pytest.mark.parametrize("content", [b"", b"{}", b'{"a": 1}'])
def test_shared_file_that_the_user_deleted_stays_away(
    machine: Machine, transport: str, content: bytes
) -> None:
    settings = machine.write(GEMINI, content)
    config = machine.write(CODEX, content.replace(b'{"a": 1}', b"a = 1").strip(b"{}"))
    assert machine.setup("--mcp-transport", transport).code == 0
    settings.unlink()
    config.unlink()
    preview = machine.setup("--remove", "--dry-run")
    assert preview.code == 0
    assert machine.setup("--remove").code == 0
    assert not settings.exists()
    assert not config.exists()


def test_new_json_file_reads_as_if_a_person_had_written_it(machine: Machine) -> None:
    assert machine.setup("--mcp-transport", "stdio").code == 0
    text = (machine.home / GEMINI).read_text("utf-8")
    assert text.startswith('{\n  "mcpServers": {\n    "tfx-hub": {\n')
    assert text.endswith("  }\n}\n")
    assert machine.setup("--remove").code == 0
    assert not (machine.home / ".gemini").exists()
