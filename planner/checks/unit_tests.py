"""Unit tests of models: given rows go in as inlined tables, the query runs on Spark, its rows are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from threading import RLock

from sqlglot import exp

from mergeplan.planner.checks.diff.rows import compare_rows
from mergeplan.planner.checks.fetching import THREADS, fetch_all
from mergeplan.planner.checks.freezing import clock_calls, ctes_of, frozen_text
from mergeplan.planner.checks.inlining import UNTYPED, render_rows, type_of
from mergeplan.planner.checks.query_of_test import own_query
from mergeplan.planner.checks.read_columns import find_read_columns
from mergeplan.planner.checks.unit_test_result import OutputResult, TestResult
from mergeplan.planner.engine.protocol import Engine, Rows
from mergeplan.planner.errors import MergeplanError, ProjectError, QueryError
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.graph import reach_names
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.naming import quote_column
from mergeplan.planner.parsing.definitions.unit_tests import TestRows, UnitTest
from mergeplan.planner.parsing.macros.expand import dates, spark_tree
from mergeplan.planner.parsing.render import inline_views, query_of, render_tree
from mergeplan.planner.parsing.sql.spark_text import spark_text
from mergeplan.planner.parsing.sql.tokens import did_you_mean
from mergeplan.planner.project.loader import Project, override_variables
from mergeplan.planner.python.run_inputs import RunInputs
from mergeplan.planner.python.running import Running, open_runner
from mergeplan.planner.tables.self_reference import own_columns

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class _OutputQuery:
    """One output of a test: the query to run, and the expected rows."""

    test: UnitTest
    output: str
    sql: str
    columns: tuple[Column, ...]
    expected: TestRows
    expected_sql: str
    expected_names: tuple[str, ...] = ()  # of the columns that it returns


def run_unit_tests(engine: Engine, project: Project, tests: Sequence[UnitTest]) -> tuple[TestResult, ...]:
    """Run the tests; one that cannot be run counts as failed, and the others continue.

    The outputs of many tests are computed in one Spark query: most of the time of a small query is overhead.
    """
    schemas = _Schemas(engine, project)

    def prepare(test: UnitTest) -> tuple[_OutputQuery, ...] | MergeplanError:
        try:
            return _output_queries(engine, project, test, schemas, code)
        except (ProjectError, QueryError) as error:
            return error

    with open_runner(project.code, engine) as python, ExitStack() as query_stack:
        code = _Code(python, query_stack)
        with ThreadPoolExecutor(THREADS, thread_name_prefix="test") as pool:
            ready = list(pool.map(prepare, tests))
        every = [query for queries in ready if not isinstance(queries, MergeplanError) for query in queries]
        answers = fetch_all(engine, [sql for query in every for sql in (query.sql, query.expected_sql) if sql])
    return tuple(_make_result(test, queries, answers) for test, queries in zip(tests, ready, strict=True))


def has_known_columns(engine: Engine, project: Project, name: str) -> bool:
    return _Schemas(engine, project).get_columns(name) is not None


def cte_names(model: Model) -> tuple[str, ...]:
    """Return the names of the CTEs of the model's query, in lower case."""
    with_ = spark_tree(model.sql).args.get("with_")
    return tuple(cte.alias.lower() for cte in with_.expressions) if isinstance(with_, exp.With) else ()


def model_rows(engine: Engine, project: Project, test: UnitTest) -> dict[str, Rows]:
    """Return the rows that the test's model returns for its inputs, by output.

    The outputs are `query` and the CTEs that the test names.
    """
    every = replace(test, query=test.query or TestRows())
    with open_runner(project.code, engine) as python, ExitStack() as query_stack:
        queries = _output_queries(engine, project, every, _Schemas(engine, project), _Code(python, query_stack))
        results = fetch_all(engine, [query.sql for query in queries])
    answers: dict[str, Rows] = {}
    for query in queries:
        answer = results[query.sql]
        if isinstance(answer, MergeplanError):
            raise answer
        answers[query.output] = Rows(tuple(column.name for column in query.columns), answer.rows)
    return answers


def _make_result(
    test: UnitTest, queries: tuple[_OutputQuery, ...] | MergeplanError, results: Mapping[str, Rows | MergeplanError]
) -> TestResult:
    if isinstance(queries, MergeplanError):
        return TestResult(test, error=_add_place(queries, test))
    outputs = []
    for query in queries:
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
class _Code:
    """A runner of Python models, which stores their rows until they are compared."""

    python: Running
    held: ExitStack

    def rows(self, model: Model, test: UnitTest, schemas: _Schemas) -> str:
        reads = (*model.depends_on, *([model.name] if model.reads_itself else []))
        if odd := set(test.inputs) - set(reads):
            hint = did_you_mean(min(odd), reads)
            raise ProjectError(f"{model.name} does not read `{min(odd)}`.", place=test.place, hint=hint)
        if test.ctes:
            raise ProjectError(f"{model.name} is Python code: it has no CTEs to test.", place=test.place)
        views = {name: f"given_{index}" for index, name in enumerate(reads)}
        inputs = {
            view: _input_query(name, test, _Known(schemas.get_columns(name)), model.dialect)
            for name, view in views.items()
        }
        interval, execution = _test_moments(test)
        model = replace(model, gateway="")  # the test runs on the project's own gateway
        rows = self.python.rows(model, interval, views, execution, RunInputs(inputs, dict(test.variables)))
        return self.held.enter_context(rows)


