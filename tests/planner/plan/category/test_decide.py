"""Verdicts by the plan's own door: prod before, project after, and what each model is said to be."""

from dataclasses import replace

import pytest

from mergeplan.planner.errors import ProjectErrors, RequestError
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.model.property import replace_settings
from mergeplan.planner.plan.change import Category, ChangeKind
from mergeplan.planner.snapshot.environment import Environment
from tests.planner.building import change_of, day, external, make_plan, model, project, promote

RAW = external("s.raw", "id item_id price d")
PARENT = "SELECT id, item_id, price, d FROM s.raw"
CHILD = "SELECT item_id, COUNT(DISTINCT id) AS n FROM s.parent GROUP BY item_id"


def two(parent: str = PARENT, child: str = CHILD, **fields: object) -> dict[str, Model]:
    return project(RAW, model("s.parent", parent, **fields), model("s.child", child))


@pytest.mark.parametrize(("date", "is_kept"), [("@start_ds", False), ("@end_ds", False), ("'2026-01-05'", True)])
@pytest.mark.parametrize("kind", [Kind.VIEW, Kind.FULL])
def test_a_query_with_dates_has_other_rows_where_it_is_embedded(kind: Kind, date: str, is_kept: bool) -> None:
    """It has the dates of its readers there; a view has those of 1970."""
    query = f"SELECT id, d, {date} AS since FROM s.raw"
    reader = model("s.days", "SELECT since, d FROM s.part", Kind.INCREMENTAL_BY_TIME_RANGE, time_column="d")
    one, other = (project(RAW, model("s.part", query, made_as), reader) for made_as in (kind, Kind.EMBEDDED))

    assert change_of(one, other)["s.days"].recomputed is not is_kept
    assert change_of(other, one)["s.days"].recomputed is not is_kept


@pytest.mark.parametrize("query", ["SELECT * FROM RANGE(3)", "SELECT * FROM s.of_others"])
@pytest.mark.parametrize(
    ("kind", "setting", "edit"),
    [
        (Kind.FULL, {"columns": (Column("id", "int"), Column("d", "date"))}, {"columns": (Column("id", "string"),)}),
        (Kind.FULL, {"columns": (Column("id", "int"), Column("d", "date"))}, {"columns": ()}),
        (
            Kind.FULL,
            {"columns": (Column("id", "int"), Column("d", "date"))},
            {"columns": (Column("d", "date"), Column("id", "int"))},
        ),
        (Kind.INCREMENTAL_BY_TIME_RANGE, {"time_column": "d"}, {"time_column": "day"}),
    ],
)
def test_settings_of_columns_count_where_the_columns_of_a_query_are_not_known(
    query: str, kind: Kind, setting: dict[str, object], edit: dict[str, object]
) -> None:
    child = model("s.child", "SELECT id FROM s.parent")
    before, after = (
        project(RAW, replace_settings(model("s.parent", query, kind), values), child) for values in (setting, edit)
    )

    assert change_of(before, after)["s.parent"].recomputed


@pytest.mark.parametrize(
    ("edit", "category", "rule", "child"),
    [
        (
            "SELECT id, item_id, 'z' AS extra, price, d FROM s.raw",
            "non_breaking",
            "column-added",
            "indirect_non_breaking",
        ),
        ("SELECT id, item_id, price * 2 AS price, d FROM s.raw", "breaking", "column-altered", "indirect_non_breaking"),
        ("SELECT id, item_id + 1 AS item_id, price, d FROM s.raw", "breaking", "column-altered", "indirect_breaking"),
        ("SELECT id, item_id, d FROM s.raw", "breaking", "column-removed", "indirect_non_breaking"),
        (PARENT + " WHERE price > 0", "breaking", "rows-changed", "indirect_breaking"),
        ("SELECT DISTINCT id, item_id, price, d FROM s.raw", "breaking", "rows-changed", "indirect_breaking"),
        (
            "SELECT id, item_id, price, d, EXPLODE(ARRAY(1, 2)) AS e FROM s.raw",
            "breaking",
            "rows-changed",
            "indirect_breaking",
        ),
        ("SELECT id, item_id, price, d, my_udf(id) AS u FROM s.raw", "breaking", "rows-changed", "indirect_breaking"),
        ("SELECT id, price, item_id, d FROM s.raw", "breaking", "columns-reordered", "indirect_non_breaking"),
        (
            "SELECT 1 AS id, COUNT(*) AS item_id, 1 AS price, 1 AS d FROM s.raw",
            "breaking",
            "rows-changed",
            "indirect_breaking",
        ),
    ],
)
def test_an_edit_gets_the_category_its_meaning_deserves(edit: str, category: str, rule: str, child: str) -> None:
    changes = change_of(two(), two(edit))

    assert (changes["s.parent"].category, changes["s.parent"].rule) == (category, rule)
    assert changes["s.child"].category == child
    assert changes["s.child"].recomputed == (child == "indirect_breaking")


