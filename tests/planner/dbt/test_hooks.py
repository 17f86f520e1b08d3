"""Hooks of dbt: rows that they insert, tables that they load, and what refuses a model."""

from __future__ import annotations

from typing import Any

import pytest

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.parsing.files.dbt.hooks import is_loaded, load_stamp
from mergeplan.planner.parsing.files.dbt.kinds import dbt_kind
from mergeplan.planner.parsing.files.dbt.nodes import DbtNode, DbtProject
from mergeplan.planner.parsing.files.dbt.texts import constraint_texts, external_texts
from mergeplan.planner.python.dbt_code.compile_error import CompileError
from mergeplan.planner.python.dbt_code.hooks import UnknownRows
from mergeplan.planner.snapshot.meaning import meaning_of

from .test_texts import node

CASTS = "with one as (select 1) select cast(null as int) as a, cast('' as string) as `b c` from one where 1 = 0"


def table(*post_hooks: str, **more: Any) -> DbtNode:
    made = node(text=more.pop("text", CASTS), materialized=more.pop("materialized", "table"))
    return made.model_copy(update={"post_hooks": post_hooks, **more})


def seed(*post_hooks: str, **more: Any) -> DbtNode:
    return node("seed").model_copy(update={"post_hooks": post_hooks, **more})


def test_rows_that_hooks_insert_are_part_of_the_query_as_the_types_of_its_columns() -> None:
    made = table(
        "insert into `s`.`T` values (1, 'x;y'), (2, null);", "optimize s.t", "INSERT INTO TABLE s.t VALUES (3, 4)"
    )

    assert dbt_kind(made).query == (
        f"SELECT * FROM (\n{CASTS}\n) AS built\n"
        "UNION ALL\nSELECT CAST(_1 AS INT) AS `a`, CAST(_2 AS STRING) AS `b c` "
        "FROM values (1, 'x;y'), (2, null)\nAS inserted (_1, _2)\n"
        "UNION ALL\nSELECT CAST(_1 AS INT) AS `a`, CAST(_2 AS STRING) AS `b c` FROM VALUES (3, 4)\nAS inserted (_1, _2)"
    )


def test_a_semicolon_and_a_comment_behind_the_query_are_no_part_of_the_rows() -> None:
    assert dbt_kind(table(ROW, text=f"{CASTS} ;\n-- none; yet\n")).query == dbt_kind(table(ROW)).query


DELTA = {"materialized": "table", "file_format": "delta"}
ROW = "insert into s.t values (1, 2)"


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (table(ROW, text="select 1 as a, cast(2 as int) as b"), "does not say the types of its columns by CAST"),
        (table(ROW, text="select cast(1 as int) as a union all select cast(2 as int)"), "does not say the types"),
        (table("insert into s.t values (1)"), "inserts other rows than ones of 2 values"),
        (table("insert into s.t values (1, (select max(b) from s.u))"), "inserts what is no constant value"),
        (table("insert into s.t values (1, a)"), "inserts what is no constant value"),
        (table("insert into s.t values (1, 2); drop table s.t"), "inserts other rows"),
        (table("insert into s.t (b, a) values (1, 2)"), "has the hook `insert into s.t (b, a)"),
        (table("insert into s.t select 1, 2"), "has the hook"),
        (table("insert into s.u values (1, 2)"), "has the hook"),
        (table("insert overwrite s.t values (1, 2)"), "has the hook"),
        (table(ROW, materialized="view", settings={"materialized": "view"}), "has the hook"),
        (table(ROW, settings={"materialized": "incremental"}), "has the hook"),
        (table(hooks=(ROW,)), "has the hook"),
        (table("truncate table s.t"), "has the hook"),
        (table("create table if not exists s.t (a int)"), "has the hook"),
        (table("create table s.u as select 1"), "has the hook"),
        (table("alter table s.t add constraint c check (a > 1)"), "has the hook"),
        (table("alter table s.t alter column a set mask hide"), "has the hook"),
        (table("alter table s.t alter column a set not null"), "has the hook"),
        (table(hooks=("alter table s.t alter column a set not null",), settings=DELTA), "has the hook"),
        (table("alter table s.u alter column a set not null", settings=DELTA), "has the hook"),
        (table("alter table s.t alter column a drop default", settings=DELTA), "has the hook"),
        (table("set spark.sql.ansi.enabled = false"), "has the hook"),
        (table("set spark.sql.session.timeZone = Europe/Paris"), "has the hook"),
        (table("set spark.sql.sources.partitionOverwriteMode = static"), "has the hook"),
        (table("set spark.sql.shuffle.partitions = 8; delete from s.t"), "has the hook"),
    ],
)
def test_a_hook_of_which_nobody_knows_the_rows_refuses_its_model(made: DbtNode, why: str) -> None:
    with pytest.raises(ProjectError) as error:
        dbt_kind(made)
    assert why in error.value.message


