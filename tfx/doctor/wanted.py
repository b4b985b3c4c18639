"""The described state as doctor compares with it: setup's own, plus the hub entries it wrote.

Decides nothing about files or entries: survey, desired and the plan engine do (S-2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tfx.agents.detect import Detected
from tfx.agents.model import HUB_ENTRY
from tfx.config.keypath import value_digest
from tfx.core.paths import Paths
from tfx.desired import Link, Transport, desired, http_link, mcp_file, stdio_link
from tfx.errors import TfxError
from tfx.hub.places import HubFiles
from tfx.hub.tokens import read_bus
from tfx.plan.actions import Desired, Plan, WantedEntry
from tfx.plan.engine import Engine
from tfx.plan.records import EntryRecord, Manifest
from tfx.setup.survey import Survey, survey


@dataclass(frozen=True, slots=True)
class Wanted:
    """Who is here, what shall be there, what is recorded, and the plan between them."""

    survey: Survey
    desired: Desired
    manifest: Manifest
    plan: Plan

    @property
    def was_set_up(self) -> bool:
        """Whether setup ever wrote something here."""
        return bool(self.manifest.files or self.manifest.entries)


def look(paths: Paths) -> Wanted:
    """Return the state that setup would bring about now; writes nothing. Raises TfxError."""
    engine = Engine(paths.setup_dir, git=paths.program("git"))
    seen = survey(paths, engine)
    manifest = engine.manifest()
    base = desired(paths, seen.scope, seen.settings, {})
    entries = tuple(_hub_entries(paths, seen, manifest))
    whole = replace(base, entries=(*base.entries, *entries))
    return Wanted(seen, whole, manifest, engine.plan(whole))


def _hub_entries(paths: Paths, seen: Survey, manifest: Manifest) -> Iterator[WantedEntry]:
    """Yield the hub entry of each agent that setup once wrote one for, in the form it had."""
    links = dict(_links(paths, seen))
    for one in seen.scope:
        record = recorded_entry(manifest, one)
        if record is None or one.agent.mcp is None:
            continue
        candidates = {
            transport: entry
            for transport, link in links.items()
            for entry in desired(paths, (one,), seen.settings, {one.agent.name: link}).entries
            if entry.asset == HUB_ENTRY
        }
        same = [c for c in candidates.values() if value_digest(c.value) == record.value_sha256]
        form = _form(record)
        if same:
            yield same[0]
        elif form in candidates:
            yield candidates[form]


def recorded_entry(manifest: Manifest, one: Detected) -> EntryRecord | None:
    """Return the hub entry that setup wrote for an agent, or None."""
    return next(
        (
            record
            for record in manifest.entries.values()
            if record.agent == one.agent.name and record.asset == HUB_ENTRY
        ),
        None,
    )


def _form(record: EntryRecord) -> Transport:
    """Return the form of a recorded entry, told by the keys that were written."""
    names = {leaf[0] for leaf in record.leaves if leaf}
    return Transport.HTTP if names & {"url", "httpUrl", "serverUrl"} else Transport.STDIO


def _links(paths: Paths, seen: Survey) -> Iterator[tuple[Transport, Link]]:
    yield Transport.STDIO, stdio_link(seen.settings)
    try:
        token = read_bus(paths, HubFiles.of(paths))
    except TfxError:
        token = None
    if token is not None:
        yield Transport.HTTP, http_link(seen.settings, token)


__all__ = ["Wanted", "look", "mcp_file", "recorded_entry"]
