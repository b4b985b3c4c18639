"""Where each agent's `tfx-hub` entry leads: to the bridge, or to the hub's own address.

Knows nothing of plans; only a token file is made here, and only when asked for.
"""

from __future__ import annotations

from tfx.agents.model import HUB_ENTRY
from tfx.core.files import make_private_dir
from tfx.core.paths import Paths
from tfx.desired import Link, Transport, http_link, stdio_link
from tfx.hub.places import HubFiles
from tfx.hub.tokens import ensure, new_secret, read_bus
from tfx.plan.engine import Engine
from tfx.setup.survey import Survey


def links_of(
    paths: Paths, engine: Engine, seen: Survey, transport: Transport | None, *, make: bool
) -> dict[str, Link]:
    """Return what each agent's MCP entry leads to: the bridge, unless HTTP was asked for (K-20).

    An agent whose entry is recorded in one form keeps it until the option says otherwise. A
    preview makes no token file (S-3).
    """
    recorded = {
        record.agent: Transport.HTTP
        for record in engine.manifest().entries.values()
        if record.asset == HUB_ENTRY and any("Authorization" in leaf for leaf in record.leaves)
    }
    forms = {
        one.agent.name: transport or recorded.get(one.agent.name) or Transport.STDIO
        for one in seen.scope
    }
    bridge = stdio_link(seen.settings)
    if Transport.HTTP not in forms.values():
        return dict.fromkeys(forms, bridge)
    direct = http_link(seen.settings, _bus_token(paths, make=make))
    return {name: direct if form is Transport.HTTP else bridge for name, form in forms.items()}


def _bus_token(paths: Paths, *, make: bool) -> str:
    """Return the hub's bus token; a preview that finds none goes on with one it throws away."""
    files = HubFiles.of(paths)
    token = read_bus(paths, files)
    if token is None and make:
        make_private_dir(files.directory)
        token = ensure(paths, files)[0].bus
    return token or new_secret()
