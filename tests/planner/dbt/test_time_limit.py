"""A limit of the processor's time, whatever the error becomes on its way."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from mergeplan.planner.python.dbt_code.compile_error import CompileError
from mergeplan.planner.python.dbt_code.limits import limit_time


def go_round() -> None:
    while True:
        pass


def test_code_that_goes_round_is_stopped_whatever_its_caller_makes_of_the_error() -> None:
    def hide() -> None:
        try:
            go_round()
        except CompileError:
            raise TypeError("another one") from None

    def swallow() -> None:
        try:
            go_round()
        except CompileError:
            return

    for call in (go_round, hide, swallow):
        with pytest.raises(CompileError, match=r"^Its template does not end: dbt was stopped after"), limit_time(0.05):
            call()


def test_a_template_that_is_being_parsed_is_named() -> None:
    def render(parsed_node: object) -> None:
        go_round()

    with pytest.raises(CompileError, match=r"^The template models/a\.sql does not end"), limit_time(0.05):
        render(SimpleNamespace(original_file_path="models/a.sql"))


def test_another_error_stays_what_it_is() -> None:
    with pytest.raises(KeyError), limit_time(5):
        raise KeyError("a")
