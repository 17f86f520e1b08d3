"""Unit tests run a model on given rows; what differs is shown, what is wrong is told with its line."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mergeplan.planner.apply.unit_tests import run_unit_tests
from mergeplan.planner.checks.diff.rows import canonical_text, compare_rows
from mergeplan.planner.checks.freezing import ctes_of, frozen_text
from mergeplan.planner.checks.inlining import render_rows
from mergeplan.planner.checks.unit_test_result import TestResult
from mergeplan.planner.engine.protocol import Engine, Rows, ViewText
from mergeplan.planner.errors import ProjectErrors
from mergeplan.planner.project.loader import load_project
from tests.planner.project.test_loader import project_of

NOW = datetime(2024, 5, 6, 7, 8, tzinfo=UTC)
ORDERS = "MODEL (name shop.orders, kind FULL);\nSELECT CAST(id AS INT) AS id, price, d FROM raw.lines"
LINES = "- name: raw.lines\n  columns: {id: int, price: 'decimal(10,2)', d: date}\n"
TOTAL = "MODEL (name shop.total, kind FULL);\nSELECT d, SUM(price) AS total FROM shop.orders GROUP BY d"


def results(engine: Engine, root: Path, test: str, **models: str) -> tuple[TestResult, ...]:
    files = {"external_models.yaml": LINES, "models/orders.sql": ORDERS, "models/total.sql": TOTAL}
    files |= {f"models/{name}.sql": text for name, text in models.items()}
    project = load_project(project_of(root, {**files, "tests/test.yaml": test}), NOW)
    return run_unit_tests(engine, project, project.tests)


def only(outcomes: tuple[TestResult, ...]) -> TestResult:
    (result,) = outcomes
    return result


def test_a_right_test_passes_whatever_the_order_and_the_spelling(engine: Engine, tmp_path: Path) -> None:
    test = """
right:
  model: shop.total
  inputs:
    shop.orders:
    - {price: 1.5, d: 2020-01-01}
    - {price: 2, d: 2020-01-02}
    - {price: '2.5', d: 2020-01-01}
    - {price: 1}
  outputs:
    query:
    - {d: 2020-01-02, total: 2}
    - {total: 1.00}
    - {d: '2020-01-01', total: 4.0}
"""

    assert only(results(engine, tmp_path, test)).message == ""


def test_a_wrong_row_is_shown_beside_the_one_most_like_it(engine: Engine, tmp_path: Path) -> None:
    test = """
wrong:
  model: shop.total
  inputs: {shop.orders: [{price: 3, d: 2020-01-01}, {price: 4, d: 2020-01-02}]}
  outputs: {query: {rows: [{d: 2020-01-01, total: 5}, {d: 2021-01-01, total: 9}]}}
"""
    result = only(results(engine, tmp_path, test))

    assert not result.ok
    assert result.message.split("\n") == [
        "Output `query` differs:",
        "  total: expected 5, got 3.00 (where d=2020-01-01)",
        "  missing: d=2021-01-01, total=9",
        "  unexpected: d=2020-01-02, total=4.00",
    ]


def test_inputs_have_the_types_of_the_parents_own_query(engine: Engine, tmp_path: Path) -> None:
    kinds = "MODEL (name shop.kinds);\nSELECT TYPEOF(id) AS i, TYPEOF(price) AS p, TYPEOF(d) AS d FROM shop.orders"
    test = """
typed:
  model: shop.kinds
  inputs: {shop.orders: [{id: '1', price: 2, d: '2020-01-01'}]}
  outputs: {query: [{i: int, p: 'decimal(10,2)', d: date}]}
"""

    assert only(results(engine, tmp_path, test, kinds=kinds)).message == ""


def test_declared_columns_and_queries_give_inputs_too(engine: Engine, tmp_path: Path) -> None:
    both = "MODEL (name shop.both);\nSELECT TYPEOF(a.x) AS t, a.x + b.y AS n FROM new.a AS a JOIN new.b AS b ON TRUE"
    test = """
both:
  model: shop.both
  inputs:
    new.a: {columns: {x: smallint}, rows: [{x: 1}]}
    new.b: {query: SELECT 2 AS y UNION ALL SELECT 3}
  outputs: {query: [{t: smallint, n: 3}, {t: smallint, n: 4}]}
"""

    assert only(results(engine, tmp_path, test, both=both)).message == ""


@pytest.mark.parametrize(("total", "is_right"), [("3.00", True), ("4.00", False)])
def test_expected_rows_may_be_those_of_a_query(engine: Engine, tmp_path: Path, total: str, is_right: bool) -> None:
    test = f"""
