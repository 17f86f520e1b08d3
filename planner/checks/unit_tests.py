"""Unit tests of models: given rows go in as inlined tables, the query runs on Spark, its rows are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from threading import RLock

from sqlglot import exp

from mergeplan.planner.checks.diff.rows import RowDifference, compare_rows
from mergeplan.planner.checks.freezing import clock_calls, ctes_of, frozen_text
from mergeplan.planner.checks.inlining import UNTYPED
from mergeplan.planner.checks.load_of_test import LoadTable, TestLoad
from mergeplan.planner.checks.query_of_test import KnownRelation, input_query, own_query
from mergeplan.planner.checks.read_columns import find_read_columns
from mergeplan.planner.checks.unit_test_result import OutputResult, TestResult
from mergeplan.planner.engine.protocol import Engine, Rows
from mergeplan.planner.errors import MergeplanError, ProjectError, QueryError
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.graph import reach_names
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.naming import quote_column, quote_name
from mergeplan.planner.parsing.definitions.unit_tests import TestRows, UnitTest
from mergeplan.planner.parsing.macros.expand import dates, spark_tree
from mergeplan.planner.parsing.render import inline_views, no_rows, query_of, render_tree
from mergeplan.planner.parsing.sql.spark_text import spark_text
from mergeplan.planner.parsing.sql.tokens import did_you_mean
from mergeplan.planner.project.called_macros import check_call, compare_texts, expand_call, find_test_model
from mergeplan.planner.project.loader import Project
from mergeplan.planner.python.run_inputs import RunInputs
from mergeplan.planner.python.running import Running, open_runner
from mergeplan.planner.tables.self_reference import empty_relation, own_columns

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
THREADS = 4
TOGETHER = 12  # queries per Spark query, in which each is a scalar subquery that gathers its rows


@dataclass(frozen=True)
class _OutputQuery:
    test: UnitTest
    output: str
    sql: str
    columns: tuple[Column, ...]
    expected: TestRows
    expected_sql: str
    expected_names: tuple[str, ...] = ()  # of the columns that it returns


_Output = _OutputQuery | OutputResult  # one that Spark has yet to answer, and one that is known


def check_tests(
    engine: Engine, project: Project, tests: Sequence[UnitTest], load_table: LoadTable
) -> tuple[TestResult, ...]:
    """Run the tests, many outputs in one query; one that cannot be run counts as failed, and others continue."""
    schemas = _Schemas(engine, project)

    def prepare(test: UnitTest) -> tuple[_Output, ...] | MergeplanError:
        try:
            return (*_compare_text(project, test), *_output_queries(engine, project, test, schemas, evaluation))
        except (ProjectError, QueryError) as error:
            return error

    with open_runner(project.code, engine) as python, ExitStack() as query_stack:
        evaluation = _Evaluation(python, query_stack, load_table)
        with ThreadPoolExecutor(THREADS, thread_name_prefix="test") as pool:
            ready = list(pool.map(prepare, tests))
        outputs = [output for outputs in ready if not isinstance(outputs, MergeplanError) for output in outputs]
        every = [output for output in outputs if isinstance(output, _OutputQuery)]
        answers = fetch_all(engine, [sql for query in every for sql in (query.sql, query.expected_sql) if sql])
    return tuple(_make_result(test, queries, answers) for test, queries in zip(tests, ready, strict=True))


def has_known_columns(engine: Engine, project: Project, name: str) -> bool:
    return _Schemas(engine, project).get_columns(name) is not None


def cte_names(model: Model) -> tuple[str, ...]:
    """Return the names of the CTEs of the model's query, in lower case."""
    with_ = spark_tree(model.sql).args.get("with_")
    return tuple(cte.alias.lower() for cte in with_.expressions) if isinstance(with_, exp.With) else ()


