from __future__ import annotations

from pathlib import Path

import pytest

from tests.hub.driver import Bed, with_bed
from tests.hub.work.crew import Crew, PlayCrew, Story


@pytest.fixture
def act(tmp_path: Path) -> PlayCrew:
    """Run a story of agents at work on a fake clock; at its end the log refolds to the rows."""

    def run(story: Story) -> None:
        async def whole(bed: Bed) -> None:
            await story(Crew(bed))
            assert await bed.refolds()

        with_bed(tmp_path / "hub.db", whole)

    return run
