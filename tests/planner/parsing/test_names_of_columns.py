"""A column's name is read once: every property of MODEL that takes one has it as it is, whatever characters it has."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mergeplan.planner.model.model import Model
from mergeplan.planner.naming import ColumnName, field_names, quote_column
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.parsing.sql.spark_text import spark_text
from mergeplan.planner.semantics.audited_keys import parse_columns
from mergeplan.planner.semantics.spark.spark_sql import tree_of

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="@\0"), min_size=1)
HEADER = """name s.m, grain ({n}), references ({n}), clustered_by ({n}), partitioned_by ({n}, bucket(4, {n})),
  columns ({n} STRUCT<{n}: INT, a: ARRAY<STRUCT<{n}: INT>>>), column_descriptions ({n} = 'x'),
  audits (not_null(columns := ({n})))"""
DEFAULTS = Defaults(datetime(2026, 1, 8, tzinfo=UTC))
KINDS = {
    "FULL": "",
    "INCREMENTAL_BY_TIME_RANGE": "time_column {n}",
    "INCREMENTAL_BY_UNIQUE_KEY": """unique_key ({n}, {n} || ''), merge_filter source.{n} = 1,
        when_matched (WHEN MATCHED THEN UPDATE SET target.{n} = source.{n})""",
    "INCREMENTAL_BY_PARTITION": "",
    "SCD_TYPE_2_BY_TIME": "unique_key {n}, updated_at_name {n}, valid_from_name {n}, valid_to_name `another name`",
    "SCD_TYPE_2_BY_COLUMN": "unique_key {n}, columns [{n}], valid_from_name `one name`, valid_to_name {n}",
}


def parse(kind: str, name: str) -> Model:
    """A model of the kind with the name in every property."""
    inside = KINDS[kind].format(n=quote_column(name))
    header = HEADER.format(n=quote_column(name))
    query = f"SELECT 1 AS {quote_column(name)}" if "SCD" not in kind else "SELECT 1 AS `third name`"
    model, _ = parse_model(f"MODEL ({header}, kind {kind} ({inside}));\n{query}", "models/m.sql", DEFAULTS)
    assert model is not None
    return model


def names_of(model: Model) -> set[str | None]:
    """Every name that a model's settings have."""
    history = model.history
    keys = (*model.by_key.unique_key[:1], *model.storage.partitioned_by[:1])
    names = {
        *model.metadata.grain,
        *model.storage.clustered_by,
        *map(ColumnName.parse, keys),
        model.by_time.time_column,
    }
    names |= {column for column, _ in model.metadata.column_descriptions} | {
        *parse_columns(model.checks.audits[0].arguments[0][1])
    }
    names |= {history.updated_at, history.valid_from, history.valid_to, *history.columns} if history else set()
    names |= {column.name for column in model.columns}
    return names - {"", "one name", "another name"}


@settings(max_examples=100)
@given(TEXTS)
@example("a-b")
@example("a.b")
@example("c d")
@example("select")
@example("x`y")
@example("Ünï")
@example("n" * 200)
@example("UPPER")
@example("a - b")
@example("f(x)")
@example("`")
@example("İ")
def test_every_property_has_the_name(name: str) -> None:
    for kind in KINDS:
        model = parse(kind, name)

        assert names_of(model) == {name.lower()}
        assert {*field_names(model.columns[0].type)} == {name, "a"} if model.columns else True


@given(TEXTS)
def test_a_name_among_expressions_is_read_back(name: str) -> None:
    assert ColumnName.parse(ColumnName(name).key) == name.lower()


def test_how_a_key_is_written_says_what_it_is() -> None:
    keys = "unique_key (`a-b`, a-b, id, COALESCE(a, b), 'c-d', current_date())"
    model, _ = parse_model(
        f"MODEL (name s.m, kind INCREMENTAL_BY_UNIQUE_KEY ({keys})); SELECT 1 AS a", "m.sql", DEFAULTS
    )

    assert model is not None
    assert model.by_key.unique_key == ("`a-b`", "a - b", "id", "COALESCE(a, b)", "`c-d`", "(CURRENT_DATE)")


@pytest.mark.parametrize("word", ["select", "NOT", "from", "order", "a-b"])
def test_a_field_of_a_struct_has_any_name(word: str) -> None:
    query = f"SELECT 1 AS z, NAMED_STRUCT('{word}', NAMED_STRUCT('{word}', 1)) AS s"
    kind = "SCD_TYPE_2_BY_COLUMN (unique_key z, columns [s])"  # which reads the written query again
    model, _ = parse_model(f"MODEL (name s.m, kind {kind});\n{query}", "models/m.sql", DEFAULTS)

    assert model is not None
    assert spark_text(tree_of(model.sql)) == model.sql