def _test_moments(test: UnitTest) -> tuple[Interval, datetime]:
    start = test.start or (test.end - timedelta(days=1) if test.end else _EPOCH)
    return Interval(start, test.end or start + timedelta(days=1)), test.execution_time or _EPOCH


def _output_queries(
    engine: Engine, project: Project, test: UnitTest, schemas: _Schemas, code: _Code
) -> tuple[_OutputQuery, ...]:
    model = project.models[test.model]
    if model.python is not None:
        sql = code.rows(model, test, schemas)
        return (_output_query(engine, "query", sql, test.query, test, model.dialect),) if test.query is not None else ()
    if test.variables:
        model = override_variables(project, model, dict(test.variables))
    if not model.sql:
        raise ProjectError(f"{model.name} is a {model.kind} model: it has no query to test.", place=test.place)
    tree, sql = _model_query(project, model, test, schemas)
    outputs = [] if test.query is None else [("query", sql, test.query)]
    outputs += [(name, _cte_query(tree, sql, name, test), relation) for name, relation in test.ctes.items()]
    return tuple(_output_query(engine, name, sql, relation, test, model.dialect) for name, sql, relation in outputs)


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


def _model_query(project: Project, model: Model, test: UnitTest, schemas: _Schemas) -> tuple[exp.Expr, str]:
    """Return the model's query over the given rows, at the given time: as a tree, and as it runs.

    The SQL is generated from the tree if temporary views must be inlined, or if the place of a time in the text is
    unknown.
    """
    reads = _collect_tables(project, model)
    for name in test.inputs:
        if name not in reads:
            hint = did_you_mean(name, reads)
            raise ProjectError(f"{model.name} does not read `{name}`.", place=test.place, hint=hint)
    tables = {
        name: f"({_input_query(name, test, _list_columns(project, model, name, schemas), model.dialect)})"
        for name in reads
        if name in test.inputs or name not in project.models_to_inline
    }
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


def _list_columns(project: Project, model: Model, name: str, schemas: _Schemas) -> _Known:
    """Return the columns of an input; of a table that may have others, those that the query reads of it too.

    A column that neither the test nor the project describes is NULL without a type.
    """
    listed, table = schemas.get_columns(name) or (), project.models.get(name)
    if listed and not (table and table.open_columns):
        return _Known(listed)
    inlined = project.models_to_inline.keys()
    queries = [model, *(project.models_to_inline[read] for read in _collect_tables(project, model) & inlined)]
    names = set[str]().union(*(find_read_columns(spark_tree(query.sql), name) for query in queries))
    names -= {column.name for column in listed}
    return _Known((*listed, *(Column(column, UNTYPED) for column in sorted(names))), is_whole=False)


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


def _input_query(name: str, test: UnitTest, known: _Known, dialect: str) -> str:
    """Return an input as a query: each cell cast to its column's type; a table without given rows is empty."""
    input_rows = test.inputs.get(name)
    if input_rows is not None and input_rows.query:
        return own_query(input_rows.query, dialect, test)
    types = {column.name: column.type for column in known.columns or ()} | dict(input_rows.types if input_rows else ())
    rows = input_rows.rows if input_rows else ()
    for column in dict.fromkeys(key for row in rows for key in row):
        if column not in types and known.columns and known.is_whole:
            place = replace(test.place, line=input_rows.line if input_rows else test.line)
            raise ProjectError(f"`{name}` has no column `{column}`.", place=place, hint=did_you_mean(column, types))
        if types.get(column, UNTYPED) == UNTYPED:
            types[column] = type_of([row.get(column) for row in rows])
    if not types:
        raise ProjectError(
            f"The columns of `{name}` are not known.", place=test.place, hint="Give it rows as an input."
        )
    return render_rows(types, rows)


@dataclass(frozen=True)
class _Known:
    """The columns of a table, None if they are not known; all of them if `is_whole`."""

    columns: tuple[Column, ...] | None
    is_whole: bool = True


class _Schemas:
    """The columns of the project's models, from declarations or Spark's analysis; determined once."""

    def __init__(self, engine: Engine, project: Project) -> None:
        self._engine, self._project = engine, project
        self._known: dict[str, _Known] = {}
        self._lock = RLock()

    def get_columns(self, name: str) -> tuple[Column, ...] | None:
        with self._lock:
            if name not in self._known:
                self._known[name] = _Known(None)  # a cycle ends here
                self._known[name] = _Known(self._find_columns(name))
            return self._known[name].columns

    def _find_columns(self, name: str) -> tuple[Column, ...] | None:
        model = self._project.models.get(name)
        if model is None or model.columns or not model.kind.has_query:
            return ((*model.columns, *model.history_columns) or None) if model else None
        parents = [
            table
            for table in _collect_tables(self._project, model) - {name}
            if table not in self._project.models_to_inline
        ]
        tables = {}
        for parent in parents:
            columns = self.get_columns(parent)
            if columns is None:
                return None
            nulls = ", ".join(f"CAST(NULL AS {column.type}) AS {quote_column(column.name)}" for column in columns)
            tables[parent] = f"(SELECT {nulls})"

        def query_schema(model: Model, own: Mapping[str, str]) -> tuple[Column, ...]:
            all_tables = {**tables, **own}
            return self._engine.schema(query_of(model, all_tables, self._project.models_to_inline, dates(None, _EPOCH)))

        try:
            if model.reads_itself:
                return own_columns(model, lambda query, own: query_schema(query, {name: own}))
            return (*query_schema(model, {}), *model.history_columns)
        except (QueryError, ProjectError):
            return None
