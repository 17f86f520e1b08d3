"""A user's function whose name sqlglot has as a function of another system."""

import pytest
from sqlglot import exp, parse_one
from sqlglot.dialects.spark import Spark

from mergeplan.planner.parsing.sql.spark_registry import CLOSED, OPEN
from mergeplan.planner.semantics.spark.spark_functions import FOREIGN, is_volatile

NEITHER = {"Func", "AggFunc", "Secret"}  # two base classes, and a function that only Databricks has


@pytest.mark.parametrize("call", ["normalize(a)", "encrypt(a, b)", "host(a)", "ai_classify(a, b)", "secret('a', 'b')"])
def test_nothing_is_assumed_about_a_function_that_spark_does_not_have(call: str) -> None:
    assert is_volatile(parse_one(call, dialect="spark"))


def test_each_type_that_sqlglot_writes_under_a_name_of_no_function_of_spark_is_listed() -> None:
    generator, spark = Spark.Generator, OPEN | CLOSED
    types: list[type[exp.Func]] = [
        kind
        for name, kind in vars(exp).items()
        if isinstance(kind, type) and issubclass(kind, exp.Func) and name not in NEITHER
    ]
    kept = [kind for kind in types if kind not in generator.TRANSFORMS and not hasattr(generator, f"{kind.key}_sql")]
    foreign = {kind.__name__ for kind in kept if spark.isdisjoint(name.lower() for name in kind.sql_names())}

    assert foreign == FOREIGN - NEITHER
