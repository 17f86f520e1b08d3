"""The rows of nodes that prod does not show as this folder has them: as queries, for the questions of templates.

An edited seed is its file, and an edited model its query over what prod shows. So a template sees in a pull request the
rows that the merge will make, and sees rows before the first plan.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlglot import exp

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.model import Model
from mergeplan.planner.naming import quote_column
from mergeplan.planner.parsing.definitions.project_defaults import Defaults
from mergeplan.planner.parsing.files.dbt.hooks import is_loaded
from mergeplan.planner.parsing.files.dbt.nodes import DbtNode, DbtProject
from mergeplan.planner.parsing.files.dbt.texts import model_text
from mergeplan.planner.parsing.files.dbt.two_forms import is_alike
from mergeplan.planner.parsing.files.model_file import parse_model
from mergeplan.planner.parsing.render import text_over
from mergeplan.planner.parsing.sql.names import without_default
from mergeplan.planner.project.seeds import load_seed, read_seed

# Materializations whose rows are those of their query, whatever was there before.
COMPUTED = ("view", "table", "materialized_view", "ephemeral")
IN_FIRST_RUN = (*COMPUTED, "incremental")
SEED_ROWS_MAX = 10_000  # of a seed that becomes part of a query
Deployed = Callable[[], Mapping[str, Model]]  # the models of prod, as the state has them
IsThere = Callable[[str], bool]


@dataclass(frozen=True)
class NodeQuery:
    """The query of a node's rows; `differs` if they are others than prod's, and not only without a table there."""

    text: str
    differs: bool


class OwnRows:
    """The queries of a folder's nodes; one for each reading of the project."""

    def __init__(self, root: Path, deployed: Deployed, functions: frozenset[str], default_catalog: str = "") -> None:
        self._root, self._load_deployed, self._default_catalog = root, deployed, default_catalog
        self._defaults = Defaults(datetime(2000, 1, 1, tzinfo=UTC), allowed={"": functions})
        self._deployed: Mapping[str, Model] | None = None
        self._project: DbtProject | None = None
        self._queries: dict[str, NodeQuery | None] = {}  # by table, of this project

    def replace_tables(self, project: DbtProject, text: str, tables: frozenset[str], is_there: IsThere) -> str:
        """Return a query with the queries of nodes in place of the tables that prod does not show as they are here."""
        if self._project is not project:
            self._project, self._queries = project, {}
        return _put_queries(text, self._find_queries(project, {table.lower() for table in tables}, is_there))

    def _find_queries(self, project: DbtProject, tables: set[str], is_there: IsThere) -> dict[str, NodeQuery]:
        nodes = {node.table: node for node in project.nodes if node.table in tables and node.type in ("model", "seed")}
        node_queries = {table: self._find_query(project, node, is_there) for table, node in nodes.items()}
        return {table: query for table, query in node_queries.items() if query is not None}

    def _find_query(self, project: DbtProject, node: DbtNode, is_there: IsThere) -> NodeQuery | None:
        """Return the query of a node's rows, or None if they are those that Spark has."""
        if node.table not in self._queries:
            self._queries[node.table] = None  # a cycle, which dbt refuses, ends here
            self._queries[node.table] = self._write_query(project, node, is_there)
        return self._queries[node.table]

    def _write_query(self, project: DbtProject, node: DbtNode, is_there: IsThere) -> NodeQuery | None:
        if node.error or is_loaded(node):
            return None
        name = without_default(node.table, self._default_catalog) if self._default_catalog else node.table
        if self._deployed is None:
            self._deployed = self._load_deployed()
        old = self._deployed.get(name)
        is_inlined = node.materialized == "ephemeral"
        is_new = old is None and not is_inlined and not is_there(node.table)
        if node.type == "model" and node.materialized not in (IN_FIRST_RUN if is_new else COMPUTED):
            return None
        model = self._parse(node)
        if model is None:
            return None
        if node.type == "seed":
            assert model.seed is not None
            is_edited = old is not None and (old.seed is None or old.seed.digest != model.seed.digest)
            return NodeQuery(render_seed(self._root, model), True) if is_new or is_edited else None
        above = {project.by_id[id].table for id in node.depends_on if id in project.by_id}
        queries = self._find_queries(project, above, is_there)
        is_edited = old is not None and not is_alike(model.written.text, old.written.text)
        differs = is_new or is_edited or any(query.differs for query in queries.values())
        return NodeQuery(_put_queries(model.written.text, queries), differs) if differs or is_inlined else None

    def _parse(self, node: DbtNode) -> Model | None:
        """Return a node as it is in its first run, a seed with its file; None if it cannot be opened."""
        with suppress(ProjectError):
            model, _ = parse_model(model_text(node.model_copy(update={"later": node.text})), node.path, self._defaults)
            if model is not None and model.seed is not None:
                model = load_seed(self._root, model)
                assert model.seed is not None
                return model if model.seed.rows <= SEED_ROWS_MAX else None
            return model if model is not None and model.written.text else None
        return None


def _put_queries(text: str, queries: Mapping[str, NodeQuery]) -> str:
    return text_over(text, {table: f"({query.text})" for table, query in queries.items()}, {}, {}) if queries else text


def render_seed(root: Path, model: Model) -> str:
    """Return the rows of a seed's file as a query, each cell cast to the type of its column."""
    names = [f"`#{number}`" for number in range(len(model.columns))]
    cast = (
        f"CAST({name} AS {column.type or 'string'}) AS {quote_column(column.name)}"
        for name, column in zip(names, model.columns, strict=True)
    )
    rows = [*read_seed(root, model, tuple(column.name for column in model.columns))]
    cells = ", ".join(f"({', '.join(map(_render_cell, row))})" for row in rows or [(None,) * len(names)])
    where = "" if rows else " WHERE FALSE"
    return f"SELECT {', '.join(cast)} FROM VALUES {cells} AS `#cells`({', '.join(names)}){where}"


def _render_cell(cell: str | None) -> str:
    return "CAST(NULL AS string)" if cell is None else exp.Literal.string(cell).sql("spark")
