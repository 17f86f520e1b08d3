"""Cases of a test that `make test` runs, and those that `make prove` runs beside them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def prove_rest(cases: Iterable[Any], first: int = 1) -> list[Any]:
    """Return the cases for `parametrize`: all after the first ones are marked `prove`."""
    return [case if at < first else _mark_prove(case) for at, case in enumerate(cases)]


def prove_repeats(cases: Iterable[Any]) -> list[Any]:
    """Return the cases for `parametrize`: of those with one first value, all but the first are marked `prove`."""
    cases = list(cases)
    firsts = {case[0]: at for at, case in reversed(list(enumerate(cases)))}
    return [case if firsts[case[0]] == at else _mark_prove(case) for at, case in enumerate(cases)]


def _mark_prove(case: Any) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.prove)
