"""Expensive parts of a physical plan: how tables are read and joined, what is shuffled, what runs in one task.

A plan with an unknown operator is not understood, and nothing about it is reported.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

from mergeplan.planner.checks.explained import Explained, NotUnderstood, Operator, parse_explain
from mergeplan.planner.model.table_format import FORMATS

Tables = tuple[str, ...]  # names of models, or of tables that no model has, sorted
T = TypeVar("T")


@dataclass(frozen=True)
class Known:
    model: str
    columns: frozenset[str] = frozenset()


# A table's name in lower case, without Spark's own catalog -> what is known of it; None for one that no model has.
KnownTables = Callable[[str], Known | None]


@dataclass(frozen=True)
class Scan:
    """The way in which a table is read.

    `is_pruned`: only the partitions that a filter chooses. `is_filtered`: only rows that any filter chooses. None if
    unknown. `columns` are those of the partitions that the filter names.
    """

    table: str
    is_pruned: bool | None = None
    is_filtered: bool | None = None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class PhysicalPlan:
    """The compared parts of a plan; the order of each does not matter."""

    scans: tuple[Scan, ...] = ()
    shuffles: tuple[tuple[str, ...], ...] = ()  # the columns of each
    broadcast: tuple[Tables, ...] = ()  # what is broadcast for a hash join
    shuffled: tuple[Tables, ...] = ()  # either side of a join for which both are shuffled
    cartesian: tuple[Tables, ...] = ()
    nested_loops: tuple[Tables, ...] = ()
    one_task: tuple[Tables, ...] = ()  # what a window brings into one task
    python: tuple[Tables, ...] = ()


_FILES = re.compile(r"Scan (?:parquet|orc|csv|json|text|avro)(?: (\S.*))?")
_BATCH = re.compile(r"BatchScan (\S+).*")
_ANY_SCAN = re.compile(r"(?:Batch)?Scan .*")
_JOIN = re.compile(
    r"(BroadcastHashJoin|SortMergeJoin|ShuffledHashJoin|BroadcastNestedLoopJoin|CartesianProduct)(?:\(skew=true\))? "
    r"(\S+)(?: (BuildLeft|BuildRight))?"
)
_WINDOWS = {"Window", "WindowInPandas", "ArrowWindowPython"}
_PYTHON = {
    "BatchEvalPython", "ArrowEvalPython", "MapInPandas", "MapInArrow", "FlatMapGroupsInPandas", "FlatMapGroupsInArrow",
    "FlatMapCoGroupsInPandas", "FlatMapCoGroupsInArrow", "AggregateInPandas", "ArrowAggregatePython",
    "BatchEvalPythonUDTF", "ArrowEvalPythonUDTF",
}  # fmt: skip
_ON_THE_WAY = {"Project", "Filter", "ColumnarToRow", "Sort", "WindowGroupLimit"}
_AGGREGATES = {"HashAggregate", "ObjectHashAggregate", "SortAggregate"}
_FEW_ROWS = {"LocalTableScan", "EmptyRelation", "Scan OneRowRelation"}
_LIMITS = {"GlobalLimit", "LocalLimit", "CollectLimit"}
_OTHERS = {
    "AdaptiveSparkPlan", "Exchange", "BroadcastExchange", "ReusedExchange", "Union", "Expand", "Generate", "Range",
    "TakeOrderedAndProject", "Sample", "Coalesce", "RowToColumnar", "MergingSessions", "UpdatingSessions",
}  # fmt: skip
_KNOWN = _WINDOWS | _PYTHON | _ON_THE_WAY | _AGGREGATES | _FEW_ROWS | _LIMITS | _OTHERS
_SHUFFLES = ("hashpartitioning(", "rangepartitioning(", "RoundRobinPartitioning(")
_ONE_PARTITION = "SinglePartition"
_ATTRIBUTE = re.compile(r"\b\w+#\d+")
_TRIVIAL = re.compile(r"isnotnull\(\w+#\d+\)|IsNotNull\([^(),]+\)|Subquery [\w-]+#\d+|IN dynamicpruning#\d+")
_SCAN_FILTERS = tuple(form.scan_filters for form in FORMATS.values() if form.scan_filters is not None)


def read_plan(text: str, known_tables: KnownTables) -> PhysicalPlan:
    """Return the expensive parts of an explained plan; raise NotUnderstood for an unknown operator."""
    return _Reading(parse_explain(text), known_tables).plan()


class _Reading:
    def __init__(self, plan: Explained, known_tables: KnownTables) -> None:
        self._plan, self._known = plan, known_tables
        self._steps = tuple(plan.steps())
        self._by_id = {step.id: step for step in self._steps}
        self._found: dict[int, frozenset[str]] = {}
        self._check_order()
        self._scans = {step.id: self._read_scan(step) for step in self._steps if _ANY_SCAN.fullmatch(step.name)}

    def plan(self) -> PhysicalPlan:
        """Return all compared parts; raise NotUnderstood for an unknown operator."""
        for step in self._steps:
            if not (step.name in _KNOWN or step.id in self._scans or _JOIN.fullmatch(step.name)):
                raise NotUnderstood(f"the operator `{step.name.split()[0]}`")
        loops = [(step, _join_condition(step)) for step in self._steps if self._is_loop(step)]
        single = {alone.id: alone for step in self._steps if (alone := _single_task_exchange(step))}
        return PhysicalPlan(
            scans=_sort_items(scan for scan in self._scans.values() if scan.table),
            shuffles=_sort_items(keys for step in self._steps if (keys := _shuffle_columns(step)) is not None),
            broadcast=self._tables_of_steps(side for step in self._steps for side in _broadcast_side(step)),
            shuffled=self._tables_of_steps(side for step in self._steps for side in _shuffle_sides(step)),
            cartesian=self._tables_of_steps(step for step, condition in loops if condition == "None"),
            nested_loops=self._tables_of_steps(step for step, condition in loops if condition != "None"),
            one_task=self._tables_of_steps(single.values()),
            python=self._tables_of_steps(step for step in self._steps if step.name in _PYTHON),
        )

    def _check_order(self) -> None:
        """Raise NotUnderstood if an operator takes rows from itself or two have one number."""
        sources = {s.id: [source.id for source in s.inputs] + ([s.reuses] if s.reuses else []) for s in self._steps}
        try:
            TopologicalSorter(sources).prepare()
        except CycleError:
            raise NotUnderstood("an operator that reads itself") from None
        if len(sources) < len(self._steps):
            raise NotUnderstood("two operators of one number")

    def _tables_of_steps(self, steps: Iterable[Operator]) -> tuple[Tables, ...]:
        return _sort_items(tuple(sorted(self._tables_below(step))) for step in steps)

    def _tables_below(self, step: Operator) -> frozenset[str]:
        step = self._original_step(step)
        if step.id not in self._found:  # a chain of reused exchanges has very many paths
            scanned_tables = {self._scans[step.id].table} - {""} if step.id in self._scans else set()
            self._found[step.id] = frozenset(scanned_tables).union(*map(self._tables_below, step.inputs))
        return self._found[step.id]

    def _original_step(self, step: Operator) -> Operator:
        """Return the operator, or for a reused exchange the one whose rows it has."""
        if step.reuses is None:
            return step
        if step.reuses not in self._by_id or self._by_id[step.reuses].reuses is not None:
            raise NotUnderstood("an exchange that is reused and not there")
        return self._by_id[step.reuses]

    def _is_loop(self, step: Operator) -> bool:
        """Return True for a join that compares each pair of rows, unless one side is a row or a few constants."""
        join = _JOIN.fullmatch(step.name)
        if join is None or join[1] not in ("BroadcastNestedLoopJoin", "CartesianProduct"):
            return False
        if _join_condition(step) == "None" and join[2].startswith(("LeftSemi", "LeftAnti", "ExistenceJoin")):
            return False  # one row of the other side is enough
        return not any(self._has_few_rows(side) for side in step.inputs)

    def _has_few_rows(self, side: Operator) -> bool:
        step = self._original_step(side)
        while step.name in _ON_THE_WAY | {"BroadcastExchange", "Exchange"} and len(step.inputs) == 1:
            step = self._original_step(step.inputs[0])
        if step.name in _AGGREGATES:
            return step.details.get("Keys") == "[]"
        return step.name in _FEW_ROWS or (step.name in _LIMITS and step.details.get("Arguments") in ("1", "1, 0"))

    def _read_scan(self, step: Operator) -> Scan:
        if match := _FILES.fullmatch(step.name):
            scanned_table = self._find_table(match[1] or "")
            return _file_scan(step, scanned_table)
        if match := _BATCH.fullmatch(step.name):
            return _batch_scan(step, self._find_table(match[1]), is_chosen=step.id in self._plan.runtime_pruned)
        return Scan("")

    def _find_table(self, name: str) -> Known:
        """Return the table by its name, or by that without the catalog, which names in the project's own lack."""
        shown = name.lower().replace("`", "").removeprefix("spark_catalog.")
        unknown = Known(shown if "." in shown else "")
        return self._known(shown) or self._known(shown.partition(".")[2]) or unknown


