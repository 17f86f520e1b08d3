"""Runs Python models and signals: a child for each model, with a session on the planner's Spark."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from pydantic import TypeAdapter

from mergeplan.planner.engine.protocol import Engine, ProjectConnection, Reading
from mergeplan.planner.engine.struct_fields import place_fields
from mergeplan.planner.errors import MergeplanError, PlanMoved, ProjectError
from mergeplan.planner.intervals import Interval, Timeline, batches, merge_intervals, subtract_intervals
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.schedule import SignalCall
from mergeplan.planner.naming import quote_column
from mergeplan.planner.parsing.render import no_rows
from mergeplan.planner.python.host import Child, ChildFailed
from mergeplan.planner.python.isolation import SOCKET
from mergeplan.planner.python.messages import Executed
from mergeplan.planner.python.project import CALLING, ProjectCode, code_error, validate_reply
from mergeplan.planner.python.run_inputs import NOTHING, RunInputs

EXECUTED = TypeAdapter(Executed)
READY = TypeAdapter(bool | tuple[tuple[datetime, datetime], ...])
MOST_IDLE = 4  # children that are kept for their model's next batch
TABLE = re.compile(r"\w+(\.\w+){1,2}", re.ASCII)


@contextmanager
def open_runner(code: ProjectCode, engine: Engine) -> Iterator[Running]:
    runner = Running(code, engine)
    try:
        yield runner
    finally:
        runner.stop()


@dataclass(frozen=True)
class ModelWorker:
    child: Child
    connection: ProjectConnection

    @property
    def alive(self) -> bool:
        return self.child.stop.alive

    def stop(self) -> None:
        """End the child, then what it left running on Spark."""
        self.child.stop()
        self.connection.close()

    def ask(self, request: Mapping[str, Any], reading: Reading, timeout: float | None) -> Any:
        """Let the child read these tables from now on, and return its answer; raise ChildFailed or Cancelled."""
        self.connection.admit(reading)
        spark = {"socket": str(self.child.scratch / SOCKET), "session": self.connection.session}
        return self.child.ask({**request, "spark": spark}, timeout)


@dataclass
class Running:
    """A runner of Python models: a child for each model at a time, reused for the model's next batch."""

    code: ProjectCode
    engine: Engine
    _idle: dict[str, list[ModelWorker]] = field(default_factory=dict)
    _all: list[ModelWorker] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closed: bool = False

    @contextmanager
    def rows(
        self,
        model: Model,
        interval: Interval,
        tables: Mapping[str, str],
        execution: datetime,
        inputs: RunInputs = NOTHING,
    ) -> Iterator[str]:
        """Yield a query that returns the model's rows for an interval, valid inside the context.

        `tables` maps each table that it reads to the one that holds its rows. Raise ProjectError at the line of the
        project's code that failed, PlanMoved if the project has other code than the model was planned with, or
        Cancelled.
        """
        self._check_code(model)
        prefix, engine = f"mergeplan_{uuid4().hex}", self.engine.engine_for(model.gateway)
        context = self._request_context(model, tables)
        if model.reads_itself:
            context["tables"][model.name] = tables[model.name]
        context["variables"] |= {name.lower(): variable for name, variable in inputs.variables.items()}
        request = {**context, **_execution_request(model, interval, execution), "prefix": prefix}
        reading = Reading(tuple(context["tables"].values()), dict(inputs.views), prefix)
        leftover_views: tuple[str, ...] = ()
        worker = self._take_worker(model)
        try:
            try:
                views = self._ask_worker(worker, request, reading, model).views
            finally:
                leftover_views = worker.connection.refuse()
            yield _union_views(model, engine, [f"global_temp.{prefix}_{index}" for index in range(views)])
        finally:
            for view in leftover_views:
                with suppress(MergeplanError):  # the view ends with Spark, and an earlier error is more useful
                    engine.catalog.drop_view(view)
            self._give_back(model, worker)

    def _check_code(self, model: Model) -> None:
        """Raise PlanMoved if the project has other code than the model was planned with: its rows would be others."""
        if model.python is None or self.code.digests.get(model.name) == model.python.digest:
            return
        message = f"`{model.name}` was planned with other Python code than the project has now."
        hint = "Plan again, or run from the commit that was promoted."
        raise PlanMoved(message, place=model.place, hint=hint)

    def ready(self, calls: Sequence[SignalCall], batch: Timeline, model: Model, tables: Mapping[str, str]) -> Timeline:
        """Return the part of a batch that all of these signals report as ready.

        An incremental model is checked unit by unit. Raise ProjectError at the signal's file and line.
        """
        if model.kind.is_incremental:
            batch = batches(model.cron, batch, 1)
        for call in calls:
            if not batch:
                break
            if call.name not in self.code.signals:
                raise ProjectError(f"There is no signal `{call.name}` in the project anymore.", place=model.place)
            place = self.code.signals[call.name]
            context = self._request_context(model, tables)
            request = {
                **context,
                "op": "signal",
                "name": call.name,
                "intervals": [[interval.start.isoformat(), interval.end.isoformat()] for interval in batch],
                "kwargs": {name: json.loads(text) for name, text in call.arguments},
            }
            reading = Reading((*context["tables"].values(), *_tables_named(call)))
            worker = self._take_worker(model, signals=True)
            try:
                reply = validate_reply(READY, worker.ask(request, reading, CALLING))
            except ChildFailed as failed:
                raise code_error(failed.wrong, place, f"The signal `{call.name}`") from None
            finally:
                worker.connection.refuse()
                self._give_back(model, worker, signals=True)
            batch = _ready_part(reply, batch)
        return merge_intervals(batch)

    def stop(self) -> None:
        """End what runs now; a caller that waits for it gets Cancelled."""
        with self._lock:
            self._closed = True
            workers = list(self._all)
        for worker in workers:
            worker.stop()

    def _request_context(self, model: Model, tables: Mapping[str, str]) -> dict[str, Any]:
        variables = {name: json.loads(text) for name, text in model.python.variables} if model.python else {}
        project_variables = {name.lower() for name in self.code.variables}
        if model.python is None:
            variables, project_variables = dict(self.code.variables), set()
        return {
            "tables": {name: tables.get(name, name) for name in model.depends_on},
            "variables": variables,
            "hidden": sorted(project_variables - variables.keys()),
            "gateway": model.gateway or self.code.gateway,
            "catalog": self.code.catalog,
        }

    def _ask_worker(self, worker: ModelWorker, request: Mapping[str, Any], reading: Reading, model: Model) -> Executed:
        assert model.python is not None
        try:
            return validate_reply(EXECUTED, worker.ask(request, reading, None))
        except ChildFailed as failed:
            raise code_error(failed.wrong, model.place, f"`{model.name}`") from None

    def _take_worker(self, model: Model, *, signals: bool = False) -> ModelWorker:
        key = f"{model.name} signals" if signals else model.name
        with self._lock:
            if idle := self._idle.get(key):
                return idle.pop()
        try:
            # nothing but what the model itself imports: what else the project has must not touch its rows
            child, loaded = self.code.start(
                sorted({place.path for place in self.code.signals.values()}) if signals else ()
            )
        except ChildFailed as failed:
            raise code_error(failed.wrong, model.place, f"`{model.name}`") from None
        try:
            if loaded.errors:
                raise code_error(loaded.errors[0], model.place)
            python = not child.isolation.required or child.isolation.functions
            connection = self.engine.engine_for(model.gateway).connect_project(child.scratch / SOCKET, python=python)
        except BaseException:
            child.stop()
            raise
        worker = ModelWorker(child, connection)
        with self._lock:
            self._all.append(worker)
            closed = self._closed
        if closed:
            worker.stop()
        return worker

    def _give_back(self, model: Model, worker: ModelWorker, *, signals: bool = False) -> None:
        key = f"{model.name} signals" if signals else model.name
        if not worker.alive:
            worker.stop()
        with self._lock:
            if worker.alive:
                self._idle.setdefault(key, []).append(worker)
            idle = [(name, idle_worker) for name, workers in self._idle.items() for idle_worker in workers]
            for name, idle_worker in idle[: max(len(idle) - MOST_IDLE, 0)]:
                self._idle[name].remove(idle_worker)
                idle_worker.stop()