@pytest.mark.parametrize(
    "edit",
    [
        "select id, item_id, (price), d from s.raw",
        "SELECT raw.id, item_id, price, d FROM s.raw -- said anew",
        "SELECT raw.id, raw.item_id, raw.price, raw.d FROM s.raw AS raw",
    ],
)
def test_a_new_text_for_the_same_query_keeps_every_table(edit: str) -> None:
    changes = change_of(two(), two(edit))

    assert changes["s.parent"].category is Category.EQUIVALENT
    assert changes["s.parent"].shares == "prod"
    assert not any(change.recomputed for change in changes.values())


def test_a_new_description_is_metadata_and_touches_no_child() -> None:
    changes = change_of(two(), two(description="orders"))

    assert changes["s.parent"].change is ChangeKind.METADATA
    assert changes.keys() == {"s.parent"}


def test_a_child_that_selects_everything_is_changed_by_a_new_column() -> None:
    before, after = (
        two(child="SELECT * FROM s.parent"),
        two(PARENT.replace("d FROM", "d, 1 AS e FROM"), "SELECT * FROM s.parent"),
    )

    change = change_of(before, after)["s.child"]

    assert change.category is Category.INDIRECT_BREAKING
    assert change.columns.added == {"e"}


def test_a_changed_column_is_followed_column_by_column() -> None:
    grand = model("s.grand", "SELECT n FROM s.child")
    before = two(child="SELECT price AS p, 1 AS n FROM s.parent") | {"s.grand": grand}
    after = before | two(
        "SELECT id, item_id, price * 2 AS price, d FROM s.raw", "SELECT price AS p, 1 AS n FROM s.parent"
    )

    changes = change_of(before, after)

    assert changes["s.child"].columns.altered == {"p"}
    assert changes["s.grand"].category is Category.INDIRECT_NON_BREAKING


def test_what_chance_computes_counts_as_changed_when_its_table_is_rebuilt() -> None:
    chancy = "SELECT id, item_id, UUID() AS key FROM s.raw"
    before = two(chancy, "SELECT key FROM s.parent")
    after = two(chancy.replace(" FROM", ", 1 AS extra FROM"), "SELECT key FROM s.parent")

    assert change_of(before, after)["s.child"].category is Category.INDIRECT_BREAKING


def test_a_person_may_call_a_breaking_change_non_breaking() -> None:
    changes = change_of(two(), two(PARENT + " WHERE price > 0"), s__parent=Category.NON_BREAKING)

    assert changes["s.parent"].rule == "categorized"
    assert changes["s.child"].shares == "prod"


def test_a_person_may_call_a_non_breaking_change_breaking() -> None:
    changes = change_of(two(), two(PARENT.replace("d FROM", "d, 1 AS e FROM")), s__parent=Category.BREAKING)

    assert changes["s.child"].category is Category.INDIRECT_BREAKING


def test_only_a_directly_changed_model_can_be_categorized() -> None:
    with pytest.raises(RequestError, match=r"`s\.child` is not directly changed"):
        change_of(two(), two(PARENT + " WHERE price > 0"), s__child=Category.BREAKING)


def test_a_removed_column_that_is_still_read_blocks_at_the_readers_line() -> None:

    prod, loaded = promote(two())
    plan = make_plan(two("SELECT id, price, d FROM s.raw"), Environment("dev"), prod, loaded)

    assert [blocker.message for blocker in plan.blockers] == [
        "`s.child` reads `item_id`, which this change removes from `s.parent`."
    ]
    assert str(plan.blockers[0].place) == "models/s.child.sql:2"


