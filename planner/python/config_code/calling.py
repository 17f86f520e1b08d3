"""Calls of a config.py: code that is not the project's own gets no reference, but the value, or is not called.

Code in C reads the characters of a text, and those of a reference are marks. A call with an unknown value returns an
unknown value.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container
from types import BuiltinMethodType
from typing import Any

from mergeplan.planner.python.config_code.references import Number, References, Text, plain_value, why_unknown
from mergeplan.planner.python.config_code.stand_ins import Unknown

OURS = __name__.rpartition(".")[0]
PASSING: tuple[Any, ...] = (  # functions that pass on what they are given, or ask it as Python's own code would
    print, isinstance, type, str, repr, format, list, tuple, dict, set, frozenset, bool, len, getattr, hasattr, setattr,
    sorted, enumerate, zip, map, filter, any, all, min, max, sum, id, callable, iter, next, abs, round, reversed,
)  # fmt: skip
JOINING = ("format", "join", "replace")  # methods of texts whose result keeps the marks


def call_function(references: References, files: Container[str], function: Any, *args: Any, **keywords: Any) -> Any:
    """Return the result of a call; `files` are those of the project."""
    values = (*args, *keywords.values())
    references_in = any(isinstance(value, Text | Number | Unknown) for value in values)
    if not references_in or _can_take_references(function, files):
        return function(*args, **keywords)
    if function in (int, float) and len(args) == 1 and not keywords and isinstance(args[0], Text):
        text = args[0].filtered(function.__name__)
        if text is not None:
            return Number(text)
    unknown = next((value for value in values if isinstance(value, Unknown)), None)
    if unknown is not None:
        return unknown
    if reason := next(filter(None, map(why_unknown, values)), ""):
        return Unknown.because(reason, references)
    return function(*map(plain_value, args), **{name: plain_value(value) for name, value in keywords.items()})


def _can_take_references(function: Callable[..., Any], files: Container[str]) -> bool:
    """Return True for the project's own code, stand-ins, and functions that only pass on their arguments."""
    if any(function is passing for passing in PASSING):
        return True
    owner = getattr(function, "__self__", None)
    if isinstance(function, BuiltinMethodType) and isinstance(owner, list | tuple | dict | set | frozenset):
        return True
    if type(owner) is str:
        return function.__name__ in JOINING
    module = getattr(function, "__module__", None) or ""
    if any(getattr(part, "__module__", "").startswith(OURS) for part in (type(function), type(owner))):
        return True
    return module.startswith(OURS) or getattr(sys.modules.get(module), "__file__", None) in files
