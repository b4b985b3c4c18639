"""Reading YAML and the front matter of skills."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfx.config import yaml
from tfx.errors import JsonValue, UnparsableFile

SKILL = """\
---
name: tfx-setup
description: "Bring agents to one state: use it when a client does not see tfx."
license: MIT
metadata:
  author: "tfx"
---
# Setup

Text.
"""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: on\nb: yes\nc: 'no'\n", {"a": "on", "b": "yes", "c": "no"}),
        ("a: 1.0\nb: 012\nc: 0o14\nd: true\n", {"a": 1.0, "b": 12, "c": 12, "d": True}),
        ("a: 2026-01-31\n", {"a": "2026-01-31"}),
        ("a: 2026-01-31T10:00:00Z\n", {"a": "2026-01-31T10:00:00+00:00"}),
        ("a: [1, {b: null}]\r\nc: |\r\n  x\r\n", {"a": [1, {"b": None}], "c": "x\n"}),
        ("a: &x {b: 1}\nc: *x\n", {"a": {"b": 1}, "c": {"b": 1}}),
        (
            "a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n",
            {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}},
        ),
        ("d:\n  <<: [{a: 1}, {a: 2, b: 2}]\n", {"d": {"a": 1, "b": 2}}),
        ("\ufeffa: é\n", {"a": "é"}),
        ("", None),
        ("# only a comment\n", None),
    ],
)
def test_s69_yaml_reads_as_json(text: str, value: JsonValue) -> None:
    assert yaml.parse(text.encode()) == value


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a: b: c\n", 1, 5),
        ("a: 1\nb: 2\na: 3\n", 3, 1),
        ("a: 1\n---\nb: 2\n", 2, 1),
        ("a:\n  - !!python/object:os.system x\n", 2, 5),
        ("a: !!binary aGVsbG8=\n", 1, 4),
        ("a: &x [*x]\n", 1, 4),
        ("x: *nope\n", 1, 4),
        ("1: 2\n", 1, 1),
        ("? [a]\n: b\n", 1, 3),
        ("? !!str [a]\n: b\n", 1, 3),
        ("a: 2026-99-99\n", 1, 4),
        ("a: !!bool maybe\n", 1, 4),
        ("<<: 5\n", 1, 5),
        ("é: '\x01'\n", 1, 5),
        ("a: 'open\n", 2, 1),
        ("\tb: 1\n", 1, 1),
        ("a: " + "[" * 70 + "]" * 70, 1, 68),
    ],
)
def test_s54_what_is_not_plain_yaml_is_refused_with_its_place(
    text: str, line: int, column: int
) -> None:
    with pytest.raises(UnparsableFile) as refusal:
        yaml.parse(text.encode())
    assert refusal.value.details == {"line": line, "column": column}


def test_s96_undecodable_bytes_are_refused_with_their_place() -> None:
    with pytest.raises(UnparsableFile, match="not UTF-8") as refusal:
        yaml.parse("a: é\nb: ".encode() + b"\xe9\n")
    assert refusal.value.details == {"line": 2, "column": 4}


def test_s54_nesting_that_exhausts_the_parser_is_refused() -> None:
    with pytest.raises(UnparsableFile, match="nested"):
        yaml.parse(b"a: " + b"[" * 2000)


def test_s110_a_very_large_file_is_refused() -> None:
    with pytest.raises(UnparsableFile, match="larger than"):
        yaml.parse(b"#" * (1024 * 1024 + 1))


def test_s54_aliases_cannot_make_a_small_file_huge() -> None:
    lines = ["a: &a [x,x,x,x,x,x,x,x,x,x]"]
    for name, below in zip("bcdefgh", "abcdefg", strict=True):
        lines.append(f"{name}: &{name} [{','.join([f'*{below}'] * 10)}]")
    with pytest.raises(UnparsableFile, match="aliases included"):
        yaml.parse("\n".join(lines).encode())


def test_a_refusal_does_not_repeat_the_text_of_the_file() -> None:
    for text in ("a: canary\na: canary\n", "canary: *canary\n", "a: 'canary\n", "a: !canary x\n"):
        with pytest.raises(UnparsableFile) as refusal:
            yaml.parse(text.encode())
        assert "canary" not in refusal.value.message


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=30),
        st.text(alphabet="ab:-?[]{}&*!|>'\"%@`#,\n\t <~0x.\\u\ufeff\x85é", max_size=30).map(
            str.encode
        ),
    )
)
def test_s54_anything_is_read_or_refused(data: bytes) -> None:
    refusals = []
    for read in (yaml.parse, yaml.front_matter):
        try:
            read(data)
        except UnparsableFile as refusal:
            refusals.append(refusal.message)
    assert all(refusals)


def test_front_matter_is_split_from_the_text_behind_it() -> None:
    values, body = yaml.front_matter(SKILL.encode())
    assert values["name"] == "tfx-setup"
    assert values["metadata"] == {"author": "tfx"}
    assert body == "# Setup\n\nText.\n"


def test_s95_front_matter_is_read_over_bom_and_crlf() -> None:
    data = b"\xef\xbb\xbf" + SKILL.replace("\n", "\r\n").encode()
    values, body = yaml.front_matter(data)
    assert values == yaml.front_matter(SKILL.encode())[0]
    assert body == "# Setup\r\n\r\nText.\r\n"


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("# Setup\n", 1, 1),
        ("", 1, 1),
        ("---\nname: x\n", 1, 1),
        (" ---\nname: x\n---\n", 1, 1),
        ("---\n- a\n---\n", 2, 1),
        ("---\nname: x\ndescription: a: b\n---\n", 3, 15),
    ],
)
def test_s104_broken_front_matter_is_refused_in_lines_of_the_file(
    text: str, line: int, column: int
) -> None:
    with pytest.raises(UnparsableFile) as refusal:
        yaml.front_matter(text.encode())
    assert refusal.value.details == {"line": line, "column": column}


def test_front_matter_may_be_empty_and_a_rule_in_the_text_is_no_fence() -> None:
    assert yaml.front_matter(b"---\n---\n") == ({}, "")
    assert yaml.front_matter(b"---\na: b\n---\nx\n\n---\n\ny\n") == ({"a": "b"}, "x\n\n---\n\ny\n")
    assert yaml.front_matter(b"---  \na: b\n---") == ({"a": "b"}, "")


def test_s24_a_strict_skill_has_no_problems() -> None:
    assert yaml.skill_problems(SKILL.encode(), "tfx-setup") == ()


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("license: MIT", "hooks: {}", "'hooks' is no key of the format"),
        ("license: MIT", "license: 3", "license is not text"),
        ("license: MIT", "license: ' '", "license is empty"),
        ("license: MIT", "allowed-tools: [Bash]", "allowed-tools is not text"),
        ("license: MIT", f"compatibility: {'x' * 501}", "at most 500"),
        ('  author: "tfx"', "  author: 1", "metadata is not a map of text to text"),
        ('description: "Bring', 'description: ">', None),
        ('"Bring agents to one state: use it', "Bring agents to one state, use it", "not quoted"),
        ('"Bring', f'"{"x" * 1024}', "at most 1024"),
        ('description: "', 'descriptions: "', "description is missing"),
        ("name: tfx-setup\n", "", "name is missing"),
        ("name: tfx-setup", "name: tfx--setup", "one hyphen"),
        ("name: tfx-setup", "name: Tfx-setup", "lower-case"),
        ("name: tfx-setup", "name: tfx-setup-", "one hyphen"),
        ("name: tfx-setup", "name: tfx-doctor", "the directory 'tfx-setup'"),
        ("name: tfx-setup", f"name: {'x' * 65}", "at most 64"),
        ("name: tfx-setup", "name: on", "the directory"),
        ("# Setup\n\nText.\n", "", "no text behind"),
        ("\n# Setup", "\r\n# Setup", "other than LF"),
        ("---\nname", "\ufeff---\nname", "byte order mark"),
        ("---\nname", "--\nname", "no front matter"),
        ('description: "Bring', "description: a: Bring", "mapping values"),
    ],
)
def test_s24_s26_each_departure_from_the_format_is_named(
    old: str, new: str, problem: str | None
) -> None:
    text = SKILL.replace(old, new, 1)
    if "not quoted" in (problem or ""):
        text = text.replace('see tfx."', "see tfx.")
    assert text != SKILL
    problems = yaml.skill_problems(text.encode(), "tfx-setup")
    if problem is None:
        assert problems == ()
    else:
        assert any(problem in found for found in problems), problems


def test_s104_an_unquoted_colon_in_a_description_is_found() -> None:
    text = SKILL.replace('"Bring agents', "Bring agents").replace('see tfx."', "see tfx.")
    assert yaml.skill_problems(text.encode(), "tfx-setup") == (
        "line 3, column 39: mapping values are not allowed here",
    )


def test_importing_the_reader_does_not_import_the_parser() -> None:
    probe = "import sys, tfx.config.yaml; sys.exit('ruamel.yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", probe], check=False).returncode == 0
