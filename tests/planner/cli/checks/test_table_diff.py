"""mergeplan table_diff: models of two environments and tables, told as text, as JSON, and by the exit code."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mergeplan.planner.project.scaffold import Wishes, write_project
from tests.planner.cli.conftest import TODAY, CommandLine
from tests.planner.shop import ALONE

TOTAL = "MODEL (name shop.total, kind FULL{});\nSELECT a AS id, b AS name FROM VALUES {} AS t(a, b)"
GRAIN = ", grain id"


@pytest.mark.prove
def test_what_differs_between_environments_is_shown(shop: Callable[..., CommandLine]) -> None:
    mergeplan = shop(**ALONE | {"total": TOTAL.format(GRAIN, "(1, 'x'), (2, 'y'), (3, 'z')")})
    assert mergeplan("plan", "--auto-apply", "--execution-time", TODAY).code == 0
    mergeplan.write("models/total.sql", TOTAL.format(GRAIN, "(1, 'x'), (2, 'w'), (4, 'z')"))
    assert mergeplan("plan", "dev", "--auto-apply", "--execution-time", TODAY).code == 0

    shown = mergeplan("table-diff", "prod:dev", "shop.total", "--show-sample")
    told = mergeplan("table_diff", "prod:dev", "--output", "json", "-m", "shop.*")
    tables = mergeplan("table_diff", "shop.total:shop__dev.total", "--where", "id = 1")
    equal = mergeplan("table_diff", "dev:dev")

    assert (shown.code, told.code, tables.code, equal.code) == (5, 5, 0, 0)
    assert "├── in both: 2, of which 1 match (50.0 %)\n├── in prod only: 1\n└── in dev only: 1\n" in shown.out
    cells = [line.replace("│", "").split() for line in shown.out.splitlines() if line.startswith("│")]
    assert cells == [["name", "1", "50.0"], ["2", "y", "w"], ["3", "z"], ["4", "z"]]
    (diff,) = told.result["table_diffs"]
    assert (told.result["same"], diff["model"], diff["key"], diff["rows"]["changed"]) == (
        False,
        "shop.total",
        ["id"],
        1,
    )
    assert "└── the same: 1\n" in tables.out
    assert equal.out == "`dev` and `dev` show the same tables.\n"


def test_tables_of_the_same_files_are_said_to_be_so_in_one_line(shop: Callable[..., CommandLine]) -> None:
    mergeplan = shop(**ALONE | {"total": TOTAL.format(GRAIN, "(1, 'x')")})
    for environment in ("prod", "dev"):
        assert mergeplan("plan", environment, "--auto-apply", "--execution-time", TODAY).code == 0
    physical = mergeplan.state.environments.get("prod").snapshots["shop.total"].table

    shown = mergeplan("table_diff", "prod:dev", "shop.total")
    told = mergeplan("table_diff", f"{physical}:{physical}", "--output", "json")
    views = mergeplan("table_diff", "shop.total:shop.total", "--output", "json")

    assert (shown.code, told.code, views.code) == (0, 0, 0)
    assert shown.out.splitlines()[-2] == "Rows: the same, as both are the same files; none was read"
    (diff,), (read,) = told.result["table_diffs"], views.result["table_diffs"]
    assert (diff["same"], diff["same_files"], diff["rows"], diff["key"]) == (True, True, None, [])
    assert (read["same"], read["same_files"], read["rows"]["common"]) == (True, False, 1)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("prod", "`prod` does not name two tables or environments. Write `prod:dev`, or `schema.table:schema.table`."),
        ("prod:dev", "There is no environment `prod`."),
        ("a.b:c.d shop.a", "Two tables are no environments in which a model could be compared."),
        ("a.b:c.d --where (", "`--where`: The query is not valid Spark SQL"),
        ("a.b:c.d --where id=1;drop", "`--where`: it is one condition, without `;`."),
        ("prod:dev --where id=';'", "There is no environment"),
        ("a.b:c.d --rename x", "`x` renames nothing. Write `--rename old=new`."),
        ("a.b:c", "`a.b` cannot name an environment."),
        ("a.b:c.d.e.f", "`c.d.e.f` must have the form `schema.table`."),
    ],
)
def test_a_comparison_that_cannot_be_made_is_told(arguments: str, told: str, offline: CommandLine) -> None:
    write_project(offline.root, Wishes())

    ran = offline("table_diff", *arguments.split())

    assert (ran.code, ran.out) == (1, "")
    assert told in ran.err
    assert ran.err.count("\n") == 1
