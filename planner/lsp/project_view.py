"""A project as the editor's questions see it: its models with their columns, and the names in each of its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.lsp.names import QueryNames, names_of
from mergeplan.planner.lsp.project_files import read_text
from mergeplan.planner.lsp.sql_file import SqlFile, read_sql_file
from mergeplan.planner.model.graph import Graph, graph_of, update_graph
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.files.pipeline.spec import PipelineSpec, parse_spec
from mergeplan.planner.project.lineage import FollowedModels
from mergeplan.planner.project.loader import Project
from mergeplan.planner.project.pipeline_folder import SPECS


@dataclass(frozen=True)
class FileView:
    """A SQL file: its parts, the names in its query, and the models that it defines."""

    path: str
    file: SqlFile
    names: QueryNames
    models: tuple[Model, ...]


def file_of(model: Model) -> str:
    """Return the file of a model, without the model's name that follows if the file has several models."""
    return model.path.partition("#")[0]


@dataclass(frozen=True)
class ProjectView:
    """A project, and `texts` of open files by path, which may be newer than what the project read."""

    project: Project
    texts: Mapping[str, str] = field(default_factory=dict)
    _files: dict[tuple[str, int], FileView] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def graph(self) -> Graph:
        return graph_of(self.project.models)

    @cached_property
    def lineage(self) -> FollowedModels:
        return FollowedModels(self.graph)

    def update(self, project: Project, path: str) -> ProjectView:
        """Return the view of a project of which one file was reread, with all results that are valid for the others."""
        view = ProjectView(project, self.texts)
        new_models = tuple(model for model in project.models.values() if model.path == path)
        names = {model.name for model in (*self.path_models.get(path, ()), *new_models)}
        graph = update_graph(self.graph, project.models, names & project.models.keys())
        lineage = self.lineage.update(graph, names)
        vars(view).update(graph=graph, lineage=lineage, path_models={**self.path_models, path: new_models})
        return view

    @cached_property
    def path_models(self) -> Mapping[str, tuple[Model, ...]]:
        files: dict[str, list[Model]] = {}
        for model in self.project.models.values():
            files.setdefault(file_of(model), []).append(model)
        return {path: tuple(models) for path, models in files.items()}

    @cached_property
    def readers(self) -> Mapping[str, tuple[str, ...]]:
        """Table -> the models that read it, whether it is a model or not."""
        reading: dict[str, list[str]] = {}
        for name, model in self.project.models.items():
            for table in model.depends_on:
                reading.setdefault(table, []).append(name)
        return {table: tuple(sorted(names)) for table, names in reading.items()}

    def columns(self, table: str) -> tuple[str, ...] | None:
        return self.lineage[table].columns if table in self.graph.models else None

    def types(self, table: str) -> Mapping[str, str]:
        if table not in self.graph.models:
            return {}
        declared = {column.name: column.type for column in self.project.models[table].columns}
        return self.lineage[table].table.certain_types | declared

    def text(self, path: str) -> str | None:
        """Return the text of a file of the project: as it is open, or as its model was read."""
        if path in self.texts:
            return self.texts[path]
        if self.is_foreign:
            return read_text(self.project.root / path)  # the source of a model is what we made of its file
        models = self.path_models.get(path)
        return models[0].source if models and not models[0].kind.is_external else None

    @property
    def is_foreign(self) -> bool:
        """True for a project of another tool."""
        return self.project.is_dbt or self.spec is not None

    @cached_property
    def spec(self) -> PipelineSpec | None:
        name = next((name for name in SPECS if (self.project.root / name).is_file()), None)
        if name is None or self.project.is_dbt:
            return None
        try:
            text = self.texts[name] if name in self.texts else read_text(self.project.root / name)
            return parse_spec(name, text or "")
        except ProjectError:
            return PipelineSpec(name="")

    def file(self, path: str, text: str | None = None) -> FileView:
        """Return the names in a file; for a file without a model, those of its query."""
        text = text if text is not None else self.text(path) or ""
        key = path, hash(text)
        if key not in self._files:
            is_sql = path.endswith(".sql")
            parts = read_sql_file(path, text, self.project.defaults.dialect) if is_sql else SqlFile(text)
            models = self.path_models.get(path, ())
            model_name = models[0].name if models else ""
            schema = self.spec.schema_name if self.spec is not None else ""
            names = names_of(parts, model_name, self.columns, self.project.catalogs.default, schema)
            self._files[key] = FileView(path, parts, names, models)
        return self._files[key]

    def files_reading(self, table: str) -> Iterator[FileView]:
        paths = {file_of(self.project.models[name]) for name in self.readers.get(table, ())}
        yield from (self.file(path) for path in sorted(paths) if path.endswith(".sql"))
