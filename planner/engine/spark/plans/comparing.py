"""Spark's analyzer as a witness: are two queries one plan over tables without rows? Nothing is run."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from mergeplan.planner.engine.analysis import NEW, OLD, Analysis, PairResult, QueryPair, TableView
from mergeplan.planner.engine.spark.errors import is_spark, translate_error
from mergeplan.planner.engine.spark.plans.terms import DISTINCT, RULES, PlanText, common_term
from mergeplan.planner.engine.spark.type_text import type_text
from mergeplan.planner.errors import QueryError
from mergeplan.planner.model.model import Column
from mergeplan.planner.naming import quote_column

CATALYST = "org.apache.spark.sql.catalyst.optimizer"
EXCLUDED = ",".join(f"{CATALYST}.{rule}" for rule in ("PropagateEmptyRelation", "ConvertToLocalRelation"))
EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"
SETTINGS = {
    EXCLUDED_RULES: EXCLUDED,  # they fold the plan of an empty table away
    "spark.sql.debug.maxToStringFields": "100000",
    "spark.sql.optimizer.collapseProjectAlwaysInline": "true",  # an alias is what it stands for
    "spark.sql.optimizer.windowGroupLimitThreshold": "-1",  # it makes a filter by rank a node of its own
}
OTHER = "mergeplan_other"
LEAF = re.compile(r"[\s:+-]*LogicalRDD \[")  # the line that lists all columns of a table
# By these alone the optimizer finds the columns that a query reads, in a tenth of the time.
PRUNING = frozenset({
    "InlineCTE", "ColumnPruning", "CollapseProject", "RemoveNoopOperators", "PushProjectionThroughUnion",
    "GenerateOptimization", "UpdateAttributeNullability", "PushProjectionThroughLimitAndOffset",
})  # fmt: skip
SHORTENED = "more fields"  # in a plan that is not shown whole
TRIED = re.compile(r"\btry_", re.IGNORECASE)
ROWS = "LocalRelation ["  # of a relation with rows; one without shows `<empty>`
COLLATED = re.compile("collat", re.IGNORECASE)  # texts that are equal and not the same
CLOCK = re.compile(r"\b(current_|now\b|local|curdate|unix_timestamp)", re.IGNORECASE)
_SEEDED = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|\b(rand|random|randn|uuid)\s*\(\s*\)""",
    re.IGNORECASE | re.DOTALL,
)
_ONE_SIDED = re.compile(rf"\b\w*(?:{OLD}|{NEW})(?=#)")


class _Query:
    """The analysed plan of a query, and its columns with names in lower case."""

    def __init__(self, plan: Any) -> None:
        from pyspark.sql.types import StructType  # not before Spark runs

        self.plan = plan
        fields = StructType.fromJson(json.loads(plan.schema().json())).fields
        self.columns = tuple(Column(field.name.lower(), type_text(field.dataType)) for field in fields)


