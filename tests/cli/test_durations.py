from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfx.cli.durations import duration, milliseconds_of, milliseconds_within
from tfx.errors import InvalidRequest
from tfx.hub.wire.work import WORK_TTL_MS


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("4h", 14_400_000),
        ("1h30m", 5_400_000),
        ("90m", 5_400_000),
        ("90min", 5_400_000),
        ("2d", 172_800_000),
        ("45s", 45_000),
        ("90", 90_000),
        ("1.5h", 5_400_000),
        (" 10 ", 10_000),
        ("0", 0),
    ],
)
def test_a_length_of_time_has_units_or_counts_seconds(text: str, ms: int) -> None:
    assert milliseconds_of(text, "--ttl") == ms


@pytest.mark.parametrize(
    "text",
    ["", "h", "4 h", "4x", "-1h", "1h-30m", "nan", "inf", "1e3", "٤h", "4h!", "9" * 40, "1h 30m"],
)
def test_anything_else_is_a_usage_error_with_examples(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        milliseconds_of(text, "--ttl")
    assert (caught.value.reason, caught.value.exit) == ("usage", 2)
    assert "--ttl 4h" in (caught.value.hint or "")


@given(st.integers(0, 400), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_the_parts_add_up(days: int, hours: int, minutes: int, seconds: int) -> None:
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    text = f"{days}d{hours}h{minutes}m{seconds}s"
    assert milliseconds_of(text, "--ttl") == total * 1000


def test_a_length_of_time_is_shown_in_its_largest_unit() -> None:
    assert [duration(ms) for ms in (40, 12_900, 3_599_000, 10_800_000, 200_000_000)] == [
        *("40 ms", "12 s", "59 min", "3 h", "2 d"),
    ]


@pytest.mark.parametrize(("text", "word"), [("5s", "short"), ("8d", "long")])
def test_a_length_outside_of_its_limits_is_refused_in_words_of_the_command_line(
    text: str, word: str
) -> None:
    assert milliseconds_within("7d", "--ttl", *WORK_TTL_MS) == 7 * 86_400_000
    with pytest.raises(InvalidRequest) as refused:
        milliseconds_within(text, "--ttl", *WORK_TTL_MS)
    assert refused.value.message == f"--ttl: {text} is too {word}; 10 s to 7 d are allowed"
