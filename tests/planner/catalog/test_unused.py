"""Unused columns: only those that nothing needs are named, and everything in doubt is a use."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from mergeplan.planner.catalog.catalog import Catalog
from tests.planner.shop import ALONE

Make = Callable[..., Catalog]
NONE: Mapping[str, str] = {}
BASE = "MODEL (name shop.base, kind FULL{});\nSELECT 1 AS id, 2 AS a, 3 AS b, DATE '2026-01-01' AS day"
TOP = "MODEL (name shop.top, kind FULL);\n{}"


def unused(made: Catalog) -> list[str]:
    assert made.unused_columns is not None
    return [f"{column.model}.{column.column}" for column in made.unused_columns]


def make(catalog: Make, query: str, settings: str = "", paths: Mapping[str, str] = NONE, **files: str) -> list[str]:
    return unused(
        catalog(paths, **ALONE | {"total": "", "base": BASE.format(settings), "top": TOP.format(query)} | files)
    )


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT a FROM shop.base", ["id", "b", "day"]),
        ("SELECT a FROM shop.base WHERE b > 1", ["id", "day"]),
        ("SELECT a FROM shop.base GROUP BY a, day", ["id", "b"]),
        ("SELECT DISTINCT a, b FROM shop.base", ["id", "day"]),
        ("SELECT a, row_number() OVER (PARTITION BY b ORDER BY day) AS n FROM shop.base", ["id"]),
        ("SELECT a FROM shop.base UNION SELECT b FROM shop.base", ["id", "day"]),
        ("SELECT * FROM shop.base", []),
        ("SELECT a FROM shop.base ORDER BY b LIMIT 1", ["id", "day"]),
        ("SELECT x.a FROM shop.base x WHERE EXISTS (SELECT 1 FROM shop.base y WHERE y.id = x.b)", ["day"]),
        ("SELECT count(*) AS n FROM shop.base", ["id", "a", "b", "day"]),
    ],
)
def test_a_column_that_no_value_and_no_row_needs_is_unused(catalog: Make, query: str, names: list[str]) -> None:
    assert make(catalog, query) == [f"shop.base.{name}" for name in names]


@pytest.mark.parametrize(
    "settings",
    [", grain b", ", partitioned_by (b)", ", clustered_by (b)", ", audits (not_null(columns := (b)))"],
)
def test_a_column_that_a_setting_names_is_used(catalog: Make, settings: str) -> None:
    assert make(catalog, "SELECT a FROM shop.base", settings) == ["shop.base.id", "shop.base.day"]


def test_a_column_is_unused_when_only_unused_columns_are_made_from_it(catalog: Make) -> None:
    middle = "MODEL (name shop.middle, kind VIEW);\nSELECT a, a + b AS both FROM shop.base"
    names = make(catalog, "SELECT a FROM shop.middle", middle=middle)

    assert names == ["shop.base.id", "shop.base.b", "shop.base.day", "shop.middle.both"]


def test_an_exposure_uses_all_of_its_models(catalog: Make) -> None:
    exposures = {"exposures.yaml": "- name: Board\n  models: [shop.base]\n"}

    assert make(catalog, "SELECT a FROM shop.base", paths=exposures) == []


def test_a_python_model_uses_all_that_it_reads(catalog: Make) -> None:
    code = (
        "from mergeplan import model\n\n\n@model('shop.py', columns={'a': 'int'}, depends_on=['shop.base'])\n"
        "def execute(context, start, end, execution_time, **kwargs):\n    return context.fetchdf('SELECT 1 AS a')\n"
    )

    assert make(catalog, "SELECT a FROM shop.base", paths={"models/code.py": code}) == []


def test_a_versioned_table_that_compares_every_column_needs_them_all(catalog: Make) -> None:
    kind = BASE.replace("kind FULL", "kind SCD_TYPE_2_BY_COLUMN (unique_key id, columns *)").format("")

    assert make(catalog, "SELECT a FROM shop.base", base=kind) == []


def test_who_has_to_be_edited_first_is_named(catalog: Make) -> None:
    query = "WITH some AS (SELECT a, b FROM shop.base) SELECT a FROM some"
    made = catalog(**ALONE | {"total": "", "base": BASE.format(""), "top": TOP.format(query)})

    assert made.unused_columns
    assert {c.column: c.named_by for c in made.unused_columns} == {"id": (), "b": ("shop.top",), "day": ()}
