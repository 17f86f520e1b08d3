"""Every example of docs/reference/macros.md comes out as the page says."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.parsing.sql.macro_scope import ColumnTypes

PAGE = (Path(__file__).parent.parent / "docs" / "reference" / "macros.md").read_text()
COLUMNS: dict[str, ColumnTypes] = {
    "s.foo": {"a": "string", "b": "string", "c": "string", "d": "int"},
    "s.bar": {"a": "string", "b": "int", "c": "string"},
}
DEFAULTS = Defaults(
    datetime(2026, 1, 1, tzinfo=UTC),
    variables={"n": 3, "team": "red", "sizes": (1, 2)},
    gateway="main",
    columns=COLUMNS.get,
)
ROWS = [
    [cell.strip().replace("\\|", "|").strip("`") for cell in re.split(r"(?<!\\)\|", line)[3:5]]
    for line in PAGE.splitlines()
    if line.startswith("|") and line.count("`") >= 4 and len(re.split(r"(?<!\\)\|", line)) == 6
]
EXAMPLES = [(example, rendered) for example, rendered in ROWS if example]


@pytest.mark.parametrize(("example", "rendered"), EXAMPLES)
def test_an_example_comes_out_as_the_page_says(example: str, rendered: str) -> None:
    sql = f"JINJA_QUERY_BEGIN;\n{example}\nJINJA_END;" if "{{" in example or "{%" in example else example
    model, _ = parse_model(f"MODEL (name s.m);\n{sql}", "models/m.sql", DEFAULTS)

    assert model is not None
    assert model.sql == rendered


def test_the_page_has_examples_of_every_sort() -> None:
    assert len(EXAMPLES) > 35