@pytest.mark.parametrize(
    ("child", "readers"), [("SELECT item_id AS i FROM s.parent", ("s.child",)), ("SELECT id FROM s.parent", ())]
)
def test_a_removed_column_names_the_models_that_read_it_before(child: str, readers: tuple[str, ...]) -> None:
    changes = change_of(two(child=child), two("SELECT id, price, d FROM s.raw", "SELECT id FROM s.parent"))

    assert changes["s.parent"].lost_readers == (("item_id", readers),)


def test_a_column_that_is_nowhere_is_an_error_at_its_line() -> None:
    with pytest.raises(ProjectErrors, match=r"models/s\.child\.sql:2: `s\.child` reads the column `nope`"):
        change_of({}, two(child="SELECT nope FROM s.parent"))


def test_a_misspelled_column_is_one_error_and_not_one_of_each_reader() -> None:
    """The reader's column comes back when the query above is right; an error of its own stays."""
    typo = "SELECT id, itm_id, price, d FROM s.raw"

    with pytest.raises(ProjectErrors) as consequence:
        change_of(two(), two(typo))
    with pytest.raises(ProjectErrors) as both:
        change_of(two(), two(typo, child="SELECT nope FROM s.parent"))

    assert [str(error.place) for error in consequence.value.errors] == ["models/s.parent.sql:2"]
    assert [str(error.place) for error in both.value.errors] == ["models/s.parent.sql:2", "models/s.child.sql:2"]


def test_a_view_is_made_again_when_a_parents_table_moves_but_computes_nothing() -> None:
    view = model("s.view", "SELECT item_id FROM s.parent", kind=Kind.VIEW)
    before = two() | {"s.view": view}

    change = change_of(before, before | two(PARENT.replace("d FROM", "d, 1 AS e FROM")))["s.view"]

    assert change.category is Category.INDIRECT_NON_BREAKING
    assert change.new is not None
    assert change.old is not None
    assert change.new.version != change.old.version
    assert not change.recomputed


def test_a_changed_embedded_model_reaches_its_readers_column_by_column() -> None:
    embedded = model("s.emb", "SELECT id, price FROM s.raw", kind=Kind.EMBEDDED)
    reader = model("s.reader", "SELECT id FROM s.emb")
    other = model("s.other", "SELECT price FROM s.emb")
    before = project(RAW, embedded, reader, other)

    changes = change_of(
        before, before | project(model("s.emb", "SELECT id, price * 2 AS price FROM s.raw", kind=Kind.EMBEDDED))
    )

    assert changes["s.reader"].category is Category.INDIRECT_NON_BREAKING
    assert changes["s.other"].category is Category.INDIRECT_BREAKING


def test_a_sum_over_the_batch_counts_as_changed_when_its_table_is_rebuilt() -> None:
    ranged = {"kind": Kind.INCREMENTAL_BY_TIME_RANGE, "time_column": "d", "start": day("2026-01-01")}
    summed = "SELECT d, SUM(price) OVER (PARTITION BY item_id) AS s FROM s.raw WHERE d BETWEEN @start_ds AND @end_ds"
    before = two(summed, "SELECT s FROM s.parent", **ranged)
    after = two(summed.replace(" FROM", ", 1 AS extra FROM"), "SELECT s FROM s.parent", **ranged)

    assert change_of(before, after)["s.child"].category is Category.INDIRECT_BREAKING


@pytest.mark.parametrize(("dated", "is_kept"), [("WHERE d BETWEEN @start_ds AND @end_ds", False), ("", True)])
def test_rows_of_an_embedded_batch_count_as_changed_when_their_table_is_rebuilt(dated: str, is_kept: bool) -> None:
    ranged = {"kind": Kind.INCREMENTAL_BY_TIME_RANGE, "time_column": "d", "start": day("2026-01-01")}
    rows = model("s.rows", f"SELECT d, id FROM s.raw {dated}", Kind.EMBEDDED)
    more = model("s.more", "SELECT * FROM s.rows", Kind.EMBEDDED)
    query = "SELECT d, id, COUNT(*) OVER () AS n FROM s.more"
    before, after = (
        two(text, "SELECT n FROM s.parent", **ranged) | project(rows, more)
        for text in (query, query.replace(" FROM", ", 1 AS extra FROM"))
    )

    assert change_of(before, after)["s.child"].recomputed is not is_kept


