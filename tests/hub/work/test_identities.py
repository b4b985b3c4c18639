"""One thing has one spelling, whoever writes it, and no more is made equal than is (WK-K5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hub.work.crew import Crew, PlayCrew, refused
from tfx.hub.wire.identities import NORMAL, normal, spellings

PR = "https://github.com/o/r/pull/7"

SPELLED = [
    *[("branch", text, "feat/q") for text in ("feat/q", " feat/q\n", "refs/heads/feat/q")],
    ("branch", "origin/feat/q", "origin/feat/q"),
    ("branch", "Feat/Q", "Feat/Q"),
    ("branch", "refs/heads/", "refs/heads/"),
    *[
        ("pr", text, PR)
        for text in (
            PR,
            f"{PR}/",
            f" {PR}//",
            f"{PR}/files",
            f"{PR}/commits/0a1b2c3",
            f"{PR}/files?diff=split#diff-1",
            f"{PR}#issuecomment-1",
            "HTTPS://GitHub.COM:443/o/r/pull/7",
            "https://github.com/o/r.git/pull/7",
            "https://me:secret@github.com/o/r/pull/7",
        )
    ],
    ("pr", "http://forge.lan:3000/o/r/pulls/7/files", "http://forge.lan:3000/o/r/pulls/7"),
    ("pr", "http://[::1]:80/o/r/pulls/7", "http://[::1]/o/r/pulls/7"),
    (
        *("pr", "https://lab.example/g/s/p/-/merge_requests/7/diffs"),
        "https://lab.example/g/s/p/-/merge_requests/7",
    ),
    ("pr", "https://forge.example/show?id=7#top", "https://forge.example/show?id=7"),
    ("pr", "https://forge.example/r.git", "https://forge.example/r"),
    ("pr", " o/r#7", "o/r#7"),
    ("pr", "https://[broken/7", "https://[broken/7"),
    ("pr", "https://host:port/7", "https://host:port/7"),
    ("output", f"{PR}/files", PR),
    ("output", " a release note ", "a release note"),
    ("commit", " 0A1B2C3D ", "0a1b2c3d"),
    ("commit", "v1.0-RC", "v1.0-RC"),
    ("file", " README.md", " README.md"),
    ("link", f"{PR}/files", f"{PR}/files"),
]


@pytest.mark.parametrize(("kind", "text", "spelled"), SPELLED)
def test_wk_k5_a_mark_has_one_spelling(kind: str, text: str, spelled: str) -> None:
    assert normal(kind, text) == spelled


@given(st.sampled_from(sorted(NORMAL)), st.text() | st.text().map("https://h/o/r/pull/7/{}".format))
def test_wk_k5_the_spelling_of_a_spelling_is_itself(kind: str, text: str) -> None:
    once = normal(kind, text)
    assert normal(kind, once) == once
    assert once in spellings(kind, once)[0]


SAME = [
    *[("branch", "feat/q", "branch", text) for text in ("refs/heads/feat/q", " feat/q ")],
    *[
        ("pr", PR, kind, text)
        for kind in ("pr", "output")
        for text in (f"{PR}/", PR.replace("https", "http"), PR[8:], f"{PR}/files", PR.upper())
        if kind == "pr" or "://" in text
    ],
    ("pr", "o/r#7", "pr", "O/R#7"),
    ("pr", "o/r#7", "output", "O/r#7"),
    ("output", PR, "pr", f"{PR}/files"),
    ("output", "docs/guide.md", "output", " docs/guide.md"),
]
OTHERS = [
    ("branch", "feat/q", "branch", "Feat/Q"),
    ("branch", "feat/q", "branch", "origin/feat/q"),
    ("pr", PR, "pr", f"{PR}0"),
    ("pr", PR, "pr", PR.replace("github.com", "github.com:8443")),
    ("pr", "o/r#7", "pr", "o/r#17"),
    ("output", "docs/guide.md", "output", "docs/GUIDE.md"),
]


@pytest.mark.parametrize(("kind", "text", "other", "again"), SAME)
def test_wk_k5_however_it_is_spelled_it_is_the_same_work(
    act: PlayCrew, kind: str, text: str, other: str, again: str
) -> None:
    async def story(crew: Crew) -> None:
        await crew.person.add(**{kind: text})
        with refused("duplicate-work") as error:
            await crew.person.add("again", **{other: again})
        assert (error.value.details["task"], error.value.details["matches"]) == (1, other)
        await crew.person.add("to be edited")
        with refused("duplicate-work"):
            await crew.person.update(2, **{other: again})

    act(story)


@pytest.mark.parametrize(("kind", "text", "other", "again"), OTHERS)
def test_wk_k5_what_only_looks_alike_is_other_work(
    act: PlayCrew, kind: str, text: str, other: str, again: str
) -> None:
    async def story(crew: Crew) -> None:
        await crew.person.add(**{kind: text})
        assert (await crew.person.add("other", **{other: again})).task == 2

    act(story)


def test_wk_k5_the_spelling_is_what_is_stored_and_shown(act: PlayCrew) -> None:
    async def story(crew: Crew) -> None:
        ann = await crew.hire("ann")
        made = await crew.person.ready(
            branch="refs/heads/a", pr="http://Forge.LAN/o/R/pull/7/files"
        )
        assert (made.branch, made.pr) == ("a", "http://forge.lan/o/R/pull/7")
        lease = await ann.claim(1)
        seen = await ann.attach("pr", "http://forge.lan/o/R/pull/7/", lease)
        assert [each.identity for each in seen.artifacts] == ["http://forge.lan/o/R/pull/7"]
        assert (await crew.person.add("key", client_key="k", pr=PR)).task == 2
        assert (await crew.person.add("key", client_key="k", pr=f"{PR}/files")).task == 2
        assert (await ann.update(1, lease, branch="")).branch is None

    act(story)


@pytest.mark.parametrize("field", ["branch", "pr", "output"])
def test_wk_k5_a_blank_mark_is_refused_by_its_name(act: PlayCrew, field: str) -> None:
    async def story(crew: Crew) -> None:
        for step in (crew.person.add(**{field: " \n"}), crew.person.update(1, **{field: " "})):
            with pytest.raises(Exception, match=f"{field} is blank"):
                await step

    act(story)
