"""Runs that a scheduler gave an id: what was due, and what became of each model. A run is taken up under its id."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from mergeplan.planner.errors import RequestError
from mergeplan.planner.intervals import Interval, Timeline, merge_intervals
from mergeplan.planner.state import tables as t
from mergeplan.planner.state.transaction import ProjectStore, Transaction

KEPT = timedelta(days=90)  # since a run began


class RunStatus(StrEnum):
    """What became of a run or of one of its models."""

    DUE = "due"  # a model that waits for its turn
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"  # a model that reads one that failed


@dataclass(frozen=True)
class AuditCount:
    """An audit that ran on what was written, and the rows that it found."""

    name: str
    count: int
    blocking: bool


@dataclass(frozen=True)
class ModelRun:
    """A model in a run.

    `intervals` were due; `rows` and `seconds` are those of all batches; `message` says why it failed; `reported_at` is
    when a scheduler took the result up, None before.
    """

    model: str
    table: str
    status: RunStatus
    intervals: Timeline = ()
    rows: int = 0
    seconds: float = 0.0
    audits: tuple[AuditCount, ...] = ()
    message: str = ""
    at: datetime | None = None
    reported_at: datetime | None = None

    @property
    def is_reported(self) -> bool:
        """True when a scheduler knows this result."""
        return self.reported_at is not None and self.at is not None and self.reported_at >= self.at


@dataclass(frozen=True)
class RunRecord:
    """A run as it is known now; `models` are those that were due."""

    id: str
    environment: str
    revision: int
    status: RunStatus
    message: str
    execution_time: datetime
    began_at: datetime
    ended_at: datetime | None
    models: Mapping[str, ModelRun] = field(default_factory=dict)


class Runs(ProjectStore):
    """The recorded runs of one project."""

    def begin(self, id: str, environment: str, revision: int, execution_time: datetime) -> None:
        """Begin a run, or resume one of this id; RequestError when it is one of another environment."""
        with self._database.writing() as tx:
            former_row = tx.execute(tx.select(t.runs).where(t.runs.c.id == id)).one_or_none()
            if former_row is not None and former_row.environment != environment:
                hint = "Give each run an id of its own."
                raise RequestError(f"The run `{id}` is one of the environment `{former_row.environment}`.", hint=hint)
            current_time = tx.now()
            before = current_time - KEPT
            old = sa.select(t.runs.c.id).where(tx.own(t.runs), t.runs.c.began_at < before)
            tx.execute(tx.delete(t.run_models).where(t.run_models.c.run.in_(old)))
            tx.execute(tx.delete(t.runs).where(t.runs.c.began_at < before))
            row: dict[str, Any] = {"id": id, "environment": environment, "revision": revision, "message": ""}
            row |= {"status": RunStatus.RUNNING.value, "execution_time": execution_time, "ended_at": None}
            tx.put(t.runs, [{**row, "began_at": former_row.began_at if former_row else current_time}])

    def expect(
        self, id: str, environment: str, due: Mapping[str, tuple[str, Timeline]], *, again: bool = False
    ) -> None:
        """Keep which models are due, as (table, intervals); a model that the run had before keeps its intervals too.

        When they are computed `again` it keeps those alone: a lookback would widen them each time.
        """
        with self._database.writing() as tx:
            current_time, former_models = tx.now(), _read_models(tx, id)
            models = (
                _build_due_model(name, *table_and_time, former_models.get(name), again)
                for name, table_and_time in due.items()
            )
            tx.put(t.run_models, [_build_row(id, environment, model, current_time) for model in models])

    def change(self, id: str, environment: str, models: Sequence[ModelRun]) -> None:
        with self._database.writing() as tx:
            current_time = tx.now()
            tx.put(t.run_models, [_build_row(id, environment, model, current_time) for model in models])

    def forget_models(self, id: str, models: Sequence[str]) -> None:
        with self._database.writing() as tx:
            statement = tx.delete(t.run_models).where(t.run_models.c.run == id)
            tx.execute(statement.where(t.run_models.c.model.in_(models)))

    def end(self, id: str, status: RunStatus, message: str = "") -> None:
        """End the run; its unfinished models fail for the same reason."""
        with self._database.writing() as tx:
            current_time = tx.now()
            values = {"status": status.value, "message": message, "ended_at": current_time}
            tx.execute(tx.update(t.runs).where(t.runs.c.id == id).values(**values))
            open_ones = t.run_models.c.status.in_([RunStatus.DUE.value, RunStatus.RUNNING.value])
            failed = {
                "status": RunStatus.FAILED.value,
                "message": message or "The run ended before it.",
                "at": current_time,
            }
            tx.execute(tx.update(t.run_models).where(t.run_models.c.run == id, open_ones).values(**failed))

    def get(self, id: str) -> RunRecord | None:
        with self._database.reading() as tx:
            row = tx.execute(tx.select(t.runs).where(t.runs.c.id == id)).one_or_none()
            if row is None:
                return None
            status = RunStatus(row.status)
            times = row.execution_time, row.began_at, row.ended_at
            return RunRecord(row.id, row.environment, row.revision, status, row.message, *times, _read_models(tx, id))

    def report(self, id: str, model: str) -> None:
        with self._database.writing() as tx:
            statement = tx.update(t.run_models).where(t.run_models.c.run == id, t.run_models.c.model == model)
            tx.execute(statement.values(reported_at=tx.now()))

    def latest_execution_time(self, environment: str) -> datetime | None:
        with self._database.reading() as tx:
            latest = sa.select(sa.func.max(t.runs.c.execution_time)).where(tx.own(t.runs))
            time: datetime | None = tx.execute(latest.where(t.runs.c.environment == environment)).scalar_one()
            return time


def _build_due_model(name: str, table: str, intervals: Timeline, earlier: ModelRun | None, again: bool) -> ModelRun:
    if earlier is None or earlier.table != table:
        return ModelRun(name, table, RunStatus.DUE, intervals)
    rows, seconds = (0, 0.0) if earlier.status is RunStatus.DONE else (earlier.rows, earlier.seconds)
    whole = earlier.intervals if again else merge_intervals((*earlier.intervals, *intervals))
    return ModelRun(name, table, RunStatus.DUE, whole, rows, seconds)


def _build_row(id: str, environment: str, model: ModelRun, now: datetime) -> dict[str, Any]:
    return {
        "run": id,
        "model": model.model,
        "environment": environment,
        "physical_table": model.table,
        "status": model.status.value,
        "intervals": [[interval.start.isoformat(), interval.end.isoformat()] for interval in model.intervals],
        "rows": model.rows,
        "seconds": model.seconds,
        "audits": [[audit.name, audit.count, audit.blocking] for audit in model.audits],
        "message": model.message,
        "at": now,
        "reported_at": None,
    }


def _read_models(tx: Transaction, id: str) -> dict[str, ModelRun]:
    rows = tx.execute(tx.select(t.run_models).where(t.run_models.c.run == id).order_by(t.run_models.c.model))
    return {row.model: _build_model(row) for row in rows}


def _build_model(row: sa.Row[Any]) -> ModelRun:
    pairs = ((datetime.fromisoformat(start), datetime.fromisoformat(end)) for start, end in row.intervals)
    return ModelRun(
        row.model,
        row.physical_table,
        RunStatus(row.status),
        tuple(Interval(start, end) for start, end in pairs),
        row.rows,
        row.seconds,
        tuple(AuditCount(*audit) for audit in row.audits),
        row.message,
        row.at,
        row.reported_at,
    )