def _execution_request(model: Model, interval: Interval, execution: datetime) -> dict[str, Any]:
    assert model.python is not None
    return {
        "op": "execute",
        "path": model.python.path,
        "entrypoint": model.python.entrypoint,
        "start": interval.start.isoformat(),
        "end": interval.end.isoformat(),
        "execution_time": execution.isoformat(),
        "columns": [[column.name, column.type] for column in model.columns],
    }


def _union_views(model: Model, engine: Engine, views: Sequence[str]) -> str:
    """Return the rows of all views with the declared types; no rows without views."""
    if not views:
        return no_rows(model.columns)
    queries = [f"SELECT * FROM {view}" for view in views]
    if any("struct<" in column.type for column in model.columns):
        queries = [place_fields(query, engine.schema(query), model.columns, ignores=False) for query in queries]
    names = {column: quote_column(column.name) for column in model.columns}
    cast = ", ".join(f"CAST({name} AS {column.type}) AS {name}" for column, name in names.items())
    return "\nUNION ALL\n".join(f"SELECT {cast} FROM ({query})" for query in queries)


def _ready_part(reply: bool | tuple[tuple[datetime, datetime], ...], batch: Timeline) -> Timeline:
    if isinstance(reply, bool):
        return batch if reply else ()
    named = merge_intervals(Interval(start.astimezone(UTC), end.astimezone(UTC)) for start, end in reply if start < end)
    return tuple(
        unit for unit in batch if not subtract_intervals((unit,), named)
    )  # a unit that is ready in part is not


def _tables_named(call: SignalCall) -> Iterator[str]:
    """Yield the tables in a signal's arguments: it may read these too, since it does not decide on rows."""
    for _, text in call.arguments:
        value = json.loads(text)
        for table in value if isinstance(value, list) else [value]:
            if isinstance(table, str) and TABLE.fullmatch(table):
                yield table