asked:
  model: shop.total
  inputs: {{shop.orders: [{{price: 3, d: 2020-01-01}}]}}
  outputs: {{query: {{query: "SELECT DATE'2020-01-01' AS d, CAST({total} AS DECIMAL(20, 2)) AS total"}}}}
"""

    assert only(results(engine, tmp_path, test)).ok is is_right


def test_ctes_partial_outputs_and_embedded_models(engine: Engine, tmp_path: Path) -> None:
    dear = "MODEL (name shop.dear, kind EMBEDDED);\nSELECT * FROM shop.orders WHERE price > 5"
    top = "MODEL (name shop.top);\nWITH days AS (SELECT DISTINCT d FROM shop.dear) SELECT *, 1 AS one FROM days"
    test = """
nested:
  model: shop.top
  inputs: {shop.orders: [{price: 9, d: 2020-01-01}, {price: 9, d: 2020-01-01}, {price: 1, d: 2020-01-02}]}
  outputs:
    ctes: {days: [{d: 2020-01-01}]}
    query: {partial: true, rows: [{one: 1}]}
"""

    assert only(results(engine, tmp_path, test, dear=dear, top=top)).message == ""


def test_a_cte_is_asked_as_it_is_written_and_at_the_tests_moment(engine: Engine, tmp_path: Path) -> None:
    query = """
WITH c(a, d) AS (SELECT floor(log10(id)), to_date(s, 'dd.MM.yyyy') FROM shop.b WHERE current_date > DATE '2020-12-31'),
n AS (SELECT a, 'now()' AS t, CURRENT_DATE() AS d FROM c)
SELECT a, date_format(now(), 'y') AS y FROM n"""
    body = """
  inputs: {shop.b: [{id: 1000, s: '02.01.2024'}]}
  outputs:
    ctes:
      c: [{a: 3, d: 2024-01-02}]
      n: [{a: 3, t: 'now()', d: 2021-01-01}]
    query: [{a: 3, y: '2021'}]
  vars: {execution_time: '2021-01-01 12:00:00'}
"""

    outcomes = results(engine, tmp_path, f"test_t:\n  model: shop.a{body}", a=f"MODEL (name shop.a, kind FULL);{query}")

    assert only(outcomes).message == ""


@pytest.mark.parametrize(
    ("text", "frozen"),
    [
        ("SELECT now() AS a", "SELECT @execution_dt AS a"),
        ("SELECT `now`, 'now()', now FROM t", "SELECT `now`, 'now()', now FROM t"),
        ("SELECT CURRENT_DATE, curdate ( )", "SELECT @execution_date, @execution_date"),
        ("SELECT t.current_date FROM t", ""),
    ],
)  # fmt: skip
def test_the_clock_stands_where_its_words_stand(text: str, frozen: str) -> None:
    assert frozen_text(text) == frozen


@pytest.mark.parametrize(
    ("query", "ctes"),
    [
        ("WITH a AS (SELECT 1), b(x) AS (SELECT (2)) SELECT 3", "WITH a AS (SELECT 1), b(x) AS (SELECT (2))"),
        ("WITH a AS (SELECT 1) FROM f(1) SELECT 2", ""), ("WITH a AS (SELECT 1) (SELECT 2)", ""), ("SELECT 1", ""),
    ],
)  # fmt: skip
def test_the_ctes_of_a_query_end_before_its_own_select(query: str, ctes: str) -> None:
    assert ctes_of(query) == ctes


def test_time_and_variables_are_the_tests_own(engine: Engine, tmp_path: Path) -> None:
    query = "SELECT @start_ds AS s, @end_ds AS e, CURRENT_DATE AS n, @VAR('x') AS x FROM shop.orders"
    timed = f"MODEL (name shop.timed);\n{query}"
    test = """
timed:
  model: shop.timed
  inputs: {shop.orders: [{id: 1}]}
  vars: {start: 2020-01-01, end: 2020-01-03, execution_time: '2021-01-01 12:00:00', x: 7}
  outputs: {query: [{s: '2020-01-01', e: 2020-01-03, n: 2021-01-01, x: 7}]}
