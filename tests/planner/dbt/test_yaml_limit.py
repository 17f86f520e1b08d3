"""Values of a YAML file are counted wherever an alias repeats them, before any of them is copied."""

from __future__ import annotations

import pytest
import yaml

from mergeplan.planner.python.dbt_code.limits import VALUES_MAX, count_values

LAUGHS = "\n".join(
    ["l0: &l0 [x, x]", *(f"l{at}: &l{at} [{', '.join([f'*l{at - 1}'] * 10)}]" for at in range(1, 10)), "last: *l9"]
)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("a", 1),
        ("[a, b, {c: d}]", 6),
        ("a: &x [1, 2]\nb: *x", 9),
        ("a: &x {b: &y [1, 2, 3]}\nc: [*x, *x, *y]", 26),
    ],
)
def test_values_are_counted_with_their_aliases(text: str, count: int) -> None:
    assert count_values(yaml.compose(text, Loader=yaml.SafeLoader)) == count


@pytest.mark.parametrize("text", [LAUGHS, "a: &a [*a]", "&a {b: {c: *a}}"])
def test_a_bomb_of_aliases_is_more_than_any_file_may_hold(text: str) -> None:
    assert count_values(yaml.compose(text, Loader=yaml.SafeLoader)) > VALUES_MAX
