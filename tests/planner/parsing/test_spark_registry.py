"""Every function of Spark's registry has a judgement, and one that nobody has judged is closed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlglot.dialects.dialect import Dialect

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.parsing.sql.function_calls import find_refused_call
from mergeplan.planner.parsing.sql.spark_registry import (
    CLOSED,
    JAVA,
    OPEN,
    OPERATORS,
    OPTIONS,
    PLAIN,
    SHOWING,
    function_refusal,
    spark_name,
)
from mergeplan.planner.semantics.spark.spark_sql import FAILURES, spark_text_of, tree_of

REGISTRIES = "FunctionRegistry$", "TableFunctionRegistry$"


def spark_functions(engine: SparkEngine) -> Iterator[str]:
    """The functions of the installed Spark: shown ones, those of tables, and those for Spark's own libraries."""
    yield from (spark_name(str(name).lower()) for (name,) in engine.fetch("SHOW ALL FUNCTIONS").rows)
    analysis = engine._shared.spark._jvm.org.apache.spark.sql.catalyst.analysis  # type: ignore[attr-defined]
    for registry in REGISTRIES:
        module = getattr(getattr(analysis, registry), "MODULE$")
        listed = [module.builtin(), *([module.internal()] if registry == REGISTRIES[0] else [])]
        for functions in (function_registry.listFunction().iterator() for function_registry in listed):
            while functions.hasNext():
                yield spark_name(functions.next().unquotedString().lower())


def test_every_function_of_the_installed_spark_has_a_judgement(engine: SparkEngine) -> None:
    names = set(spark_functions(engine)) - {"case"}

    assert len(names) > 500
    assert names - OPEN - CLOSED - JAVA == set()
    assert {"xpath", "python_worker_logs", "from_avro", "reflect"} <= names - OPEN


def test_no_function_has_two_judgements() -> None:
    assert OPEN.isdisjoint(CLOSED | JAVA)
    assert PLAIN.isdisjoint(SHOWING)


@pytest.mark.parametrize(
    "name", ["nobody_knows", "shop.upper", "reflect", "builtin.reflect", "system.builtin.xpath", "xpath\u200b", ""]
)
def test_a_function_that_is_not_judged_open_is_closed(name: str) -> None:
    assert function_refusal(name) is not None


def test_the_operator_opens_by_name_what_reads_files_and_nothing_opens_java() -> None:
    assert function_refusal("from_avro", {"from_avro"}) is None
    assert function_refusal("shop.mask", {"shop.*"}) is None
    for name, allowed in (("from_avro", "from_*"), ("reflect", "reflect"), ("identifier", "identifier"), ("f", "g*")):
        assert function_refusal(name, {allowed}) is not None


def test_no_function_of_spark_is_written_as_one_that_is_not() -> None:
    """The parser knows a function by a name of its own, and may write another one."""
    wrong = []
    for name in sorted(OPEN - OPERATORS - OPTIONS.keys() - {"cast", "try_cast"}):
        for arguments in ("", "a", "a, b", "a, b, c", "a, 'b'", "a, b, c, d"):
            sql = f"SELECT {name}({arguments}) FROM t"
            try:
                text = spark_text_of(tree := tree_of(sql))
            except FAILURES:
                continue  # it is refused
            if refused := find_refused_call(Dialect.get_or_raise("spark").tokenize(text), tree, ()):
                wrong.append((sql, text, refused.message))

    assert wrong == []


def test_a_refusal_names_the_nearest_function() -> None:
    assert "Did you mean `array_contains`?" in " ".join(function_refusal("array_contain") or ())
