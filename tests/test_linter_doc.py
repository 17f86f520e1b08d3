"""The rules that docs/linter ships: each finds one thing where it is wrong, and nothing where it is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.catalog.tables import CatalogTables
from mergeplan.planner.project.loader import load_project
from mergeplan.planner.session.queries.rules import find_violations
from tests.linter_page import PAGE, write_page
from tests.planner.project.test_loader import CONFIG, NOW, project_of

EXAMPLES = Path(__file__).parent.parent / "docs" / "linter"
LINTER = "linter:\n  enabled: true\n  warn_rules: ALL\n"
RIGHT = {
    "external_models.yaml": "- {name: raw.orders, columns: {id: int, email: string, amount: double}}\n",
    "exposures.yaml": "- {name: Sales, owner: Ann, models: [mart.sales]}\n",
    "models/orders.sql": "MODEL (name stage.orders, kind FULL, owner ann, grain id,\n"
    "  audits (unique_values(columns := (id))),\n"
    "  column_descriptions (email = 'PII: an address'));\n"
    "SELECT id, email, CAST(amount AS DECIMAL(10, 2)) AS amount FROM raw.orders",
    "models/sales.sql": "MODEL (name mart.sales, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id), owner ann,\n"
    "  audits (not_null(columns := (id))),\n"
    "  column_descriptions (id = 'of the order', email = 'a masked address', amount = 'in EUR'));\n"
    "SELECT id, mask(email) AS email, amount FROM stage.orders",
}
WRONG = {
    "owner_missing": ("models/sales.sql", "owner ann,", "", "models/sales.sql:1"),
    "pii_reaches_exposure": ("models/sales.sql", "a masked address", "an address", "models/sales.sql:4"),
    "mart_reads_raw": ("models/sales.sql", "stage.orders", "raw.orders", "models/sales.sql:1"),
    "unread_column": ("models/orders.sql", " AS amount", " AS amount, 1 AS extra", "models/orders.sql:4"),
    "grain_without_audit": ("models/orders.sql", "unique_values", "not_null", "models/orders.sql:4"),
    "key_without_audit": ("models/sales.sql", "not_null", "unique_values", "models/sales.sql:4"),
    "exposure_without_owner": ("exposures.yaml", "owner: Ann, ", "", "models/sales.sql:1"),
    "undescribed_column": ("models/sales.sql", ", amount = 'in EUR'", "", "models/sales.sql:4"),
    "money_as_float": ("models/sales.sql", "email, amount", "email, double(amount) AS amount", "models/sales.sql:4"),
}


def list_findings(root: Path, rule: str, files: dict[str, str]) -> list[str]:
    texts = {"config.yaml": CONFIG + LINTER, "linter/rule.sql": (EXAMPLES / f"{rule}.sql").read_text(), **files}
    tables = CatalogTables(load_project(project_of(root, texts), NOW))
    return [str(violation.place) for violation in find_violations(tables)]


@pytest.mark.parametrize("rule", WRONG)
def test_an_example_finds_one_thing_where_it_is_wrong_and_nothing_where_it_is_right(rule: str, tmp_path: Path) -> None:
    path, right, wrong, place = WRONG[rule]
    assert right in RIGHT[path]

    assert list_findings(tmp_path, rule, RIGHT) == []
    assert list_findings(tmp_path, rule, {**RIGHT, path: RIGHT[path].replace(right, wrong)}) == [place]


def test_the_page_names_each_example_and_each_column() -> None:
    page = PAGE.read_text("utf-8")

    assert {path.stem for path in EXAMPLES.glob("*.sql")} == {*WRONG, "new_model_without_audit"}
    assert all(f"(../linter/{path.name})" in page for path in EXAMPLES.glob("*.sql"))
    assert page == write_page(page), "python -m tests.linter_page"
