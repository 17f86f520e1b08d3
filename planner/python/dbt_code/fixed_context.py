"""The variables of a template that depend on when and where it is rendered."""

from datetime import date, datetime, timedelta, tzinfo
from typing import Any

from mergeplan.planner.python.dbt_code.compile_error import CompileError
from mergeplan.planner.python.dbt_code.connection import CONNECTION, unknown_target_message
from mergeplan.planner.python.dbt_code.moments import Moment, moving_time_error


def fixed_context(config: Any, time: datetime | None = None) -> dict[str, Any]:
    """Return replacements for the variables of a template that depend on when it is rendered.

    The time is a mark in the text, because a text that changes each day is a change each day; or it is this `time`.
    """
    from dbt.context.base import get_context_modules

    modules = get_context_modules()
    modules["datetime"] = {**modules["datetime"], "datetime": _datetime_at(time), "date": _date_at(time)}
    return {
        "run_started_at": time or Moment("run_started_at", "utc", "%Y-%m-%d %H:%M:%S.%f+00:00"),
        "invocation_id": _Moving("invocation_id"),
        "modules": modules,
        "target": _Target(config.to_target_dict()),
    }


class _Target(dict[str, Any]):
    """The target; of its connection, at most the path of a Databricks warehouse is known here."""

    def __getitem__(self, name: str) -> Any:
        is_path = name == "http_path" and dict.get(self, name) not in (None, "none")
        if name in CONNECTION and not is_path:
            raise CompileError(unknown_target_message(name))
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self or name in CONNECTION else default


class _Moving:
    """A variable whose value differs each time."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        raise moving_time_error(self._name)

    def __str__(self) -> str:
        raise moving_time_error(self._name)


def _datetime_at(time: datetime | None) -> type[datetime]:
    """Return the class `datetime` at a time; without one, its present is a mark."""

    class Datetime(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            name = "modules.datetime.datetime.now()"
            if tz is not None and tz.utcoffset(None) != timedelta(0):
                raise moving_time_error(name)
            if time is not None:
                return time if tz is not None else time.replace(tzinfo=None)
            ending = "" if tz is None else "+00:00"
            return Moment(name, "local" if tz is None else "utc", f"%Y-%m-%d %H:%M:%S.%f{ending}")

        @classmethod
        def utcnow(cls) -> Any:
            name = "modules.datetime.datetime.utcnow()"
            return time.replace(tzinfo=None) if time else Moment(name, "utc", "%Y-%m-%d %H:%M:%S.%f")

        today = now

    return Datetime


def _date_at(time: datetime | None) -> type[date]:
    """Return the class `date` at a time; without one, its present is a mark."""

    class Date(date):
        @classmethod
        def today(cls) -> Any:
            return time.date() if time else Moment("modules.datetime.date.today()", "local", "%Y-%m-%d")

    return Date
