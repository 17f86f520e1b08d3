"""Two queries over tables without rows, for Spark's own analyzer to compare: nothing of them is run."""

from dataclasses import dataclass

from mergeplan.planner.model.model import Column

SCHEMA = "global_temp"  # the schema of the stand-ins, which are temporary views
PAIR_SECONDS = 60.0  # for the comparison of one pair
TOO_SLOW = f"Spark did not compare its plans within {PAIR_SECONDS:.0f} seconds"
OLD, NEW = "__as_before", "__as_planned"  # how the names end of an empty table's columns that one side alone reads


@dataclass(frozen=True)
class EmptyTable:
    """A table without rows, in place of one that a query reads, by its name in `SCHEMA`."""

    name: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class TableView:
    """A table as one side of a comparison reads it: a query over empty tables and earlier views."""

    name: str
    sql: str
    table: str = ""  # the empty table that the query returns whole


@dataclass(frozen=True)
class QueryPair:
    """Two queries to compare.

    `columns` are the output columns to compare; None means all of them, in their order. Without `first`, only the
    columns of `second` are requested. With `ordered`, the order of the rows counts too. With `reads_decide`, both are
    one query if `second` reads no column that one side alone has.
    """

    first: str
    second: str
    columns: tuple[str, ...] | None = None
    ordered: bool = False
    reads_decide: bool = False


@dataclass(frozen=True)
class Analysis:
    """The queries to compare, with the tables and views that they read.

    A view reads only tables and the views before it. `settings` are those of the session that runs the queries, if the
    comparing session has others.
    """

    tables: tuple[EmptyTable, ...]
    views: tuple[TableView, ...]
    pairs: tuple[QueryPair, ...]
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def patience(self) -> float:
        """The seconds to wait for a result; the first one comes after all tables and views are created."""
        return PAIR_SECONDS + (len(self.tables) + len(self.views)) / 5


@dataclass(frozen=True)
class PairResult:
    """The verdict of Spark's analyzer on two queries.

    `error` is Spark's reason if it refuses a query. Otherwise `same` says that both plans are one. `first_reads` and
    `second_reads` name the columns of empty tables that each plan reads and that only one side has. `unknown` is the
    reason if there is no verdict. `gave_up` is the reason if the comparison was ended because it cost too much.
    """

    same: bool = False
    first: tuple[Column, ...] = ()
    second: tuple[Column, ...] = ()
    error: str = ""
    first_reads: tuple[str, ...] = ()
    second_reads: tuple[str, ...] = ()
    unknown: str = ""
    gave_up: str = ""
    rules: tuple[str, ...] = ()  # by which the plans are the same, where Spark's own comparison finds them to differ
