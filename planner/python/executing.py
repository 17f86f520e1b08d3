"""Python models and signals in the child: each has a Spark Connect session, and the rows become views."""

from __future__ import annotations

import inspect
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from mergeplan.planner.python.shims import ExecutionContext

LAST = timedelta(microseconds=1)  # an end is the last moment inside


class Execution:
    """The Spark session of project code, opened on first use."""

    def __init__(self, spark: Mapping[str, Any] | None) -> None:
        self._given = spark
        self._spark: Any = None

    @property
    def spark(self) -> Any:
        if self._spark is None:
            if self._given is None:
                raise RuntimeError("there is no Spark here")
            self._spark = _open_session(self._given)
        return self._spark

    def interrupt(self) -> None:
        """Stop what the session is running, which would otherwise continue."""
        if self._spark is not None:
            with suppress(Exception):  # a server that has gone runs nothing
                self._spark.interruptAll()

    def run(self, entry: Callable[..., Any], request: Mapping[str, Any]) -> dict[str, Any]:
        """Call a model's function; return how many views hold its rows, `PREFIX_0` and so on.

        Raise TypeError if it returned no frame, ValueError if a frame lacks a column.
        """
        _pickle_by_value()
        context = Context(request, self)
        if "pyspark" in sys.modules:
            _ = self.spark  # its functions look for the session that there is
        moments = {name: datetime.fromisoformat(request[name]) for name in ("start", "end", "execution_time")}
        moments["end"] -= LAST
        count = 0
        parameters = inspect.signature(entry).parameters
        takes_all = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
        keywords = {name: at for name, at in moments.items() if takes_all or name in parameters}
        for frame in check_frames(entry(context, **keywords)):
            self._create_view(frame, request["columns"], f"{request['prefix']}_{count}")
            count += 1
        return {"views": count}

    def _create_view(self, frame: Any, columns: list[list[str]], name: str) -> None:
        chosen = choose_columns([str(column) for column in frame.columns], [column for column, _ in columns])
        if hasattr(frame, "createGlobalTempView"):
            shown = frame.select(*(f"`{frame.columns[index]}`" for index in chosen))
        else:
            shown = self._convert_pandas(frame.iloc[:, chosen], columns)
        shown.createGlobalTempView(name)

    def _convert_pandas(self, frame: Any, columns: list[list[str]]) -> Any:
        """Return rows of pandas with the declared types; a column that does not fit is strings, which Spark casts."""
        frame = frame.set_axis([name for name, _ in columns], axis=1)
        kinds = {column[0]: column[1] for column in columns}
        try:
            return self.spark.createDataFrame(frame, build_schema(kinds))
        except Exception:  # pyspark and pyarrow raise what they like
            for name in [name for name, kind in columns if not self._fits(frame[[name]], {name: kind})]:
                frame = frame.assign(**{name: write_texts(frame[name])})
                kinds[name] = "string"
            return self.spark.createDataFrame(frame, build_schema(kinds))

    def _fits(self, column: Any, kinds: Mapping[str, str]) -> bool:
        try:
            self.spark.createDataFrame(column, build_schema(kinds))
        except Exception:
            return False
        return True


def build_schema(kinds: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in kinds.items())


def choose_columns(names: list[str], declared: list[str]) -> list[int]:
    """Return the places of the declared columns among those of a frame; raise ValueError unless each is there once."""
    folded = [name.lower() for name in names]
    for column in declared:
        if column not in folded:
            returned = (
                f"it returned {', '.join(f'`{name}`' for name in folded)}" if names else "its frame has no column"
            )
            raise ValueError(f"it returned no column `{column}`, which the model declares; {returned}")
        if folded.count(column) > 1:
            raise ValueError(f"it returned the column `{column}` {folded.count(column)} times")
    return [folded.index(column) for column in declared]


def write_texts(column: Any) -> Any:
    """Return a column of pandas as texts; raise TypeError for bytes, which have none."""
    values = column.astype(object).where(column.notna(), None)
    if any(isinstance(value, bytes | bytearray) for value in values):
        raise TypeError(f"its column `{column.name}` has bytes among values of another type")
    return values.map(lambda value: value if value is None else str(value))


