"""Models run on Spark, each over the rows that its parents were found to hold, many of them in one query.

A model that is asked for twice over the same rows is run once: what an edit leaves as it was costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from sqlglot import exp

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import QueryError
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.naming import quote_column
from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.parsing.render import render_model
from mergeplan.planner.parsing.sql.spark_text import spark_text
from tests.planner.building import NOW, day
from tests.planner.generating.data import DAYS

from .answers import Answer, Asking, Content

MOST_ROWS = 300
TOGETHER = 6
# Small data is run faster without generated code, and one partition keeps rows in their order.
SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
_LUCK = {"UUID()": ("'one'", "'another'"), "RAND()": ("0.25D", "0.75D"), "ANY_VALUE(": ("MIN(", "MAX(")}


@dataclass
class Bench:
    """Runs queries, many at once, and remembers what they returned; None for one that Spark refuses."""

    engine: SparkEngine
    known: dict[str, Content | None] = field(default_factory=dict)

    def __enter__(self) -> Bench:
        for name, value in SETTINGS.items():
            self.engine.fetch(f"SET {name} = {value}")
        return self

    def __exit__(self, *_: object) -> None:
        for name in SETTINGS:
            self.engine.fetch(f"RESET {name}")

    def together(self, cases: Iterable[Asking]) -> list[Answer]:
        """Run cases side by side: what they ask for at one time goes to Spark together."""
        answers: dict[int, Answer] = {}
        waiting: dict[int, tuple[Asking, Sequence[str]]] = {}
        started = list(enumerate(cases))
        for number, case in started:
            self._send(number, case, None, waiting, answers)
        while waiting:
            self.run(sql for _, asked in waiting.values() for sql in asked)
            for number, (case, asked) in list(waiting.items()):
                del waiting[number]
                self._send(number, case, [self.known[sql] for sql in asked], waiting, answers)
        return [answers[number] for number, _ in started]

    @staticmethod
    def _send(
        number: int,
        case: Asking,
        contents: Sequence[Content | None] | None,
        waiting: dict[int, tuple[Asking, Sequence[str]]],
        answers: dict[int, Answer],
    ) -> None:
        try:
            waiting[number] = (case, next(case) if contents is None else case.send(contents))
        except StopIteration as end:
            answers[number] = end.value

    def run(self, queries: Iterable[str]) -> None:
        """Find the rows of each query."""
        fresh = [sql for sql in dict.fromkeys(queries) if sql not in self.known]
        for start in range(0, len(fresh), TOGETHER):
            self._run(fresh[start : start + TOGETHER])

    def _run(self, queries: Sequence[str]) -> None:
        try:
            rows = self.engine.fetch(
                " UNION ALL ".join(_rows_with_tag(str(n), sql) for n, sql in enumerate(queries))
            ).rows
        except QueryError:
            if len(queries) == 1:
                self.known[queries[0]] = None
                return
            half = len(queries) // 2
            self._run(queries[:half])
            self._run(queries[half:])
            return
        for number, sql in enumerate(queries):
            own = [(str(kind), str(row)) for told, kind, row in rows if told == str(number)]
            self.known[sql] = self._content(sql, own)

    def _content(self, sql: str, rows: Sequence[tuple[str, str]]) -> Content | None:
        if len(rows) >= MOST_ROWS:
            return None
        if rows:
            return Content(rows[0][0], tuple(row for _, row in rows))
        columns = self.engine.schema(sql)
        return Content(f"struct<{','.join(f'{column.name}:{column.type}' for column in columns)}>", ())


def _rows_with_tag(name: str, sql: str) -> str:
    row = "to_json(struct(*), map('ignoreNullFields', 'false'))"
    return f"(SELECT '{name}' AS told, typeof(struct(*)) AS kind, {row} AS row FROM ({sql}) LIMIT {MOST_ROWS})"


def query_of(model: Model, parents: Mapping[str, Content], again: bool) -> str:
    """The query of a model over its parents' rows.

    Filled `again`, a table is filled in one go, and what is left to chance comes out otherwise.
    """
    names = {name: f"z{number}" for number, name in enumerate(sorted(parents))}
    ctes = ", ".join(f"{names[name]} AS ({content.sql})" for name, content in sorted(parents.items()))
    sql = f"SELECT * FROM ({_fill_query(model, names, again)})"
    return f"WITH {ctes} {sql}" if ctes else sql


def _fill_query(model: Model, tables: Mapping[str, str], again: bool) -> str:
    if model.kind is not Kind.INCREMENTAL_BY_TIME_RANGE:
        return _text_over(model, tables, again)
    cuts = [(DAYS[0], DAYS[3])] if again else [(DAYS[0], DAYS[1]), (DAYS[2], DAYS[3])]
    return " UNION ALL ".join(
        f"SELECT * FROM ({_text_over(model, tables, again, cut)})"
        f" WHERE {quote_column(model.by_time.time_column)} BETWEEN {cut[0]!r} AND {cut[1]!r}"
        for cut in cuts
    )


def _text_over(model: Model, tables: Mapping[str, str], again: bool, cut: tuple[str, str] = ("", "")) -> str:
    """The query over these tables: its text as a file has it, or else as its tree is written."""
    if model.written.text:
        interval = Interval(day(cut[0]), day(cut[1]) + timedelta(days=1)) if cut[0] else None
        text = render_model(model, tables, {}, interval, NOW)
    else:
        text = _over(model.sql, tables).replace("@start_ds", repr(cut[0])).replace("@end_ds", repr(cut[1]))
    for call, answers in _LUCK.items():
        text = text.replace(call, answers[again])
    return text


def _over(sql: str, tables: Mapping[str, str]) -> str:
    tree = spark_tree(sql).copy()
    for table in list(tree.find_all(exp.Table)):
        name = f"{table.db}.{table.name}".lower()
        if table.db and name in tables:
            if not table.alias:
                table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name)))
            table.set("this", exp.to_identifier(tables[name]))
            table.set("db", None)
    return spark_text(tree)
