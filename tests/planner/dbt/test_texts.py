"""Nodes of dbt as texts of models: the kind that each setting comes to, and what is refused and not approximated."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.fingerprint import encode_text
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, DbtVersions, History, Model
from mergeplan.planner.parsing.files.dbt.adapter_defaults import add_adapter_defaults
from mergeplan.planner.parsing.files.dbt.kinds import dbt_kind
from mergeplan.planner.parsing.files.dbt.nodes import DbtColumn, DbtNode, DbtProject, DbtSource, table_name
from mergeplan.planner.parsing.files.dbt.texts import (
    audit_texts,
    constraint_texts,
    external_texts,
    model_text,
    replace_relation,
)
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.plan.change import Category
from mergeplan.planner.plan.forward_only import why_not
from mergeplan.planner.serial import decode_json, encode_json
from mergeplan.planner.tables.partitioning import check_columns
from tests.planner.building import NOW, change_of, project


def node(type: str = "model", text: str = "select 1 as a", later: str = "", **settings: Any) -> DbtNode:
    return DbtNode(
        id=f"{type}.shop.t", type=type, name="t", path="models/t.sql", package="shop", relation="`s`.`T`",
        language="sql", settings=settings, columns=(), description="", tags=(), owner="", depends_on=(), attached="",
        hooks=settings.pop("hooks", ()), text=text, later=later, error="", types=(("id", "bigint"), ("a b", "string")),
    )  # fmt: skip


def incremental(strategy: str, later: str = "select 1 as a", **settings: Any) -> DbtNode:
    return node(materialized="incremental", incremental_strategy=strategy, later=later, **settings)


SPACED, AFTER = "day >= '\ue000start\ue001 '", "day > '\ue000end\ue001'"
ALIASES = {"target_alias": "t", "source_alias": "s"}
BATCH = {"event_time": "day", "begin": "2026-01-01", "batch_size": "day"}


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (node(materialized="view"), "VIEW"),
        (node(materialized="table"), "FULL"),
        (node(materialized="ephemeral"), "EMBEDDED"),
        (node(materialized="materialized_view", on_configuration_change="apply"), "FULL"),
        (incremental("append"), "INCREMENTAL_UNMANAGED"),
        (incremental("merge"), "INCREMENTAL_UNMANAGED"),
        (incremental("merge", unique_key=["a", "b"]), "INCREMENTAL_BY_UNIQUE_KEY (unique_key (a, b))"),
        (
            incremental("merge", unique_key="a", merge_update_columns=["b", "`C`"]),
            "INCREMENTAL_BY_UNIQUE_KEY (unique_key (a), "
            "when_matched (WHEN MATCHED THEN UPDATE SET target.b = source.b, target.c = source.c))",
        ),
        (
            incremental("merge", unique_key="a", merge_exclude_columns=["b"], merge_with_schema_evolution=True),
            "INCREMENTAL_BY_UNIQUE_KEY (unique_key (a), "
            "when_matched (WHEN MATCHED THEN UPDATE SET * EXCEPT (b)))",
        ),
        (
            incremental("merge", unique_key="a", predicates=["DBT_INTERNAL_DEST.b > 1", "dbt_internal_source.b < 9"]),
            "INCREMENTAL_BY_UNIQUE_KEY (unique_key (a), merge_filter ((target.b > 1) AND (source.b < 9)))",
        ),
        (
            incremental("merge", unique_key="a", matched_condition="t.b < s.b or t.b is null", **ALIASES),
            "INCREMENTAL_BY_UNIQUE_KEY (unique_key (a), when_matched "
            "(WHEN MATCHED AND (target.b < source.b OR target.b IS NULL) THEN UPDATE SET *))",
        ),
        (
            incremental("merge", unique_key="a", skip_matched_step="true"),
            "INCREMENTAL_BY_UNIQUE_KEY (unique_key (a), "
            "when_matched (WHEN MATCHED THEN UPDATE SET target.a = target.a))",
        ),
        (incremental("append", incremental_predicates=["a > 1"]), "INCREMENTAL_UNMANAGED"),
        (node(materialized="table", sql_header="-- ;\nset spark.sql.shuffle.partitions = 8;"), "FULL"),
        (incremental("insert_overwrite", partition_by="a"), "INCREMENTAL_BY_PARTITION"),
        (incremental("insert_overwrite", "select 1 -- again\n as  a", partition_by="a"), "INCREMENTAL_BY_PARTITION"),
        (incremental("append", "/* later */ select 1 as a"), "INCREMENTAL_UNMANAGED"),
        (
            incremental("delete+insert", "select 2 as a", unique_key="a"),
            "INCREMENTAL_BY_UNIQUE_KEY (unique_key (a), delete_insert true)",
        ),
        (incremental("insert_overwrite"), "FULL"),
        (incremental("insert_overwrite", "select 2 as a", partition_by="a"), "INCREMENTAL_BY_PARTITION"),
        (incremental("insert_overwrite", "select 2 as a"), "INCREMENTAL_UNMANAGED (insert_overwrite true)"),
        (incremental("replace_where"), "INCREMENTAL_UNMANAGED"),
        (node(materialized="table", sql_header="\n  \n"), "FULL"),
        (node(materialized="table", hooks=(" ",)), "FULL"),
        (incremental("append", later="select 2 as a", full_refresh=True), "FULL"),
        (
            incremental("merge", unique_key=["a", "b"], full_refresh=False),
            "INCREMENTAL_BY_UNIQUE_KEY (unique_key (a, b), forward_only true, disable_restatement true)",
        ),
        (
            incremental("microbatch", **BATCH, full_refresh=False),
            "INCREMENTAL_BY_TIME_RANGE (time_column day, batch_size 1, lookback 1, forward_only true)",
        ),
        (
            incremental("insert_overwrite", partition_by="a", full_refresh=False),
            "INCREMENTAL_BY_PARTITION (disable_restatement true)",
        ),
        (incremental("append", full_refresh=False), "INCREMENTAL_UNMANAGED"),
        (node("seed", delimiter=";"), "SEED (csv_settings (delimiter ';'), path './t.sql', dbt_seed true)"),
    ],
)  # fmt: skip
def test_a_materialization_is_a_kind(made: DbtNode, kind: str) -> None:
    assert dbt_kind(made).kind == kind


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (node(materialized="materialized_view", on_configuration_change="continue"), "leaves the rows of its old"),
        (node("snapshot", strategy="own"), "has the snapshot strategy `own`"),
        (node("snapshot", strategy="check"), "has no `check_cols`"),
        (node("snapshot", strategy="check", check_cols=["a + 1"]), "names `a + 1` in `check_cols`, which is no name"),
        (node("snapshot", strategy="timestamp"), "has no `updated_at`"),
        (node("snapshot", strategy="timestamp", updated_at="max(a)"), "names `max(a)` in `updated_at`"),
        (node("snapshot", strategy="check", check_cols="all", hard_deletes="x"), "has `hard_deletes: x`"),
        (incremental("microbatch"), "needs `event_time`, `begin` and a `batch_size`"),
        (incremental("microbatch", **BATCH, later="select 2 as a"), "its query is another one in later runs"),
        (incremental("microbatch", SPACED, **BATCH, text=SPACED), "uses its batch otherwise"),
        (incremental("microbatch", AFTER, **BATCH, text=AFTER), "uses its batch otherwise"),
        (incremental("delete+insert"), "has no `unique_key`"),
        (incremental("delete+insert", unique_key=["a", "b"]), "deletes and inserts by several columns"),
        (incremental("delete+insert", "select a from `S`.T", unique_key="a"), "reads its own table before or after it"),
        (incremental("delete+insert", "select (a", unique_key="a"), "reads its own table before or after it"),
        (incremental("delete+insert", unique_key="a", predicates=["a > 1"]), "sets `predicates`"),
        (incremental("delete_insert"), "has the incremental strategy `delete_insert`"),
        (incremental("insert_overwrite", liquid_clustered_by="a"), "replaces rows by `liquid_clustered_by`"),
        (incremental("replace_where", incremental_predicates="a > 1"), "sets `incremental_predicates`"),
        (incremental("merge", unique_key="a", predicates=["a > 1"]), "names `a` in `predicates`"),
        (incremental("merge", unique_key="a", predicates="t.a > 1"), "sets `predicates` to a text"),
        (incremental("merge", unique_key="a", predicates=["dbt_internal_dest.a > 1 or true"]), "has the condition"),
        (incremental("merge", unique_key="a", predicates=["dbt_internal_dest.a in (select 1)"]), "has the condition"),
        (incremental("merge", unique_key="a", predicates=["dbt_internal_dest.a ="]), "has the condition"),
        (incremental("merge", unique_key="a", predicates=["true from s.t"]), "has the condition"),
        (node(materialized="table", sql_header="set x = 1;"), "sets `sql_header` to `set x = 1`"),
        (incremental("merge", unique_key="a", merge_exclude_columns=["b", "A"]), "names its `unique_key`"),
        (incremental("merge", unique_key="a", merge_update_columns=["b c"]), "names `b c` in `merge_update_columns`"),
        (incremental("merge", unique_key="a", matched_condition="t.a > 1"), "names `t.a` in `matched_condition`"),
        (incremental("merge", unique_key="a + 1", skip_matched_step=True), "names `a + 1` in `unique_key`"),
        (incremental("merge", unique_key="a", not_matched_condition="s.a > 1"), "sets `not_matched_condition`"),
        (node(materialized="streaming_table"), "is materialized as `streaming_table`"),
        (node(materialized="table", hooks=("insert into s.log values (1)",)), "has the hook `insert into s.log"),
        (node(materialized="table", file_format="hudi"), "has the file format `hudi`"),
        (node(materialized="table", text="select @start_ds as a"), "has `@start_ds as a` in its query"),
        (node(text="select * from parquet.`abfss://a@b.net/*`"), "reads the files `abfss://a@b.net/*` by their path"),
        (node(text="select * from `delta`.`s3://a/b`"), "reads the files `s3://a/b` by their path"),
    ],
)  # fmt: skip
def test_what_no_kind_does_as_dbt_does_it_is_refused(made: DbtNode, why: str) -> None:
    with pytest.raises(ProjectError) as error:
        model_text(made)
    assert why in error.value.message
    assert str(error.value.place) == "models/t.sql:1"


@pytest.mark.parametrize(
    ("adapter", "settings", "expected"),
    [
        ("databricks", {"materialized": "incremental"},
         {"file_format": "delta", "incremental_strategy": "merge", "null_safe_key": True}),
        ("databricks", {"materialized": "table"}, {"file_format": "delta"}),
        ("databricks", {"materialized": "snapshot", "file_format": "hudi"}, {}),
        ("databricks", {"materialized": "view"}, {}),
        ("databricks", {"materialized": "incremental", "incremental_strategy": "append"},
         {"file_format": "delta", "null_safe_key": True}),
        ("spark", {"materialized": "incremental", "null_safe_key": True}, {}),
    ],
)  # fmt: skip
def test_a_model_without_settings_has_those_of_its_adapter(
    adapter: str, settings: dict[str, Any], expected: dict[str, Any]
) -> None:
    plain = {name: value for name, value in settings.items() if name != "null_safe_key"}
    assert add_adapter_defaults(adapter, settings, "ON s.id <=> t.id") == {**plain, **expected}


@pytest.mark.parametrize(("macro", "is_safe"), [("s.id <=> t.id", True), ("s.id = t.id", False), ("", False)])
def test_a_merge_compares_keys_as_the_projects_own_dbt_databricks_does(macro: str, is_safe: bool) -> None:
    settings = {"materialized": "incremental", "unique_key": "id", "incremental_strategy": "merge"}

    kind = dbt_kind(node(later="select 1 as a", **add_adapter_defaults("databricks", settings, macro))).kind

    assert ("null_safe_key true" in kind) is is_safe


@pytest.mark.parametrize("settings", [{"incremental_strategy": "merge", "unique_key": "id"}, BATCH])
def test_a_model_without_full_refresh_keeps_its_rows_after_an_edit(settings: dict[str, Any]) -> None:
    settings = {"incremental_strategy": "microbatch", **settings, "full_refresh": False}
    before, after = (
        parse_model(
            model_text(node(materialized="incremental", text=text, later=text, **settings)),
            "models/t.sql",
            Defaults(NOW),
        )[0]
        for text in ("select id, n, day from s.x", "select id, n + 1 as n, day from s.x")
    )
    assert before is not None
    assert after is not None

    change = change_of(project(before), project(after))["s.t"]
    assert (change.category, change.recomputed) == (Category.FORWARD_ONLY, False)


def test_a_batch_of_dbt_is_an_interval_of_ours() -> None:
    query = "select * from s.t where (day >= '\ue000start\ue001' and day < '\ue000end\ue001')"

    assert model_text(incremental("microbatch", query, text=query, **BATCH)) == (
        "MODEL (name s.t, kind INCREMENTAL_BY_TIME_RANGE (time_column day, batch_size 1, lookback 1), "
        "cron '@daily', start '2026-01-01'); "
        "select * from s.t where (day >= @start_ts and day <= @end_ts)\n"
    )


CONTRACT = {"contract": {"enforced": True}, "materialized": "table", "file_format": "delta"}


def test_a_contract_declares_the_columns_that_the_query_must_return() -> None:
    columns = (DbtColumn(name="a", type="int"), DbtColumn(name="b c", type="decimal(10,2)"))
    made = node(**CONTRACT).model_copy(update={"columns": columns})

    assert "columns (a int, `b c` decimal(10,2)), contract true" in model_text(made)
    assert "contract" not in model_text(node(materialized="table", contract={"enforced": False}))


def test_a_contract_without_a_type_is_refused() -> None:
    with pytest.raises(ProjectError, match="states no `data_type` of `a`"):
        model_text(node(**CONTRACT).model_copy(update={"columns": (DbtColumn(name="a"),)}))


def test_constraints_of_a_contract_block_on_delta_as_in_dbt() -> None:
    constraints = [["not_null", "a", ""], ["check", "", "a > 0"], ["check", "a", "a > 1"], ["primary_key", "a", ""]]
    texts = [text for _, text in constraint_texts(node(**CONTRACT, constraints=constraints))]

    assert [text.partition("WHERE ")[2] for text in texts] == ["a IS NULL;", "NOT coalesce((a > 0), false);"]
    assert not [*constraint_texts(node(**{**CONTRACT, "file_format": "parquet"}, constraints=constraints))]


def snapshot(**settings: Any) -> Model:
    """The model that a snapshot is."""
    text = model_text(node("snapshot", "select id, a, at from s.x", unique_key="id", **settings))
    model, _ = parse_model(text, "snapshots/t.yml", Defaults(datetime(2026, 1, 1, tzinfo=UTC)))
    assert model is not None
    return model


def test_a_snapshot_by_timestamp_is_a_history_with_dbts_columns() -> None:
    model = snapshot(strategy="timestamp", updated_at="AT", hard_deletes="invalidate")

    assert (model.kind, model.by_key.unique_key) == (Kind.SCD_TYPE_2_BY_TIME, ("id",))
    assert [column.name for column in model.history_columns] == [
        "dbt_scd_id", "dbt_updated_at", "dbt_valid_from", "dbt_valid_to",
    ]  # fmt: skip
    assert model.history == History(
        "dbt_valid_from", "dbt_valid_to", updated_at="at", invalidates_deleted=True, dbt=DbtVersions("at")
    )
    assert decode_json(History, encode_json(model.history)) == model.history


def test_a_snapshot_by_check_keeps_configured_names_and_its_last_moment() -> None:
    names = {"dbt_valid_from": "since", "dbt_is_deleted": "gone"}
    model = snapshot(strategy="check", check_cols=["A"], hard_deletes="new_record", snapshot_meta_column_names=names,
                     dbt_valid_to_current="to_date('9999-12-31')")  # fmt: skip

    assert model.kind is Kind.SCD_TYPE_2_BY_COLUMN
    assert model.history == History(
        "since", "dbt_valid_to", columns=("a",), invalidates_deleted=True,
        dbt=DbtVersions(is_deleted="gone", valid_to_current="TO_DATE('9999-12-31')"),
    )  # fmt: skip


def test_a_snapshot_goes_on_with_its_table_under_another_strategy() -> None:
    """dbt does the same. The names of the columns and the last moment are part of the existing rows."""
    checked = snapshot(strategy="check", check_cols=["a"])
    timed = snapshot(strategy="timestamp", updated_at="at")
    renamed = snapshot(strategy="timestamp", updated_at="at", snapshot_meta_column_names={"dbt_valid_from": "since"})

    assert why_not(checked, timed) == why_not(timed, checked) == ""
    assert why_not(timed, snapshot(strategy="timestamp", updated_at="a")) == ""
    assert why_not(checked, renamed) == "its `history` changed, and with it how the table is cut"


def test_a_last_moment_may_have_a_format() -> None:
    model = snapshot(strategy="check", check_cols="all", dbt_valid_to_current="to_date('9999-12-13', 'yyyy-MM-dd')")

    assert model.history is not None and model.history.dbt is not None
    assert model.history.dbt.valid_to_current == "TO_DATE('9999-12-13', 'yyyy-MM-dd')"


def test_a_history_without_dbt_has_the_fingerprint_that_it_had() -> None:
    assert "dbt" not in encode_text(History())
    assert "dbt" in encode_text(History(dbt=DbtVersions()))


@pytest.mark.parametrize(
    ("current", "why"),
    [
        ("'9999-12-31'", "is no date or time"),
        ("current_date()", "is no date or time"),
        ("to_date('9999-12-31', upper('y'))", "is no date or time"),
        ("to_time('9999-12-31', 'yyyy')", "is no date or time"),
        ("timestamp_ntz'9999-12-31'", "is a timestamp_ntz, and versions begin at a timestamp"),
    ],
)
def test_an_end_that_would_give_dbts_column_another_type_is_refused(current: str, why: str) -> None:
    with pytest.raises(ProjectError, match=why):
        snapshot(strategy="check", check_cols="all", dbt_valid_to_current=current)


def test_a_snapshot_whose_time_is_of_another_type_than_said_is_refused() -> None:
    model = snapshot(strategy="timestamp", updated_at="at")
    columns = (Column("id", "int"), Column("a", "int"), Column("at", "date"))

    with pytest.raises(ProjectError, match="of type date") as error:
        check_columns(model, columns)
    assert "columns: [{name: at, data_type: date}]" in error.value.hint


def test_hooks_that_shape_no_row_are_left_to_dbt() -> None:
    assert dbt_kind(node(materialized="table", hooks=("optimize {{ this }}", " ", "GRANT select ..."))).kind == "FULL"


@pytest.mark.parametrize(
    ("strategy", "hint"), [("replace_where", "`insert_overwrite`"), ("delete+insert", "`is_incremental()`")]
)
def test_predicates_are_refused_with_what_does_it_instead(strategy: str, hint: str) -> None:
    with pytest.raises(ProjectError, match="which mergeplan follows in a `merge` only") as error:
        dbt_kind(incremental(strategy, unique_key="a", incremental_predicates="a > 1"))
    assert hint in error.value.hint


@pytest.mark.parametrize(
    ("first", "later"),
    [("select 'a  b' as a", "select 'a b' as a"), ("select 1 as a", "select /*+ coalesce(1) */ 1 as a")],
)
def test_forms_that_differ_in_more_than_comments_are_two(first: str, later: str) -> None:
    query = dbt_kind(incremental("insert_overwrite", later, text=first, partition_by="a")).query

    assert query.count("EXISTS (SELECT 1 FROM s.t)") == 2


def test_two_forms_of_an_incremental_model_are_one_query() -> None:
    query = dbt_kind(
        node(materialized="incremental", text="select 1 as a; -- ;\n;", later="select 2 as a -- later")
    ).query

    assert query == (
        "SELECT * FROM (\nselect 1 as a\n) AS first_run WHERE NOT EXISTS (SELECT 1 FROM s.t)\n"
        "UNION ALL\nSELECT * FROM (\nselect 2 as a -- later\n) AS later_run WHERE EXISTS (SELECT 1 FROM s.t)"
    )


@pytest.mark.parametrize(
    ("settings", "blocking"),
    [
        ({}, [True]),
        ({"severity": "WARN"}, [False]),
        ({"error_if": ">10"}, [True, False]),
        ({"error_if": ">10", "warn_if": ">10"}, [True]),
    ],
)
def test_a_test_blocks_where_dbt_ends_in_an_error(settings: dict[str, str], blocking: list[bool]) -> None:
    texts = [text for _, text in audit_texts(node("test", "select * from `s`.`T`", **settings), node())]

    assert ["blocking true" in text for text in texts] == blocking
    assert all("@this_model" in text and "`s`.`T`" not in text for text in texts)


def test_columns_by_the_whole_name_of_their_table_are_refused() -> None:
    with pytest.raises(ProjectError, match="columns by the whole name"):
        list(audit_texts(node("test", "select `s`.`T`.a from `s`.`T`"), node()))


def test_a_limit_that_is_no_comparison_is_refused() -> None:
    with pytest.raises(ProjectError, match="no comparison with a number"):
        list(audit_texts(node("test", error_if="> 1 or 1 = 1"), None))


@pytest.mark.parametrize("text", ["", "\n", "-- select 1\n/* nothing */ ;"])
def test_a_model_whose_file_has_no_query_is_refused_with_that(text: str) -> None:
    with pytest.raises(ProjectError, match=r"The file of `s\.t` has no query"):
        model_text(node(text=text, materialized="view"))


def test_a_test_whose_file_is_empty_is_not_asked() -> None:
    with pytest.raises(ProjectError, match="its file has no query"):
        list(audit_texts(node("test", text="\n-- later\n"), None))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select * from s.t", "select * from x"),
        ("select s.t.a from s.t join s.t2 on a.s.t = 1", "select s.t.a from x join s.t2 on a.s.t = 1"),
        ("from `s`.`t`", "from `s`.`t`"),
    ],
)
def test_a_relation_is_replaced_where_it_stands_by_itself(text: str, expected: str) -> None:
    assert replace_relation(text, "s.t", "x") == expected


@pytest.mark.parametrize(("relation", "name"), [("a.B", "a.b"), ("`a`.`b c`", "a.b c"), ("`l`.`a`.`b`", "l.a.b")])
def test_a_relation_is_a_name(relation: str, name: str) -> None:
    assert table_name(relation) == name


def test_the_words_of_a_model_stand_in_its_block() -> None:
    made = node(materialized="table").model_copy(update={"description": "It's\n a 'text' \\ x", "tags": ("a", "b")})

    assert model_text(made).startswith(
        "MODEL (name s.t, kind FULL, description 'It\\'s a \\'text\\' \\\\ x', tags ('a', 'b'));"
    )


def test_an_audit_ends_where_its_query_ends_with_a_comment() -> None:
    ((_, text),) = audit_texts(node("test", text="select a from s.t -- all"), None)

    assert text.endswith("select a from s.t -- all\n;")


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (incremental("merge", unique_key="`a-b`"), "INCREMENTAL_BY_UNIQUE_KEY (unique_key (`a-b`))"),
        (
            incremental("merge", unique_key="a", merge_update_columns=["`x``y`"]),
            "INCREMENTAL_BY_UNIQUE_KEY (unique_key (a), "
            "when_matched (WHEN MATCHED THEN UPDATE SET target.`x``y` = source.`x``y`))",
        ),
        (
            incremental("merge", unique_key="a", merge_exclude_columns=["c d"]),
            "INCREMENTAL_BY_UNIQUE_KEY (unique_key (a), when_matched (WHEN MATCHED THEN UPDATE SET * EXCEPT (`c d`)))",
        ),
    ],
)
def test_a_quoted_name_is_a_column(made: DbtNode, kind: str) -> None:
    assert f"kind {kind}" in model_text(made)


@pytest.mark.parametrize(
    "settings",
    [
        {"unique_key": "a-b"},
        {"unique_key": "a", "partition_by": ["a b"]},
        {"unique_key": "a", "merge_exclude_columns": ["`a-b`"]},
        {"unique_key": "a", "merge_update_columns": ["a-b"]},
    ],
)
def test_a_text_that_dbt_would_not_read_as_a_name_is_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ProjectError, match="names `"):
        model_text(incremental("merge", **settings))


def source(name: str, relation: str = "`raw`.`Items`", **columns: str) -> DbtSource:
    described = tuple(DbtColumn(name=column, type=kind, description="") for column, kind in columns.items())
    return DbtSource(
        id=f"source.shop.{name}", relation=relation, path="models/s.yml", description=name, columns=described, tags=()
    )


def test_two_sources_over_one_table_are_one_external_model() -> None:
    made = project_of_sources(source("a", id="int", x="int"), source("b", id="int", x="string", y="date"), source("c"))

    assert [*external_texts(made)] == [
        {"name": "raw.items", "columns": {"id": "int", "y": "date"}, "partial_columns": True, "description": "a"}
    ]


def test_a_source_over_a_table_of_the_project_is_its_model() -> None:
    assert [*external_texts(project_of_sources(source("own", "`s`.`t`", id="int")))] == []


def project_of_sources(*sources: DbtSource) -> DbtProject:
    return DbtProject(dbt="1.11", nodes=(node(),), sources=sources, unit_tests=(), exposures=(), hooks=(), files=())


def test_a_dict_as_partition_by_is_refused_with_what_to_write() -> None:
    made = node(materialized="table", partition_by={"field": "day", "data_type": "date"})

    with pytest.raises(ProjectError, match="has a dict in `partition_by`") as error:
        model_text(made)
    assert error.value.hint == "Write the column's name: `partition_by: day`."


def test_the_freshness_of_a_source_is_that_of_its_table() -> None:
    late = {"warn_after": "12 hour", "loaded_at": "cast(at as timestamp)"}
    fresh, broken = source("a").model_copy(update={"freshness": late}), source("b", relation="`raw`.`Broken`")
    broken = broken.model_copy(update={"freshness": {"warn_after": "12 hour", "loaded_at": "cast(at"}})

    assert [*external_texts(project_of_sources(fresh, source("c", id="int"), broken))] == [
        {
            "name": "raw.items", "columns": {"id": "int"}, "partial_columns": True, "description": "a",
            "freshness": late,
        },
    ]  # fmt: skip
    assert [*external_texts(project_of_sources(fresh))] == [
        {"name": "raw.items", "description": "a", "freshness": late}
    ]
