"""Conversion of click's options to a use case's options."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")


def options_from(kind: type[T], option_values: Mapping[str, Any]) -> T:
    """Return the options of this dataclass, which are named like its fields, from those that were given.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class TestOptions:
    ...     names: tuple[str, ...]
    >>> options_from(TestOptions, {"names": ("a",), "verbose": True})
    TestOptions(names=('a',))
    """
    names = {option.name for option in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in option_values.items() if name in names})