def test_batches_of_another_size_that_decide_rows_reach_the_readers_of_the_table() -> None:
    ranged = {"kind": Kind.INCREMENTAL_BY_TIME_RANGE, "time_column": "d", "start": day("2026-01-01")}
    counted = "SELECT d, COUNT(*) OVER () AS n FROM s.raw WHERE d BETWEEN @start_ds AND @end_ds"
    top = model("s.top", "SELECT n FROM s.child")
    before = {**two(counted, "SELECT n FROM s.parent", **ranged), "s.top": top}
    after = {**two(counted, "SELECT n FROM s.parent", **ranged, batch_size=1), "s.top": top}

    assert {name: change.recomputed for name, change in change_of(before, after).items()} == {
        "s.parent": True, "s.child": True, "s.top": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "told"), [(1, "turns from a model into an external table"), (0, "removes")], ids=["declared", "found"]
)
def test_a_model_that_turns_external_blocks_while_it_is_read(line: int, told: str) -> None:
    prod, loaded = promote(two())
    outside = replace(external("s.parent", "id item_id price d"), line=line)

    plan = make_plan(two() | {"s.parent": outside}, Environment("dev"), prod, loaded)

    assert [blocker.message for blocker in plan.blockers] == [
        f"`s.child` still reads `s.parent`, which this change {told}."
    ]


def test_an_earlier_start_of_what_a_model_reads_reaches_back_with_it() -> None:
    ranged = model("s.child", "SELECT d FROM s.parent", Kind.INCREMENTAL_BY_TIME_RANGE, time_column="d")
    before = two(start=day("2026-01-05")) | {"s.child": ranged}
    after = two(start=day("2026-01-01")) | {"s.child": ranged}

    change = change_of(before, after)["s.child"]

    assert [str(interval) for interval in change.missing] == ["2026-01-01 - 2026-01-09"]
    assert change.rule == "starts-elsewhere"


def test_another_moving_start_is_an_edit_and_another_day_is_none() -> None:
    def moving(text: str, start: str) -> dict[str, Model]:
        ranged = {"kind": Kind.INCREMENTAL_BY_TIME_RANGE, "time_column": "d"}
        return two(start=day(start), start_moves=True, start_text=text, **ranged)

    assert not change_of(moving("2 days ago", "2026-01-07"), moving("2 days ago", "2026-01-08"))
    assert change_of(moving("2 days ago", "2026-01-08"), moving("1 week ago", "2026-01-03"))["s.parent"].recomputed


def test_a_table_kept_by_a_word_is_not_taken_for_its_query_when_the_change_is_taken_back() -> None:
    prod, loaded = promote(two())
    said = make_plan(two(PARENT + " WHERE id > 1"), prod, prod, loaded, categories={"s.parent": Category.NON_BREAKING})
    kept = said.new.snapshots["s.child"]
    later = replace(loaded, drifted=frozenset({kept.table}))

    back = make_plan(two(), replace(said.new, revision=2), replace(said.new, revision=2), later)
    child = next(change for change in back.changes if change.name == "s.child")

    assert (kept.version, kept.forced) == (prod.snapshots["s.child"].version, True)
    assert child.new is not None
    assert (child.new.version != kept.version, bool(child.missing), child.new.forced) == (True, True, False)


def declare(
    order: str, child: str = "SELECT * FROM s.base UNION ALL SELECT id, price, d FROM s.raw"
) -> dict[str, Model]:
    base = model("s.base", "SELECT id, price, d FROM s.raw", columns=order)
    return project(RAW, base, model("s.child", child))


def test_a_star_over_a_table_returns_its_columns_as_they_are_declared() -> None:
    spelled = "SELECT id, price, d FROM s.base UNION ALL SELECT id, price, d FROM s.raw"

    assert not change_of(declare("id price d"), declare("id price d", spelled))["s.child"].recomputed
    assert change_of(declare("price id d"), declare("price id d", spelled))["s.child"].recomputed


def test_columns_that_are_declared_in_another_order_make_another_table() -> None:
    changes = change_of(declare("id price d"), declare("price id d"))

    assert changes["s.base"].recomputed
    assert changes["s.child"].recomputed


