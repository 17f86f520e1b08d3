"""Numbers, sizes, durations and lists are worded once, for the terminal, notebooks and pull requests."""

from __future__ import annotations

import pytest

from mergeplan.planner.wording import count_noun, duration_text, first_names, join_names, size_text


def test_a_number_stands_before_its_noun() -> None:
    texts = [count_noun(1, "table"), count_noun(1200, "batch", "batches"), count_noun(0, "row")]

    assert texts == ["1 table", "1,200 batches", "0 rows"]


@pytest.mark.parametrize(("names", "text"), [("", ""), ("a", "a"), ("a b", "a and b"), ("a b c", "a, b and c")])
def test_names_are_joined_as_in_a_sentence(names: str, text: str) -> None:
    assert join_names(names.split()) == text


def test_of_many_names_the_first_ones_are_shown_and_how_many_more() -> None:
    names = "a b c d".split()

    assert [first_names(names, most) for most in (1, 3, 4)] == ["a and 3 more", "a, b, c and 1 more", "a, b, c, d"]


def test_sizes_have_the_units_of_spark() -> None:
    sizes = (0, 1023, 1024, 5_000_000, 1_288_490_189, 1 << 51)

    assert [size_text(size) for size in sizes] == ["0 B", "1023 B", "1.0 KiB", "4.8 MiB", "1.2 GiB", "2048.0 TiB"]


def test_a_duration_has_one_unit_and_is_at_least_a_second() -> None:
    seconds = (0.01, 89, 90, 5399, 5400)

    assert [duration_text(value) for value in seconds] == ["1 s", "89 s", "2 min", "90 min", "1.5 h"]