def check_frames(result: Any) -> Iterator[Any]:
    """Yield the frames that a model returned or yielded; raise TypeError for anything else."""
    parts: Iterable[Any] = result if isinstance(result, types.GeneratorType) else (result,)
    for part in parts:
        if part is None:
            raise TypeError("it returned nothing: return a Spark or pandas frame, or yield none for no rows")
        if not hasattr(part, "columns") or not (hasattr(part, "createGlobalTempView") or hasattr(part, "iloc")):
            raise TypeError(f"it returned a {type(part).__name__}: return a Spark or pandas frame")
        yield part


class Context(ExecutionContext):
    """The context of project code: the environment's tables by name, Spark, variables."""

    def __init__(self, request: Mapping[str, Any], execution: Execution) -> None:
        self._tables: Mapping[str, str] = request["tables"]
        self._variables: Mapping[str, Any] = request["variables"]
        self._hidden: frozenset[str] = frozenset(request["hidden"])
        self._execution = execution
        self.gateway: str | None = request["gateway"] or None
        self.default_catalog: str = request["catalog"]
        self.dialect = "spark"

    @property
    def spark(self) -> Any:
        return self._execution.spark

    @property
    def engine_adapter(self) -> Context:
        """The object on which SQLMesh has `fetchdf` too."""
        return self

    def table(self, name: str) -> str:
        return self.resolve_table(name)

    def resolve_table(self, name: str) -> str:
        """Return the table that holds a model's rows in this environment."""
        key = name.replace("`", "").replace('"', "").lower()
        if key.count(".") == 2:
            key = key.removeprefix(f"{self.default_catalog}.")
        if key not in self._tables:
            raise ValueError(f"`{key}` is not a table that this model reads; add it to `depends_on`")
        return self._tables[key]

    def fetchdf(self, query: Any, quote_identifiers: bool = False) -> Any:
        return self.fetch_pyspark_df(query).toPandas()

    def fetch_pyspark_df(self, query: Any, quote_identifiers: bool = False) -> Any:
        return self.spark.sql(query if isinstance(query, str) else query.sql(dialect="spark"))

    def var(self, name: str, default: Any = None) -> Any:
        if name.lower() in self._hidden:
            raise ValueError(f"the name of the variable `{name}` is nowhere in the code; write it out")
        return self._variables.get(name.lower(), default)

    blueprint_var = var

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"`context.{name}` is not supported")


def intervals_of(pairs: list[list[str]]) -> list[tuple[datetime, datetime]]:
    return [(datetime.fromisoformat(start), datetime.fromisoformat(end)) for start, end in pairs]


def check_readiness(
    function: Callable[..., Any], batch: list[tuple[datetime, datetime]], context: Context, kwargs: Mapping[str, Any]
) -> Any:
    """Return the result of a signal: all, none, or some intervals of the batch."""
    names = inspect.signature(function).parameters
    context_arguments = {"context": context} if "context" in names else {}
    result = function(batch, **context_arguments, **kwargs)
    if isinstance(result, bool):
        return result
    if isinstance(result, list | tuple) and all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in result):
        return [[_format_moment(start), _format_moment(end)] for start, end in result]
    raise TypeError(f"a signal returns True, False or intervals, not {type(result).__name__}")


def _format_moment(value: Any) -> str:
    if not isinstance(value, datetime):
        raise TypeError(f"an interval is made of two datetimes, not {type(value).__name__}")
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()


def _open_session(spark: Mapping[str, Any]) -> Any:
    warnings.filterwarnings("ignore", module="pyspark")
    from pyspark.sql.connect.client import ChannelBuilder
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    class Socket(ChannelBuilder):
        """A gRPC channel over the socket file of the planner's proxy."""

        def toChannel(self) -> Any:  # pyspark's name
            return self._insecure_channel(f"unix:{spark['socket']}")

        @property
        def host(self) -> str:
            return "mergeplan"

    channel = Socket(channelOptions=[("grpc.default_authority", "localhost")])
    channel.set(ChannelBuilder.PARAM_SESSION_ID, spark["session"])
    builder: Any = SparkSession.builder
    session = builder.channelBuilder(channel).create()
    session.client.set_retry_policies([DefaultPolicy(max_retries=6, max_backoff=2000)])
    SparkSession._set_default_and_active_session(session)
    return session


def _pickle_by_value() -> None:
    """Send the project's modules along with a frame's functions, because Spark's workers cannot import them."""
    from pyspark import cloudpickle

    by_value: Any = cloudpickle.register_pickle_by_value

    for module in list(sys.modules.values()):
        spec = getattr(module, "__spec__", None)
        if type(getattr(spec, "loader", None)).__name__ == "Files":
            by_value(module)
