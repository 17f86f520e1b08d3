"""The diff of an edit is that of the file that was edited."""

from __future__ import annotations

from dataclasses import replace

from mergeplan.planner.model.model import Model
from mergeplan.planner.model.property import replace_settings
from mergeplan.planner.plan.diffs import source_diff
from tests.planner.building import model

COMPILED = model("s.a", "SELECT 1 AS a")
OLD = replace_settings(
    COMPILED, {"source": "MODEL (name s.a, kind FULL); SELECT 1 AS a", "dbt_text": "select {{ one() }} as a"}
)


def body(old: Model | None, new: Model | None) -> list[str]:
    return source_diff(old, new).splitlines()[3:]


def test_an_edit_of_a_file_of_dbt_is_shown_as_it_was_made() -> None:
    new = replace_settings(
        OLD,
        {
            "sql": "SELECT 2 AS a",
            "source": "MODEL (name s.a, kind FULL); SELECT 2 AS a",
            "dbt_text": "select 2 as a",
        },
    )

    assert body(OLD, new) == ["-select {{ one() }} as a", "+select 2 as a"]
    assert body(None, new) == ["+select 2 as a"]


def test_an_edit_of_a_macro_is_shown_in_the_compiled_query_without_a_header() -> None:
    new = replace(OLD, sql="SELECT 2 AS a", source="MODEL (name s.a, kind FULL); SELECT 2 AS a")

    assert body(OLD, new) == [" SELECT", "-  1 AS a", "+  2 AS a"]
    assert body(replace_settings(OLD, {"dbt_text": ""}), new) == [" SELECT", "-  1 AS a", "+  2 AS a"]
