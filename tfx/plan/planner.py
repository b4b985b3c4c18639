"""Match what is wanted with what is recorded, place by place, and order the steps.

Knows which places a run looks after; how one place is planned is told by the step modules.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tfx.core.files import digest
from tfx.plan.actions import Desired, Format, WantedEntry, WantedFile
from tfx.plan.drafts import SharedFile
from tfx.plan.entry_edits import EntryItem
from tfx.plan.entry_steps import plan_shared
from tfx.plan.file_items import FileItem
from tfx.plan.file_steps import plan_file
from tfx.plan.look import Obstacle, look
from tfx.plan.records import EntryRecord, FileRecord, entry_name
from tfx.plan.steps import SKILL, Context, Step


def make_steps(desired: Desired, context: Context) -> tuple[Step, ...]:
    """Return the steps that lead to the desired state, in the order of their execution.

    Files come first, then the entries that point to them, then what is deleted. Reads the disk,
    writes nothing. Raises ValueError when two wanted items contradict each other.
    """
    places = {_resolved(path) for path in desired.places}
    places |= {_resolved(wanted.root) for wanted in desired.files}
    places |= {_resolved(wanted.file) for wanted in desired.entries}
    steps = [plan_file(item, context) for item in _file_items(desired.files, places, context)]
    steps += [
        plan_shared(file, context) for file in _shared_files(desired.entries, places, context)
    ]
    return tuple(sorted(steps, key=lambda step: (step.phase, step.rank)))


def make_removal(context: Context) -> tuple[Step, ...]:
    """Return the steps that take back all that is recorded in the scope (S-37)."""
    manifest = context.manifest
    places = {_resolved(Path(record.root)) for record in manifest.files.values()}
    places |= {_resolved(Path(record.file)) for record in manifest.entries.values()}
    steps = [plan_file(item, context) for item in _file_items((), places, context)]
    steps += [plan_shared(file, context) for file in _shared_files((), places, context)]
    return tuple(sorted(steps, key=lambda step: (step.phase, step.rank)))


def _resolved(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _file_items(
    wanted: Iterable[WantedFile], places: set[Path], context: Context
) -> list[FileItem]:
    """Return one item for each place: roots that are one directory are one (S-29)."""
    wants: dict[tuple[Path, str], WantedFile] = {}
    for want in wanted:
        place = (_resolved(want.root), want.path)
        wants[place] = _merged(wants[place], want) if place in wants else want
    records: dict[tuple[Path, str], FileRecord] = {}
    for record in context.manifest.files.values():
        root = _resolved(Path(record.root))  # it may have moved behind a link since
        if root in places:
            records[root, record.path] = record
    items = [
        FileItem(root, path, wants.get((root, path)), records.get((root, path)))
        for root, path in sorted({*wants, *records}, key=str)
    ]
    foreign = _foreign_folders(items)
    return [replace(item, foreign_folder=_skill_folder(item) in foreign) for item in items]


def _merged(one: WantedFile, other: WantedFile) -> WantedFile:
    if (one.data, one.mode) != (other.data, other.mode):
        raise ValueError(f"{one.asset} and {other.asset} are both wanted at {one.root}/{one.path}")
    return replace(one, agents=tuple(sorted({*one.agents, *other.agents})))


def _skill_folder(item: FileItem) -> Path:
    return item.root / item.path.split("/", 1)[0]


def _foreign_folders(items: Iterable[FileItem]) -> frozenset[Path]:
    """Return the folders where a skill of ours would land among things of the user (S-97)."""
    skills: dict[Path, list[FileItem]] = defaultdict(list)
    for item in items:
        if "/" in item.path:
            skills[_skill_folder(item)].append(item)
    return frozenset(
        folder
        for folder, inside in skills.items()
        if any(item.path.rpartition("/")[2] == SKILL for item in inside)
        and not any(item.record is not None and item.record.state for item in inside)
        and _holds_others(folder, inside)
    )


def _holds_others(folder: Path, inside: list[FileItem]) -> bool:
    try:
        names = {entry.name for entry in os.scandir(folder)}
    except OSError:
        return False
    if names - {item.path.split("/")[1] for item in inside}:
        return True
    return any(_differs(item) for item in inside)


def _differs(item: FileItem) -> bool:
    try:
        found = look(item.place)
    except Obstacle:
        return True
    wanted = item.wanted
    return found.data is not None and (wanted is None or digest(found.data) != digest(wanted.data))


@dataclass(slots=True)
class _Gathered:
    path: Path
    format: Format
    wanted: list[WantedEntry]
    records: list[EntryRecord]


def _shared_files(
    wanted: Iterable[WantedEntry], places: set[Path], context: Context
) -> list[SharedFile]:
    """Return one item for each shared file, links resolved, so that each is read once."""
    files: dict[Path, _Gathered] = {}
    for want in wanted:
        target = _resolved(want.file)
        gathered = files.setdefault(target, _Gathered(want.file, want.format, [], []))
        gathered.wanted.append(want)
    for record in context.manifest.entries.values():
        target = _resolved(Path(record.file))
        if target in places:
            path = Path(record.file)
            files.setdefault(target, _Gathered(path, record.format, [], [])).records.append(record)
    return [_shared_file(target, gathered) for target, gathered in files.items()]


def _shared_file(target: Path, gathered: _Gathered) -> SharedFile:
    records: Mapping[str, EntryRecord] = {
        entry_name(str(target), r.key, r.asset if r.element else None): r for r in gathered.records
    }
    wants: dict[str, WantedEntry] = {}
    for want in gathered.wanted:
        name = EntryItem(want, None).name(target)
        if name in wants and wants[name] != want:
            raise ValueError(f"two values are wanted at {want.file}:{'.'.join(want.key)}")
        wants[name] = want
    retired = [EntryItem(None, record) for name, record in records.items() if name not in wants]
    items = [EntryItem(want, records.get(name)) for name, want in wants.items()]
    return SharedFile(
        gathered.path, target, gathered.format, (*retired, *items), tuple(gathered.records)
    )