def model_rows(engine: Engine, project: Project, test: UnitTest, load_table: LoadTable) -> dict[str, Rows]:
    """Return what the model returns for the test's inputs: `query`, the CTEs that it names, `table` if expected."""
    every = replace(test, query=test.query or TestRows())
    with open_runner(project.code, engine) as python, ExitStack() as query_stack:
        evaluation = _Evaluation(python, query_stack, load_table)
        queries = _output_queries(engine, project, every, _Schemas(engine, project), evaluation)
        results = fetch_all(engine, [query.sql for query in queries])
    answers: dict[str, Rows] = {}
    for query in queries:
        answer = results[query.sql]
        if isinstance(answer, MergeplanError):
            raise answer
        answers[query.output] = Rows(tuple(column.name for column in query.columns), answer.rows)
    return answers


def _compare_text(project: Project, test: UnitTest) -> tuple[OutputResult, ...]:
    if not test.call:
        return ()
    check_call(test, project.defaults.dialect)
    actual = expand_call(project, test)
    if test.text is None:
        return ()
    row, actual_row = (test.text.strip(),), (actual,)
    equal = compare_texts(test.text, actual, test, project.defaults.dialect)
    differences = () if equal else (RowDifference(("text",), row, actual_row, ("text",)),)
    return (OutputResult("text", Rows(("text",), (row,)), Rows(("text",), (actual_row,)), differences),)


def _make_result(
    test: UnitTest, queries: tuple[_Output, ...] | MergeplanError, results: Mapping[str, Rows | MergeplanError]
) -> TestResult:
    if isinstance(queries, MergeplanError):
        return TestResult(test, error=_add_place(queries, test))
    outputs = []
    for query in queries:
        if isinstance(query, OutputResult):
            outputs.append(query)
            continue
        actual, expected_answer = results[query.sql], results[query.expected_sql] if query.expected_sql else None
        for answer in (actual, expected_answer):
            if isinstance(answer, MergeplanError):
                return TestResult(test, error=_add_place(answer, test))
        assert isinstance(actual, Rows)
        actual = Rows(tuple(column.name for column in query.columns), actual.rows)
        names = query.expected_names
        expected = (
            Rows(names, expected_answer.rows)
            if isinstance(expected_answer, Rows)
            else _as_rows(query.expected, query.columns)
        )
        types = {column.name: column.type for column in query.columns}
        differences = compare_rows(expected, actual, types, query.expected.partial)
        outputs.append(OutputResult(query.output, expected, actual, differences))
    return TestResult(test, tuple(outputs))


def _add_place(error: MergeplanError, test: UnitTest) -> MergeplanError:
    error.located = error.located or test.place
    return error


@dataclass(frozen=True)
class _Evaluation:
    """A runner of Python models and a loader of tables, which store their rows until they are compared."""

    python: Running
    held: ExitStack
    load_table: LoadTable

    def python_rows(
        self, model: Model, test: UnitTest, schemas: _Schemas, own: str = ""
    ) -> AbstractContextManager[str]:
        """Return the rows that code returns; `own` is a query in brackets for the model's own rows."""
        inputs = _collect_inputs(model, test)
        reads = (*model.depends_on, *([model.name] if model.reads_itself else []))
        if odd := set(inputs) - set(reads):
            hint = did_you_mean(min(odd), reads)
            raise ProjectError(f"{model.name} does not read `{min(odd)}`.", place=test.place, hint=hint)
        views = {name: f"given_{index}" for index, name in enumerate(reads)}
        queries = {
            view: f"SELECT * FROM {own}"
            if own and name == model.name
            else input_query(name, inputs, test, KnownRelation(schemas.get_columns(name)), model.dialect)
            for name, view in views.items()
        }
        interval, execution = _test_moments(test)
        return self.python.rows(model, interval, views, execution, RunInputs(queries, dict(test.variables)))


def _collect_inputs(model: Model, test: UnitTest) -> Mapping[str, TestRows]:
    return {**test.inputs, model.name: test.this} if test.this and model.reads_itself else test.inputs


