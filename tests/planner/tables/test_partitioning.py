"""Parts of `partitioned_by`: how they are written says what they are, also as earlier versions kept them."""

from __future__ import annotations

from typing import Any

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import ProjectError, QueryError
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column
from mergeplan.planner.model.table_order import HIVE_MAX
from mergeplan.planner.plan.category.categorize import is_edited
from mergeplan.planner.snapshot.meaning import Meaning
from mergeplan.planner.snapshot.snapshot import version_of
from mergeplan.planner.tables.partitioning import NULL_FOLDER, parts_of
from tests.planner.building import model

COLUMNS = tuple(Column(name, "int") for name in ("a", "b", "a-b", "a - b", "c d", "a,b", "n" * 200, "v"))


def partitions(*parts: str, **fields: Any) -> list[str]:
    made = model("s.m", "SELECT 1 AS a", partitioned_by=parts, **fields)
    return [part.expression if part.hidden else part.column for part in parts_of(made, COLUMNS)]


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ("a", "a"),
        ("`a-b`", "a-b"),
        ("`a - b`", "a - b"),
        ("a-b", "a-b"),  # as earlier versions kept it
        ("c d", "c d"),
        ("a - b", "if(cast(a - b as string) = '', '(empty)', cast(a - b as string))"),
    ],
)
def test_a_name_is_a_column_and_an_expression_is_computed(part: str, shown: str) -> None:
    assert partitions(part) == [shown]


def test_a_transform_takes_any_name() -> None:
    assert partitions("bucket(4, `a,b`)", "truncate(`a - b`, 3)") == [
        f"if(cast({text} as string) = '', '(empty)', cast({text} as string))"
        for text in ("pmod(hash(`a,b`), 4)", "`a - b` - pmod(`a - b`, 3)")
    ]
    with pytest.raises(ProjectError, match="takes a number and a column"):
        partitions("bucket(4, a - b)")


def test_a_name_that_no_folder_can_bear_is_partitioned_by_through_a_hidden_column() -> None:
    name = "n" * 200

    assert partitions(name) != [name]
    assert partitions(name, table_format="delta") == [name]
    assert len(name) > HIVE_MAX


@pytest.mark.parametrize("text", ["", NULL_FOLDER])
def test_a_text_that_spark_reads_back_as_null_is_refused(text: str, engine: SparkEngine) -> None:
    made = model("s.m", "SELECT 1 AS a", partitioned_by=("name",))
    (part,) = parts_of(made, (Column("name", "string"), Column("v", "int")))
    query = f"SELECT {part.expression} FROM VALUES ('{{}}') AS t(name)"

    assert engine.fetch(query.format("a")).rows == (("a",),)
    with pytest.raises(QueryError, match="read it back as NULL"):
        engine.fetch(query.format(text))


def test_a_hyphen_changes_no_fingerprint_of_an_earlier_version() -> None:
    for kind in (Kind.FULL, Kind.INCREMENTAL_BY_PARTITION):
        old, new, other = (
            model("s.m", "SELECT 1 AS a", kind, partitioned_by=(part,)) for part in ("a-b", "`a-b`", "a - b")
        )
        versions = [version_of(made, Meaning("rows", ()), {}) for made in (old, new, other)]

        assert not is_edited(old, new)
        assert is_edited(new, other)
        assert versions[0] == versions[1] != versions[2]
