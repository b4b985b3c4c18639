"""A user and tfx act in any order: nothing that the user wrote is ever lost."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.plan.machine import AGENTS, Machine, value
from tfx.plan.actions import Desired, Flags, OutcomeStatus
from tfx.plan.manifest import load

FLAGS = st.sampled_from([Flags(), Flags(take_new=True), Flags(keep_mine=True), Flags(restore=True)])
VERSIONS = st.sampled_from(["1", "2", "3"])
WORDS = st.sampled_from(["alpha", "beta", "gamma"])


class UserAndTfx(RuleBasedStateMachine):
    """`written` is every whole file that the user ever wrote, `keys` what they have in JSON."""

    def __init__(self) -> None:
        super().__init__()
        self.top = Path(tempfile.mkdtemp())
        self.machine = Machine(self.top)
        self.written: set[bytes] = set()
        self.keys: dict[str, int] = {}
        self.count = 0

    def teardown(self) -> None:
        shutil.rmtree(self.top)

    def paths(self) -> list[Path]:
        machine = self.machine
        more = machine.skill.with_name("more.md")
        return [machine.skill, more, machine.skill.with_name("own.md"), machine.script]

    @initialize(exists=st.booleans())
    def client_made_its_settings(self, *, exists: bool) -> None:
        if exists:
            self.machine.settings.parent.mkdir(parents=True)
            self.machine.settings.write_text("{}")

    @rule(index=st.integers(0, 3), word=WORDS)
    def the_user_writes_a_file(self, index: int, word: str) -> None:
        path = self.paths()[index]
        self.count += 1
        content = f"{word} {self.count}".encode()
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            self.written.discard(path.read_bytes())
        path.write_bytes(content)
        self.written.add(content)

    @rule(index=st.integers(0, 3))
    def the_user_deletes_a_file(self, index: int) -> None:
        path = self.paths()[index]
        if path.exists():
            self.written.discard(path.read_bytes())
            path.unlink()

    @rule(index=st.integers(0, 3), mode=st.sampled_from([0o600, 0o644, 0o755]))
    def the_user_sets_a_mode(self, index: int, mode: int) -> None:
        path = self.paths()[index]
        if path.exists():
            path.chmod(mode)

    @rule(word=WORDS)
    def a_client_sets_a_key(self, word: str) -> None:
        self.count += 1
        self.keys[word] = self.count
        document = value(self.machine.settings) if self.machine.settings.exists() else {}
        document[word] = self.count
        self.machine.settings.parent.mkdir(parents=True, exist_ok=True)
        self.machine.settings.write_text(json.dumps(document, indent=2))

    @rule()
    def the_user_edits_our_entry(self) -> None:
        if not self.machine.settings.exists():
            return
        document = value(self.machine.settings)
        hub = document.get("mcpServers", {}).get("tfx-hub")
        if isinstance(hub, dict):
            self.count += 1
            hub["command"] = f"mine {self.count}"
            self.machine.settings.write_text(json.dumps(document))

    @rule()
    def the_user_deletes_our_entry(self) -> None:
        if self.machine.settings.exists():
            document = value(self.machine.settings)
            document.pop("mcpServers", None)
            self.machine.settings.write_text(json.dumps(document))

    @rule(version=VERSIONS, flags=FLAGS, fewer=st.booleans())
    def setup(self, version: str, flags: Flags, *, fewer: bool) -> None:
        desired = self.machine.desired(version)
        if fewer:
            desired = replace(
                desired,
                files=desired.files[:1],
                places=frozenset({self.machine.skills, self.machine.script.parent}),
            )
        report = self.machine.apply(desired, flags)
        assert report.count(OutcomeStatus.FAILED) == 0
        self.settled(desired)

    def settled(self, desired: Desired) -> None:
        """The next run has nothing to do but the conflicts, and moves nothing."""
        before = self.machine.snapshot()
        report = self.machine.apply(desired)
        assert report.run is None, report
        assert self.machine.snapshot() == before

    @rule()
    def remove(self) -> None:
        self.machine.remove()
        manifest = load(self.machine.state / "manifest.json")
        assert (manifest.files, manifest.entries, manifest.shared) == ({}, {}, {})
        assert manifest.dirs == frozenset()
        assert self.machine.remove().run is None

    @rule(index=st.integers(0, 20))
    def undo(self, index: int) -> None:
        runs = self.machine.engine().runs()
        if runs:
            self.machine.engine().undo(runs[index % len(runs)].run)

    @invariant()
    def nothing_of_the_user_is_lost(self) -> None:
        assert self.written <= self.machine.backups()

    @invariant()
    def the_keys_of_the_client_stand(self) -> None:
        path = self.machine.settings
        document = value(path) if path.exists() else {}
        assert {word: document.get(word) for word in self.keys} == self.keys

    @invariant()
    def nothing_but_what_belongs_lies_in_the_roots(self) -> None:
        names = {path.name for path in self.machine.home.rglob("*") if path.is_file()}
        known = {path.name for path in self.paths()} | {"settings.json", "config.toml"}
        assert names <= known


UserAndTfx.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=14,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
TestUserAndTfx = UserAndTfx.TestCase


def test_setup_then_remove_is_the_identity_after_any_known_beginning(tmp_path: Path) -> None:
    """The short form of the above, for the eye."""
    machine = Machine(tmp_path)
    machine.settings.parent.mkdir(parents=True)
    machine.settings.write_text('{"a":  1}')
    before = machine.contents()
    for version in "123":
        machine.apply(machine.desired(version))
    machine.remove()
    assert machine.contents() == before
    assert AGENTS
