"""Tasks of maintenance: a verb of mergeplan, a restatement that a run asks for, and a schedule file that follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk.exceptions import AirflowSkipException

from mergeplan.airflow.connections import state_url_of
from mergeplan.airflow.operators import MergeplanOperator, follow_environment
from mergeplan.airflow.place import Place


class FollowOperator(MergeplanOperator):
    """Write the schedule file again when a promotion has changed the environment."""

    def __init__(self, *, place: Place, schedule_file: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.place, self.schedule_file = place, schedule_file

    def execute(self, context: Any) -> None:
        """Follow the environment."""
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
