"""What an environment shows, as Dagster needs it: its schedule, the time that its tables hold, and column lineage.

`python -m mergeplan.dagster.export` writes it from the state. Reading it executes nothing of the project and resolves
no secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from pydantic import Field, ValidationError

from mergeplan.planner.contract.base import OTHER_VERSION, VERSION, Data, Spans
from mergeplan.planner.contract.schedule import Schedule, ScheduledModel
from mergeplan.planner.contract.tables import LineageEnd
from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.model.kind import Kind


class ModelLineage(Data):
    """Where a model's columns come from, and what decides which rows it has."""

    columns: dict[str, tuple[LineageEnd, ...]] = Field(default={}, description="a column -> what it is made from")
    row_deciders: tuple[LineageEnd, ...] = Field(default=(), description="what decides which rows it has")
    unfollowed: str = Field(default="", description='why its query is not followed column by column; `""`: it is')


class Deployment(Data):
    schedule: Schedule = Field(description="the models, parents first")
    held: dict[str, Spans] = Field(default={}, description="a model -> the time that its table holds")
    lineage: dict[str, ModelLineage] = Field(default={}, description="a model -> its lineage; empty: not asked for")

    @cached_property
    def models(self) -> Mapping[str, ScheduledModel]:
        """The models by name, parents first."""
        return {model.name: model for model in self.schedule.models}

    @cached_property
    def parents(self) -> Mapping[str, tuple[str, ...]]:
        """What each model reads, models and other tables; an embedded model stands for what it reads itself."""
        parents: dict[str, tuple[str, ...]] = {}
        for model in self.schedule.models:
            names: dict[str, None] = {}
            for name in (*model.parents, *model.external):
                parent = self.models.get(name)
                names |= dict.fromkeys(parents[name] if parent and Kind(parent.kind).is_embedded else (name,))
            names.pop(model.name, None)
            parents[model.name] = tuple(names)
        return parents

    @cached_property
    def outside(self) -> tuple[str, ...]:
        """The tables that models read and no model fills, sorted."""
        read = {name for parents in self.parents.values() for name in parents}
        return tuple(sorted(name for name in read if name not in self.models or is_outside(self.models[name])))


def is_outside(model: ScheduledModel) -> bool:
    """Return True if others write its table."""
    return Kind(model.kind).is_external


def is_by_time(model: ScheduledModel) -> bool:
    """Return True if the model is filled interval by interval, each independently, so that it is partitioned."""
    return Kind(model.kind).is_by_time


def read_deployment(path: Path) -> Deployment:
    """Read a deployment from a file that `mergeplan.dagster.export` wrote; raise ProjectError for any other file."""
    try:
        text = path.read_bytes()
    except OSError as error:
        message = f"The deployment cannot be read: {error.strerror}."
        raise ProjectError(message, place=Place(str(path)), hint=_how_to_write(str(path))) from None
    return parse_deployment(text, str(path))


def parse_deployment(text: str | bytes, source: str) -> Deployment:
    """Parse a deployment from JSON; raise ProjectError, which names the source, if it is not of this version."""
    try:
        return Deployment.model_validate_json(text)
    except ValidationError as error:
        (first, *_) = error.errors()
        message = f"This is no deployment of this version of mergeplan: {first['msg']}."
        if first["type"] == OTHER_VERSION:
            message = (
                f"The deployment is of another version of mergeplan: {first['msg']}, and version {VERSION} is read."
            )
    raise ProjectError(message, place=Place(source), hint=_how_to_write(source))


def _how_to_write(source: str) -> str:
    command = f"python -m mergeplan.dagster.export --to {source}"
    return f"Install the same mergeplan on both sides, and write it again: `{command}`."
