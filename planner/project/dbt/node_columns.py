"""The columns of a dbt project's nodes as their queries in this folder have them, with the types that are known."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.limits import limit_resources
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.parsing.definitions.known_columns import KnownColumns
from mergeplan.planner.parsing.definitions.project_defaults import Defaults
from mergeplan.planner.parsing.files.dbt.nodes import DbtNode, DbtProject, DbtSource
from mergeplan.planner.parsing.files.dbt.texts import model_text
from mergeplan.planner.parsing.files.model_file import parse_model

SourceColumns = Callable[[DbtProject, str], tuple[Column, ...]]  # of a source, by its id, as its table has them
NODES = ("model", "seed", "snapshot")


class NodeColumns:
    """The columns of the nodes of one project, which is compiled in several rounds: each query is read once."""

    def __init__(self, source_columns: SourceColumns, functions: frozenset[str]) -> None:
        self._tables = _Tables(source_columns, functions)
        self._known = KnownColumns(self._tables, complete=True)

    def find(self, project: DbtProject, node: DbtNode) -> Mapping[str, str] | None:
        """Return the columns of a node; None if unknown. Raise ProjectError if a node above it is not compiled."""
        above = (project.by_id[id] for id in sorted(find_ancestors(project, node.id)) if id in project.by_id)
        if wrong := next((upstream for upstream in above if upstream.error), None):
            raise ProjectError(f"It asks for the columns of `{node.table}`, and `{wrong.table}` cannot be compiled.")
        self._tables.take(project)
        with limit_resources(
            lambda why: ProjectError(f"the query of `{node.table}` {why}.", place=Place(node.path, 1))
        ):
            return self._known.find_columns(node.table)


class _Tables(Mapping[str, Model]):
    """The tables of a project by name, each read at its first use.

    A table counts even if dbt did not note the node that reads it. Nodes that are not compiled are left out.
    """

    def __init__(self, source_columns: SourceColumns, functions: frozenset[str]) -> None:
        self._source_columns = source_columns
        self._defaults = Defaults(datetime(2000, 1, 1, tzinfo=UTC), allowed={"": functions})
        self._project: DbtProject | None = None
        self._nodes: Mapping[str, DbtNode] = {}
        self._sources: Mapping[str, DbtSource] = {}
        self._models: dict[str, tuple[DbtNode, Model]] = {}

    def take(self, project: DbtProject) -> None:
        """Go on with the project of this round: what was read of a node holds while it is as it was."""
        if self._project is not project:
            self._project = project
            self._nodes = {node.table: node for node in project.nodes if node.type in NODES and not node.error}
            self._sources = {source.table: source for source in project.sources}
            read_models = self._models.items()
            self._models = {
                table: (node, model) for table, (node, model) in read_models if self._nodes.get(table) == node
            }

    def __getitem__(self, table: str) -> Model:
        if table not in self._nodes:
            source = self._sources[table]
            assert self._project is not None
            columns = tuple(Column(column.name.lower(), column.type) for column in source.columns)
            is_typed = columns and all(column.type for column in columns)
            columns = columns if is_typed else self._source_columns(self._project, source.id)
            return Model(source.table, Kind.EXTERNAL, "", 0, "", columns=columns)
        if table not in self._models:
            node = self._nodes[table]
            self._models[table] = node, _node_model(node, self._defaults)
        return self._models[table][1]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._sources, **self._nodes})

    def __len__(self) -> int:
        return len({**self._sources, **self._nodes})


def find_ancestors(project: DbtProject, id: str) -> set[str]:
    above: set[str] = set()
    waiting = [id]
    while waiting:
        name = waiting.pop()
        if name not in above and (name in project.by_id or name in project.source_by_id):
            above.add(name)
            waiting += project.by_id[name].depends_on if name in project.by_id else ()
    return above


def _node_model(node: DbtNode, defaults: Defaults) -> Model:
    if node.type == "seed":
        columns = tuple(Column(name.lower(), kind) for name, kind in node.types)
        return Model(node.table, Kind.SEED, "", 0, "", columns=columns)
    first_run = node.model_copy(update={"later": node.text})  # which made the columns that its table has
    model, _ = parse_model(model_text(first_run), node.path, defaults)
    assert model is not None  # no text of ours says `enabled false`
    return model
