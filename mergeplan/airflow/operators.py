"""Tasks: one that runs what is due, one for each model that shows what became of it, and those of maintenance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from airflow.sdk import Asset, BaseOperator, BaseOperatorLink
from airflow.sdk.exceptions import AirflowException, AirflowSkipException
from airflow.triggers.base import StartTriggerArgs

from mergeplan.airflow.child import Command, run_in_turn
from mergeplan.airflow.connections import PRODUCER, open_reader, run_key, state_url_of
from mergeplan.airflow.decisions import LOST_SECONDS, Decision, Step, decide_task, present
from mergeplan.airflow.place import Place

TRIGGER = "mergeplan.airflow.triggers.ModelTrigger"


class MergeplanOperator(BaseOperator):
    """A task that starts mergeplan in a place, and ends it when the task is ended.

    It has no constructor: Airflow wraps each one of a class and its bases, which parsing a DAG of many tasks pays for.
    """

    place: Place
    _command: Command | None = None

    def make_command(self, state_url: str, verb: str, *arguments: str) -> Command:
        """Return the command of a mergeplan that is not started yet."""
        argv = self.place.argv(verb, *arguments)
        self.log.info("%s", " ".join(argv))
        self._command = Command(argv, self.place.environ(state_url), partial(self.log.info, "%s"))
        return self._command

    def run_due(
        self,
        state_url: str,
        run_id: str,
        *options: str,
        execution_time: str = "",
        go_on: Callable[[], bool] = lambda: True,
    ) -> Mapping[str, Any]:
        """Run what is due, recorded under an id, when no other run is at work."""
        at = ["--execution-time", execution_time] if execution_time else []
        arguments = [self.place.environment, "--run-id", run_id, "--output", "json", *options, *at]
        make = partial(self.make_command, state_url, "run", *arguments)
        return run_in_turn(make, go_on)

    def on_kill(self) -> None:
        """End mergeplan: what is computed stays recorded, and the next try goes on from there."""
        if self._command is not None:
            self._command.stop()


class RunOperator(MergeplanOperator):
    """Compute what is due. A model that fails is no failure of this task: the model's own task shows it.

    `schedule_file` is written again when a promotion has changed the environment, so that the DAG follows it.
    """

    template_fields: Sequence[str] = ("execution_time",)

    def __init__(self, *, place: Place, execution_time: str = "", schedule_file: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.place = place
        self.execution_time, self.schedule_file = execution_time, schedule_file

    def execute(self, context: Any) -> dict[str, Any]:
        state_url = state_url_of(self.place)
        run_id = run_key(self.dag_id, context["run_id"], self.task_id)
        # Before anything else: where there is no state, the command would make a new one.
        has_record = open_reader(self.place, state_url).read_run(run_id) is not None
        if not has_record and context["ti"].try_number > 1:
            self.log.warning(
                "The state has no record of the run `%s`: an earlier try did not begin it, or it is older than 90 days."
                " Missing intervals are computed. To compute days again, restate them.", run_id,
            )  # fmt: skip
        follow_environment(self, state_url)
        result = self.run_due(state_url, run_id, execution_time=self.execution_time)
        return {"run_id": run_id, "failed": list(result.get("failed", ()))}


def follow_environment(task: Any, state_url: str) -> None:
    """Write the schedule file of a task again if the environment shows other models than the file lists."""
    if not task.schedule_file:
        return
    try:
        revision = open_reader(task.place, state_url).write_schedule(Path(task.schedule_file))
    except OSError as error:
        task.log.warning("%s was not written, so the DAG stays as it is: %s", task.schedule_file, error)
        return
    if revision is not None:
        task.log.info("%s shows revision %s now.", task.schedule_file, revision)


class PageLink(BaseOperatorLink):
    """A link from a model's task to the model's page."""

    name = "Model in mergeplan"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the page's address; "" if the DAG names none."""
        return str(getattr(operator, "page_url", ""))


@dataclass(frozen=True)
class Wait:
    """The conditions by which a task waits for the task that computes.

    They are the task that computes, the seconds between two reads of the state, the seconds without a sign of life
    after which a run is lost, and the time after which the task no longer waits (None: never).
    """

    producer: str = PRODUCER
    poll_seconds: float = 5.0
    lost_seconds: float = LOST_SECONDS
    timeout: timedelta | None = timedelta(days=1)


