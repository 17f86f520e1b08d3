"""What mergeplan's state says of a run: read by tasks and by the triggerer, one read for all tasks of a run.

It asks the database alone: no file of the project but config.yaml is read, no Spark is imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from threading import Lock

from mergeplan.airflow.decisions import ModelView, RunView
from mergeplan.airflow.place import Place, StateError
from mergeplan.planner.contract.from_plan import format_span
from mergeplan.planner.errors import MergeplanError
from mergeplan.planner.replace_file import replace_file
from mergeplan.planner.session.scheduling.schedule import make_schedule
from mergeplan.planner.session.settings import settings_of
from mergeplan.planner.session.state_access import open_state
from mergeplan.planner.state.runs.run_records import ModelRun, RunRecord
from mergeplan.planner.state.store import StateStore


@contextmanager
def raise_state_errors() -> Iterator[None]:
    """Raise StateError, in one sentence, for a state that mergeplan cannot read."""
    try:
        yield
    except MergeplanError as error:
        raise StateError(str(error)) from None


class StateReader:
    """The state of a place, open until this process ends; safe between threads."""

    def __init__(self, place: Place, state_url: str) -> None:
        self.environment = place.environment
        self._shown: tuple[int, frozenset[str] | None] | None = None  # as of a generation of all environments
        self._open = ExitStack()
        with raise_state_errors():
            settings = settings_of(os.environ, Path(place.folder), place.gateway or None, state_url or None)
            self.store: StateStore = self._open.enter_context(open_state(settings, place.project))

    def read_run(self, run_id: str) -> RunView | None:
        """Return the present state of a run; None before it began."""
        with raise_state_errors():
            record = self.store.runs.get(run_id)
            if record is None:
                return None
            view = _view(record, self.store.leases.holder(self.environment) is not None)
            return replace(view, environment=self.environment, shown=self._read_models())

    def _read_models(self) -> frozenset[str] | None:
        """Return the environment's models, read again only after a promotion; None if it does not exist."""
        generation = self.store.environments.generation()
        if self._shown is None or self._shown[0] != generation:
            environment = self.store.environments.get(self.environment)
            self._shown = generation, frozenset(environment.snapshots) if environment.exists else None
        return self._shown[1]

    def report(self, run_id: str, model: str) -> None:
        """Keep that a task took the result of a model up."""
        with raise_state_errors():
            self.store.runs.report(run_id, model)

    def latest_execution_time(self) -> datetime | None:
        """Return the latest moment as of which a run computed."""
        with raise_state_errors():
            return self.store.runs.latest_execution_time(self.environment)

    def write_schedule(self, path: Path) -> int | None:
        """Write the environment's schedule if it is another one than that in the file; its revision, or None."""
        with raise_state_errors():
            schedule = make_schedule(self.store, self.environment)
        text = f"{schedule.model_dump_json()}\n"
        if path.exists() and path.read_text(encoding="utf-8") == text:
            return None
        replace_file(path, text)
        return schedule.revision


_OPENING = Lock()


def state_reader(place: Place, state_url: str) -> StateReader:
    """Return the reader of a place; the same one for each call of a process."""
    with _OPENING:  # triggers ask from several threads at once, and the first one opens it
        return _open_reader(place, state_url)


@cache
def _open_reader(place: Place, state_url: str) -> StateReader:
    return StateReader(place, state_url)


def _view(record: RunRecord, alive: bool) -> RunView:
    times = [record.began_at, record.ended_at, *(model.at for model in record.models.values())]
    last = max(at for at in times if at is not None)
    models = {name: _model(model) for name, model in record.models.items()}
    quiet = (datetime.now(UTC) - last).total_seconds()
    return RunView(record.id, record.status.value, record.revision, record.message, models, alive, quiet)


def _model(model: ModelRun) -> ModelView:
    return ModelView(
        model.model,
        model.status.value,
        model.table,
        tuple(format_span(interval) for interval in model.intervals),
        model.rows,
        model.seconds,
        tuple((audit.name, audit.count, audit.blocking) for audit in model.audits),
        model.message,
        model.is_reported,
    )
