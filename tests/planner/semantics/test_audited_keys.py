"""Which audits are relied on when it is asked what tells the rows of a table apart."""

from dataclasses import replace

import pytest

from mergeplan.planner.model.checks import AuditCall
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.semantics.audited_keys import Keys, keys_from_audits
from tests.planner.building import change_of, external, model, project

RAW = external("s.raw", "id k t x y")
FIRST = "SELECT k, x{} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY t, id) AS n FROM m.rows) WHERE n = 1"
DEDUPED = (
    "SELECT id, k, t, x, y FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY k, t, x, y) AS one "
    "FROM (SELECT DISTINCT id, k, t, x, y FROM s.raw)) WHERE one = 1"
)


def call(name: str, columns: str, *more: tuple[str, str], blocking: bool | None = None, query: str = "") -> AuditCall:
    return AuditCall(name, (("columns", columns), *more), blocking, query)


def table(*audits: AuditCall, kind: Kind = Kind.FULL, **fields: object) -> Model:
    return model("m.rows", "SELECT * FROM s.raw", kind, audits=audits, **fields)  # type: ignore[arg-type]


def keeps_reader(rows: Model) -> bool:
    """True when a column beside the first row of each of these rows leaves a reader of the other columns alone."""
    before, after = (
        project(RAW, rows, model("m.base", FIRST.format(column)), model("m.kid", "SELECT x FROM m.base"))
        for column in ("", ", y")
    )
    return not change_of(before, after)["m.kid"].recomputed


@pytest.mark.parametrize(
    ("audit", "keys"),
    [
        (call("unique_values", "id"), (("id",),)),
        (call("unique_values", "(id, K)"), (("id",), ("k",))),
        (call("unique_combination_of_columns", "(k, t)"), (("k", "t"),)),
        (call("unique_combination_of_columns", "array(t, k)", blocking=True), (("k", "t"),)),
        (call("unique_values", "(id)", blocking=False), ()),
        (call("unique_values_non_blocking", "(id)"), ()),
        (call("unique_values", "(id)", ("condition", "x > 1")), ()),
        (call("unique_values", "(id)", query="('SELECT 1', True, ())"), ()),
        (call("unique_combination_of_columns", "(k, x.id)"), ()),
        (call("unique_combination_of_columns", "(k, LOWER(t))"), ()),
        (call("not_null", "(id)"), ()),
    ],
)
def test_a_blocking_audit_of_all_rows_is_relied_on(audit: AuditCall, keys: Keys) -> None:
    assert keys_from_audits(table(audit)) == keys


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        (Kind.SEED, (("id",),)),
        (Kind.EXTERNAL, (("id",),)),
        (Kind.INCREMENTAL_BY_UNIQUE_KEY, (("id",),)),
        (Kind.INCREMENTAL_BY_TIME_RANGE, (("id", "t"),)),
        (Kind.INCREMENTAL_BY_PARTITION, ()),
        (Kind.VIEW, ()),
        (Kind.EMBEDDED, ()),
    ],
)
def test_an_audit_holds_for_what_it_looks_at(kind: Kind, keys: Keys) -> None:
    assert keys_from_audits(table(call("unique_values", "(id)"), kind=kind, time_column="t")) == keys


@pytest.mark.parametrize(
    ("fields", "keys"),
    [
        ({"unique_key": ("id",)}, (("id",),)),
        ({"unique_key": ("k", "id")}, (("id", "k"),)),
        ({"unique_key": ("t",)}, ()),
        ({"unique_key": ("COALESCE(id, 0)",)}, ()),
        ({"unique_key": ("id",), "merge_filter": "source.k > 1"}, ()),
        ({"unique_key": ("id",), "delete_insert": True}, ()),
        ({"unique_key": ("id",), "when_matched": "WHEN MATCHED THEN UPDATE SET id = source.k"}, ()),
    ],
)
def test_the_key_of_a_merge_is_one_where_it_is_never_null(fields: dict[str, object], keys: Keys) -> None:
    rows = table(call("not_null", "(id, k)"), kind=Kind.INCREMENTAL_BY_UNIQUE_KEY, **fields)

    assert keys_from_audits(rows) == keys
    assert keys_from_audits(replace(rows, checks=replace(rows.checks, audits=()))) == ()


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        (table(call("unique_values", "(id)")), True),
        (table(grain=("id",)), False),
        (model("m.rows", DEDUPED), True),
        (model("m.rows", DEDUPED, Kind.VIEW), True),
        (model("m.rows", DEDUPED, Kind.INCREMENTAL_BY_PARTITION), False),
        (model("m.rows", DEDUPED, partitioned_by=("id",)), False),
        (model("m.rows", DEDUPED, partitioned_by=("y",)), True),
        (replace(model("m.rows", DEDUPED), columns=tuple(Column(name, "int") for name in "id k t x y".split())), False),
    ],
)
def test_a_table_has_the_keys_of_its_query_where_it_holds_the_same_values(rows: Model, kept: bool) -> None:
    assert keeps_reader(rows) == kept