class PlanComparing:
    """A comparison of plans in a session of a Spark whose JVM is in reach; one at a time.

    The tables are RDDs without rows: Spark tells them apart, and does not know how many rows they have.
    """

    def __init__(self, spark: Any, settings: tuple[tuple[str, str], ...] = ()) -> None:
        self.settings = settings
        self._java = spark._jsparkSession
        self._jvm = spark._jvm
        self._no_rows = spark.sparkContext._jsc.emptyRDD().rdd()
        self._optimizer: Any = None
        # Each package on the way to a class costs a search of all jars.
        self._some = spark._jvm.scala.Some
        self._schema = spark._jvm.org.apache.spark.sql.types.StructType
        catalyst = spark._jvm.org.apache.spark.sql.catalyst
        self._with_texts = catalyst.util.CharVarcharUtils.replaceCharVarcharWithStringInSchema
        none = _scala_object(spark._jvm.scala, "None")
        self._new_tracker = partial(catalyst.QueryPlanningTracker, none)
        self._project, self._join = catalyst.plans.logical.Project, catalyst.plans.logical.Join
        self._join_options = _scala_object(catalyst.plans, "Cross"), none, catalyst.plans.logical.JoinHint.NONE()
        self._to_sequence = spark._jvm.org.apache.spark.api.python.PythonUtils.toSeq
        state = self._java.sessionState()
        self._catalog, self._parser, self._analyzer = state.catalog(), state.sqlParser(), state.analyzer()
        self._tried_views: frozenset[str] = frozenset()
        self._rules = RULES
        for key, value in settings:
            with suppress(Exception):  # what only a start can set shapes no plan, or the session was refused for it
                spark.conf.set(key, value)
        for key, value in SETTINGS.items():
            spark.conf.set(key, value)
        other = self._build_frame("x INT")
        self._other: Any = other.queryExecution().analyzed()
        other.createOrReplaceGlobalTempView(OTHER)
        self._view = self._catalog.getRawGlobalTempView(OTHER).get()
        self._metadata = self._view.tableMeta()
        self._catalog.dropGlobalTempView(OTHER)
        self._all_but_pruning = ",".join(self._list_rules() - {f"{CATALYST}.{rule}" for rule in PRUNING})

    def compare(self, analysis: Analysis) -> Iterator[PairResult]:
        """Yield Spark's verdict on each pair, in one thread, as Spark keeps the session by thread; raise QueryError."""
        names = list[str]()
        self._optimizer = self._java.sessionState().optimizer()
        # the views that call a function `try_...`, or read a view that does
        tried: set[str] = set()
        for view in analysis.views:
            if _is_tried(view.sql, tried):
                tried.add(view.name)
        self._tried_views = frozenset(tried)
        self._rules = tuple(rule for rule in RULES if rule != DISTINCT or not COLLATED.search(repr(analysis)))
        with self._as_active_session():
            try:
                broken = self._create_stand_ins(analysis, names)
                for pair in analysis.pairs:
                    yield self._judge_pair(pair, broken)
            finally:
                for name in names:
                    self._catalog.dropGlobalTempView(name)

    def _create_stand_ins(self, analysis: Analysis, names: list[str]) -> dict[str, str]:
        """Create tables and views, and add their names; return the error of each view that Spark refuses."""
        tables: dict[str, Any] = {}
        broken: dict[str, str] = {}
        texts = " ".join(view.sql for view in analysis.views if not view.table)
        texts += " ".join(text for pair in analysis.pairs for text in (pair.first, pair.second))
        for table in analysis.tables:
            named = (f"{quote_column(column.name)} {column.type}" for column in table.columns)
            schema = ", ".join((f"{table.name} INT", *named))  # a column that nothing reads identifies the table
            with _as_query_error(""):
                tables[table.name] = self._build_frame(schema).queryExecution().analyzed()
                if table.name in texts:
                    self._create_view(table.name, tables[table.name])
                    names.append(table.name)
        for view in analysis.views:
            try:
                with _as_query_error(view.sql):
                    self._create_view(view.name, self._plan_view(view, tables))
                names.append(view.name)
            except QueryError as error:  # the pairs that read it report it
                broken[view.name] = error.message
        return broken

    def _create_view(self, name: str, plan: Any) -> None:
        """Create a temporary view of an analysed plan, as Spark's command does, which itself is planned and run."""
        self._catalog.createGlobalTempView(name, self._view.copy(self._metadata, self._some(plan)), True)

    def _plan_view(self, view: TableView, tables: Mapping[str, Any]) -> Any:
        """Return the analysed plan of a view; of a whole table, all columns but the first, which identifies it."""
        if not view.table:
            return self._analyze_query(view.sql)
        return _as_analyzed(self._project(tables[view.table].output().tail(), tables[view.table]))

    def _list_rules(self) -> set[str]:
        optimizer = self._java.sessionState().optimizer()
        batches = optimizer.defaultBatches()
        rules = [batches.apply(index).rules() for index in range(batches.length())]
        return {str(batch.apply(index).ruleName()) for batch in rules for index in range(batch.length())}

    def _build_frame(self, schema: str) -> Any:
        fields = self._with_texts(self._schema.fromDDL(schema))  # a CHAR is a text that is padded
        return self._java.internalCreateDataFrame(self._no_rows, fields, False)

    def _analyze_query(self, sql: str) -> Any:
        """Return the analysed plan of a query; a text that is a command is refused, and nothing is run."""
        parsed = self._parser.parseQuery(_SEEDED.sub(_seed_call, sql).rstrip().rstrip(";"))
        return self._analyzer.executeAndCheck(parsed, self._new_tracker())

    def _judge_pair(self, pair: QueryPair, broken: dict[str, str]) -> PairResult:
        try:
            with _as_query_error(pair.second):
                second = _Query(self._analyze_query(pair.second))
                if pair.reads_decide and self._reads_shared_alone(second, pair):
                    return PairResult(True, second=second.columns)
            if not pair.first:
                return PairResult(second=second.columns)
            with _as_query_error(pair.first):
                first = _Query(self._analyze_query(pair.first))
            return self._compare_queries(first, second, pair)
        except QueryError as error:
            of_view = next((reason for name, reason in broken.items() if name in pair.first + pair.second), "")
            return PairResult(error=of_view or error.message)

    @contextmanager
    def _as_active_session(self) -> Iterator[None]:
        """Run a block under this session's settings, which the optimizer takes from the thread's active session."""
        sessions = self._jvm.org.apache.spark.sql.classic.SparkSession
        previous = sessions.getActiveSession()
        sessions.setActiveSession(self._java)
        try:
            yield
        finally:
            if previous.isDefined():
                sessions.setActiveSession(previous.get())
            else:
                sessions.clearActiveSession()

    def _reads_shared_alone(self, query: _Query, pair: QueryPair) -> bool:
        conf = self._java.sessionState().conf()
        conf.setConfString(EXCLUDED_RULES, self._all_but_pruning)
        try:
            plan = str(self._optimizer.execute(self._pick_columns(query, pair)).toString())
        finally:
            conf.setConfString(EXCLUDED_RULES, EXCLUDED)
        return SHORTENED not in plan and not _find_one_sided(plan)

    def _compare_queries(self, first: _Query, second: _Query, pair: QueryPair) -> PairResult:
        old, new = first.columns, second.columns
        sides = _output_types(old, pair.columns), _output_types(new, pair.columns)
        if None in sides or sides[0] != sides[1]:
            return PairResult(first=old, second=new)
        with _as_query_error(pair.second):
            analyzed = [self._prepare_plan(query, pair) for query in (first, second)]
            plans = [self._optimizer.execute(plan) for plan in analyzed]
            is_same = plans[0].sameResult(plans[1])
            if not is_same and CLOCK.search(pair.first) and CLOCK.search(pair.second):
                is_same = self._are_same_at_one_moment(analyzed)
            if is_same:
                return PairResult(True, old, new)
            if rules := self._find_rules(plans, pair):
                return PairResult(True, old, new, rules=rules)
        reads = [_find_one_sided(str(plan.toString())) for plan in plans]
        return PairResult(False, old, new, first_reads=reads[0], second_reads=reads[1])

    def _prepare_plan(self, query: _Query, pair: QueryPair) -> Any:
        """Return the plan of the outputs that count, joined, so that Spark removes a sorting that does not count."""
        plan = self._pick_columns(query, pair)
        return plan if pair.ordered else _as_analyzed(self._join(plan, self._other, *self._join_options))

    def _pick_columns(self, query: _Query, pair: QueryPair) -> Any:
        if pair.columns is None:
            return query.plan
        names, output = [column.name for column in query.columns], query.plan.output()
        if unclear := next((name for name in pair.columns if names.count(name) != 1), None):
            raise QueryError(f"The query returns {names.count(unclear)} columns named `{unclear}`.")
        picked = [output.apply(names.index(name)) for name in pair.columns]
        return _as_analyzed(self._project(self._to_sequence(picked), query.plan))

    def _find_rules(self, plans: Sequence[Any], pair: QueryPair) -> tuple[str, ...]:
        """Return our rules by which two plans are the same; () if there are none."""
        if pair.ordered and any("Sort [" in str(plan.toString()) for plan in plans):
            return ()
        if any(_is_tried(text, self._tried_views) for text in (pair.first, pair.second)):
            return ()  # Spark's JSON does not distinguish `try_sum` from `sum`
        if any(ROWS in text or TRIED.search(text) for text in (str(plan.toString()) for plan in plans)):
            return ()  # nor does it show the rows of a relation
        first, second = map(_read_plan, plans)
        return common_term(first, second, self._rules) or ()

    def _are_same_at_one_moment(self, plans: Sequence[Any]) -> bool:
        catalyst = self._jvm.org.apache.spark.sql.catalyst
        union = _scala_object(catalyst.plans.logical, "Union").apply(*plans)
        timed = _scala_object(catalyst.optimizer, "ComputeCurrentTime").apply(union).children()
        first, second = (self._optimizer.execute(timed.apply(index)) for index in (0, 1))
        return bool(first.sameResult(second))


