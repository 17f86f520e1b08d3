"""Two tables compared: every number is what comparing them row by row in Python gives."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest

from mergeplan.planner.checks.diff.diff_query import BUCKETS, DiffOptions
from mergeplan.planner.checks.diff.table_diff import (
    HASHES,
    PART,
    RowDiff,
    TableDiff,
    compare_tables,
    find_changed_models,
    schema_diff,
)
from mergeplan.planner.engine.protocol import Engine, ViewText
from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.model import Column
from tests.sampling import prove_rest

Row = tuple[object, ...]
TYPES = {
    "i": "int", "s": "string", "d": "double", "l": "array<int>", "m": "map<string,int>",
    "n": "struct<a:int,b:array<string>>", "e": "decimal(10,2)", "t": "timestamp",
}  # fmt: skip
CELLS = {
    "i": ["NULL", "1", "2"],
    "s": ["NULL", "''", "'a'", "'NULL'"],
    "d": ["NULL", "0D", "-0D", "1.5D", "1.50001D", "DOUBLE('NaN')"],
    "l": ["NULL", "ARRAY()", "ARRAY(1, NULL)", "ARRAY(NULL, 1)", "ARRAY(1)"],
    "m": ["NULL", "MAP('a', 1, 'b', 2)", "MAP('b', 2, 'a', 1)", "MAP('a', NULL)"],
    "n": ["NULL", "STRUCT(1, ARRAY('x'))", "STRUCT(NULL, ARRAY('x'))", "STRUCT(1, NULL)"],
    "e": ["NULL", "1.50BD", "2BD"],
    "t": ["NULL", "TIMESTAMP'2026-01-01 00:00:00'", "TIMESTAMP'2026-01-01 00:00:00.000001'"],
}
SAME = {"-0D": "0D", "1.50001D": "1.5D", "MAP('b', 2, 'a', 1)": "MAP('a', 1, 'b', 2)"}  # with three decimals


def compare(engine: Engine, first: str, second: str, **options: object) -> TableDiff:
    for name, sql in (("one", first), ("two", second)):
        engine.catalog.swap_view(ViewText(f"diff.{name}", sql))
    return compare_tables(engine, ("a", "b"), ("diff.one", "diff.two"), DiffOptions(**options))  # type: ignore[arg-type]


def select_rows(rows: Sequence[Row]) -> str:
    shown = ", ".join(
        f"CAST({name} AS {kind}) AS {name}" for name, kind in {"k": "int", "j": "string", **TYPES}.items()
    )
    cells = ", ".join(f"({', '.join(map(str, row))})" for row in rows)
    return f"SELECT {shown} FROM VALUES {cells} AS t(k, j, {', '.join(TYPES)})"


def expect_counts(first: Sequence[Row], second: Sequence[Row]) -> tuple[int, int, int, int]:
    """Rows of either table only, common rows, and those of them that differ, for keys of one row each."""
    one, two = ({row[:2]: tuple(SAME.get(str(c), c) for c in row[2:]) for row in rows} for rows in (first, second))
    common = one.keys() & two.keys()
    return len(one) - len(common), len(two) - len(common), len(common), sum(one[key] != two[key] for key in common)


@pytest.mark.parametrize("seed", range(2))
def test_the_numbers_are_those_of_a_comparison_row_by_row(engine: Engine, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311  # reproducible
    keys = [(k, j) for k in ["NULL", *range(12)] for j in ("NULL", "'x'", "'y'")]
    drawn = lambda key: (*key, *(rng.choice(cells) for cells in CELLS.values()))  # noqa: E731
    first = [drawn(key) for key in rng.sample(keys, 25)]
    kept = rng.sample(first, 20)
    second = [drawn(row[:2]) if rng.random() < 0.4 else row for row in kept]
    second += [drawn(key) for key in keys if key not in {row[:2] for row in first}][:4]

    diff = compare(engine, select_rows(first), select_rows(second), on=("k", "j"))

    rows = diff.rows
    assert (*rows.only, rows.common, rows.changed) == expect_counts(first, second)
    assert rows.counts == (len(first), len(second))
    assert rows.null_keys == tuple(sum("NULL" in row[:2] for row in side) for side in (first, second))
    assert (rows.duplicate_keys, diff.schema.same) == ((0, 0), True)
    for at, name in enumerate(TYPES, start=2):
        one, two = ({row[:2]: SAME.get(str(row[at]), row[at]) for row in side} for side in (first, second))
        assert dict(rows.columns)[name] == sum(one[key] != two[key] for key in one.keys() & two.keys())


@pytest.mark.parametrize(
    ("every", "buckets"), prove_rest([(30, range(1001, 2001)), (30_000, range(1, 3)), (2, [BUCKETS])])
)
def test_few_many_and_most_rows_that_differ_are_counted_alike(
    engine: Engine, every: int, buckets: Sequence[int]
) -> None:
    second = f"SELECT id AS k, IF(id % {every} = 0, -1, id) AS v, 1 AS w FROM RANGE(1, 60001)"

    rows = compare(engine, "SELECT id AS k, id AS v, 1 AS w FROM RANGE(60000)", second, on=("k",)).rows

    changed = 59_999 // every
    assert (rows.counts, rows.only, rows.common, rows.changed) == ((60_000, 60_000), (1, 1), 59_999, changed)
    assert (dict(rows.columns), rows.null_keys) == ({"v": changed, "w": 0}, (0, 0))
    assert rows.buckets in buckets or rows.buckets - 2 in buckets


@pytest.mark.prove
def test_keys_of_several_rows_are_matched_one_by_one_where_most_rows_differ(engine: Engine) -> None:
    one = "SELECT INT(NULLIF(id, 7)) AS k, id AS v FROM RANGE(2000)"
    first, second = f"{one} UNION ALL SELECT 5, -1", f"SELECT k, -v - 2 AS v FROM ({one}) UNION ALL SELECT 5, -2"

    rows = compare(engine, first, second, on=("k",)).rows

    assert (rows.counts, rows.only, rows.common) == ((2001, 2001), (0, 0), 2001)
    assert (rows.changed, rows.null_keys, rows.duplicate_keys) == (2001, (1, 1), (1, 1))


@pytest.mark.parametrize(
    ("one", "other"), prove_rest([("1", '"1"'), ("null", None), ('{"a": 1}', '{"a": "1"}'), ("1", "1.0")])
)
def test_variants_that_are_written_alike_differ(engine: Engine, one: str, other: str | None) -> None:
    first, second = (f"SELECT 1 AS k, PARSE_JSON({repr(text) if text else 'NULL'}) AS v" for text in (one, other))

    assert compare(engine, first, second, on=("k",)).rows.changed == 1
    assert not compare(engine, first, second).same
    assert compare(engine, first, first).same


def test_the_hashes_of_a_table_of_a_trillion_rows_overflow_in_no_sum() -> None:
    sums = HASHES.count("SUM")

    assert 10**12 * (2**PART - 1) < 2**63
    assert sums * PART >= 64


def test_equal_tables_are_the_same_whatever_the_order_and_how_often_a_row_comes(engine: Engine) -> None:
    rows = "SELECT id % 7 AS k, IF(id % 3 = 0, NULL, 'x') AS v FROM RANGE({}) ORDER BY {}"

    same = compare(engine, rows.format(100, "id"), rows.format(100, "-id"), on=("k",))
    more = compare(engine, rows.format(100, "id"), rows.format(102, "id"), on=("k",))

    assert same.same
    assert (same.rows.counts, same.rows.common, same.rows.columns) == ((100, 100), 100, (("v", 0),))
    assert (more.rows.counts, more.rows.only, more.rows.common) == ((100, 102), (0, 2), 100)
    assert more.rows.duplicate_keys == (2, 2)


@pytest.mark.prove
def test_whole_rows_are_compared_as_multisets_without_a_key(engine: Engine) -> None:
    rng = random.Random(7)  # noqa: S311  # reproducible
    sides = [[(rng.randrange(4), rng.choice(["NULL", "'x'"])) for _ in range(20)] for _ in range(2)]
    texts = [f"SELECT * FROM VALUES {', '.join(f'({a}, {b})' for a, b in side)} AS t(a, b)" for side in sides]

    diff = compare(engine, *texts)

    counts = defaultdict(int, Counter(sides[0]))
    lonely = {row: counts[row] - count for row, count in Counter(sides[1]).items()} | {
        row: count for row, count in counts.items() if row not in sides[1]
    }
    assert diff.key == ()
    assert diff.rows.only == (
        sum(n for n in lonely.values() if n > 0),
        -sum(n for n in lonely.values() if n < 0),
    )
    assert diff.rows.changed == 0


@pytest.mark.prove
def test_columns_are_renamed_left_out_rounded_and_restricted(engine: Engine) -> None:
    first = "SELECT id AS k, CAST(id AS DOUBLE) + 0.04D AS p, 'a' AS old, 1 AS noise, 1 AS gone FROM RANGE(5)"
    second = (
        "SELECT id AS k, CAST(id AS DOUBLE) AS p, IF(id = 4, 'b', 'a') AS new, 2 AS noise, '1' AS come FROM RANGE(5)"
    )
    options = {"on": ("k",), "renamed": (("old", "new"),), "skip": frozenset({"noise"})}

    whole = compare(engine, first, second, decimals=1, **options)
    strict = compare(engine, first, second, decimals=2, where="new = 'a' AND k < 3", samples=2, **options)

    assert (whole.schema.added, whole.schema.removed) == ((("come", "string"),), (("gone", "int"),))
    assert dict(whole.rows.columns) == {"p": 0, "new": 1}
    assert (strict.rows.counts, strict.rows.changed) == ((3, 3), 3)
    assert strict.samples.changed.columns == ("k", "s__p", "t__p", "s__new", "t__new")
    assert strict.samples.changed.rows == ((0, 0.04, 0.0, "a", "a"), (1, 1.04, 1.0, "a", "a"))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"on": ("kk",)}, "The key `kk` is not a column that both tables have with the same type. Did you mean `k`?"),
        ({"on": ("v",)}, "The key `v` is not a column that both tables have with the same type."),
        ({"skip": frozenset({"z"})}, "`--skip-columns`: there is no column `z`."),
        ({"renamed": (("z", "y"),)}, "`--rename`: there is no column `z`."),
    ],
)
def test_a_column_that_is_not_there_is_told(engine: Engine, options: dict[str, object], told: str) -> None:
    with pytest.raises(RequestError) as error:
        compare(engine, "SELECT 1 AS k, 1 AS v", "SELECT 1 AS k, 'a' AS v", **options)

    assert str(error.value).startswith(told)


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("5", "5L", 0),
        ("5", "6L", 1),
        ("1.5D", "1.50BD", 0),
        ("1.5D", "15.0BD", 1),
        ("7", "'7'", 0),
        ("7", "'07'", 1),
        ("DATE'2026-01-01'", "'2026-01-01'", 0),
    ],
)
def test_a_column_of_another_type_is_compared_as_a_type_that_holds_both(
    engine: Engine, old: str, new: str, changed: int
) -> None:
    diff = compare(engine, f"SELECT 1 AS k, {old} AS v", f"SELECT 1 AS k, {new} AS v", on=("k",))

    assert (diff.rows.changed, diff.rows.columns, diff.schema.uncompared) == (changed, (("v", changed),), ())
    assert not diff.same


def test_a_column_whose_types_have_nothing_in_common_is_said_not_to_be_compared(engine: Engine) -> None:
    diff = compare(engine, "SELECT 1 AS k, 1 AS v", "SELECT 1 AS k, DATE'2026-01-01' AS v", on=("k",))

    assert (diff.rows.changed, diff.rows.columns, diff.schema.uncompared) == (0, (), ("v",))


def test_schemas_and_environments_are_compared_by_name() -> None:
    first = (Column("a", "int"), Column("b", "int"))
    diff = schema_diff(first, (Column("b", "bigint"), Column("c", "int")))

    assert (diff.added, diff.removed, diff.retyped) == ((("c", "int"),), (("a", "int"),), (("b", "int", "bigint"),))
    assert schema_diff(first, first[::-1]).same
    assert find_changed_models({"x": "t1", "y": "t2", "z": "t3"}, {"x": "t1", "y": "t4"}) == ("y",)
    assert RowDiff(common=5, changed=2).matched == 3
