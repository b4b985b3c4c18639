"""The official conformance suite against the hub, on both revisions (H-107, H-108)."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.conformance.node import Tools
from tests.conformance.proxy import with_token
from tests.conformance.stack import TOKEN, serving
from tests.hub.running import RunningHub

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(900), pytest.mark.xdist_group("suite")]

HERE = Path(__file__).parent
GROUP = re.compile(r"((?:  # .+\n)+)((?:  - [\w-]+\n)+)")
REVISIONS = ("2026-07-28", "2025-11-25")
ROW = re.compile(r"^[✓✗] ([\w-]+): (\d+) passed, (\d+) failed$", re.MULTILINE)

# What the product passes as it ships: scenario → least number of checks (H-108).
AS_SHIPPED = {
    "http-header-validation": 14,
    "dns-rebinding-protection": 2,
    "sep-2164-resource-not-found": 2,
    "tools-list": 4,
    "server-sse-multiple-streams": 1,
}


def run(node: Tools, port: int, revision: str, expected: Path, out: Path) -> dict[str, list[int]]:
    """Run every scenario; return passed and failed checks of each."""
    done = subprocess.run(
        [
            *node.argv("@modelcontextprotocol/conformance"),
            "server",
            *("--url", f"http://127.0.0.1:{port}/mcp"),
            *("--suite", "all", "--spec-version", revision),
            *("--expected-failures", str(expected), "-o", str(out)),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={"PATH": "/usr/bin:/bin", "HOME": str(out)},
        cwd=out,
    )
    found = {name: [int(ok), int(bad)] for name, ok, bad in ROW.findall(done.stdout)}
    assert found, done.stdout + done.stderr
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return found


def listed(path: Path) -> set[str]:
    """The scenarios with a failed check; those under "only a warning" have none."""
    found: set[str] = set()
    for reason, names in GROUP.findall(path.read_text("utf-8")):
        if not reason.startswith("  # only a warning: "):
            found.update(re.findall(r"- ([\w-]+)", names))
    return found


@pytest.mark.parametrize("revision", REVISIONS)
def test_h_107_no_check_of_a_declared_capability_fails(
    node: Tools, tmp_path: Path, revision: str
) -> None:
    expected = HERE / f"fixtures-{revision}.yml"
    with serving(tmp_path) as hub, with_token(hub, TOKEN) as port:
        found = run(node, port, revision, expected, tmp_path)
    failing = {name for name, (_, bad) in found.items() if bad}
    assert failing == listed(expected)


@pytest.mark.parametrize("revision", REVISIONS)
def test_h_108_the_product_as_it_ships(
    node: Tools, hub: RunningHub, tmp_path: Path, revision: str
) -> None:
    expected = HERE / f"product-{revision}.yml"
    with with_token(hub.port, hub.token) as port:
        found = run(node, port, revision, expected, tmp_path)
    failing = {name for name, (_, bad) in found.items() if bad}
    assert failing == listed(expected)
    if revision == REVISIONS[0]:
        for name, checks in AS_SHIPPED.items():
            assert found[name] == [checks, 0], name
        assert found["server-stateless"] == [21, 4]  # all but those of three fixture tools


@pytest.mark.parametrize("path", sorted(HERE.glob("*.yml")), ids=lambda path: path.stem)
def test_h_107_every_exclusion_stands_under_its_reason(path: Path) -> None:
    body = path.read_text("utf-8").partition("server:\n")[2]
    groups = GROUP.findall(body)
    assert "".join(reason + names for reason, names in groups) == body
