"""Comparing what is known of two tables."""

from __future__ import annotations

from mergeplan.planner.snapshot.content_hash import WHOLE, Contents, build_content, empty_content, equal_periods

IDS = ("id",)
INT = (("id", "int"),)
ONE, TWO, NONE = build_content(INT, 1, (5, 7)), build_content(INT, 1, (7, 5)), empty_content(INT)


def contents(**periods: object) -> Contents:
    """What is known of a table's ids, by period."""
    return Contents().plus({IDS: periods})  # type: ignore[dict-item]  # shorter to write


def test_periods_with_equal_content_on_both_sides_are_equal() -> None:
    mine, theirs = contents(a=ONE, b=ONE, c=NONE), contents(a=ONE, b=TWO, c=NONE)

    assert equal_periods(mine, theirs, IDS, "abc") == {"a", "c"}


def test_what_is_known_on_one_side_or_none_is_equal_to_nothing() -> None:
    mine, theirs = contents(a=ONE), contents(b=NONE)

    assert equal_periods(mine, theirs, IDS, ["a", "b", "c", WHOLE]) == frozenset()
    assert equal_periods(mine, mine, ("id", "name"), "a") == frozenset()


def test_only_the_periods_that_were_asked_for_are_told() -> None:
    assert equal_periods(contents(a=ONE, b=ONE), contents(a=ONE, b=ONE), IDS, "b") == {"b"}


def test_what_was_found_later_replaces_what_was_known() -> None:
    assert contents(a=ONE, b=ONE).plus({IDS: {"b": TWO}}) == contents(a=ONE, b=TWO)


def test_content_tells_rows_sums_names_and_types_apart() -> None:
    alike = [
        ONE,
        TWO,
        NONE,
        build_content(INT, 2, (5, 7)),
        empty_content((("id", "string"),)),
        empty_content((("no", "int"),)),
        empty_content(()),
        empty_content((("id", "int"), ("id2", "int"))),
    ]

    assert len(set(alike)) == len({content.hash for content in alike}) == len(alike)
    assert all(len(content.hash) == 32 for content in alike)
