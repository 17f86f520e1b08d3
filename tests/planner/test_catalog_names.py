"""Names with a catalog: each table has one name, and tables of two catalogs are two."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.connect.admission import ReadScope
from mergeplan.planner.errors import ProjectErrors, RequestError
from mergeplan.planner.model.model import Model, WrittenQuery
from mergeplan.planner.model.selection import strip_default_catalog
from mergeplan.planner.naming import Naming, Suffix
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.parsing.render import render_model
from mergeplan.planner.project.lineage import lineage_of
from mergeplan.planner.project.loader import LoadOptions, Project, load_project
from mergeplan.planner.session.use_cases.planning import _check_default as check_default
from mergeplan.planner.snapshot.environment import Environment, view_changes
from mergeplan.planner.state.snapshots import _as_named as as_named
from tests.planner.building import NOW, external, make_plan, promote

LAKE = Defaults(NOW, catalog="lake")
CONFIG = """
gateways:
  local:
    connection:
      type: spark
      {connection}
default_gateway: local
"""
ICEBERG = "spark.sql.catalog.lake: org.apache.iceberg.spark.SparkCatalog, spark.sql.catalog.lake.type"


def read(text: str, defaults: Defaults = LAKE) -> Model:
    model, _ = parse_model(text, "models/a.sql", defaults)
    assert model is not None
    return model


def query(sql: str, defaults: Defaults = LAKE) -> Model:
    return read(f"MODEL (name shop.a, kind FULL);\n{sql}", defaults)


def write_project(tmp_path: Path, models: Mapping[str, str], connection: str = "", more: str = "") -> Project:
    (tmp_path / "models").mkdir(exist_ok=True)
    (tmp_path / "config.yaml").write_text(CONFIG.format(connection=connection) + more)
    for name, text in models.items():
        (tmp_path / f"models/{name}.sql").write_text(text)
    return load_project(tmp_path, NOW, options=LoadOptions(strict=False))


# One name for each table


@pytest.mark.parametrize(
    ("name", "default", "known"),
    [
        ("lake.shop.orders", "lake", "shop.orders"),
        ("`Lake`.Shop.ORDERS", "lake", "shop.orders"),
        ("shop.orders", "lake", "shop.orders"),
        ("spark_catalog.shop.orders", "lake", "spark_catalog.shop.orders"),
        ("spark_catalog.shop.orders", "spark_catalog", "shop.orders"),
        ("lake.shop.orders", "spark_catalog", "lake.shop.orders"),
    ],
)
def test_a_name_in_the_default_catalog_has_two_parts_and_any_other_three(name: str, default: str, known: str) -> None:
    assert read(f"MODEL (name {name});\nSELECT 1 AS x", Defaults(NOW, catalog=default)).name == known


def test_a_query_and_its_text_call_a_table_by_its_name_however_it_is_written() -> None:
    model = query("SELECT Lake.shop.b.x, Ice.Shop.C.x FROM lake.shop.b JOIN Ice.Shop.C USING (x)")

    assert model.depends_on == ("ice.shop.c", "shop.b")
    assert " ".join(model.written.text.split()) == "SELECT shop.b.x, ice.shop.c.x FROM shop.b JOIN ice.shop.c USING (x)"
    assert model.sql == query("SELECT shop.b.x, ice.shop.c.x FROM shop.b JOIN ice.shop.c USING (x)").sql


def test_a_column_of_a_struct_is_not_taken_for_a_table_in_the_default_catalog() -> None:
    model = query("SELECT lake.shop.b AS x, b.y FROM shop.t AS lake, shop.b")

    assert "lake.shop.b AS x" in model.written.text
    assert "lake.shop.b AS x" in model.sql


@pytest.mark.parametrize("sql", ["SELECT x FROM lake.shop.b", "SELECT lake.shop.b.x FROM lake.shop.b"])
def test_the_default_catalog_makes_no_other_table_to_read(sql: str) -> None:
    rendered = render_model(query(sql), {"shop.b": "p.b__1"}, {}, None, NOW)

    assert " ".join(rendered.split()).endswith("x FROM p.b__1 AS b")


def test_models_of_two_catalogs_in_one_query_read_each_its_own_table() -> None:
    tables = {"shop.b": "p.b__1", "ice.shop.b": "ice.p.b__2", "spark_catalog.shop.b": "spark_catalog.p.b__3"}
    sql = "SELECT shop.b.x, ice.shop.b.y, spark_catalog.shop.b.z FROM lake.shop.b, ice.shop.b, spark_catalog.shop.b"

    assert " ".join(render_model(query(sql), tables, {}, None, NOW).split()) == (
        "SELECT shop__b.x, ice__shop__b.y, spark_catalog__shop__b.z FROM p.b__1 AS shop__b, "
        "ice.p.b__2 AS ice__shop__b, spark_catalog.p.b__3 AS spark_catalog__shop__b"
    )


def test_a_macro_finds_the_columns_of_a_table_in_another_catalog() -> None:
    known = {"ice.shop.b": {"x": "int", "y": "string"}, "shop.b": {"z": "int"}}
    defaults = Defaults(NOW, catalog="lake", columns=known.get)

    assert "`y`" in query("SELECT @STAR(ice.shop.b) FROM ice.shop.b", defaults).sql
    assert "`z`" in query("SELECT @STAR(lake.shop.b) FROM shop.b", defaults).sql


def test_selectors_may_write_the_default_catalog() -> None:
    assert strip_default_catalog("+Lake.shop.orders & lake.shop.*", "lake") == "+shop.orders & shop.*"
    assert strip_default_catalog("lake.orders | big_lake.shop.a", "lake") == "lake.orders | big_lake.shop.a"


# Two catalogs, two tables


def test_the_same_name_in_another_catalog_is_another_table() -> None:
    models = {m.name: m for m in (query("SELECT x FROM ice.raw.b"), external("ice.raw.b", "x"), external("raw.b", "x"))}
    prod, loaded = promote(models)
    moved = {**models, "shop.a": query("SELECT x FROM lake.raw.b")}

    (change,) = make_plan(moved, Environment("dev"), prod, loaded).changes

    assert str(change.category) == "breaking"
    assert change.new is not None and change.old is not None and change.new.table != change.old.table


def test_columns_are_followed_through_tables_with_and_without_a_catalog() -> None:
    parents = (external("ice.raw.b", "x y"), external("raw.b", "x z"))
    model = query("SELECT ice.raw.b.y, c.z AS w FROM ice.raw.b JOIN raw.b AS c ON c.x = ice.raw.b.x")
    lineage = lineage_of({parent.name: parent for parent in (*parents, model)}, "shop.a.y")

    assert {(edge.source.model, edge.source.column) for edge in lineage.edges if edge.target.column == "y"} == {
        ("ice.raw.b", "y")
    }
    assert lineage_of({parent.name: parent for parent in parents}, "ice.raw.b.x").model == "ice.raw.b"


def test_code_reads_a_table_of_another_catalog_only_as_it_is_written_there() -> None:
    scope = ReadScope(tables=frozenset({"shop.a", "ice.shop.a"}), catalog="lake")

    assert [scope.reads(name) for name in ("lake.shop.a", "shop.a", "ice.shop.a")] == [True, True, True]
    assert not any(scope.reads(name) for name in ("ice.Shop.a", "shop.A", "spark_catalog.shop.a", "Lake.shop.a"))
    assert ReadScope(tables=frozenset({"shop.a"})).reads("Spark_Catalog.Shop.A")


# Where tables and views lie


def test_tables_and_views_lie_in_their_models_catalog() -> None:
    naming, beside = Naming(), Naming(suffix=Suffix.CATALOG)

    assert naming.table("lake.shop.a", "v1") == "lake.mergeplan__shop.shop__a__v1"
    assert [naming.view("lake.shop.a", name) for name in ("prod", "dev")] == ["lake.shop.a", "lake.shop__dev.a"]
    assert [beside.view(name, "dev") for name in ("lake.shop.a", "shop.a")] == [
        "lake__dev.shop.a", "spark_catalog__dev.shop.a",
    ]  # fmt: skip
    assert Naming(catalogs=((".*", "lab"),)).view("lake.shop.a", "dev") == "lab.shop__dev.a"


def test_a_view_that_is_now_called_without_the_default_catalog_is_not_dropped() -> None:
    prod, _ = promote({"shop.a": query("SELECT 1 AS x")})
    mapped = Naming(catalogs=((".*", "lake"),))
    old = Environment("prod", prod.snapshots, prod.views, 1, naming=mapped)
    new = Environment(
        "prod", prod.snapshots, prod.views, 2, naming=Naming(mapped.suffix, mapped.catalogs, default="lake")
    )

    assert view_changes(old, new).names == ()


def test_a_model_takes_the_format_of_its_catalog(tmp_path: Path) -> None:
    models = {
        "a": "MODEL (name lake.shop.a, kind FULL);\nSELECT 1 AS x",
        "b": "MODEL (name shop.b, kind FULL);\nSELECT 1 AS x",
    }
    project = write_project(tmp_path, models, f"config: {{{ICEBERG}: jdbc}}")

    assert {name: model.storage.table_format for name, model in project.models.items()} == {
        "lake.shop.a": "iceberg",
        "shop.b": "",
    }


@pytest.mark.parametrize(
    ("connection", "header", "said"),
    [
        ("", "kind FULL", "which the gateway `local` does not have. In `gateways.local"),
        ("config: {spark.sql.catalog.Lake: x.Y}", "kind FULL", "`local` has `Lake`, which is another catalog to Spark"),
        ("catalogs: [lake]", "kind FULL", "without `table_format` cannot be in the catalog `lake`"),
        (f"config: {{{ICEBERG}: jdbc}}", "kind FULL, table_format hive", "of plain files cannot be"),
        (f"config: {{{ICEBERG}: hadoop}}", "kind FULL", "The view `lake.shop.a` cannot be in the catalog `lake`"),
    ],
)
def test_a_model_that_cannot_lie_in_its_catalog_is_refused_by_itself(
    tmp_path: Path, connection: str, header: str, said: str
) -> None:
    models = {"a": f"MODEL (name lake.shop.a, {header});\nSELECT 1 AS x", "b": "MODEL (name shop.b);\nSELECT 1 AS x"}
    project = write_project(tmp_path, models, connection)

    assert list(project.models) == ["shop.b"]
    (error,) = project.refused.errors
    assert said in str(error)
    assert str(error.place).startswith("models/a.sql:1")


def test_a_catalog_that_all_models_miss_is_one_error(tmp_path: Path) -> None:
    texts = {name: f"MODEL (name lake.shop.{name});\nSELECT 1 AS x" for name in "abc"}

    with pytest.raises(ProjectErrors) as error:
        write_project(tmp_path, {**texts, "d": "MODEL (name ice.shop.d);\nSELECT 1 AS x"})

    assert [(str(one.place), one.message.partition(",")[0]) for one in error.value.errors] == [
        ("models/a.sql:1", "`lake.shop.a` and 2 more are in the catalog `lake`"),
        ("models/d.sql:1", "`ice.shop.d` is in the catalog `ice`"),
    ]


def test_the_default_catalog_may_have_a_name_of_the_projects_own(tmp_path: Path) -> None:
    models = {
        "a": "MODEL (name jaffle.shop.a);\nSELECT x FROM Jaffle.raw.b",
        "b": "MODEL (name spark_catalog.shop.b);\nSELECT 1 AS x",
    }
    project = write_project(tmp_path, models, "default_catalog: jaffle", "environment_suffix_target: catalog")

    assert (list(project.models), project.models["shop.a"].depends_on) == (["shop.a"], ("raw.b",))
    assert "says that its name is `jaffle` here" in str(project.refused.errors[0])
    assert project.catalogs.is_session("shop.a")


def test_views_may_lie_in_another_catalog_than_their_tables(tmp_path: Path) -> None:
    models = {"a": "MODEL (name lake.shop.a, kind FULL);\nSELECT 1 AS x"}
    more = "environment_catalog_mapping: {'.*': spark_catalog}"
    project = write_project(tmp_path, models, f"config: {{{ICEBERG}: hadoop}}", more)

    assert list(project.models) == ["lake.shop.a"]


def test_a_table_in_an_unknown_catalog_is_read_by_a_model_that_opens(tmp_path: Path) -> None:
    (tmp_path / "external_models.yaml").write_text("- name: memory.raw.b\n  columns: {x: int}\n")
    project = write_project(tmp_path, {"a": "MODEL (name shop.a);\nSELECT x FROM memory.raw.b"})

    assert sorted(project.models) == ["memory.raw.b", "shop.a"]
    assert project.catalogs.catalog_of("memory.raw.b") is None


# A state of before


TEXTS = (
    "MODEL (name shop.a, kind FULL);\nSELECT 1 AS x, b.y FROM raw.b AS b",
    "MODEL (name spark_catalog.shop.c, kind FULL);\nSELECT spark_catalog.shop.a.x FROM Spark_Catalog.Shop.A",
    "MODEL (name shop.d, kind INCREMENTAL_BY_TIME_RANGE (time_column ds), start '2026-01-01');\n"
    "SELECT e.ds, c.x FROM `spark_catalog`.raw.e AS e JOIN shop.c ON c.x = e.x WHERE e.ds BETWEEN "
    "@start_ds AND @end_ds",
)


def test_tables_that_were_built_before_names_had_catalogs_are_not_built_again() -> None:
    models = [read(text, Defaults(datetime(2026, 1, 10, 12, tzinfo=UTC))) for text in TEXTS]
    models += [external("raw.b", "x y"), external("raw.e", "x ds")]

    plan = make_plan({model.name: model for model in models}, Environment("prod"))

    made = {(c.new.table, c.new.fingerprint.text) for c in plan.changes if c.new and not c.new.kind.is_external}
    assert made == {
        ("mergeplan__shop.shop__a__8f64d8c1c7e2", "dcd027064cb47a8a"),
        ("mergeplan__shop.shop__c__1726ab3f9824", "5fea8e029aa66e87"),
        ("mergeplan__shop.shop__d__532463f91b24", "bd2ecb52b6dae130"),
    }


def test_a_model_of_an_old_state_reads_the_table_of_its_environment() -> None:
    old = Model("shop.c", read(TEXTS[0]).kind, "m.sql", 1, "", "SELECT x FROM shop.a", depends_on=("shop.a",),
                written=WrittenQuery(text="SELECT x FROM spark_catalog.shop.a"))  # fmt: skip

    assert render_model(as_named(old), {"shop.a": "p.a__1"}, {}, None, NOW) == "SELECT x FROM p.a__1 AS a"


def test_another_default_catalog_than_at_the_last_promotion_is_refused(tmp_path: Path) -> None:
    class Work:
        project = write_project(tmp_path, {"a": "MODEL (name shop.a);\nSELECT 1 AS x"}, "catalog: main")

    with pytest.raises(RequestError, match="`prod` was built with the default catalog `lake`, and it is `main` now"):
        check_default(Work(), Environment("prod", revision=1, naming=Naming(default="lake")))  # type: ignore[arg-type]