"""

    assert only(results(engine, tmp_path, test, timed=timed)).message == ""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("inputs: {shop.orders: [{prce: 1}]}", "`shop.orders` has no column `prce`. Did you mean `price`?"),
        ("inputs: {shop.order: [{price: 1}]}", "shop.total does not read `shop.order`. Did you mean `shop.orders`?"),
    ],
)
def test_a_test_that_cannot_run_is_told_and_the_next_one_runs(
    engine: Engine, tmp_path: Path, body: str, message: str
) -> None:
    outputs = "outputs: {query: []}"
    test = f"a:\n  model: shop.total\n  {body}\n  {outputs}\nb:\n  model: shop.total\n  {outputs}\n"

    first, second = results(engine, tmp_path, test)

    assert message in first.message
    assert first.message.startswith("tests/test.yaml:")
    assert second.ok


def test_a_column_that_the_query_does_not_return_is_a_difference(engine: Engine, tmp_path: Path) -> None:
    test = "a:\n  model: shop.total\n  outputs: {query: [{d: 2020-01-01, totals: 1}]}\n"

    assert "`totals` is expected and does not exist" in only(results(engine, tmp_path, test)).message


OPEN = {
    "raw.some": "SELECT id, UPPER(name) AS name, qty * 2 AS n FROM raw.some WHERE gone IS NULL",
    "raw.none": "WITH s AS (SELECT * FROM raw.none) SELECT s.id, LOWER(name) AS name, qty * 2 AS n FROM s ORDER BY n",
    "shop.part": "SELECT id, name, n FROM shop.part",
}


@pytest.mark.parametrize("read", OPEN)
def test_a_column_that_an_input_leaves_out_is_null(engine: Engine, tmp_path: Path, read: str) -> None:
    test = f"one:\n  model: shop.one\n  inputs: {{{read}: [{{id: 1, beside: 2}}]}}\n  outputs: {{query: [{{id: 1}}]}}\n"
    files = {
        "external_models.yaml": "- {name: raw.some, columns: {id: int}}\n- {name: raw.none}\n",
        "models/one.sql": f"MODEL (name shop.one, kind FULL);\n{OPEN[read]}",
        "models/part.sql": "MODEL (name shop.part, kind EMBEDDED);\nSELECT id, name, qty AS n FROM raw.none",
        "tests/test.yaml": test.replace("shop.part:", "raw.none:"),
    }
    project = load_project(project_of(tmp_path, files), NOW)
    models = {name: replace(model, open_columns=name == "raw.some") for name, model in project.models.items()}

    result = only(run_unit_tests(engine, replace(project, models=models), project.tests))

    assert result.ok, result.message


STAGED = {
    "models/part.sql": "MODEL (name shop.part, kind VIEW);\n"
    "WITH s AS (SELECT * FROM raw.none) SELECT id, qty / 100 AS n, UPPER(name) AS name FROM s",
    "models/one.sql": "MODEL (name shop.one, kind FULL);\n"
    "WITH s AS (SELECT * FROM shop.part) SELECT s.*, ROW_NUMBER() OVER (PARTITION BY name ORDER BY id) AS r FROM s",
    "tests/test.yaml": "one:\n  model: shop.one\n  inputs: {shop.part: [{id: 7}]}\n"
    "  outputs: {query: {partial: true, rows: [{id: 7, r: 1}]}}\n",
}


@pytest.mark.parametrize("table", ["", "SELECT 1 AS id, 2 AS qty, 'x' AS name"])
def test_an_inputs_columns_follow_from_its_query_though_no_file_describes_what_it_reads(
    engine: Engine, tmp_path: Path, table: str
) -> None:
    if table:
        engine.catalog.swap_view(ViewText("raw.none", table))
    project = load_project(project_of(tmp_path, STAGED), NOW)

    result = only(run_unit_tests(engine, project, project.tests))

    assert result.ok, result.message


CELLS = {
    "int": st.integers(-(2**31), 2**31 - 1),
    "string": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8),
    "boolean": st.booleans(),
    "date": st.dates(date(1900, 1, 1), date(2100, 1, 1)),
    "decimal(12,3)": st.decimals(-(10**8), 10**8, places=3),
    "array<int>": st.lists(st.integers(0, 9), max_size=3),
}
ROWS = st.lists(st.fixed_dictionaries({kind: st.none() | cells for kind, cells in CELLS.items()}), max_size=4)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS)
def test_rows_come_back_from_spark_as_they_went_in(engine: Engine, rows: list[dict[str, object]]) -> None:
    types = {f"c{index}": kind for index, kind in enumerate(CELLS)}
    inputs = [{name: row[kind] for name, kind in types.items()} for row in rows]

    back = engine.fetch(render_rows(types, inputs))

    assert compare_rows(Rows(tuple(types), tuple(tuple(row.values()) for row in inputs)), back, types, False) == ()


@given(st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(0, 3))), st.randoms())
def test_order_never_matters_and_multiplicity_does(rows: list[tuple[object, ...]], random: object) -> None:
    columns, types = ("a", "b"), {"a": "int", "b": "int"}
    shuffled = sorted(rows, key=lambda _: random.random())  # type: ignore[attr-defined]

    assert compare_rows(Rows(columns, tuple(rows)), Rows(columns, tuple(shuffled)), types, False) == ()
    if rows:
        assert compare_rows(Rows(columns, tuple(rows)), Rows(columns, tuple(shuffled[1:])), types, False)


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        (1, Decimal("1.00"), "decimal(10,2)"),
        (0.1 + 0.2, 0.3, "double"),
        (0, -0.0, "double"),
        (True, 1, "int"),
        ("2020-01-01", date(2020, 1, 1), "date"),
        (date(2020, 1, 1), "2020-01-01 00:00:00", "timestamp"),
        (datetime(2020, 1, 1, 3, tzinfo=UTC), "2020-01-01 03:00:00", "timestamp_ntz"),
        ([1, {"a": None}], [1.0, {"a": None}], "array<int>"),
    ],
)
def test_equal_values_are_equal_however_they_are_written(left: object, right: object, kind: str) -> None:
    assert canonical_text(left, kind) == canonical_text(right, kind)
    assert canonical_text(None, kind) != canonical_text("NULL ", kind)


CSV = """
from_csv:
  model: shop.total
  inputs:
    shop.orders: {format: csv, path: rows/orders.csv, csv_settings: {sep: ';'}}
  outputs:
    query: {path: tests/rows/total.yaml}