def _test_moments(test: UnitTest) -> tuple[Interval, datetime]:
    start = test.start or (test.end - timedelta(days=1) if test.end else _EPOCH)
    return Interval(start, test.end or start + timedelta(days=1)), test.execution_time or _EPOCH


def _output_queries(
    engine: Engine, project: Project, test: UnitTest, schemas: _Schemas, evaluation: _Evaluation
) -> tuple[_OutputQuery, ...]:
    if test.compares_only_text:
        return ()
    model = replace(find_test_model(project, test), gateway="")  # the test runs on the project's own gateway
    if not model.kind.has_query:
        raise ProjectError(f"{model.name} is a {model.kind} model: it has no query to test.", place=test.place)
    outputs: list[tuple[str, str, TestRows]] = []
    if model.python is not None and test.ctes:
        raise ProjectError(f"{model.name} is Python code: it has no CTEs to test.", place=test.place)
    if model.python is not None and test.query is not None:
        sql = evaluation.held.enter_context(evaluation.python_rows(model, test, schemas))
        outputs.append(("query", sql, test.query))
    elif model.python is None and (test.query is not None or test.ctes):
        tree, sql = _model_query(project, model, test, schemas)
        outputs += [] if test.query is None else [("query", sql, test.query)]
        outputs += [(name, _cte_query(tree, sql, name, test), relation) for name, relation in test.ctes.items()]
    if test.table is not None:
        load = _build_load(project, model, test, schemas, evaluation)
        outputs.append(("table", evaluation.held.enter_context(evaluation.load_table(load)), test.table))
    return tuple(_output_query(engine, name, sql, relation, test, model.dialect) for name, sql, relation in outputs)


def _build_load(project: Project, model: Model, test: UnitTest, schemas: _Schemas, evaluation: _Evaluation) -> TestLoad:
    def render(model: Model, own: str) -> str:
        return no_rows(model.columns) if model.python else _model_query(project, model, test, schemas, own)[1]

    def evaluate(own: str) -> AbstractContextManager[str]:
        return evaluation.python_rows(model, test, schemas, own) if model.python else nullcontext(render(model, own))

    def previous_rows(columns: tuple[Column, ...]) -> str:
        this = {} if test.this is None else {model.name: test.this}
        return input_query(model.name, this, test, KnownRelation(columns), model.dialect)

    interval, execution = _test_moments(test)
    return TestLoad(
        test, model, interval, execution, render, evaluate, None if test.this is None else previous_rows
    )  # fmt: skip


def _output_query(
    engine: Engine, name: str, sql: str, expected_rows: TestRows, test: UnitTest, dialect: str
) -> _OutputQuery:
    """Return the query for one output; times are compared as strings, so that no time zone interferes."""
    columns = engine.schema(sql)
    expected_sql = own_query(expected_rows.query, dialect, test) if expected_rows.query else ""
    own_schema = engine.schema(expected_sql) if expected_sql else ()
    expected_sql = _times_as_texts(expected_sql, own_schema) if expected_sql else ""
    names = tuple(column.name for column in own_schema)
    return _OutputQuery(test, name, _times_as_texts(sql, columns), columns, expected_rows, expected_sql, names)


def _times_as_texts(sql: str, columns: tuple[Column, ...]) -> str:
    shown = ", ".join(
        f"CAST({quote_column(column.name)} AS STRING) AS {quote_column(column.name)}"
        if column.type.startswith("timestamp")
        else quote_column(column.name)
        for column in columns
    )
    return f"SELECT {shown} FROM ({sql})"


