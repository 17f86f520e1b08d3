"""The schedule of an environment as tasks need it, read from `mergeplan schedule --to FILE`. Standard library only.

A DAG processor reads it again at every parse: no model is opened, no secret resolved, no database asked.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mergeplan.markdown import code_span
from mergeplan.selectors import select_models

VERSION = 1  # of the document, see mergeplan/planner/contract/schedule.py
# Units of intervals, the shortest first: a DAG is due as often as its most frequent model.
UNITS = ("five_minute", "quarter_hour", "half_hour", "hour", "day", "month", "year")
NAMED_CRONS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
CRON_PARTS = 5
REQUIRED = ("name", "kind")  # keys of a model
MOST_CRONS = 10  # of a DAG: Airflow keeps their description in 1,000 characters


class ScheduleError(ValueError):
    """A schedule that cannot be read."""


@dataclass(frozen=True)
class ScheduledModel:
    name: str
    kind: str
    computed: bool  # a run fills its table
    parents: tuple[str, ...] = ()
    cron: str = ""
    time_zone: str = ""
    interval_unit: str = ""
    owner: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    audits: tuple[str, ...] = ()
    table: str = ""
    view: str = ""
    path: str = ""


@dataclass(frozen=True)
class ScheduleGraph:
    """The models of an environment, parents first."""

    project: str
    environment: str
    revision: int
    models: Mapping[str, ScheduledModel] = field(default_factory=dict)

    @property
    def computed(self) -> tuple[ScheduledModel, ...]:
        """The models whose tables a run fills."""
        return tuple(model for model in self.models.values() if model.computed)

    @property
    def task_parents(self) -> dict[str, tuple[str, ...]]:
        """For each computed model the computed ones that it reads, through views and embedded models too."""
        behind: dict[str, dict[str, None]] = {}  # of each model: itself, or what stands behind it
        parents: dict[str, tuple[str, ...]] = {}
        for model in self.models.values():
            reads = dict.fromkeys(name for parent in model.parents for name in behind.get(parent, ()))
            if model.computed:
                parents[model.name] = tuple(reads)
            behind[model.name] = {model.name: None} if model.computed else reads
        return parents

    @property
    def crons(self) -> tuple[str, tuple[str, ...]]:
        """The time zone of the most frequent model, and the crons at which any model is due; () where none is ever.

        A DAG has one zone, so a model of another one is looked for once an hour, at the minute of its cron; so are all
        models where there are more than MOST_CRONS.
        """
        due = [model for model in self.computed if model.cron]
        if not due:
            return "UTC", ()
        first = min(due, key=lambda m: UNITS.index(m.interval_unit) if m.interval_unit in UNITS else len(UNITS))
        zone = first.time_zone or "UTC"
        zone_crons = {_plain_cron(model.cron) for model in due if (model.time_zone or "UTC") == zone}
        hourly = {
            f"{_plain_cron(model.cron).split()[0]} * * * *" for model in due if (model.time_zone or "UTC") != zone
        }
        if len(zone_crons | hourly) <= MOST_CRONS:
            return zone, tuple(sorted(zone_crons | hourly))
        minutes = {minute for cron in zone_crons | hourly for minute in cron.split()[0].split(",")}
        return zone, (f"{'*' if '*' in minutes else ','.join(sorted(minutes))} * * * *",)


def _plain_cron(cron: str) -> str:
    return NAMED_CRONS.get(cron.lower(), cron)


def read_graph(path: str | Path) -> ScheduleGraph:
    """Read the schedule in a file; raise ScheduleError if the file does not exist or contains none."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        message = f"There is no schedule at {path}. Write it: mergeplan schedule --to {path}"
        raise ScheduleError(message) from None
    except (ValueError, RecursionError) as error:
        raise ScheduleError(f"{path} holds no schedule of mergeplan: {error}") from None
    return graph_of_document(document, str(path))


def graph_of_document(document: Any, source: str = "the document") -> ScheduleGraph:
    """Return the schedule of a document; raise ScheduleError if it is of another version or invalid."""
    if not isinstance(document, dict) or "models" not in document or "environment" not in document:
        raise ScheduleError(f"{source} holds no schedule of mergeplan. `mergeplan schedule --to FILE` writes one.")
    if document.get("version") != VERSION:
        message = f"{source} is of version {document.get('version')}, and this mergeplan reads version {VERSION}."
        raise ScheduleError(f"{message} Install the same mergeplan on both sides.")
    try:
        models = {row["name"]: _model(row) for row in document["models"]}
        revision = int(document.get("revision", 0))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ScheduleError(f"{source} holds no schedule of mergeplan: {error!r}.") from None
    return ScheduleGraph(str(document.get("project", "")), str(document["environment"]), revision, models)


def _model(row: Mapping[str, Any]) -> ScheduledModel:
    """Return a model of a document; raise ValueError and the like for an invalid one."""
    if (cron := _text(row, "cron")) and len(_plain_cron(cron).split()) < CRON_PARTS:
        raise ValueError(f"`{cron}` is no cron")
    return ScheduledModel(
        _text(row, "name"),
        _text(row, "kind"),
        bool(row["computed"]),
        _texts(row["parents"]),
        cron,
        _text(row, "time_zone"),
        _text(row, "interval_unit"),
        _text(row, "owner"),
        _text(row, "description"),
        _texts(row.get("tags", ())),
        _texts([audit["name"] for audit in row.get("audits", ())]),
        _text(row, "table"),
        _text(row, "view"),
        _text(row, "path"),
    )


def _text(row: Mapping[str, Any], key: str) -> str:
    value = row[key] if key in REQUIRED else row.get(key, "")
    if not isinstance(value, str):
        raise TypeError(f"`{key}` is no text")
    return value


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
        raise TypeError("a list of names has something else in it")
    return tuple(values)


def write_model_doc(model: ScheduledModel, *, titled: bool) -> str:
    """Return a model's description, which may be Markdown, and its facts as code."""
    due = f"`{model.cron} {model.time_zone or 'UTC'}`" if model.cron else "never"
    path = code_span(model.path) if model.path else "no file"
    facts = [f"{code_span(model.kind)}, due {due}, in {path}", f"table {code_span(model.table)}"]
    facts += [
        f"{word}: {', '.join(map(code_span, texts))}"
        for word, texts in (("audits", model.audits), ("tags", model.tags))
        if texts
    ]
    title = [f"**{code_span(model.name)}**", ""] if titled else []
    return "\n".join([*title, model.description, "", *(f"- {fact}" for fact in facts)]).strip()


def task_options(
    graph: ScheduleGraph, options: Mapping[str, Mapping[str, Any]], tasks: Mapping[str, Collection[str]]
) -> dict[str, dict[str, Any]]:
    """Return the arguments of each task by its name; `tasks` has the models of each.

    A selector selects the tasks of its models. If two selectors select one task, the later one decides.
    """
    homes = {model: task for task, models in tasks.items() for model in models}
    chosen: dict[str, dict[str, Any]] = {task: {} for task in tasks}
    for selector, arguments in options.items():
        for task in {homes[name]: None for name in sorted(select_models(graph.models, selector)) if name in homes}:
            chosen[task].update(arguments)
    return chosen