def _file_scan(step: Operator, table: Known) -> Scan:
    """Return the scan of files, of which Spark lists pushed filters, and those that choose partitions."""
    details = step.details
    if "Location" not in details:
        raise NotUnderstood("a scan without a location")
    chosen = _TRIVIAL.sub("", details.get("PartitionFilters", ""))
    named = {attribute.partition("#")[0].lower() for attribute in _ATTRIBUTE.findall(chosen)}
    pushed = _TRIVIAL.sub("", details.get("PushedFilters", ""))
    is_pruned = bool(named)
    columns = tuple(sorted(named & table.columns))
    return Scan(table.model, is_pruned, is_pruned or "(" in pushed, columns)


def _batch_scan(step: Operator, table: Known, *, is_chosen: bool) -> Scan:
    """Return the scan of a format, whose listed filters cover both partitions and files; of others nothing is known."""
    match = next((match for filters in _SCAN_FILTERS if (match := filters.search(step.text))), None)
    if match is None:
        return Scan(table.model)
    conjuncts = [conjunct for conjunct in match[1].split(", ") if conjunct and not conjunct.endswith(" IS NOT NULL")]
    if not table.columns:
        return Scan(table.model, None, bool(conjuncts) or is_chosen)
    named = {name for name in table.columns for conjunct in conjuncts if _is_column_filter(conjunct, name)}
    return Scan(table.model, bool(named) or is_chosen, bool(conjuncts) or is_chosen, tuple(sorted(named)))