@pytest.mark.parametrize(
    ("outputs", "columns", "kept"),
    [
        ("CAST(id AS INT) AS id", "id INT", True),
        ("CAST(id AS INT) AS id", "id integer", True),
        ("CAST(id AS INT) AS id, 'a' AS label", "id INT, label STRING", True),
        ("COUNT(*) AS n", "n BIGINT", True),
        ("CAST(id AS INT) AS id", "id BIGINT", False),
        ("COUNT(*) AS n", "n INT", False),
        ("id", "id INT", False),  # what the declaration of an external table says may be wrong
        ("MAX(id) AS id", "id INT", False),
        ("CAST(id AS INT) + 1 AS id", "id INT", True),
        ("CAST(id AS BIGINT) + 1 AS id", "id INT", False),
        ("id + 1 AS id", "id INT", False),
        ("CAST(id AS VARCHAR(10)) AS id", "id VARCHAR(10)", False),  # the cast gives a string
        ("CAST(id AS INT) AS id, 'a' AS label", "label STRING, id INT", False),
    ],
)
def test_to_declare_the_type_that_a_query_gives_a_column_keeps_the_table(
    outputs: str, columns: str, kept: bool
) -> None:
    raw = replace(external("s.raw", "id"), columns=(Column("id", "int"),))
    plain = model("s.base", f"SELECT {outputs} FROM s.raw")
    told = tuple(Column(*column.strip().split(" ")) for column in columns.split(","))

    change = change_of(project(raw, plain), project(raw, replace(plain, columns=told)))["s.base"]
    back = change_of(project(raw, replace(plain, columns=told)), project(raw, plain))["s.base"]

    assert [not edit.recomputed for edit in (change, back)] == [kept, kept]


def test_another_end_is_an_edit_and_another_table_that_ends_there() -> None:
    ranged = {"kind": Kind.INCREMENTAL_BY_TIME_RANGE, "time_column": "d", "start": day("2026-01-01")}

    change = change_of(two(**ranged), two(**ranged, end=day("2026-01-06")))["s.parent"]

    assert change.recomputed
    assert [str(interval) for interval in change.missing] == ["2026-01-01 - 2026-01-05"]


def test_another_setting_of_spark_reaches_those_that_read_what_is_computed_under_it() -> None:
    total = "SELECT SUM(price) AS total FROM s.parent"
    changes = change_of(two(child=total), two(child=total, settings=(("spark.sql.ansi.enabled", "false"),)))

    assert {name: change.recomputed for name, change in changes.items()} == {"s.parent": True, "s.child": True}


@pytest.mark.parametrize(
    ("field", "old", "new"),
    [
        ("merge_filter", "source.id > 1", "source.id > 2"),
        ("when_matched", "WHEN MATCHED THEN UPDATE SET *", "WHEN MATCHED THEN DELETE"),
    ],
)
def test_another_way_to_merge_is_another_table(field: str, old: str, new: str) -> None:
    def merge_model(text: str) -> dict[str, Model]:
        return two(kind=Kind.INCREMENTAL_BY_UNIQUE_KEY, unique_key=("id",), **{field: text})

    change = change_of(merge_model(old), merge_model(new))["s.parent"]

    assert (change.rule, change.recomputed) == ("settings-changed", True)


def test_a_column_that_goes_with_its_declaration_is_breaking() -> None:
    def base(columns: str) -> dict[str, Model]:
        sql = f"SELECT {columns} FROM s.raw"
        return project(RAW, model("s.base", sql, columns=columns.replace(",", "")))

    fewer, more = change_of(base("id, d"), base("id")), change_of(base("id"), base("id, d"))

    assert (fewer["s.base"].rule, fewer["s.base"].category) == ("settings-changed", Category.BREAKING)
    assert (more["s.base"].rule, more["s.base"].category) == ("settings-changed", Category.NON_BREAKING)


def test_what_a_view_declares_casts_nothing() -> None:
    plain = model("s.base", "SELECT id, CAST(d AS INT) AS d FROM s.raw", Kind.VIEW)
    told = replace(plain, columns=(Column("d", "bigint"), Column("id", "int")))
    child = model("s.child", "SELECT * FROM s.base")

    changes = change_of(project(RAW, plain, child), project(RAW, told, child))

    assert changes["s.base"].category is Category.EQUIVALENT
    assert "s.child" not in changes or not changes["s.child"].recomputed


