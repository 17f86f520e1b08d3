"""Which unit tests run."""

from __future__ import annotations

import pytest

from mergeplan.planner.errors import RequestError
from mergeplan.planner.parsing.definitions.unit_tests import UnitTest
from mergeplan.planner.session.use_cases.unit_tests import select_tests

TESTS = tuple(
    UnitTest(name, model, path, 1, {}, None, {})
    for name, model, path in (
        ("test_a", "shop.a", "tests/test_a.yaml"),
        ("test_b", "shop.b", "tests/test_a.yaml"),
        ("other", "shop.b", "tests/other.yaml"),
    )
)


@pytest.mark.parametrize(
    ("names", "patterns", "selected"),
    [
        ((), (), ["test_a", "test_b", "other"]),
        (("shop.b",), (), ["test_b", "other"]),
        (("tests/test_*",), (), ["test_a", "test_b"]),
        (("./tests/test_a.yaml::test_b", "other"), (), ["test_b", "other"]),
        (("shop.b",), ("test",), ["test_b"]),
        ((), ("*_a", "oth"), ["test_a", "other"]),
    ],
)
def test_tests_are_chosen_by_name_model_file_and_pattern(
    names: tuple[str, ...], patterns: tuple[str, ...], selected: list[str]
) -> None:
    assert [test.name for test in select_tests(TESTS, names, patterns)] == selected


def test_a_word_that_means_no_test_is_told() -> None:
    with pytest.raises(RequestError, match=r"`tests/test_a.yaml::test_c` is no test\."):
        select_tests(TESTS, ("test_a", "tests/test_a.yaml::test_c"), ())
