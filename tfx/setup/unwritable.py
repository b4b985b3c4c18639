"""The hub entries that this installation cannot have, as conflicts of their agents alone.

Decides nothing about files; what a client would do to a text is known to the agents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tfx.agents.detect import Detected
from tfx.agents.entries import entry_or_refusal
from tfx.core.paths import Paths
from tfx.desired import Link, linked, mcp_file
from tfx.errors import TfxError
from tfx.setup.report import ActionRow


def unwritable(
    paths: Paths, scope: tuple[Detected, ...], links: Mapping[str, Link]
) -> tuple[ActionRow, ...]:
    """Return a row for each entry that its client would change when it reads it (S-21)."""
    return tuple(_rows(paths, scope, links))


def _rows(
    paths: Paths, scope: tuple[Detected, ...], links: Mapping[str, Link]
) -> Iterator[ActionRow]:
    for agent, target, link in linked((one.agent for one in scope), links):
        refusal = entry_or_refusal(agent, link, env=paths.env)
        if isinstance(refusal, TfxError):
            yield ActionRow(
                "conflict",
                f"{mcp_file(paths, target)}:{'.'.join(target.entry_key)}",
                agent.name,
                "conflict",
                refusal.message,
                f"{refusal.hint}, or give it the hub's address instead:"
                f" tfx setup --agent {agent.name} --mcp-transport http",
            )