@pytest.mark.parametrize(
    "hook",
    [
        "revoke select on s.t from x",
        "create schema if not exists s",
        "CREATE BLOOMFILTER INDEX ON TABLE s.t FOR COLUMNS(a OPTIONS (fpp=0.1))",
        "drop bloomfilter index on s.t for columns(a)",
        "create table if not exists raw.items using parquet location 's3://x/y'",
        "alter table s.t set tblproperties ('a' = 'b')",
        "alter table s.t set tags ('a' = 'b')",
        "alter table s.t add constraint pk primary key (a)",
        "alter table `s`.`t` add primary key (a, b)",
        "alter table s.t add constraint fk foreign key (a) references s.u",
        "alter table s.t cluster by (a)",
        "alter table s.t alter column a comment 'of sales'",
        "SET hive.exec.dynamic.partition.mode=nonstrict",
        "set spark.sql.shuffle.partitions = 8;",
        "set spark.sql.sources.partitionOverwriteMode = 'DYNAMIC'",
    ],
)
def test_a_hook_that_changes_no_row_is_left_to_dbt(hook: str) -> None:
    assert dbt_kind(table(hook)).query == CASTS
    assert dbt_kind(table(hooks=(hook,))).query == CASTS


def test_a_column_that_hooks_forbid_to_be_null_is_an_audit_that_blocks() -> None:
    made = table("alter table `s`.`T` alter column `a b` set not null;", "optimize s.t", settings=DELTA)

    assert [*constraint_texts(made)] == [
        (
            "shop_t_constraint_not_null_a_b",
            "AUDIT (name shop_t_constraint_not_null_a_b, blocking true);\n"
            "SELECT * FROM @this_model WHERE `a b` IS NULL;",
        )
    ]
    assert dbt_kind(made).query == CASTS


def test_a_seed_that_its_hooks_load_is_a_table_of_dbts() -> None:
    made = seed("truncate table s.t", "copy into `s`.`t` from (select ';' from 's3://b/x.csv') fileformat = csv")

    project = DbtProject(dbt="1.11", nodes=(made,), sources=(), unit_tests=(), exposures=(), hooks=(), files=())

    assert is_loaded(made)
    assert [*external_texts(project)] == [
        {"name": "s.t", "columns": {"id": "bigint", "a b": "string"}, "stamp": load_stamp(made)}
    ]
    moved = seed("truncate table s.t", "copy into s.t from (select ';' from 's3://b/y.csv') fileformat = csv")
    assert load_stamp(moved) != load_stamp(made) == load_stamp(seed(*(f"\n {hook}" for hook in made.post_hooks)))


def test_a_table_made_of_nothing_that_a_macro_fills_is_a_table_of_dbts() -> None:
    made = table("{{ upload() }}", "optimize s.t", materialized="incremental", later=CASTS, types=())
    project = DbtProject(dbt="1.11", nodes=(made,), sources=(), unit_tests=(), exposures=(), hooks=(), files=())

    assert is_loaded(made)
    assert [*external_texts(project)] == [{"name": "s.t", "columns": {}, "stamp": load_stamp(made)}]
    stamps = {load_stamp(made.model_copy(update={"text": CASTS + " and 1 = 1"})), load_stamp(table("{{ other() }}"))}
    assert len({load_stamp(made), *stamps}) == 3


@pytest.mark.parametrize(
    "made",
    [
        seed(),
        seed("optimize s.t"),
        seed("copy into s.u from 'x'"),
        seed("copy into s.t from 'x'; drop table s.u"),
        seed("{{ load() }}"),
        seed("copy into s.t from 'x'", hooks=("delete from s.u",)),
        seed("copy into s.t from 'x'", error="no"),
        table("{{ load() }}", text="select a from s.u"),
        table("{{ load() }}", depends_on=("model.shop.u",)),
        table("{{ load() }}", materialized="view"),
        table("{{ load() }}", hooks=("delete from s.u",)),
        table("{{ load() }}; delete from s.u"),
        table("delete from s.u"),
        table("insert into s.t values (1, 2)"),
    ],
)
def test_another_node_is_not_one_that_hooks_load(made: DbtNode) -> None:
    assert not is_loaded(made)


def test_another_stamp_of_an_external_table_is_other_rows_to_each_reader() -> None:
    columns = (Column("a", "int"), Column("b", "int"))
    first, second = (
        meaning_of(Model("s.t", Kind.EXTERNAL, "", 0, "", columns=columns, stamp=stamp), None, {}, "")
        for stamp in ("one", "two")
    )

    assert first.rows != second.rows
    assert {name for name, _ in {*first.columns} & {*second.columns}} == set()


def test_what_a_statement_returned_can_be_shown_and_not_decided_by() -> None:
    value = UnknownRows().rows.values()[0].values()[0]

    assert "unknown" in f"{value}"
    for use in (bool, int, len, iter, lambda read: read == 1, lambda read: read + 1, lambda read: read > 0):
        with pytest.raises(CompileError, match="reads what a statement returned"):
            use(value)
    with pytest.raises(CompileError):
        _ = UnknownRows().columns
