"""DAGs and task groups from a schedule. Parsing one reads a JSON file and nothing else."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Asset, CronTriggerTimetable, MultipleCronTriggerTimetable, Param, TaskGroup

from mergeplan.airflow.connections import PRODUCER
from mergeplan.airflow.decisions import LOST_SECONDS
from mergeplan.airflow.graph import ScheduleGraph, read_graph, task_options, write_model_doc
from mergeplan.airflow.grouping import TaskModels, group_models
from mergeplan.airflow.operators import FollowOperator, ModelOperator, RestateOperator, RunOperator, VerbOperator, Wait
from mergeplan.airflow.place import Place
from mergeplan.selectors import find_unmatched

LOGICAL_DATE = "{{ (dag_run.logical_date or dag_run.run_after).isoformat() }}"
FROM_MODELS = "from models"
UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")


@dataclass(frozen=True)
class ModelTasks:
    """How the tasks of models are made: arguments by selector, asset events, the page of a model.

    `groups` are the models that share a task, `{name: selector}`. `page_url` has `{model}` in it. `execution_time` is a
    template; "": the moment at which the run begins.
    """

    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    producer: Mapping[str, Any] = field(default_factory=dict)
    assets: bool = True
    page_url: str = ""
    execution_time: str = ""
    poll_seconds: float = 5.0
    lost_seconds: float = LOST_SECONDS
    timeout: timedelta | None = timedelta(days=1)


def view_asset(view: str, environment: str = "prod", project: str = "") -> Asset:
    """Return the asset of a view, which triggers other DAGs: `schedule=[view_asset("shop.orders")]`."""
    name = f"{project}/{view}" if project else view
    return Asset(name=name, uri=f"mergeplan://{environment}/{name}")


class MergeplanDag(DAG):
    """A DAG that runs an environment as it was promoted: one task computes what is due, one for each model shows it.

    `schedule_file` is what `mergeplan schedule --to` wrote, and `folder` the project's folder on the workers. The DAG
    is due when any model is, unless `schedule` says otherwise. With `execution_time="logical_date"` a run
    computes as of the DAG run's date, not as of now. Other arguments are those of a Place, of ModelTasks and of a DAG.
    """

    def __init__(
        self,
        dag_id: str,
        *,
        schedule_file: str,
        folder: str,
        schedule: Any = FROM_MODELS,
        follow: bool = True,
        **kwargs: Any,
    ) -> None:
        graph = read_graph(schedule_file)
        place, tasks = _settings(graph, folder, kwargs)
        when = _timetable(graph) if schedule == FROM_MODELS else schedule
        doc = _dag_doc(graph, tasks)
        usual = {"catchup": False, "max_active_runs": 1, "doc_md": doc, "tags": ["mergeplan"]}
        super().__init__(dag_id, schedule=when, **(usual | kwargs))
        with self:
            _build(graph, place, tasks, schedule_file if follow else "")


class MergeplanTaskGroup(TaskGroup):
    """The tasks of a MergeplanDag as a group in a DAG of your own."""

    def __init__(self, group_id: str, *, schedule_file: str, folder: str, follow: bool = True, **kwargs: Any) -> None:
        graph = read_graph(schedule_file)
        place, tasks = _settings(graph, folder, kwargs)
        super().__init__(group_id, **kwargs)
        with self:
            _build(graph, place, tasks, schedule_file if follow else "")


class MergeplanMaintenanceDag(DAG):
    """A DAG with the janitor, audits, freshness, unit tests and a restatement.

    A run's `models`, `start` and `end` say what is restated. With a `schedule_file` it also follows the environment.
    Other arguments are those of a Place and of a DAG.
    """

    def __init__(
        self, dag_id: str, *, folder: str, schedule_file: str = "", schedule: Any = "@daily", **kwargs: Any
    ) -> None:
        place = Place(folder, **_take(Place, kwargs))
        params = {
            "models": Param("", type="string", description="Models to restate, separated by commas."),
            "start": Param("", type="string", description="The first day to restate."),
            "end": Param("", type="string", description="The last day to restate."),
        }
        dag_options = {"catchup": False, "max_active_runs": 1, "tags": ["mergeplan"], "params": params, **kwargs}
        super().__init__(dag_id, schedule=schedule, **dag_options)
        with self:
            restate = RestateOperator(task_id="restate", place=place)
            audit = VerbOperator(
                task_id="audit", place=place, verb="audit", arguments=[place.environment],
                trigger_rule="none_failed",
            )  # fmt: skip
            freshness = VerbOperator(
                task_id="freshness", place=place, verb="freshness", arguments=[place.environment],
                trigger_rule="none_failed",
            )  # fmt: skip
            restate >> [audit, freshness]
            VerbOperator(task_id="test", place=place, verb="test")
            VerbOperator(task_id="janitor", place=place, verb="janitor")
            if schedule_file:
                FollowOperator(task_id="follow", place=place, schedule_file=schedule_file)


def _settings(graph: ScheduleGraph, folder: str, kwargs: dict[str, Any]) -> tuple[Place, ModelTasks]:
    kwargs.setdefault("environment", graph.environment)
    if kwargs.get("execution_time") == "logical_date":
        kwargs["execution_time"] = LOGICAL_DATE
    return Place(folder, **_take(Place, kwargs)), ModelTasks(**_take(ModelTasks, kwargs))


def _take(kind: type[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that a class has, removed from those of a caller."""
    taken = {name: kwargs.pop(name) for name in kind.__dataclass_fields__ if name in kwargs}
    if "command" in taken:
        command: str | Sequence[str] = taken["command"]
        taken["command"] = (command,) if isinstance(command, str) else tuple(command)
    if "env" in taken:
        taken["env"] = tuple(dict(taken["env"]).items())
    return taken


