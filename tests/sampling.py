"""Cases of a test that `make test` runs, and those that `make prove` runs beside them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def prove_rest(cases: Iterable[Any], first: int = 1) -> list[Any]:
    """Return the cases for `parametrize`: all after the first ones are marked `prove`."""
    return [case if at < first else _mark_prove(case) for at, case in enumerate(cases)]


def _mark_prove(case: Any) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.prove)
