"""The importable content of `sqlmesh` and `mergeplan` for a project's Python; it exists in the child process only."""

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from types import ModuleType
from typing import Any, NewType, TypeVar

from mergeplan.planner.python.evaluator import Evaluator

F = TypeVar("F", bound=Callable[..., Any])
SQL = NewType("SQL", str)
KINDS = """VIEW FULL EMBEDDED EXTERNAL SEED INCREMENTAL_BY_TIME_RANGE INCREMENTAL_BY_UNIQUE_KEY INCREMENTAL_BY_PARTITION
    INCREMENTAL_UNMANAGED SCD_TYPE_2 SCD_TYPE_2_BY_TIME SCD_TYPE_2_BY_COLUMN MANAGED CUSTOM""".split()
ModelKindName = Enum("ModelKindName", {name: name for name in KINDS}, type=str)  # type: ignore[misc]  # made of a list


@dataclass
class Decorated:
    """A decorated function: its arguments and its place."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Any]
    path: str
    line: int


@dataclass
class Registry:
    """What the project's files have registered so far."""

    models: list[Decorated] = field(default_factory=list)
    macros: dict[str, Decorated] = field(default_factory=dict)
    signals: dict[str, Decorated] = field(default_factory=dict)


REGISTRY = Registry()


class ModelKind:
    """A kind with its settings, as a project writes it: `IncrementalByTimeRangeKind(time_column="day")`."""

    kind = ""

    def __init__(self, **settings: Any) -> None:
        self.settings = {key: value for key, value in settings.items() if key != "name"}
        named = settings.get("name", self.kind)
        self.name = named.value if isinstance(named, Enum) else str(named)


class TimeColumn:
    """A time column and its format."""

    def __init__(self, column: Any, format: str | None = None) -> None:
        self.column, self.format = column, format


class ExecutionContext:
    """The context of a Python model, to read tables; see docs/guides/python.md."""


class SQLMeshError(Exception):
    """The exception that a project raises for its own errors."""


class ConfigError(SQLMeshError):
    """The project's settings are wrong."""


class MacroEvalError(SQLMeshError):
    """A wrong call of a macro."""


def _make_decorated(name: str, function: Callable[..., Any], arguments: dict[str, Any]) -> Decorated:
    code = inspect.unwrap(function).__code__
    return Decorated(name, function, arguments, code.co_filename, code.co_firstlineno)


def model(name: Any = "", **arguments: Any) -> Callable[[F], F]:
    """`@model("schema.table", kind=..., columns={...})` the decorator of a function that returns the rows."""

    def decorate(function: F) -> F:
        settings = {"name": name, **arguments} if name else arguments
        REGISTRY.models.append(_make_decorated(function.__name__, function, settings))
        return function

    return decorate


def macro(name: Any = "", *_args: Any, **_arguments: Any) -> Any:
    """`@macro()` the decorator of a function that SQL calls as `@name(...)`."""
    return _register_named(REGISTRY.macros, name)


def signal(name: Any = "", *_args: Any, **_arguments: Any) -> Any:
    """`@signal()`, the decorator of a function that returns which intervals of a batch are ready."""
    return _register_named(REGISTRY.signals, name)


def _register_named(registered: dict[str, Decorated], name: Any) -> Any:
    def decorate(function: F) -> F:
        called = (function.__name__ if callable(name) else name or function.__name__).lower()
        registered[called] = _make_decorated(called, function, {})
        return function

    return decorate(name) if callable(name) else decorate


def to_datetime(value: Any = None, *_args: Any, **_more: Any) -> datetime:
    """Return a date, a moment, an ISO text or milliseconds since 1970 as a moment in UTC; now for None."""
    if value is None:
        return datetime.now(UTC)
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value / 1000, UTC)
    return to_datetime(datetime.fromisoformat(str(value)))


def to_date(value: Any = None, *_args: Any, **_more: Any) -> date:
    """Return the day of a moment, in UTC."""
    return to_datetime(value).astimezone(UTC).date()


def to_ds(value: Any) -> str:
    """Return the day of a moment as `2026-01-31`."""
    return to_date(value).isoformat()


def to_ts(value: Any) -> str:
    """Return a moment as `2026-01-31 12:00:00`."""
    return to_datetime(value).replace(tzinfo=None).isoformat(sep=" ")


def to_timestamp(value: Any, *_args: Any, **_more: Any) -> int:
    """Return a moment as milliseconds since 1970."""
    return int(to_datetime(value).timestamp() * 1000)


def now(*_args: Any, **_more: Any) -> datetime:
    """Return the present moment, in UTC."""
    return datetime.now(UTC)


def yesterday(*_args: Any, **_more: Any) -> datetime:
    """Return the beginning of yesterday, in UTC."""
    return to_datetime(to_date()) - timedelta(days=1)


def _kind_classes() -> Iterator[tuple[str, type[ModelKind]]]:
    special = {"SCD_TYPE_2": "SCDType2Kind", "SCD_TYPE_2_BY_TIME": "SCDType2ByTimeKind"}
    special["SCD_TYPE_2_BY_COLUMN"] = "SCDType2ByColumnKind"
    for kind in KINDS:
        name = special.get(kind, "".join(part.capitalize() for part in kind.split("_")) + "Kind")
        yield name, type(name, (ModelKind,), {"kind": kind})


def install_modules() -> None:
    """Add the modules that a project can import to this process."""
    kinds = dict(_kind_classes())
    top = {
        "model": model, "macro": macro, "signal": signal, "ExecutionContext": ExecutionContext,
        "ModelKindName": ModelKindName, "MacroEvaluator": Evaluator, "SQL": SQL,
        "DatetimeRanges": list[tuple[datetime, datetime]], "DatetimeRange": tuple[datetime, datetime],
        "CustomKind": kinds["CustomKind"],
    }  # fmt: skip
    errors = {"SQLMeshError": SQLMeshError, "ConfigError": ConfigError, "MacroEvalError": MacroEvalError}
    dates = {
        "to_datetime": to_datetime, "to_date": to_date, "to_ds": to_ds, "to_ts": to_ts, "to_timestamp": to_timestamp,
        "now": now, "yesterday": yesterday, "TimeLike": Any, "yesterday_ds": lambda: to_ds(yesterday()),
        "DatetimeRanges": top["DatetimeRanges"], "DatetimeRange": top["DatetimeRange"],
    }  # fmt: skip
    models = {**kinds, "ModelKind": ModelKind, "TimeColumn": TimeColumn, "ModelKindName": ModelKindName, "model": model}
    for root in ("sqlmesh", "mergeplan"):
        add_module(root, top, package=True)
        add_module(f"{root}.core", {}, package=True)
        add_module(f"{root}.core.macros", {"macro": macro, "MacroEvaluator": Evaluator, "SQL": SQL})
        add_module(f"{root}.core.model", models, package=True)
        add_module(f"{root}.core.model.kind", models)
        add_module(f"{root}.core.model.definition", models)
        add_module(f"{root}.core.model.decorator", {"model": model})
        add_module(f"{root}.core.context", {"ExecutionContext": ExecutionContext})
        add_module(f"{root}.core.signal", {"signal": signal})
        add_module(f"{root}.utils", {}, package=True)
        add_module(f"{root}.utils.date", dates)
        add_module(f"{root}.utils.errors", errors)


def add_module(name: str, holds: dict[str, Any], *, package: bool = False) -> None:
    module = ModuleType(name)
    module.__dict__.update(holds)
    if package:
        module.__path__ = []
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, module)