def _model_query(
    project: Project, model: Model, test: UnitTest, schemas: _Schemas, own: str = ""
) -> tuple[exp.Expr, str]:
    """Return the model's query over the given rows, at the given time: as a tree, and as it runs.

    `own` is a relation with the model's own rows, instead of those that the test gives.
    The SQL is generated from the tree if temporary views must be inlined, or if the place of a time in the text is
    unknown.
    """
    reads, inputs = _collect_tables(project, model), _collect_inputs(model, test)
    for name in inputs:
        if name not in reads:
            hint = did_you_mean(name, reads)
            raise ProjectError(f"{model.name} does not read `{name}`.", place=test.place, hint=hint)
    tables = {
        name: f"({input_query(name, inputs, test, _list_columns(project, model, name, schemas), model.dialect)})"
        for name in reads
        if (name in inputs or name not in project.models_to_inline) and not (own and name == model.name)
    }
    tables |= {model.name: own} if own else {}
    interval, execution = _test_moments(test)
    values = dates(interval, execution)
    tree = render_tree(model.sql, tables, project.models_to_inline, values)
    tree = inline_views(tree, model, tables, project.models_to_inline, values)
    if test.execution_time:
        tree = _freeze_clock(tree, test.execution_time)
    text = model.written.text
    if test.execution_time:
        text = "" if project.models_to_inline else frozen_text(text)
    if not text or any(statement.makes for statement in model.statements.pre_statements):
        return tree, spark_text(tree)
    model = replace(model, written=replace(model.written, text=text))
    return tree, query_of(model, tables, project.models_to_inline, values)


def _collect_tables(project: Project, model: Model) -> set[str]:
    inlined = {name: inlined_model.depends_on for name, inlined_model in project.models_to_inline.items()}
    return reach_names(model.depends_on, inlined) | ({model.name} if model.reads_itself else set())


def _list_columns(project: Project, model: Model, name: str, schemas: _Schemas) -> KnownRelation:
    """Return the columns of an input; of a table that may have others, those that the query reads of it too.

    A column that neither the test nor the project describes is NULL without a type.
    """
    relation = schemas.get_relation(name)
    listed = relation.columns or ()
    if listed and relation.is_whole:
        return relation
    inlined = project.models_to_inline.keys()
    queries = [model, *(project.models_to_inline[read] for read in _collect_tables(project, model) & inlined)]
    names = set[str]().union(*(find_read_columns(spark_tree(query.sql), name) for query in queries))
    names -= {column.name for column in listed}
    return KnownRelation((*listed, *(Column(column, UNTYPED) for column in sorted(names))), is_whole=False)


def _freeze_clock(tree: exp.Expr, moment: datetime) -> exp.Expr:
    values = dates(None, moment)
    for clock_call in clock_calls(tree):
        is_date = isinstance(clock_call, exp.CurrentDate) or clock_call.name.lower() == "current_date"
        name = "execution_date" if is_date else "execution_dt"
        clock_call.replace(values[name].copy())
    return tree


def _cte_query(tree: exp.Expr, sql: str, name: str, test: UnitTest) -> str:
    with_ = tree.args.get("with_")
    cte_aliases = [cte.alias for cte in with_.expressions] if isinstance(with_, exp.With) else []
    if name not in [alias.lower() for alias in cte_aliases] or not isinstance(with_, exp.With):
        raise ProjectError(f"{test.model} has no CTE `{name}`.", place=test.place, hint=did_you_mean(name, cte_aliases))
    if ctes := ctes_of(sql):
        return f"{ctes} SELECT * FROM {exp.to_identifier(name).sql('spark')}"
    shown = exp.select("*").from_(exp.to_identifier(name))
    shown.set("with_", with_.copy())
    return spark_text(shown)


def _as_rows(expected_rows: TestRows, columns: tuple[Column, ...]) -> Rows:
    """Return expected rows over the columns they name, or all columns in a full comparison; a missing key is NULL."""
    named = dict.fromkeys(key for row in expected_rows.rows for key in row)
    column_names = [column.name for column in columns]
    order = [name for name in column_names if name in named or not expected_rows.partial] + [
        n for n in named if n not in column_names
    ]
    return Rows(tuple(order), tuple(tuple(row.get(name) for name in order) for row in expected_rows.rows))