def test_breaking_said_of_what_the_rules_call_breaking_keeps_the_built_tables() -> None:
    prod, loaded = promote(two())
    edited = two(PARENT + " WHERE price > 0")
    by_rule = make_plan(edited, prod, prod, loaded)
    said = make_plan(edited, prod, prod, loaded, categories={"s.parent": Category.BREAKING})

    tables = [[change.new.table for change in plan.changes if change.new] for plan in (by_rule, said)]
    assert [change.category for change in said.changes] == [Category.BREAKING, Category.INDIRECT_BREAKING]
    assert tables[0] == tables[1]


def test_breaking_said_of_less_computes_the_readers_and_keeps_the_models_own_built_table() -> None:
    prod, loaded = promote(two())
    edited = two(PARENT.replace("d FROM", "d, 1 AS e FROM"))
    by_rule = {change.name: change.new for change in make_plan(edited, prod, prod, loaded).changes}
    plan = make_plan(edited, prod, prod, loaded, categories={"s.parent": Category.BREAKING})
    said = {change.name: change.new for change in plan.changes}

    assert said["s.parent"].table == by_rule["s.parent"].table
    assert said["s.child"].table != by_rule["s.child"].table


def test_readers_of_small_numbers_follow_a_table_into_iceberg_which_has_none() -> None:
    sql, readers = "SELECT id, CAST(x AS TINYINT) AS m FROM s.raw", [model("s.t2", "SELECT m FROM s.t")]
    sides = (
        project(external("s.raw", "id x"), model("s.t", sql, table_format=form), *readers) for form in ("", "iceberg")
    )
    changes = change_of(*sides)

    assert (changes["s.t"].rule, changes["s.t"].columns.altered) == ("settings-changed", {"m"})
    assert changes["s.t2"].rule == "reads-changed-column"


@pytest.mark.parametrize(("before", "after"), [("parquet", "orc"), ("orc", "parquet")])
@pytest.mark.parametrize(
    ("sql", "rule", "recomputed"),
    [
        ("SELECT id, MAP('b', 1, 'a', 2) AS m FROM s.raw", "settings-changed", {"s.t", "s.keys"}),
        ("SELECT id, STRUCT(MAP('b', 1, 'a', 2) AS n) AS m FROM s.raw", "settings-changed", {"s.t", "s.keys"}),
        ("SELECT id, CAST(x AS TIMESTAMP) AS m FROM s.raw", "settings-changed", {"s.t", "s.keys"}),
        ("SELECT id, CAST(x AS DECIMAL(9, 2)) AS m FROM s.raw", "layout-changed", {"s.t"}),
    ],
)
def test_readers_of_what_orc_holds_otherwise_follow_a_table_into_its_files(
    before: str, after: str, sql: str, rule: str, recomputed: set[str]
) -> None:
    readers = model("s.keys", "SELECT m FROM s.t"), model("s.ids", "SELECT id FROM s.t")
    sides = (
        project(external("s.raw", "id x"), model("s.t", sql, storage_format=form), *readers) for form in (before, after)
    )
    changes = change_of(*sides)

    assert changes["s.t"].rule == rule
    assert {name for name, change in changes.items() if change.recomputed} == recomputed


@pytest.mark.parametrize(("one", "other"), [("* EXCEPT (m.p)", "* EXCEPT (m.q)"), ("a.* EXCEPT (m.p)", "a.*")])
def test_a_star_without_a_field_of_a_struct_is_not_the_star_without_another(one: str, other: str) -> None:
    raw = external("s.raw", "id m")
    sides = (project(raw, model("s.t", f"SELECT {stars} FROM s.raw AS a")) for stars in (one, other))
    changes = change_of(*sides)

    assert changes["s.t"].recomputed


@pytest.mark.parametrize(
    "query",
    [
        "SELECT t.a FROM (SELECT * FROM s.m) AS t(a, b)",
        "WITH t(a, b) AS (SELECT * FROM s.m) SELECT a FROM t",
        "SELECT (SELECT max(t.a) FROM (SELECT * FROM s.m UNION ALL SELECT * FROM s.m) AS t(a, b)) AS a",
    ],
)
def test_a_reader_that_names_fewer_columns_than_its_parent_has_is_not_kept(query: str) -> None:
    def models(more: str) -> dict[str, Model]:
        return project(external("raw.t", "id x"), model("s.m", f"SELECT id, x{more} FROM raw.t"), model("s.kid", query))

    assert change_of(models(""), models(", id + 1 AS y"))["s.kid"].recomputed