def _timetable(graph: ScheduleGraph) -> Any:
    zone, crons = graph.crons
    if len(crons) > 1:
        return MultipleCronTriggerTimetable(*crons, timezone=zone)
    return CronTriggerTimetable(crons[0], timezone=zone) if crons else None


def _build(graph: ScheduleGraph, place: Place, settings: ModelTasks, schedule_file: str) -> None:
    """Build the tasks: models wait for their parents, and the producer computes beside them."""
    groups = group_models(graph, settings.groups)
    options = task_options(
        graph, settings.options, {group.name: [model.name for model in group.models] for group in groups}
    )
    producer = RunOperator(
        task_id=PRODUCER,
        place=place,
        execution_time=settings.execution_time,
        schedule_file=schedule_file,
        priority_weight=1000,
        doc_md="Computes what is due with `mergeplan run`, and records what becomes of each model.",
        **settings.producer,
    )
    maker, tasks = TaskMaker(graph, place, settings, producer.task_id), dict[str, ModelOperator]()
    for group in groups:
        task = tasks[group.name] = maker.make(group, options[group.name])
        if group.parents:
            task.set_upstream([tasks[name] for name in group.parents])


@dataclass(frozen=True)
class TaskMaker:
    graph: ScheduleGraph
    place: Place
    settings: ModelTasks
    producer: str  # the task that computes

    def make(self, group: TaskModels, options: Mapping[str, Any]) -> ModelOperator:
        """Return the task of a model, or of the models of a group."""
        graph, settings = self.graph, self.settings
        assets = {model.name: view_asset(model.view, graph.environment, graph.project) for model in group.models
                  if settings.assets and model.view}  # fmt: skip
        owners = sorted({model.owner for model in group.models if model.owner})
        owner = {"owner": ", ".join(owners)} if owners else {}
        page = settings.page_url.format(model=group.name) if settings.page_url and len(group.models) == 1 else ""
        return ModelOperator(
            task_id=task_id_of(group.name),
            place=self.place,
            models=[model.name for model in group.models],
            execution_time=settings.execution_time,
            page_url=page,
            wait=Wait(
                self.producer, settings.poll_seconds, settings.lost_seconds, options.get("timeout", settings.timeout)
            ),
            assets=assets,
            doc_md="\n\n".join(write_model_doc(model, titled=len(group.models) > 1) for model in group.models),
            **{**owner, **{name: value for name, value in options.items() if name != "timeout"}},
        )


def task_id_of(model: str) -> str:
    """Return the id of a model's task: its name, or if Airflow does not accept it, a safe form with a digest."""
    safe = UNSAFE.sub("_", model)[:200]
    if safe == model and model != PRODUCER:
        return model
    return f"{safe}_{hashlib.sha256(model.encode()).hexdigest()[:8]}"


def _dag_doc(graph: ScheduleGraph, settings: ModelTasks) -> str:
    """Return the DAG's documentation, with a warning for selectors without models; these must not stop the DAG."""
    text = f"`{graph.environment}` of {graph.project or 'the project'} at revision {graph.revision}: `mergeplan run`."
    unmatched = find_unmatched(graph.models, (*settings.options, *settings.groups.values()))
    if not unmatched:
        return text
    warning = f"No model of `{graph.environment}` is selected by {', '.join(f'`{name}`' for name in unmatched)}."
    warnings.warn(warning, stacklevel=3)
    return f"{text}\n\n{warning}"
