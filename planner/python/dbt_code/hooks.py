"""The effect of a hook: the statements that dbt would send, recorded while its template is rendered and not sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mergeplan.planner.python.dbt_code.compile_error import CompileError

QUERIES = ("SELECT", "WITH", "VALUES", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "TABLE", "FROM", "(")
SHOWN = "\ue002unknown\ue003"  # a number of rows, where a template writes it


def is_query(sql: str) -> bool:
    """Return True for a statement that is sent for its rows."""
    return sql.lstrip().upper().startswith(QUERIES)


class UnknownRows:
    """The warehouse's result of a statement: a template may show the first value, and nothing else."""

    @property
    def rows(self) -> UnknownRows:
        return self

    def values(self) -> list[UnknownRow]:
        return [UnknownRow()]

    def __getattr__(self, name: str) -> Any:
        raise _unknown_error()


class UnknownRow:
    def values(self) -> list[UnknownValue]:
        """Return the first value: whether there are more is unknown."""
        return [UnknownValue()]


class UnknownValue:
    """A value that can only be shown."""

    def __str__(self) -> str:
        return SHOWN

    def _refuse(self, *_: Any) -> Any:
        raise _unknown_error()

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __int__ = __float__ = __len__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __mod__ = __getitem__ = __contains__ = __hash__ = _refuse

    def __iter__(self) -> Iterator[Any]:
        raise _unknown_error()


def _unknown_error() -> CompileError:
    return CompileError("Its hook reads what a statement returned")
