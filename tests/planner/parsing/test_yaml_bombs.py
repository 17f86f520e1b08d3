"""A YAML file that would take hours, all memory, or the process itself is an error at its line."""

from __future__ import annotations

import pytest

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.parsing.sql.yaml_documents import read_document


def merges(count: int, repeats: int) -> str:
    """Mappings that merge the one before, several times each."""
    lines = ["a0: &a0 {x: 1}"]
    for number in range(1, count):
        aliases = ", ".join([f"*a{number - 1}"] * repeats)
        lines.append(f"a{number}: &a{number}\n  <<: [{aliases}]\n  k{number}: 1")
    return "\n".join(lines)


def aliases(count: int, repeats: int) -> str:
    lines = ["a0: &a0 [1]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * repeats)}]" for n in range(1, count))]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "said", "line"),
    [
        ("a: 1\nx: " + "[" * 50_000, "nested more than 100 deep", 2),
        ("a: 1\nx: " + "{a: " * 50_000 + "}" * 50_000, "nested more than 100 deep", 2),
        ("x:\n" + "- " * 50_000 + "a\n", "nested more than 100 deep", 2),
        ("? " * 50_000 + "a\n", "nested more than 100 deep", 1),
        ("".join(" " * depth + "a:\n" for depth in range(2_000)), "nested more than 100 deep", 101),
        (aliases(2_000, 1), "nested more than 100 deep", 99),
        (aliases(40, 3), "more than 1000000 values", 0),
        (merges(30, 2), "more than 1000000 values", 0),
        (merges(500, 1), "nested more than 100 deep", 0),
        ("a: 1\nx: " + "9" * 5_000, "longer than 1000 characters", 2),
        ("a: 1\nx: 0x" + "f" * 50_000, "longer than 1000 characters", 2),
        ("a: 1\nx: 1" + ":59" * 100_000, "longer than 1000 characters", 2),
        ("a: 1\nx: 1" + ":59" * 100_000 + ".5", "longer than 1000 characters", 2),
        ("a: 1\nstart: 2026-02-30", "`2026-02-30` is not a valid value", 2),
        ("a: 1\nstart: 2026-01-01T99:99:99Z", "is not a valid value", 2),
        ("a: 1\nstart: 2026-01-01T00:00:00+99:99", "is not a valid value", 2),
        ("a: 1\nx: !!int ''", "is not a valid value", 2),
        ("a: 1\nx: !!bool maybe", "is not a valid value", 2),
        ("a: 1\nx: !!timestamp soon", "is not a valid value", 2),
        ("a: 1\nx: !!float long", "is not a valid value", 2),
        ("a: 1\nx: !!python/name:os.system x", "", 2),
        ("a: 1\nx: &x [*x]", "an alias refers to a value that contains it", 2),
        ("a: 1\nx: \0", "a character that is not allowed", 2),
        ('a: 1\nx: "\\ud800"', "", 2),
        ("a" * 17_000_000, "more than 16000000 characters", 0),
    ],
)
def test_a_bomb_is_an_error_at_its_line(text: str, said: str, line: int) -> None:
    with pytest.raises(ProjectError) as caught:
        read_document("config.yaml", text, lambda variable, place: variable.value({}, place))

    assert said in caught.value.message
    assert caught.value.place is not None
    assert caught.value.place.path == "config.yaml"
    assert not line or caught.value.place.line == line


def test_what_is_ordinary_stays_so() -> None:
    deep = "[" * 90 + "]" * 90
    text = f"a: &a {{x: 1}}\nb: {{<<: *a, y: 0x1f}}\nc: {deep}\nd: 2026-02-28\ne: '{'9' * 5000}'\n"
    value = read_document("config.yaml", text).value

    assert value["b"] == {"x": 1, "y": 31}
    assert (str(value["d"]), len(value["e"])) == ("2026-02-28", 5_000)


def test_a_variable_that_is_begun_often_and_never_ended_takes_no_time() -> None:
    """It took the square of the line's length."""
    with pytest.raises(ProjectError, match="`"):
        read_document("config.yaml", "x: " + "{{ env_var('A' , '\"" * 20_000, lambda variable, place: "")
