"""A column may have any name, in every property that takes one, of every kind: its rows are those of a plain name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.model.table_format import FORMATS
from mergeplan.planner.naming import quote_column
from mergeplan.planner.state.store import StateStore
from tests.conftest import FORMAT, empty
from tests.planner.daily import Daily

Rows = dict[str, list[list[tuple[object, ...]]]]
CASES = int(os.environ.get("MERGEPLAN_CASES", "300")) // 100
PLAIN = "plain"
# Beside columns a, b, x, y and c, which an expression would mean.
NAMES = [
    "a-b",
    "x`.y", "a.b", "x`y", "a - b", "c d", "select", "Ünï", "n" * 200, "UPPER", "it's", 'say "x"', "order",
    "current_date", "1", "f(a)", "a,b", "a/b=c%d",
]  # fmt: skip
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="@"), min_size=1, max_size=12
)
KINDS = {
    "FULL": "FULL, clustered_by ({k}), partitioned_by ({p})",
    "VIEW": "VIEW",
    "EMBEDDED": "EMBEDDED",
    "BY_TIME": "INCREMENTAL_BY_TIME_RANGE (time_column {t}), partitioned_by ({p}, bucket(2, {k}), days({t}))",
    "BY_KEY": "INCREMENTAL_BY_UNIQUE_KEY (unique_key {k}), clustered_by ({k}, {v})",
    "BY_KEY_SET": """INCREMENTAL_BY_UNIQUE_KEY (unique_key ({k}, COALESCE({p}, '')), merge_filter source.{k} > 0,
        when_matched (WHEN MATCHED AND source.{v} <> 'x' THEN UPDATE SET target.{v} = source.{v}))""",
    "BY_KEY_ANEW": "INCREMENTAL_BY_UNIQUE_KEY (unique_key ({k}), delete_insert true)",
    "BY_PARTITION": "INCREMENTAL_BY_PARTITION, partitioned_by ({p})",
    "UNMANAGED": "INCREMENTAL_UNMANAGED, partitioned_by ({p})",
    "HISTORY_BY_TIME": """SCD_TYPE_2_BY_TIME (unique_key {k}, updated_at_name {t}, valid_from_name {f},
        valid_to_name {e})""",
    "HISTORY_BY_COLUMN": """SCD_TYPE_2_BY_COLUMN (unique_key ({k}), columns [{v}], valid_from_name {f},
        valid_to_name {e}, invalidate_hard_deletes true)""",
}  # fmt: skip
SAID = """grain ({k}), references ({k}), column_descriptions ({k} = 'the key'),
  audits (not_null(columns := ({k}, {p})), unique_combination_of_columns(columns := ({k}, {t})),
    unique_values(columns := ({k}, {v}), blocking := false), accepted_range(column := {k}, min_v := 1))"""
QUERY = """SELECT id AS {k}, name AS {v}, name AS {p}, at AS {t}, {nested} AS {s}, id AS a, id AS b, 1 AS x, 1 AS y,
  1 AS c FROM raw.items"""
DAYS = (
    ("2026-01-02", ("100, 'u', date'2026-01-01'", "200, 'v', date'2026-01-01'")),
    ("2026-01-03", ("100, 'U', date'2026-01-02'", "300, 'w', date'2026-01-02'")),
)


def model_text(kind: str, name: str) -> str:
    """A model of the kind all of whose columns are called after the name, beside plain ones."""
    quoted = {role: quote_column(f"{name}{role}" if role != "k" else name) for role in "kptvsfe"}
    literal = f"{name}".replace("\\", "\\\\").replace("'", "\\'")
    nested = f"NAMED_STRUCT('{literal}', NAMED_STRUCT('{literal}', id))" if FORMAT != "iceberg" else "id"
    where = " WHERE at BETWEEN @start_date AND @end_date" if KINDS[kind].startswith("INCREMENTAL") else ""
    header = f"name shop.{kind.lower()}, kind {KINDS[kind]}, {SAID}".format(**quoted)
    return f"MODEL ({header});\n{QUERY.format(**quoted, nested=nested)}{where}"


def rows_of(name: str, folder: Path, engine: SparkEngine) -> Rows:
    """Kind -> what its table holds after the first day and after the second."""
    store = StateStore(f"sqlite:///{folder}/state.db")
    daily = Daily(folder / "shop", engine, store)
    held: Rows = {kind: [] for kind in KINDS if kind != "EMBEDDED"}
    texts = [model_text(kind, name) for kind in KINDS]
    texts.append(f"MODEL (name shop.reader, kind FULL); SELECT {quote_column(name)} AS id FROM shop.embedded")
    for on, rows in DAYS:
        daily.has(*rows)
        daily.run(on, *texts)
        for kind in held:
            held[kind].append(daily.rows(f"shop.{kind.lower()}"))
    store.close()
    empty(engine)
    return held


@pytest.fixture(scope="module")
def plain_rows(tmp_path_factory: pytest.TempPathFactory, shared_engine: SparkEngine) -> Iterator[Rows]:
    """The rows of the same models with names that are words."""
    yield rows_of(PLAIN, tmp_path_factory.mktemp(PLAIN), shared_engine)


def can_have(name: str) -> bool:
    """True for a name that the format of these tests can have."""
    return not FORMAT or FORMATS[FORMAT].can_have(name, ())


@pytest.mark.prove
@pytest.mark.parametrize("name", list(filter(can_have, NAMES)))
def test_rows_do_not_depend_on_how_columns_are_called(
    name: str, tmp_path: Path, engine: SparkEngine, plain_rows: Rows
) -> None:
    assert rows_of(name, tmp_path, engine) == plain_rows


@pytest.mark.prove
@settings(max_examples=CASES)
@given(TEXTS.filter(can_have))
def test_rows_do_not_depend_on_any_name(
    tmp_path_factory: pytest.TempPathFactory, shared_engine: SparkEngine, plain_rows: Rows, name: str
) -> None:
    assert rows_of(name, tmp_path_factory.mktemp("any"), shared_engine) == plain_rows
