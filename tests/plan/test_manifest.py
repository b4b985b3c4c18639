"""The manifest and the journal as they lie on the disk."""

from __future__ import annotations

import json
import os
import resource
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plan.machine import Machine
from tfx.errors import StateConflict
from tfx.plan.actions import Format, State
from tfx.plan.journal import Fate, Intent, Journal, read
from tfx.plan.manifest import change_from_json, change_to_json, load, save
from tfx.plan.records import Change, EntryRecord, FileRecord, Manifest, Replaced, SharedRecord

FILE = FileRecord(
    "/r\udcff", "a/\udcfe.md", "0a", 0o644, "asset", ("claude",), "run", Replaced("run/1", 0o600)
)
ENTRY = EntryRecord(
    "codex", "/f", Format.TOML, ("a", "b.c"), "0b", leaves=((), ("x",)), created=(("a",),)
)
SHARED = SharedRecord("/f", "0c", "run/2", created=True)
ALL = (Change(None, FILE), Change(None, ENTRY), Change(None, SHARED), Change(None, "/made"))


def test_s40_the_manifest_comes_back_as_it_was_written(tmp_path: Path) -> None:
    manifest = Manifest().after(ALL, "run")
    save(tmp_path / "m.json", manifest, "1.0")
    assert load(tmp_path / "m.json") == manifest
    document = json.loads((tmp_path / "m.json").read_bytes())
    assert list(document) == ["schema", "tfx", "run", "roots", "files", "entries", "shared", "dirs"]
    assert document["files"][0]["root"] in document["roots"]
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]


def test_s39_a_missing_manifest_is_empty(tmp_path: Path) -> None:
    assert load(tmp_path / "none.json") == Manifest()


def test_s39_every_truncation_of_a_manifest_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    save(path, Manifest().after(ALL, "run"), "1.0")
    whole = path.read_bytes()
    for length in range(0, len(whole) - 2, 7):
        path.write_bytes(whole[:length])
        with pytest.raises(StateConflict) as caught:
            load(path)
        assert caught.value.hint


def test_s39_a_newer_manifest_names_its_schema_and_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text('{"schema": 7, "anything": []}')
    with pytest.raises(StateConflict) as caught:
        load(path)
    assert (caught.value.reason, caught.value.hint) == ("manifest-newer", "tfx update")
    assert "schema 7" in caught.value.message


def test_folding_the_same_changes_twice_changes_nothing_more() -> None:
    once = Manifest().after(ALL)
    assert once.after(ALL) == once
    assert once.after([change.inverse() for change in ALL]) == Manifest()


def test_s45_what_a_record_points_to_is_pinned() -> None:
    assert Manifest().after(ALL).pinned_runs == {"run"}


RECORDS = st.one_of(
    st.builds(
        FileRecord,
        st.text(),
        st.text(),
        st.none() | st.text(),
        st.none() | st.integers(0, 0o7777),
        st.text(),
        st.lists(st.text()).map(tuple),
        replaced=st.none() | st.builds(Replaced, st.text(), st.none() | st.integers(0, 0o7777)),
        kept=st.none() | st.text(),
    ),
    st.builds(
        EntryRecord,
        st.text(),
        st.text(),
        st.sampled_from(Format),
        st.lists(st.text()).map(tuple),
        st.none() | st.text(),
        leaves=st.lists(st.lists(st.text()).map(tuple)).map(tuple),
        element=st.booleans(),
    ),
    st.builds(SharedRecord, st.text(), st.text(), st.none() | st.text(), st.booleans()),
    st.text(),
)


@given(RECORDS)
def test_s42_a_change_survives_the_journal(record: FileRecord) -> None:
    for change in (Change(None, record), Change(record, None)):
        line = json.loads(json.dumps(change_to_json(change)))
        assert change_from_json(line) == change


def test_s42_intent_and_end_are_lines_of_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal" / "run.jsonl"
    words: list[str] = []
    with Journal(path, words.append) as journal:
        journal.begin("setup", "1.0", 12)
        before, after = State("0a", 0o644), State("0b", 0o755)
        intent = Intent(1, Path("/x\udcff"), before, after, "0001-x", ("/d",), ALL)
        journal.intend(intent)
        journal.tear(1, "0001-x.new")
        journal.end(1, Fate.DONE)
        journal.intend(Intent(2, Path("/y"), None, None, None, (), ()))
    assert words == ["begin", "intent", "in-place", "done", "intent"]
    story = read(path)
    assert (story.operation, story.at_ms, story.committed) == ("setup", 12, False)
    assert [item.fate for item in story.intents] == [Fate.DONE, Fate.OPEN]
    assert story.intents[0].torn == "0001-x.new"
    assert story.intents[0].changes == ALL
    assert [item.number for item in story.done] == [1]


@pytest.mark.parametrize("line", [b"{", b"[]", b'{"op": "new"}', b'{"op": "intent", "n": "x"}'])
def test_a_journal_line_that_cannot_be_read_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b'{"op": "begin"}\n' + line + b"\n")
    with pytest.raises(StateConflict) as caught:
        read(path)
    assert "line 2" in caught.value.message
    assert str(path) in caught.value.message


def test_s22_neither_manifest_nor_journal_nor_messages_hold_a_value(machine: Machine) -> None:
    machine.apply(machine.desired())
    journal = next((machine.state / "journal").iterdir()).read_text()
    assert "tfx-1" not in journal
    assert "tfx-1" not in (machine.state / "manifest.json").read_text()


def test_s42_a_line_that_does_not_fit_leaves_no_half_behind(tmp_path: Path) -> None:
    """The limit on the size of a file stands for a full disk."""
    path = tmp_path / "run.jsonl"
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with Journal(path, lambda _: None) as journal:
            journal.begin("setup", "1.0", 12)
            resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 50,) * 2)
            try:
                journal.record(ALL)
            except OSError:
                journal.commit()
                os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    story = read(path)
    assert (story.committed, story.records) == (True, ())