@contextmanager
def _as_query_error(sql: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if not is_spark(error):
            raise
        raise translate_error(error, sql) from None


def _as_analyzed(plan: Any) -> Any:
    """Return a plan of parts that were analysed, so that Spark does not analyse it again."""
    plan.setAnalyzed()
    return plan


def _read_plan(plan: Any) -> PlanText:
    output = plan.output()
    return PlanText(str(plan.toJSON()), tuple(int(output.apply(i).exprId().id()) for i in range(output.length())))


def _is_tried(text: str, tried_views: Collection[str]) -> bool:
    return bool(TRIED.search(text)) or any(name in text for name in tried_views)


def _scala_object(package: Any, name: str) -> Any:
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def _seed_call(match: re.Match[str]) -> str:
    """Return the call with a seed: Spark takes another seed for each text."""
    return f"{match[1]}(0)" if match[1] else match[0]


def _output_types(columns: tuple[Column, ...], names: tuple[str, ...] | None) -> list[tuple[str, str]] | None:
    """Return the outputs that count, with their types; None if one of them is missing."""
    listed = [(column.name, column.type) for column in columns]
    if names is None:
        return listed
    by_name = dict(listed)
    return None if set(names) - by_name.keys() else [(name, by_name[name]) for name in names]


def _find_one_sided(plan: str) -> tuple[str, ...]:
    """Return the columns in a plan that only one side has, apart from the lists of a table's columns."""
    lines = [line for line in plan.splitlines() if not LEAF.match(line)]
    return tuple(sorted({name for line in lines for name in _ONE_SIDED.findall(line)}))