inline:
  model: shop.total
  gateway: spark
  schema: anywhere
  freeze_time: 2024-01-01
  inputs:
    shop.orders:
      format: csv
      rows: |
        price,d
        1.5,2020-01-01
        ,2020-01-01
  outputs: {query: [{d: 2020-01-01, total: 1.5}]}
"""


def test_rows_may_stand_in_files_and_as_csv(engine: Engine, tmp_path: Path) -> None:
    files = {
        "tests/rows/orders.csv": "id;price;d\n1;2.25;2020-01-01\n2;;2020-01-01\n",
        "tests/rows/total.yaml": "- {d: 2020-01-01, total: 2.25}\n",
    }
    project_of(tmp_path, files)

    assert [result.message for result in results(engine, tmp_path, CSV)] == ["", ""]


def test_a_test_that_fails_on_spark_does_not_spoil_those_asked_with_it(engine: Engine, tmp_path: Path) -> None:
    ratio = "MODEL (name shop.ratio);\nSELECT 1 / id AS r, ARRAY(NAMED_STRUCT('a', price)) AS list FROM shop.orders"
    body = "\n  model: shop.ratio\n  outputs: {query: [{r: 0.5, list: [{a: 2.50}]}]}\n"
    test = "".join(f"\nt{n}:{body}  inputs: {{shop.orders: [{{id: {n}, price: 2.5}}]}}\n" for n in (0, 2))

    bad, good = results(engine, tmp_path, test, ratio=ratio)

    assert "ivision by zero" in bad.message
    assert good.message == ""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("gateway: sparc", "3: There is no gateway `sparc`. Did you mean `spark`?"),
        ("default_catalog: prod", "3: `default_catalog` of a test is that of the project: `spark_catalog`."),
        ("freeze_time: soon", "3: `freeze_time`: `soon` is not a date."),
        ("inputs: {shop.orders: {path: ../x.yaml}}", "3: There is no file `../x.yaml` in the project."),
        ("inputs: {shop.orders: {format: xml, rows: []}}", "3: `xml` is not a format of rows. Known: csv, yaml."),
        (
            "inputs: {shop.orders: {rows: [], query: SELECT 1}}",
            "3: One of `rows`, `query` and `path` is required here.",
        ),
        (
            "inputs: {shop.orders: {format: csv, rows: 'a,b', csv_settings: {header: 1}}}",
            "3: `header` in `csv_settings` is not supported.",
        ),
        (
            'inputs: {shop.orders: {format: csv, rows: "id,d\\n1"}}',
            "3: Row 1 of the CSV has 1 cells, and its header 2.",
        ),
    ],
)
def test_what_is_wrong_in_a_test_is_told_with_its_line(tmp_path: Path, body: str, message: str) -> None:
    test = f"a:\n  model: shop.orders\n  {body}\n  outputs: {{query: []}}\n"
    files = {"external_models.yaml": LINES, "models/orders.sql": ORDERS, "tests/test.yaml": test}

    with pytest.raises(ProjectErrors) as error:
        load_project(project_of(tmp_path, files), NOW)

    assert str(error.value).startswith(f"tests/test.yaml:{message}")
