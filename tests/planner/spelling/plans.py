"""Spark's analysed plans of queries, compared as Spark itself compares them, names of aliases aside."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import QueryError

_ERROR = re.compile(r"\[[A-Z_]+(?:\.[A-Z_]+)*\]")
_DETAILS = re.compile(r"try_cast\(|escape '.'|withwindowdefinition .*")
_NUMBERED = re.compile(r"#\d+L?")
_DRAWN = re.compile(r'"exprId":\{[^}]*\}|"id":\d+|"jvmId":"[^"]*"')


class Sameness(StrEnum):
    """How Spark comes to see two queries as one, or does not."""

    PARSED = "Spark's parser makes one tree of them"
    ANALYSED = "the analysed plans are equal"
    OPTIMISED = "Spark's optimizer makes equal plans of them"
    ROWS = "they return the same rows"
    OTHER = "they return other rows"
    REFUSED = "Spark refuses one of them"
    UNSETTLED = "their rows are other ones each time"


@dataclass(frozen=True)
class Parsed:
    """The tree of Spark's parser without the numbers that it draws. Its JSON lacks TRY_ of a cast, ESCAPE of LIKE and
    named windows, which the drawing has; both lack the rows of VALUES."""

    json: str
    drawing: str

    @property
    def is_complete(self) -> bool:
        """True if everything that the text says is in the tree."""
        return '.LocalRelation"' not in self.json and " more fields" not in self.drawing

    @property
    def details(self) -> tuple[str, ...]:
        """What the drawing has and the JSON lacks, in any order."""
        return tuple(sorted(_DETAILS.findall(self.drawing.lower())))


@dataclass
class Plans:
    """The plans of queries over the tables of one session."""

    engine: SparkEngine
    _known: dict[str, Any] = field(default_factory=dict)

    def plan(self, sql: str) -> Any | None:
        """The `QueryExecution` of a query; None for one that Spark refuses."""
        if sql not in self._known:
            if len(self._known) > 500:
                self._known.clear()
            self._known[sql] = self._analyse(sql)
        return self._known[sql]

    def parse(self, sql: str) -> Parsed | None:
        """The tree that Spark's parser makes of a text; None for one that it refuses."""
        from pyspark.errors import PySparkException

        session: Any = self.engine._sessions.shared.spark  # type: ignore[union-attr]
        try:
            tree = session._jsparkSession.sessionState().sqlParser().parsePlan(sql)
        except PySparkException:
            return None
        return Parsed(_DRAWN.sub('"drawn":0', str(tree.toJSON())), _NUMBERED.sub("#", str(tree.toString())))

    def forget(self) -> None:
        """Forget all plans: the tables are other ones now."""
        self._known.clear()

    def compare(self, one: str, other: str) -> Sameness:
        """How two queries are one, by the first way that shows it."""
        first, second = self.plan(one), self.plan(other)
        if first is None or second is None:
            return Sameness.REFUSED
        if _columns(first) == _columns(second):
            if first.analyzed().sameResult(second.analyzed()):
                return Sameness.ANALYSED
            if self._is_same_optimised(first, second):
                return Sameness.OPTIMISED
        return Sameness.ROWS if self.rows(one) == self.rows(other) else Sameness.OTHER

    def is_settled(self, sql: str) -> bool:
        """True unless a query's plan, or its result, is another one each time (`rand()`, `current_timestamp()`)."""
        first, second = self.plan(sql), self._analyse(sql)
        if first is None or second is None:
            return False
        # analysed, each CTE has a number of its own, which the optimizer takes away
        return bool(first.analyzed().sameResult(second.analyzed())) or self._is_same_optimised(first, second)

    def rows(self, sql: str) -> tuple[str, ...] | str:
        """The columns and sorted rows of a query as text; the kind of Spark's error where it fails."""
        plan = self.plan(sql)
        row = "to_json(struct(*), map('ignoreNullFields', 'false'))"
        try:
            rows = self.engine.fetch(f"SELECT {row} AS row FROM ({sql})").rows
        except QueryError as error:
            kind = _ERROR.search(str(error))
            return kind[0] if kind else str(error).partition("\n")[0]
        lowered = (json.dumps({k.lower(): v for k, v in json.loads(str(text)).items()}) for (text,) in rows)
        return (str(_columns(plan)), *sorted(lowered))

    def _analyse(self, sql: str) -> Any | None:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        session: Any = self.engine._sessions.shared.spark  # type: ignore[union-attr]
        try:
            return session.sql(sql)._jdf.queryExecution()
        except (PySparkException, Py4JJavaError):  # its analyzer has errors of its own
            return None

    @staticmethod
    def _is_same_optimised(first: Any, second: Any) -> bool:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            return bool(first.optimizedPlan().sameResult(second.optimizedPlan()))
        except (PySparkException, Py4JJavaError):  # the optimizer computes constants, and may meet one that fails
            return False


def _columns(plan: Any) -> list[tuple[str, str]]:
    """The names of a plan's columns in lower case, and their types, in which the case of a field counts."""
    fields = plan.analyzed().schema().fields()
    return [(str(field.name()).lower(), str(field.dataType().catalogString())) for field in fields]
