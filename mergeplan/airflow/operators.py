"""Tasks: one that runs what is due, one for each model that shows what became of it, and those of maintenance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from airflow.sdk import BaseOperator, BaseOperatorLink
from airflow.sdk.exceptions import AirflowException, AirflowSkipException
from airflow.triggers.base import StartTriggerArgs

from mergeplan.airflow.child import Command, run_in_turn
from mergeplan.airflow.connections import run_key, state_url_of
from mergeplan.airflow.decisions import LOST_SECONDS, Decision, Step, decide
from mergeplan.airflow.place import Place

TRIGGER = "mergeplan.airflow.triggers.ModelTrigger"


class MergeplanOperator(BaseOperator):
    """A task that starts mergeplan in a place, and ends it when the task is ended.

    It has no constructor: Airflow wraps each one of a class and its bases, which parsing a DAG of many tasks pays for.
    """

    place: Place
    _command: Command | None = None

    def make_command(self, state_url: str, verb: str, *arguments: str) -> Command:
        """A mergeplan that is not started yet."""
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

    `schedule_file` is written anew when a promotion has changed the environment, so that the DAG follows it.
    """

    template_fields: Sequence[str] = ("execution_time",)

    def __init__(self, *, place: Place, execution_time: str = "", schedule_file: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.place = place
        self.execution_time, self.schedule_file = execution_time, schedule_file

    def execute(self, context: Any) -> dict[str, Any]:
        """Run, and follow the environment."""
        state_url = state_url_of(self.place)
        run_id = run_key(self.dag_id, context["run_id"])
        follow_environment(self, state_url)
        result = self.run_due(state_url, run_id, execution_time=self.execution_time)
        return {"run_id": run_id, "failed": list(result.get("failed", ()))}


def follow_environment(task: Any, state_url: str) -> None:
    """Write the schedule file of a task anew, if the environment shows other models than the file says."""
    if not task.schedule_file:
        return
    from mergeplan.airflow.state import state_reader

    try:
        revision = state_reader(task.place, state_url).write_schedule(Path(task.schedule_file))
    except OSError as error:
        task.log.warning("%s was not written, so the DAG stays as it is: %s", task.schedule_file, error)
        return
    if revision is not None:
        task.log.info("%s shows revision %s now.", task.schedule_file, revision)


class FollowOperator(MergeplanOperator):
    """Write the schedule file anew when a promotion has changed the environment."""

    def __init__(self, *, place: Place, schedule_file: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.place, self.schedule_file = place, schedule_file

    def execute(self, context: Any) -> None:
        """Follow the environment."""
        follow_environment(self, state_url_of(self.place))


class PageLink(BaseOperatorLink):
    """A link from a model's task to the model's page."""

    name = "Model in mergeplan"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """The page's address; "" where the DAG names none."""
        return str(getattr(operator, "page_url", ""))


@dataclass(frozen=True)
class Patience:
    """How often a task looks at the state, after how many seconds without a sign of life a run is lost, and after
    which time the task no longer waits (None: never)."""

    poll_seconds: float = 5.0
    lost_seconds: float = LOST_SECONDS
    timeout: timedelta | None = timedelta(days=1)


class ModelOperator(MergeplanOperator):
    """Wait in the triggerer until a model's intervals are in its table, then show rows, intervals and audits.

    A try after a failure makes the run go on; clearing the task after a success computes its intervals again.
    """

    template_fields: Sequence[str] = ("execution_time",)
    operator_extra_links = (PageLink(),)
    start_from_trigger = True

    def __init__(
        self,
        *,
        place: Place,
        model: str,
        execution_time: str = "",
        page_url: str = "",
        patience: Patience = Patience(),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.place, self.model, self.execution_time, self.page_url = place, model, execution_time, page_url
        self.lost_seconds, self.timeout = patience.lost_seconds, patience.timeout
        self.trigger_kwargs: dict[str, Any] = {
            "place": self.place.serialize(),
            "model": model,
            "poll_seconds": patience.poll_seconds,
            "lost_seconds": patience.lost_seconds,
            "ends_task": not self.outlets,
        }
        self.start_trigger_args = StartTriggerArgs(
            trigger_cls=TRIGGER,
            trigger_kwargs=self.trigger_kwargs,
            next_method="execute_complete",
            timeout=patience.timeout,
        )

    def execute(self, context: Any) -> None:
        """Wait in the triggerer, also where the scheduler did not start it there."""
        from mergeplan.airflow.triggers import ModelTrigger

        self.defer(trigger=ModelTrigger(**self.trigger_kwargs), method_name="execute_complete", timeout=self.timeout)

    def execute_complete(self, context: Any, event: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Take the step that the state asks for, until the model has a result."""
        from mergeplan.airflow.state import state_reader

        state_url = state_url_of(self.place)
        reader, run_id = state_reader(self.place, state_url), run_key(self.dag_id, context["run_id"])

        def next_step() -> Decision:
            return decide(reader.read_run(run_id), self.model, self.lost_seconds)

        while True:
            decision = next_step()
            self.log.info("%s", decision.reason)
            if decision.step is Step.WAIT:
                self.execute(context)
            elif decision.step is Step.RESUME:
                self.run_due(
                    state_url, run_id, execution_time=self.execution_time, go_on=lambda: next_step().step is Step.RESUME
                )
            elif decision.step is Step.RESTATE:
                at = self._latest(reader.latest_execution_time())
                self.run_due(
                    state_url, run_id, "--restate-model", self.model,
                    execution_time=at, go_on=lambda: next_step().step is Step.RESTATE,
                )  # fmt: skip
            else:
                break
        if decision.model is not None:
            reader.report(run_id, self.model)
        if decision.step is Step.FAIL:
            raise AirflowException(decision.reason)
        return self._show(context, decision)

    def _show(self, context: Any, decision: Decision) -> dict[str, Any] | None:
        if decision.model is None:
            return None
        data = decision.model.data
        for asset in self.outlets:
            context["outlet_events"][asset].extra = {**data, "revision": decision.revision}
        return data

    def _latest(self, latest: datetime | None) -> str:
        """The moment as of which intervals are computed again: no earlier than any run, lest a FULL table goes back."""
        if not self.execution_time or latest is None:
            return self.execution_time
        return max(latest, datetime.fromisoformat(self.execution_time)).isoformat()


class VerbOperator(MergeplanOperator):
    """A verb of mergeplan, such as `janitor`; `arguments` are templates, and empty ones are left out."""

    template_fields: Sequence[str] = ("arguments",)

    def __init__(self, *, place: Place, verb: str, arguments: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.place, self.verb, self.arguments = place, verb, list(arguments)

    def execute(self, context: Any) -> None:
        """Run the verb."""
        arguments = [argument for argument in self.arguments if argument]
        self.make_command(state_url_of(self.place), self.verb, *arguments).run_text()


class RestateOperator(MergeplanOperator):
    """Compute models again, as the DAG run's `models`, `start` and `end` say; skipped where they name no model."""

    def __init__(self, *, place: Place, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.place = place

    def execute(self, context: Any) -> None:
        """Restate what the run's parameters name."""
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
