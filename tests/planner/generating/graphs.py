"""Projects: three to six models over the external tables, some of them views, some filled by stretches of time."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from sqlglot import exp

from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.table_order import order_columns
from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.parsing.sql.spark_text import spark_text
from tests.planner.building import day, external, model, project

from .data import TABLES, Columns
from .expressions import Scope
from .queries import Query, make_hash, outputs, query
from .sources import make_from

ALL_DECLARED: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class Node:
    """A model to be: its query as text, its kind, and the columns it returns."""

    name: str
    sql: str
    columns: Columns
    kind: Kind = Kind.FULL
    cut: tuple[str, ...] = ()  # the columns by which its table is partitioned

    def model(self) -> Model:
        if self.kind is Kind.INCREMENTAL_BY_TIME_RANGE:
            return model(self.name, self.sql, self.kind, time_column="d", start=day("2026-01-01"))
        return model(self.name, self.sql, self.kind, partitioned_by=self.cut)

    @property
    def table_columns(self) -> Columns:
        """Its columns in the order of its table."""
        return {name: self.columns[name] for name in order_columns(self.model(), self.columns, {})}


Nodes = tuple[Node, ...]


def nodes(rng: random.Random) -> Nodes:
    """The models of a project, parents first."""
    graph: list[Node] = []
    for number in range(1, rng.choice((3, 3, 4, 4, 5, 6)) + 1):
        graph.append(_node(rng, f"s.m{number}", graph))
    return tuple(graph)


def _node(rng: random.Random, name: str, before: list[Node]) -> Node:
    everything = TABLES | {node.name: node.table_columns for node in before}
    picked = rng.sample(list(everything), min(len(everything), 2))
    if before and rng.random() < 0.8:
        picked = [before[-1].name, *([rng.choice(picked)] if rng.random() < 0.5 else [])]
    relations = {name: everything[name] for name in dict.fromkeys(picked)}
    scope = Scope(rng)
    if rng.random() < 0.12 and any("d" in columns.values() for columns in relations.values()):
        made = _stretch(scope, relations)
        return Node(name, write_query(made.sql), made.columns, Kind.INCREMENTAL_BY_TIME_RANGE)
    if any(node.name in picked and node.kind is Kind.EMBEDDED for node in before) and rng.random() < 0.4:
        made = make_hash(scope, relations, 0)
        return Node(name, write_query(made.sql), made.columns)
    made = query(scope, relations)
    kind = rng.choice((Kind.VIEW, Kind.EMBEDDED)) if rng.random() < 0.3 else Kind.FULL
    sql = write_query(made.sql)
    cut = choose_partitions(rng, made.columns) if kind is Kind.FULL and rng.random() < 0.25 else ()
    return Node(name, capitalise_names(rng, sql) if kind is Kind.EMBEDDED else sql, made.columns, kind, cut)


def choose_partitions(rng: random.Random, columns: Columns) -> tuple[str, ...]:
    """Columns of which a folder's name can be made, but not all columns."""
    names = [name for name, kind in columns.items() if kind in "isdb"]
    return tuple(rng.sample(names, min(len(names), len(columns) - 1, rng.choice((1, 1, 2)))))


def capitalise_names(rng: random.Random, sql: str) -> str:
    """The query with capitals in the names of some outputs, which show where it is embedded."""
    tree = spark_tree(sql).copy()
    for output in tree.selects if isinstance(tree, exp.Query) else ():
        if isinstance(output, (exp.Alias, exp.Column)) and not output.is_star and rng.random() < 0.5:
            name = rng.choice((output.alias_or_name.capitalize(), output.alias_or_name.upper()))
            output.replace(exp.alias_(output.unalias().copy(), name))
    return spark_text(tree)


def _stretch(scope: Scope, relations: Mapping[str, Columns]) -> Query:
    """A query over the rows between two dates."""
    timed = {name: columns for name, columns in relations.items() if "d" in columns.values()}
    text, inner = make_from(scope, timed, 0, query)
    while not inner.columns("d"):
        text, inner = make_from(scope, timed, 0, query)
    time = inner.columns("d")[0][0]
    selection = [output for output in outputs(inner, 3) if output.name != "d"]
    where = f"{time} BETWEEN @start_ds AND @end_ds"
    shown = ", ".join([f"{time} AS d", *(output.text for output in selection)])
    columns = {"d": "d"} | {output.name: output.kind for output in selection}
    if scope.rng.random() < 0.3:
        body = f"SELECT {time} AS d, COUNT(*) AS n FROM {text} WHERE {where} GROUP BY {time}"
        return Query(body, {"d": "d", "n": "i"})
    if scope.rng.random() < 0.2:
        shown += f", COUNT(*) OVER (PARTITION BY {scope.rng.choice(inner.columns('insd'))[0]}) AS w"
        columns["w"] = "i"
    return Query(f"SELECT {shown} FROM {text} WHERE {where}", columns)


def write_query(sql: str) -> str:
    """The query as the project's reader would write it."""
    return spark_text(spark_tree(sql))


def build_models(graph: Nodes, declared: Mapping[str, int] = ALL_DECLARED) -> dict[str, Model]:
    """The models and the external tables under them, of which some are `declared` with their first columns alone."""
    tables = (
        replace(external(name, " ".join([*columns][: declared.get(name)])), open_columns=name in declared)
        for name, columns in TABLES.items()
    )
    return project(*tables, *(node.model() for node in graph))


def rewritten(graph: Nodes, name: str, sql: str) -> Nodes:
    """The same nodes with another query for one of them."""
    return tuple(replace(node, sql=sql) if node.name == name else node for node in graph)
