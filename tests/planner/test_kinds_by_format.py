"""Each kind on each format: what a table holds after a first plan and after the run of the next day, by hand."""

from __future__ import annotations

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.state.store import StateStore
from tests.conftest import FORMAT, empty
from tests.planner.daily import Daily

pytestmark = pytest.mark.prove

FIRST = ("1, 'a', date'2026-01-01'", "2, 'b', date'2026-01-01'")
THEN = ("1, 'A', date'2026-01-02'", "3, 'c', date'2026-01-02'")
STRETCH = "SELECT id, name, at FROM raw.items WHERE at BETWEEN @start_date AND @end_date"
EACH = "SELECT id, name, at FROM raw.items"
A, B, C = (1, "a", "01-01"), (2, "b", "01-01"), (3, "c", "01-02")
NEW = (1, "A", "01-02")

CASES = {
    "FULL": ("FULL", EACH, [A, B], [NEW, C]),
    "INCREMENTAL_BY_TIME_RANGE": ("INCREMENTAL_BY_TIME_RANGE (time_column at)", STRETCH, [A, B], [NEW, A, B, C]),
    "INCREMENTAL_BY_UNIQUE_KEY": ("INCREMENTAL_BY_UNIQUE_KEY (unique_key id)", STRETCH, [A, B], [NEW, B, C]),
    "INCREMENTAL_BY_PARTITION": ("INCREMENTAL_BY_PARTITION, partitioned_by (id)", EACH, [A, B], [NEW, B, C]),
    "INCREMENTAL_UNMANAGED": ("INCREMENTAL_UNMANAGED", EACH, [A, B], [NEW, A, B, C]),
    "SCD_TYPE_2_BY_TIME": (
        "SCD_TYPE_2_BY_TIME (unique_key id, updated_at_name at, invalidate_hard_deletes true)",
        EACH,
        [(*A, "ever", None), (*B, "ever", None)],
        [
            (*NEW, "01-02 00", None),
            (*A, "ever", "01-02 00"),
            (*B, "ever", "01-03 05"),
            (*C, "ever", None),
        ],
    ),
    "SCD_TYPE_2_BY_COLUMN": (
        "SCD_TYPE_2_BY_COLUMN (unique_key id, columns [name])",
        EACH,
        [(*A, "ever", None), (*B, "ever", None)],
        [
            (*NEW, "01-03 05", None),
            (*A, "ever", "01-03 05"),
            (*B, "ever", None),
            (*C, "01-03 05", None),
        ],
    ),
}  # name -> kind, query, rows after the first plan, rows after the next day's run


Found = dict[str, list[list[tuple[object, ...]]]]


@pytest.fixture(scope="module", params=[FORMAT] if FORMAT else ["parquet", "orc"])
def tables_by_kind(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, shared_engine: SparkEngine
) -> Found:
    """Kind -> what its table holds after the first plan and after the second day, all filled side by side."""
    folder = tmp_path_factory.mktemp("kinds")
    store = StateStore(f"sqlite:///{folder}/state.db")
    daily = Daily(folder / "shop", shared_engine, store)
    key = "table_format" if FORMAT else "storage_format"
    models = [
        f"MODEL (name shop.{name.lower()}, kind {kind}, {key} {request.param});\n{query}"
        for name, (kind, query, _, _) in CASES.items()
    ]
    held: Found = {name: [] for name in CASES}
    for on, rows in (("2026-01-02", FIRST), ("2026-01-03", THEN)):
        daily.has(*rows)
        daily.run(on, *models)
        for name in CASES:
            # by name: a column that names folders is the last one of a table of plain files
            columns = "id, name, at" + (", valid_from, valid_to" if name.startswith("SCD") else "")
            held[name].append(daily.rows(f"shop.{name.lower()}", columns))
    store.close()
    empty(shared_engine)
    return held


@pytest.mark.parametrize("case", CASES)
def test_a_kind_holds_what_it_should(case: str, tables_by_kind: Found) -> None:
    _, _, first, then = CASES[case]

    assert tables_by_kind[case] == [first, then]