def _is_column_filter(conjunct: str, column: str) -> bool:
    return conjunct.lower().startswith(f"{column} ") and " OR " not in conjunct


def _join_condition(step: Operator) -> str:
    condition = step.details.get("Join condition")
    if condition is None:
        raise NotUnderstood("a join without a stated condition")
    return condition


def _broadcast_side(step: Operator) -> tuple[Operator, ...]:
    join = _JOIN.fullmatch(step.name)
    if join is None or join[1] != "BroadcastHashJoin":
        return ()
    if len(step.inputs) != 2 or not join[3]:
        raise NotUnderstood("a join without two sides")
    return (step.inputs[join[3] == "BuildRight"],)


def _shuffle_sides(step: Operator) -> tuple[Operator, ...]:
    join = _JOIN.fullmatch(step.name)
    return step.inputs if join and join[1] in ("SortMergeJoin", "ShuffledHashJoin") else ()


def _shuffle_columns(step: Operator) -> tuple[str, ...] | None:
    """Return the columns by which rows are shuffled; None for any other operator, and if one task gets all rows."""
    if step.name != "Exchange":
        return None
    arguments, input_text = step.details.get("Arguments", ""), step.details.get("Input", "")
    if arguments.startswith(_ONE_PARTITION):
        return None
    if not arguments.startswith(_SHUFFLES):
        raise NotUnderstood("an exchange of another kind")
    named = set(_ATTRIBUTE.findall(arguments)) & set(_ATTRIBUTE.findall(input_text))
    return tuple(sorted({attribute.partition("#")[0] for attribute in named if not attribute.startswith("_")}))


def _single_task_exchange(step: Operator) -> Operator | None:
    if step.name not in _WINDOWS:
        return None
    while step.name in _ON_THE_WAY | _WINDOWS and len(step.inputs) == 1:
        step = step.inputs[0]
    alone = step.name == "Exchange" and step.details.get("Arguments", "").startswith(_ONE_PARTITION)
    return step if alone else None


def _sort_items(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(sorted(items, key=repr))