class _Schemas:
    """The columns of the project's models, from declarations or Spark's analysis; determined once."""

    def __init__(self, engine: Engine, project: Project) -> None:
        self._engine, self._project = engine, project
        self._known: dict[str, KnownRelation] = {}
        self._lock = RLock()

    def get_columns(self, name: str) -> tuple[Column, ...] | None:
        return self.get_relation(name).columns

    def get_relation(self, name: str) -> KnownRelation:
        with self._lock:
            if name not in self._known:
                self._known[name] = KnownRelation(None)  # a cycle ends here
                self._known[name] = self._find_relation(name)
            return self._known[name]

    def _find_relation(self, name: str) -> KnownRelation:
        model = self._project.models.get(name)
        if model is None or (model.kind.is_external and (model.open_columns or not model.columns)):
            if columns := self._ask_catalog(name):
                return KnownRelation(columns)
            return KnownRelation((model.columns if model else ()) or None, is_whole=False)
        if model.columns or not model.kind.has_query:
            return KnownRelation((*model.columns, *model.history_columns) or None)
        reads = _collect_tables(self._project, model) - {name} - self._project.models_to_inline.keys()
        parents = {read: _list_columns(self._project, model, read, self) for read in reads}
        if not all(parent.columns for parent in parents.values()):
            return KnownRelation(None)
        tables = {read: empty_relation(parent.columns or ()) for read, parent in parents.items()}

        def query_schema(model: Model, own: Mapping[str, str]) -> tuple[Column, ...]:
            all_tables = {**tables, **own}
            return self._engine.schema(query_of(model, all_tables, self._project.models_to_inline, dates(None, _EPOCH)))

        is_whole = all(parent.is_whole for parent in parents.values())
        try:
            if model.reads_itself:
                return KnownRelation(own_columns(model, lambda query, own: query_schema(query, {name: own})), is_whole)
            return KnownRelation((*query_schema(model, {}), *model.history_columns), is_whole)
        except (QueryError, ProjectError):
            return KnownRelation(None)

    def _ask_catalog(self, name: str) -> tuple[Column, ...]:
        """Return the columns of a table that no file describes in whole; () where Spark has no such table."""
        with suppress(QueryError):
            return self._engine.schema(f"SELECT * FROM {quote_name(name)}")
        return ()


def fetch_all(engine: Engine, queries: Sequence[str]) -> Mapping[str, Rows | MergeplanError]:
    """Return, by query, its rows (unordered, columns unnamed) or Spark's refusal; one by one where a query fails."""
    distinct = list(dict.fromkeys(queries))
    parts = [distinct[start : start + TOGETHER] for start in range(0, len(distinct), TOGETHER)]
    answers: dict[str, Rows | MergeplanError] = {}
    with ThreadPoolExecutor(THREADS, thread_name_prefix="query") as pool:
        for part in parts:
            try:
                answers |= _fetch_together(engine, part)
            except QueryError:
                answers |= zip(part, pool.map(lambda sql: _fetch_alone(engine, sql), part), strict=True)
    return answers


def _fetch_together(engine: Engine, queries: Sequence[str]) -> dict[str, Rows | MergeplanError]:
    gathered = (f"(SELECT COLLECT_LIST(STRUCT(*)) FROM ({sql})) AS q{n}" for n, sql in enumerate(queries))
    (answers,) = engine.fetch(f"SELECT {', '.join(gathered)}").rows
    return {
        sql: Rows((), tuple(tuple(row) for row in answer if isinstance(row, tuple)))
        for sql, answer in zip(queries, answers, strict=True)
        if isinstance(answer, list)
    }


def _fetch_alone(engine: Engine, sql: str) -> Rows | MergeplanError:
    try:
        return engine.fetch(sql)
    except QueryError as error:
        return error
