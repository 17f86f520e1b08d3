"""The catalog: what it says of each model, from the files, their lineage and what prod shows."""

from __future__ import annotations

from collections.abc import Callable

from mergeplan.planner.catalog.catalog import Catalog
from mergeplan.planner.project.lineage import ALL, ROWS, Node

Make = Callable[..., Catalog]
DESCRIBED = """MODEL (
  name shop.apart, kind FULL, owner ann, tags (fine, small), grain seven, cron '@hourly', description 'Sevens.',
  column_descriptions (seven = 'always 7'), audits (not_null(columns := (seven)))
);
SELECT CAST(7 AS INT) AS seven"""
EMBEDDED = "MODEL (name shop.inside, kind EMBEDDED);\nSELECT id, price FROM shop.items"


def test_a_model_has_what_its_file_says(catalog: Make) -> None:
    model = catalog(apart=DESCRIBED).models["shop.apart"]

    declared = model.declared
    assert (model.kind, declared.metadata.owner, declared.metadata.tags, declared.metadata.grain) == (
        "FULL",
        "ann",
        ("fine", "small"),
        ("seven",),
    )
    assert (declared.metadata.description, model.schedule, declared.path, declared.line) == (
        "Sevens.", "@hourly", "models/apart.sql", 1,
    )  # fmt: skip
    assert [(c.name, c.type, c.description) for c in model.columns or ()] == [("seven", "int", "always 7")]
    assert [(a.name, a.arguments, a.blocking) for a in model.audits] == [("not_null", (("columns", "(seven)"),), True)]
    assert model.source.startswith("MODEL (")


def test_a_column_knows_what_it_is_made_from_and_what_reads_it(catalog: Make) -> None:
    daily = catalog().models["shop.daily"]

    columns = {column.name: column for column in daily.columns or ()}
    assert columns["price"].made_from == (Node("shop.items", "price"),)
    assert columns["price"].read_by == (Node("shop.total", "total"),)
    assert set(daily.row_deciders) == {Node("shop.items", "day"), Node("shop.items", ROWS)}
    assert (daily.parents, daily.readers) == (("shop.items",), ("shop.total",))


def test_a_column_that_decides_rows_is_read_by_rows(catalog: Make) -> None:
    items = catalog().models["shop.items"]

    (day_column,) = (column for column in items.columns or () if column.name == "day")
    assert Node("shop.daily", ROWS) in day_column.read_by


def test_a_query_that_is_not_followed_reads_every_column(catalog: Make) -> None:
    listing = catalog(odd="MODEL (name shop.odd, kind FULL);\nSELECT * FROM shop.apart JOIN raw.stuff USING (seven)")

    odd, apart = listing.models["shop.odd"], listing.models["shop.apart"]
    assert (odd.columns, odd.unfollowed) == (None, "the columns of `raw.stuff` are not known")
    assert [column.read_by for column in apart.columns or ()] == [(Node("shop.odd", ALL),)]
    assert listing.outside_tables == ("raw.stuff",)


def test_a_query_is_rendered_for_the_last_interval_that_is_over(catalog: Make) -> None:
    inside = "MODEL (name shop.total, kind FULL);\nSELECT sum(price) AS total FROM shop.inside"
    models = catalog(inside=EMBEDDED, total=inside).models

    assert "'2026-01-05'" in models["shop.daily"].rendered
    assert "shop.items" in models["shop.total"].rendered
    assert models["shop.apart"].rendered == "SELECT 7 AS seven"
    assert models["shop.items"].rendered == ""


def test_before_the_first_promotion_nothing_is_deployed(catalog: Make) -> None:
    made = catalog()

    assert (made.revision, {model.deployed for model in made.models.values()}) == (0, {None})
    assert list(made.models)[:2] == ["shop.apart", "shop.items"]


def test_a_file_that_cannot_be_opened_is_named(catalog: Make) -> None:
    made = catalog({"models/apart.sql": "MODEL (name shop.apart, kind FUL);\nSELECT 7 AS seven"})

    (missing,) = made.unopened
    assert (missing.models, str(missing.place)) == (("shop.apart",), "models/apart.sql:1")
    assert made.unused_columns is None
