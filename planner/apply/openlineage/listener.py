"""OpenLineage's run events from the events of applying a plan: one run for each model, and one for the plan."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from mergeplan.planner.apply.events import BatchDone, Event, ModelFailed, ModelStarted
from mergeplan.planner.apply.openlineage.facets import EVENT, PRODUCER, Json, Scene, build_facet

Send = Callable[[Json], None]


@dataclass
class _Run:
    id: str
    batches: int
    done: int = 0
    rows: int = 0
    is_unchanged: bool = False


@dataclass
class Listener:
    """A listener that sends OpenLineage events for a plan's events; the clock and the ids are arguments."""

    scene: Scene
    send: Send
    now: Callable[[], datetime]
    new_id: Callable[[], str]
    _plan_run: str = ""
    _runs: dict[str, _Run] = field(default_factory=dict)

    def begin(self) -> None:
        self._plan_run = self.new_id()
        self._send_event("START", self._plan_run, self._plan_job(), {})

    def event(self, event: Event) -> None:
        match event:
            case ModelStarted(model, batches):
                self._runs[model] = _Run(self.new_id(), batches)
                self._send_model_event("START", model)
            case BatchDone():
                self._count_batch(event)
            case ModelFailed(model, message):
                self._end_run("FAIL", model, message)
            case _:
                pass

    def end(self, failure: str | None) -> None:
        """Report the plan as applied or failed; a run that is still open was aborted."""
        for model in list(self._runs):
            self._end_run("ABORT", model)
        facets = _error_facet(failure) if failure is not None else {}
        self._send_event("COMPLETE" if failure is None else "FAIL", self._plan_run, self._plan_job(), facets)

    def _count_batch(self, event: BatchDone) -> None:
        run = self._runs.get(event.model)
        if run is None:
            return
        run.done, run.rows, run.is_unchanged = run.done + 1, run.rows + event.rows, event.unchanged
        if run.done == run.batches:
            self._end_run("COMPLETE", event.model)

    def _end_run(self, what: str, model: str, message: str | None = None) -> None:
        if model in self._runs:
            self._send_model_event(what, model, message)
            del self._runs[model]

    def _send_model_event(self, what: str, model: str, message: str | None = None) -> None:
        run, scene = self._runs[model], self.scene
        output = scene.dataset(model, output=True)
        if what == "COMPLETE" and not run.is_unchanged:
            output["outputFacets"] = build_facet("outputStatistics", rowCount=run.rows)
        parent = {key: self._plan_job()[key] for key in ("namespace", "name")}
        facets = build_facet("parent", run={"runId": self._plan_run}, job=parent) | scene.time(model)
        facets |= _error_facet(message) if message is not None else {}
        inputs = [scene.dataset(name) for name in scene.reads(model)]
        self._send_event(what, run.id, scene.job(model), facets, inputs=inputs, outputs=[output])

    def _plan_job(self) -> Json:
        facets = build_facet("jobType", processingType="BATCH", integration="MERGEPLAN", jobType="PLAN")
        return {"namespace": self.scene.namespace, "name": f"plan.{self.scene.plan.environment}", "facets": facets}

    def _send_event(self, what: str, run: str, job: Json, facets: Json, **datasets: list[Json]) -> None:
        self.send(
            {
                "eventType": what,
                "eventTime": self.now().isoformat(),
                "producer": PRODUCER,
                "schemaURL": EVENT,
                "run": {"runId": run, "facets": facets},
                "job": job,
                "inputs": [],
                "outputs": [],
                **datasets,
            }
        )


def _error_facet(message: str) -> Json:
    return build_facet("errorMessage", message=message, programmingLanguage="SQL")
