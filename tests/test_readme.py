"""README and docs/ are a promise: each console block runs here, or says why it does not.

A block stands behind `<!-- run -->` (run in order, in one HOME for the page, its output compared;
`…` stands for any text) or behind `<!-- not run: REASON -->`; README's develop block is run by
`.ci/run`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import bare_env, stand_in

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
MOST_LINES_OF_README = 200
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*) -->\n)?^```console\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE
)
KNOWN = re.compile(r"run|not run: .+|test: develop")


@dataclass(frozen=True, slots=True)
class Step:
    command: str
    output: str


def steps(body: str) -> list[Step]:
    found: list[Step] = []
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        while command.endswith("\\"):
            more, _, output = output.partition("\n")
            command += "\n" + more
        found.append(Step(command, output))
    return found


def as_pattern(expected: str) -> str:
    parts = [re.escape(part) for part in expected.strip().split("…")]
    return r"[\s\S]*?".join(parts)


def text_of(page: Path) -> str:
    return page.read_text("utf-8")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_every_console_block_is_run_or_says_why_not() -> None:
    developing: list[Path] = []
    for page in PAGES:
        blocks = list(BLOCK.finditer(text_of(page)))
        assert len(blocks) == text_of(page).count("```console"), page
        unmarked = [b["body"] for b in blocks if not KNOWN.fullmatch(b["mark"] or "")]
        assert unmarked == [], page
        developing += [page for b in blocks if b["mark"] == "test: develop"]
    assert developing == [README]


def test_readme_is_short_and_leads_to_every_page() -> None:
    assert len(text_of(README).splitlines()) <= MOST_LINES_OF_README
    linked = {(ROOT / link).resolve() for link in LINK.findall(text_of(README))}
    assert set(PAGES[1:]) <= linked


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_inside_the_repository_leads_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(text_of(page)) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "page", [page for page in PAGES if "<!-- run -->" in text_of(page)], ids=name_of
)
def test_console_blocks_print_what_the_page_says(tmp_path: Path, page: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    agents = tmp_path / "agents"
    stand_in(agents, "claude", "codex")
    path = f"{Path(sys.executable).parent}:{agents}/bin:/usr/bin:/bin"
    wrong: list[str] = []
    for block in BLOCK.finditer(text_of(page)):
        if block["mark"] != "run":
            continue
        for step in steps(block["body"]):
            done = subprocess.run(
                ["bash", "-c", step.command],
                env=bare_env(home, PATH=path, COLUMNS="100"),
                cwd=home,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            shown = done.stdout + re.sub(r"^tfx: .*\n", "", done.stderr, flags=re.MULTILINE)
            if not re.fullmatch(as_pattern(step.output), shown.strip()):
                wrong.append(f"$ {step.command}\n{shown}\n--- the page says:\n{step.output}")
    assert not wrong, "\n\n".join(wrong)
