from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.clients.installation import NAMES, PINNED
from tests.clients.running import Clients
from tests.support import listing
from tfx.agents.catalogue import find
from tfx.agents.detect import Detected, Proof, detect
from tfx.agents.versions import AgentVersion, Unknown, probe_version
from tfx.core.paths import Paths

pytestmark = [pytest.mark.clients, pytest.mark.timeout(1200)]


def test_s13_s14_package_json_and_version_output_agree_and_home_stays_as_it_was(
    clients: Clients, home: Path
) -> None:
    paths = Paths.resolve({"PATH": clients.installed.search_path, "HOME": str(home)})
    agents = [find(name) for name in NAMES]
    before = listing(home)
    found = detect(paths, agents, probe=True)

    def printed_by(detected: Detected) -> AgentVersion | Unknown:
        patient = replace(detected.agent.version, timeout_s=60)
        assert detected.program is not None
        return probe_version(detected.program, patient, paths)

    with ThreadPoolExecutor(2) as pool:
        printed = list(pool.map(printed_by, found))
    assert listing(home) == before == {}
    pinned = {PINNED.get(package.name) for agent in agents for package in agent.packages}
    for detected, version in zip(found, printed, strict=True):
        assert detected.proof is Proof.PACKAGE
        assert isinstance(detected.version, AgentVersion)
        assert detected.version.text in pinned
        assert isinstance(version, AgentVersion)
        assert version == detected.version
