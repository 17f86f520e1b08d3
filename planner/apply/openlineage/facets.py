"""Datasets, jobs, runs and facets of OpenLineage as JSON data. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.graph import Graph, graph_of
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.project.lineage import ALL, ROWS, Edge, Followed, FollowedModels, How, Node

PRODUCER = "urn:mergeplan"
EVENT = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
VERSIONS = {
    "columnLineage": ("1-2-0", "ColumnLineageDatasetFacet"),
    "documentation": ("1-0-1", "DocumentationDatasetFacet"),
    "version": ("1-0-1", "DatasetVersionDatasetFacet"),
    "schema": ("1-1-1", "SchemaDatasetFacet"),
    "symlinks": ("1-0-1", "SymlinksDatasetFacet"),
    "outputStatistics": ("1-0-2", "OutputStatisticsOutputDatasetFacet"),
    "jobType": ("2-0-2", "JobTypeJobFacet"),
    "ownership": ("1-0-1", "OwnershipJobFacet"),
    "sql": ("1-0-1", "SQLJobFacet"),
    "errorMessage": ("1-0-1", "ErrorMessageRunFacet"),
    "nominalTime": ("1-0-1", "NominalTimeRunFacet"),
    "parent": ("1-0-1", "ParentRunFacet"),
}
DIRECT = [{"type": "DIRECT"}]
INDIRECT = [{"type": "INDIRECT"}]
Json = dict[str, Any]


def build_facet(name: str, **values: Any) -> Json:
    version, schema = VERSIONS[name]
    url = f"https://openlineage.io/spec/facets/{version}/{schema}.json#/$defs/{schema}"
    return {name: {"_producer": PRODUCER, "_schemaURL": url, **values}}


@dataclass(frozen=True)
class Scene:
    """The models of a plan as OpenLineage sees them: the dataset of each, and the inputs of its columns."""

    plan: Plan
    namespace: str

    @cached_property
    def models(self) -> Mapping[str, Model]:
        return {name: snapshot.model for name, snapshot in self.plan.new.snapshots.items()}

    @cached_property
    def graph(self) -> Graph:
        return graph_of(self.models)

    @cached_property
    def column_lineage(self) -> Mapping[str, Followed]:
        return FollowedModels(self.graph)

    def reads(self, model: str) -> tuple[str, ...]:
        """Return the datasets that a model reads; an embedded model is none, but its parents are."""
        datasets: dict[str, None] = {}
        for name in self.graph.models[model].depends_on if model in self.graph.models else ():
            inner = self.reads(name) if self._is_embedded(name) else (name,)
            datasets |= dict.fromkeys(inner)
        return tuple(datasets)

    def dataset(self, model: str, *, output: bool = False) -> Json:
        snapshot = self.plan.new.snapshots.get(model)
        facets: Json = {**self._schema_facet(model)}
        if snapshot is not None and not snapshot.kind.is_external:
            table = {"namespace": self.namespace, "name": snapshot.table, "type": "TABLE"}
            facets |= build_facet("version", datasetVersion=snapshot.version) | build_facet(
                "symlinks", identifiers=[table]
            )
        if snapshot is not None and snapshot.model.metadata.description:
            facets |= build_facet("documentation", description=snapshot.model.metadata.description)
        if output:
            facets |= self._column_lineage_facet(model)
        return {"namespace": self.namespace, "name": self.name(model), "facets": facets}

    def name(self, model: str) -> str:
        shown = model in self.plan.new.views
        return self.plan.new.naming.view(model, self.plan.environment) if shown else model

    def job(self, model: str) -> Json:
        about = self.models[model]
        facets = build_facet("jobType", processingType="BATCH", integration="MERGEPLAN", jobType="MODEL")
        facets |= build_facet("sql", query=about.sql) if about.sql else {}
        facets |= build_facet("ownership", owners=[{"name": about.metadata.owner}]) if about.metadata.owner else {}
        return {"namespace": self.namespace, "name": self.name(model), "facets": facets}

    def time(self, model: str) -> Json:
        about = self.models[model]
        change = next((candidate for candidate in self.plan.changes if candidate.name == model), None)
        if change is None or not change.missing or not about.kind.is_by_time:
            return {}
        whole = Interval(change.missing[0].start, change.missing[-1].end)
        return build_facet(
            "nominalTime", nominalStartTime=whole.start.isoformat(), nominalEndTime=whole.end.isoformat()
        )

    def _is_embedded(self, name: str) -> bool:
        return name in self.models and self.models[name].kind.is_embedded

    def _schema_facet(self, model: str) -> Json:
        table = self.column_lineage[model].table if model in self.column_lineage else None
        if table is None or table.columns is None:
            return {}
        types = table.certain_types
        if model in self.models:
            types |= {column.name: column.type for column in self.models[model].columns}
            comments = dict(self.models[model].metadata.column_descriptions)
        else:
            comments = {}
        return build_facet(
            "schema",
            fields=[
                _schema_field(column_name, types.get(column_name), comments.get(column_name))
                for column_name in table.columns
            ],
        )

    def _column_lineage_facet(self, model: str) -> Json:
        """Return the inputs of each column, and under `dataset` those that decide the rows; {} if they are unknown."""
        edges = self.column_lineage[model].edges if model in self.column_lineage else ()
        if any(edge.how is How.EVERY_COLUMN for edge in edges):
            return {}
        fields: dict[str, list[Json]] = {}
        for edge in edges:
            if edge.how is How.MADE_FROM:
                fields.setdefault(edge.target.column, []).extend(self._list_inputs(edge.source, DIRECT))
        deciding = [
            input_field
            for edge in edges
            if edge.how is How.DECIDES_ROWS
            for input_field in self._list_inputs(edge.source, INDIRECT)
        ]
        inputs = {
            column: {"inputFields": _drop_duplicates(input_fields)}
            for column, input_fields in fields.items()
            if input_fields
        }
        dataset_inputs = {"dataset": _drop_duplicates(deciding)} if deciding else {}
        return build_facet("columnLineage", fields=inputs, **dataset_inputs)

    def _list_inputs(self, source: Node, how: Sequence[Json]) -> list[Json]:
        if self._is_embedded(source.model):
            inner: Sequence[Edge] = self.column_lineage[source.model].edges
            return [
                input_field
                for edge in inner
                if edge.target.meets(source)
                for input_field in self._list_inputs(edge.source, how)
            ]
        if source.column in (ROWS, ALL):
            return []
        name = self.name(source.model)
        return [{"namespace": self.namespace, "name": name, "field": source.column, "transformations": list(how)}]


def _schema_field(name: str, kind: str | None, description: str | None) -> Json:
    return {"name": name, **({"type": kind} if kind else {}), **({"description": description} if description else {})}


def _drop_duplicates(fields: Sequence[Json]) -> list[Json]:
    return list({(input_field["name"], input_field["field"]): input_field for input_field in fields}.values())
