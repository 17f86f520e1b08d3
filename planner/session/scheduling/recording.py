"""A run with an id: what becomes of each model is recorded while it runs, and may be computed again afterwards."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from mergeplan.planner.apply import events
from mergeplan.planner.apply.backfill.clear_intervals import forget_restated
from mergeplan.planner.errors import RequestError
from mergeplan.planner.intervals import Timeline, merge_intervals, subtract_intervals
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.restatement_plan import build_restatement
from mergeplan.planner.plan.schedule import Window
from mergeplan.planner.session.events import Due
from mergeplan.planner.session.workspace import Workspace, load_state
from mergeplan.planner.state.leases import Lease
from mergeplan.planner.state.runs.run_records import AuditCount, ModelRun, RunStatus


class RunRecorder:
    """A listener that records in the state what a run's events say of models, and passes them on."""

    def __init__(self, work: Workspace, id: str, environment: str, *, again: bool) -> None:
        self._work, self._runs, self._emit = work, work.store.runs, work.on_event
        self._id, self._environment, self._again = id, environment, again
        self._models: dict[str, ModelRun] = {}
        self._batches: dict[str, int] = {}  # that are still to come

    @property
    def has_failures(self) -> bool:
        """True when a model failed or was skipped."""
        return any(model.status in (RunStatus.FAILED, RunStatus.SKIPPED) for model in self._models.values())

    def record(self, event: events.Event) -> None:
        if isinstance(event, Due):
            self._expect_models(event.plan)
        elif isinstance(event, events.ModelStarted):
            self._batches[event.model] = event.batches
            self._change_model(event.model, status=RunStatus.RUNNING)
        elif isinstance(event, events.BatchDone):
            self._add_batch(event)
        elif isinstance(event, events.AuditRan) and event.result.model in self._models:
            model, result = self._models[event.result.model], event.result
            count = AuditCount(result.name, result.count, result.blocking)
            earlier = tuple(audit for audit in model.audits if audit.name != result.name)
            self._models[model.model] = replace(model, audits=(*earlier, count))  # kept with the next change
        elif isinstance(event, events.ModelUpToDate):
            self._change_model(event.model, status=RunStatus.DONE)
        elif isinstance(event, events.ModelFailed):
            self._change_model(event.model, status=RunStatus.FAILED, message=event.message)
        elif isinstance(event, events.ModelSkipped):
            message = f"`{event.because}`, which it reads, failed."
            self._change_model(event.model, status=RunStatus.SKIPPED, message=message)
        self._emit(event)

    def _expect_models(self, plan: Plan) -> None:
        due = {
            change.name: (change.new.table, change.missing)
            for change in plan.changes
            if change.new is not None and change.missing
        }
        self._runs.expect(self._id, self._environment, due, again=self._again)
        record = self._runs.get(self._id)
        models = record.models if record else {}
        self._models = {name: models[name] for name in due if name in models}
        self._conclude_earlier_models([model for model in models.values() if model.model not in due])

    def _conclude_earlier_models(self, models: Sequence[ModelRun]) -> None:
        """Conclude the models of an earlier try that are no longer due, because no other run would."""
        unfinished_models = [model for model in models if model.status is not RunStatus.DONE]
        if not unfinished_models:
            return
        shown = self._work.environment(self._environment).snapshots
        timelines = self._work.store.intervals.load_timelines({model.table for model in unfinished_models})
        gone = [model.model for model in unfinished_models if model.model not in shown]
        self._runs.forget_models(self._id, gone)
        self._runs.change(
            self._id,
            self._environment,
            [
                _conclude_model(model, timelines[model.table] if shown[model.model].table == model.table else None)
                for model in unfinished_models
                if model.model in shown
            ],
        )

    def _add_batch(self, event: events.BatchDone) -> None:
        model = self._models.get(event.model)
        if model is None:
            return
        remaining_batches = self._batches[event.model] = self._batches.get(event.model, event.of) - 1
        status = RunStatus.RUNNING if remaining_batches > 0 else RunStatus.DONE
        self._change_model(
            event.model, status=status, rows=model.rows + event.rows, seconds=model.seconds + event.seconds
        )

    def _change_model(self, name: str, **values: object) -> None:
        if name in self._models:
            self._models[name] = replace(self._models[name], **values)  # type: ignore[arg-type]
            self._runs.change(self._id, self._environment, [self._models[name]])


@contextmanager
def record_run(work: Workspace, id: str, environment: str, *, again: bool) -> Iterator[None]:
    """Record the run that goes on inside under its id; '' records nothing. `again`: it computes what it did before."""
    if not id:
        yield
        return
    runs, emit = work.store.runs, work.on_event
    runs.begin(id, environment, work.environment(environment).revision, work.now)
    recorder = RunRecorder(work, id, environment, again=again)
    work.on_event = recorder.record
    try:
        yield
    except BaseException as error:
        with suppress(RequestError):  # the error itself matters more than a state that went away with it
            runs.end(id, RunStatus.FAILED, str(error) or type(error).__name__)
        raise
    finally:
        work.on_event = emit
    runs.end(id, RunStatus.FAILED if recorder.has_failures else RunStatus.DONE)


def restate_recorded(work: Workspace, id: str, models: Collection[str], environment: str, lease: Lease) -> None:
    """Clear what a run computed of these models, and that time of everything downstream, for a new computation.

    Raise RequestError for a model that was not due in that run, or cannot be restated; nothing was cleared then.
    """
    if not models:
        return
    shown, record = work.environment(environment), work.store.runs.get(id)
    recorded_models = record.models if record else {}
    if unknown := sorted(set(models) - recorded_models.keys()):
        hint = "Restate it with `mergeplan plan --restate-model`."
        raise RequestError(f"`{unknown[0]}` was not computed by the run `{id}`.", hint=hint)
    spans = {name: merge_intervals(recorded_models[name].intervals) for name in models}
    plans = []
    for interval in sorted({interval for timeline in spans.values() for interval in timeline}):
        # just these: the time of a table that is computed as a whole has no start
        names = sorted(name for name, timeline in spans.items() if interval in timeline)
        window = Window(work.now, interval.start, interval.end)
        plans.append(build_restatement(shown, load_state(work), window, names, work.store.restatements.past()))
    for plan in plans:
        at = replace(plan, id=f"{plan.id} {work.began_at:%Y-%m-%dT%H:%M:%S.%f}")  # the same days, again and again
        forget_restated(at, work.store, lease, work.on_event)


def _conclude_model(model: ModelRun, held: Timeline | None) -> ModelRun:
    """Conclude a model that is no longer due: it is done if its table holds the time by now, else it has failed.

    `held` is None if a promotion gave the model another table; then it is done.
    """
    if held is None:
        message = "A promotion gave it another table, in which nothing of it is due."
        return replace(model, status=RunStatus.DONE, message=message)
    if missing := subtract_intervals(model.intervals, held):
        days = ", ".join(map(str, missing))
        return replace(model, status=RunStatus.FAILED, message=f"It is not due now and lacks {days}.")
    return replace(model, status=RunStatus.DONE, message="Its intervals were computed by another run.")
