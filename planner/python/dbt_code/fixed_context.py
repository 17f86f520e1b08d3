"""The variables of a template that say when and where it is rendered: to ask them is an error."""

from __future__ import annotations

from datetime import date, datetime, tzinfo
from typing import Any

from mergeplan.planner.python.dbt_code.compile_error import CompileError

CONNECTION = ("host", "port", "cluster", "endpoint", "organization", "threads", "user", "token", "http_path")


def fixed_context(config: Any) -> dict[str, Any]:
    """What replaces those variables of a template that say when it is rendered.

    To ask them is an error, because a text that is another one each day is a change each day.
    """
    from dbt.context.base import get_context_modules

    modules = get_context_modules()
    modules["datetime"] = {**modules["datetime"], "datetime": _Datetime, "date": _Date}
    return {
        "run_started_at": _Moving("run_started_at"),
        "invocation_id": _Moving("invocation_id"),
        "modules": modules,
        "target": _Target(config.to_target_dict()),
    }


class _Target(dict[str, Any]):
    """The target, whose connection is not known here."""

    def __getitem__(self, name: str) -> Any:
        if name in CONNECTION:
            raise CompileError(f"It reads `target.{name}`, which mergeplan does not know")
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self or name in CONNECTION else default


class _Moving:
    """A variable that is another one each time."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        raise _moving(self._name)

    def __str__(self) -> str:
        raise _moving(self._name)


class _Datetime(datetime):
    """A datetime that does not know what time it is."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> _Datetime:
        raise _moving("modules.datetime.datetime.now()")

    utcnow = today = now


class _Date(date):
    """A date that does not know what day it is."""

    @classmethod
    def today(cls) -> _Date:
        raise _moving("modules.datetime.date.today()")


def _moving(name: str) -> CompileError:
    return CompileError(
        f"Its text is another one each time: it reads `{name}`. Let SQL ask for the time, or give it as a variable"
    )