class ModelOperator(MergeplanOperator):
    """Wait in the triggerer until the intervals of its models are in their tables, then show rows and audits.

    A try after a failure makes the run go on; clearing the task after a success computes its intervals again.
    `assets` has the asset of each model that emits one.
    """

    template_fields: Sequence[str] = ("execution_time",)
    operator_extra_links = (PageLink(),)
    start_from_trigger = True
    outlets: list[Any]

    def __init__(
        self,
        *,
        place: Place,
        models: Sequence[str],
        execution_time: str = "",
        page_url: str = "",
        wait: Wait = Wait(),
        assets: Mapping[str, Asset] = MappingProxyType({}),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs, outlets=[*assets.values()])
        self.place, self.models, self.producer = place, list(models), wait.producer
        self.execution_time, self.page_url = execution_time, page_url
        self.lost_seconds, self.timeout = wait.lost_seconds, wait.timeout
        self.asset_names = {model: asset.name for model, asset in assets.items()}
        self.trigger_kwargs: dict[str, Any] = {
            "place": self.place.serialize(),
            "models": self.models,
            "producer": wait.producer,
            "poll_seconds": wait.poll_seconds,
            "lost_seconds": wait.lost_seconds,
            "ends_task": not assets,
        }
        self.start_trigger_args = StartTriggerArgs(
            trigger_cls=TRIGGER,
            trigger_kwargs=self.trigger_kwargs,
            next_method="execute_complete",
            timeout=wait.timeout,
        )

    def execute(self, context: Any) -> None:
        """Wait in the triggerer, also where the scheduler did not start it there."""
        from mergeplan.airflow.triggers import ModelTrigger

        self.defer(trigger=ModelTrigger(**self.trigger_kwargs), method_name="execute_complete", timeout=self.timeout)

    def execute_complete(self, context: Any, event: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Take the step that the state asks for, until the models have a result."""
        state_url = state_url_of(self.place)
        reader, run_id = open_reader(self.place, state_url), run_key(self.dag_id, context["run_id"], self.producer)

        def next_step() -> Decision:
            return decide_task(reader.read_run(run_id), self.models, self.lost_seconds)

        while True:
            decision = next_step()
            self.log.info("%s", decision.reason)
            if decision.step is Step.WAIT:
                if event and event["step"] == Step.FAIL:  # the triggerer knows more: no run will begin
                    raise AirflowException(event["reason"])
                self.execute(context)
            elif decision.step in (Step.RESUME, Step.RESTATE):
                self._compute(state_url, run_id, decision, next_step, reader.latest_execution_time())
            else:
                break
        for model in decision.models:
            reader.report(run_id, model.name)
        if decision.step is Step.FAIL:
            raise AirflowException(decision.reason)
        return self._show(context, decision)

    def _compute(
        self,
        state_url: str,
        run_id: str,
        decision: Decision,
        next_step: Callable[[], Decision],
        latest: datetime | None,
    ) -> None:
        """Make the run go on, or compute what it did once more."""
        options, at = [], self.execution_time
        if decision.step is Step.RESTATE:
            options = [part for model in decision.models for part in ("--restate-model", model.name)]
            # the latest run's moment, lest a FULL table goes back
            at = (
                self.execution_time
                if not self.execution_time or latest is None
                else max(latest, datetime.fromisoformat(self.execution_time)).isoformat()
            )
        self.run_due(
            state_url, run_id, *options, execution_time=at, go_on=lambda: next_step().step is decision.step
        )  # fmt: skip

    def _show(self, context: Any, decision: Decision) -> dict[str, Any] | None:
        """Return the result and keep the asset events of models that were computed, and of no others."""
        rows = {model.name: model.data for model in decision.models if decision.step is Step.SUCCEED}
        names = {self.asset_names[model] for model in rows if model in self.asset_names}
        self.outlets = [asset for asset in self.outlets if asset.name in names]
        for asset in self.outlets:
            data = next(rows[model] for model, name in self.asset_names.items() if name == asset.name)
            context["outlet_events"][asset].extra = {**data, "revision": decision.revision}
        return present(rows.values(), len(self.models))


class FollowOperator(MergeplanOperator):
    """Write the schedule file again when a promotion has changed the environment."""

    def __init__(self, *, place: Place, schedule_file: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.place, self.schedule_file = place, schedule_file

    def execute(self, context: Any) -> None:
        follow_environment(self, state_url_of(self.place))


class VerbOperator(MergeplanOperator):
    """A verb of mergeplan, such as `janitor`; `arguments` are templates, and empty ones are left out."""

    template_fields: Sequence[str] = ("arguments",)

    def __init__(self, *, place: Place, verb: str, arguments: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.place, self.verb, self.arguments = place, verb, list(arguments)

    def execute(self, context: Any) -> None:
        arguments = [argument for argument in self.arguments if argument]
        self.make_command(state_url_of(self.place), self.verb, *arguments).run_text()


class RestateOperator(MergeplanOperator):
    """Compute models again, as the DAG run's `models`, `start` and `end` say; skipped where they name no model."""

    def __init__(self, *, place: Place, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.place = place

    def execute(self, context: Any) -> None:
        params = context["params"]
        models = [name.strip() for name in str(params.get("models") or "").split(",") if name.strip()]
        if not models:
            raise AirflowSkipException("The run names no models to restate.")
        arguments = [self.place.environment, "--auto-apply"]
        for name in models:
            arguments += ["--restate-model", name]
        for option in ("start", "end"):
            if params.get(option):
                arguments += [f"--{option}", str(params[option])]
        self.make_command(state_url_of(self.place), "plan", *arguments).run_text()
