"""The verbs that look: data, queries, graphs, audits, tests, environments; one shop is built for all of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from tests.planner.cli.conftest import TODAY, CommandLine, clear_tables
from tests.planner.shop import write_shop

TEST = """
test_total:
  model: shop.total
  inputs:
    shop.daily: [{price: 3}, {price: 4}]
  outputs:
    query: [{total: 7}]
"""
ODD = """select cast(null as int) as nothing, 1.50 as price, true as sold, date'2026-01-02' as day,
  timestamp'2026-01-02 03:04:05' as at, array(1, 2) as list, named_struct('a', 1, 'b', 'x') as pair,
  map('k', 1.5) as map, X'00ff' as bytes, double('nan') as nan, 'two\\nlines' as text, '注文' as wide"""


@pytest.fixture(scope="module")
def mergeplan(tmp_path_factory: pytest.TempPathFactory, shared_engine: SparkEngine) -> Iterator[CommandLine]:
    """`mergeplan` in a shop whose prod is built."""
    root = tmp_path_factory.mktemp("shop")
    write_shop(root, apart="")
    with clear_tables(shared_engine):
        mergeplan = CommandLine(root, shared_engine)
        mergeplan.write("tests/total.yaml", TEST)
        assert mergeplan("plan", "--auto-apply", "--execution-time", TODAY).code == 0
        yield mergeplan


def test_fetchdf_prints_rows_as_an_aligned_table(mergeplan: CommandLine) -> None:
    ran = mergeplan("fetchdf", "select * from shop.items order by id;", "--limit", "2")

    assert ran.out == "   id         day  price\n0   1  2026-01-01     10\n1   2  2026-01-02     20\n"


def test_fetchdf_shows_every_sort_of_value_readably(mergeplan: CommandLine) -> None:
    titles, values = mergeplan("fetchdf", ODD).out.splitlines()

    assert values.split("  ")[0] == "0"
    assert [value.strip() for value in values.split("  ") if value.strip()][1:] == [
        "NULL", "1.50", "true", "2026-01-02", "2026-01-02 03:04:05+00:00", "[1, 2]", '{"a": 1, "b": "x"}',
        '{"k": "1.5"}', "00ff", "nan", "two\\nlines", "注文",
    ]  # fmt: skip
    assert titles.index("text") + 4 == values.index("two\\nlines") + 10


def test_fetchdf_as_json_is_one_line_of_plain_values(mergeplan: CommandLine) -> None:
    ran = mergeplan("fetchdf", ODD, "--output", "json")

    assert len(ran.lines) == 1
    assert dict(zip(ran.result["columns"], ran.result["rows"][0], strict=True)) == {
        "nothing": None, "price": "1.50", "sold": True, "day": "2026-01-02", "at": "2026-01-02 03:04:05+00:00",
        "list": [1, 2], "pair": {"a": 1, "b": "x"}, "map": {"k": "1.5"}, "bytes": "00ff", "nan": "nan",
        "text": "two\nlines", "wide": "注文",
    }  # fmt: skip


def test_fetchdf_as_csv_can_be_read_again(mergeplan: CommandLine) -> None:
    ran = mergeplan("fetchdf", ODD, "-o", "csv")

    (row,) = csv.DictReader(io.StringIO(ran.out))
    assert (row["nothing"], row["sold"], row["text"], row["pair"]) == ("", "true", "two\nlines", '{"a": 1, "b": "x"}')


def test_fetchdf_without_rows_says_so(mergeplan: CommandLine) -> None:
    assert mergeplan("fetchdf", "select id, day from shop.items where false").out == "No rows; columns: id, day\n"


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("select * from shop.nothing", "The table or view `shop`.`nothing` cannot be found."),
        ("selec 1", "Syntax error at or near 'selec'"),
        ("select 1/0", "Division by zero."),
        ("select cast('x' as int)", 'The value \'x\' of the type "STRING" cannot be cast to "INT"'),
        (" ", "The query is empty."),
    ],
)
def test_fetchdf_tells_what_is_wrong_with_a_query(sql: str, told: str, mergeplan: CommandLine) -> None:
    ran = mergeplan("fetchdf", sql)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"Error: {told}")
    assert ran.err.count("\n") == 1


def test_test_runs_the_unit_tests_that_are_asked_for(mergeplan: CommandLine) -> None:
    for chosen in ((), ("test_total",), ("shop.total",), ("-k", "tot")):
        ran = mergeplan("test", *chosen)

        assert ran.code == 0
        assert "1 test passed in " in ran.out
    assert mergeplan("test", "-o", "json").result["tests"] == {"passed": 1, "failed": 0, "unchanged": 0}


def test_a_failed_test_shows_how_the_rows_differ(mergeplan: CommandLine) -> None:
    mergeplan.edit("tests/total.yaml", "total: 7", "total: 8")
    ran = mergeplan("test")
    mergeplan.edit("tests/total.yaml", "total: 8", "total: 7")

    assert ran.code == 1
    assert "FAIL: test_total (tests/total.yaml:2)" in ran.out
    assert "8" in ran.out.partition("FAIL")[2]


def test_audit_counts_what_ran_and_what_failed(mergeplan: CommandLine) -> None:
    assert mergeplan("audit").out == "1 audit ran, 0 failed.\n"
    assert mergeplan("audit", "--model", "shop.total").out == "0 audits ran, 0 failed.\n"
    audit, result = mergeplan("audit", "--output", "json").lines
    assert (audit["path"], audit["line"], audit["ok"]) == ("models/daily.sql", 5, True)
    assert result["audit_counts"] == {"passed": 1, "failed": 0, "unchanged": 0}


def test_render_prints_the_query_as_spark_runs_it(mergeplan: CommandLine) -> None:
    ran = mergeplan("render", "SHOP.Daily", "--start", "2026-01-01", "--end", "2026-01-02")

    assert ran.out.splitlines()[-2:] == [
        "WHERE",
        "  day BETWEEN CAST('2026-01-01' AS DATE) AND CAST('2026-01-02' AS DATE)",
    ]


def test_dag_draws_the_graph_in_reading_order(mergeplan: CommandLine) -> None:
    assert mergeplan("dag", "--select", "+shop.daily").out == (
        "shop.items (SEED)\nshop.daily (INCREMENTAL_BY_TIME_RANGE)  <- shop.items\n"
    )
    assert mergeplan("dag", "--select", "shop.total+", "-o", "mermaid").out == (
        'graph LR\n  m0["shop.total"]\n  m1["shop.shown"]\n  m0 --> m1\n'
    )
    assert mergeplan("dag", "-o", "json").result["models"][-1] == {"name": "shop.shown", "parents": ["shop.total"]}


def test_environments_are_listed_under_titles(mergeplan: CommandLine) -> None:
    titles, prod = mergeplan("environments").out.splitlines()

    assert titles.split() == ["name", "revision", "plan", "id", "promoted", "at", "models", "views", "expires", "at"]
    assert prod.split()[:2] == ["prod", "1"]
    assert prod.split()[-3:] == ["4", "4", "never"]
    assert titles.index("revision") == prod.index("1")
    (row,) = mergeplan("environments", "-o", "json").result["environments"]
    assert (row["name"], row["revision"], row["models"]) == ("prod", 1, 4)


def test_environments_shows_one_environments_history(mergeplan: CommandLine) -> None:
    (row,) = mergeplan("environments", "prod", "-o", "json").result["revisions"]

    assert (row["revision"], row["action"]) == (1, "promoted")
    assert mergeplan("environments", "prod").out.splitlines()[0].startswith("revision  action")


def test_info_tells_what_is_there(mergeplan: CommandLine) -> None:
    facts = mergeplan("info", "--output", "json").result["info"]

    assert {name: facts[name] for name in ("gateway", "models", "audits", "tests", "environments")} == {
        "gateway": "local", "models": 4, "audits": 0, "tests": 1, "environments": 1,
    }  # fmt: skip
    assert facts["spark"].startswith("4.")
    assert f"spark:         {facts['spark']}\n" in mergeplan("info").out


def test_info_fails_when_the_state_does_not_answer(mergeplan: CommandLine, tmp_path: Path) -> None:
    other = CommandLine(tmp_path, mergeplan.engine)
    write_shop(tmp_path)
    other.edit(
        "config.yaml",
        "default_gateway",
        "    state_connection: {type: sqlite, url: 'sqlite:////dev/null/x'}\ndefault_gateway",
    )

    ran = other("info")

    assert ran.code == 1
    assert "state:         not reachable: The state database sqlite:////dev/null/x does not answer" in ran.out
    assert other("info", "--skip-connection").code == 0


def test_clean_takes_caches_and_logs_and_nothing_else(offline: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERGEPLAN_CACHE", str(offline.root / ".mergeplan/cache"))
    write_shop(offline.root)
    for name in ("cache/a/b", "spark/spark.log", "spark/warehouse/t"):
        offline.write(f".mergeplan/{name}", "12345")

    ran = offline("clean")

    assert ran.out == "2 files removed, 10 bytes.\n"
    assert [path.name for path in (offline.root / ".mergeplan").rglob("*") if path.is_file()] == ["t"]


def test_clean_leaves_alone_what_else_lies_in_the_folder_of_the_cache(
    offline: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MERGEPLAN_CACHE", str(tmp_path / "mine"))
    write_shop(offline.root)
    assert offline("dag").code == 0
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["entries.db"]
    (tmp_path / "mine/thesis.txt").write_text("years of work")

    assert offline("clean").out.startswith("1 file removed, ")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_migrate_may_be_repeated(mergeplan: CommandLine) -> None:
    assert mergeplan("migrate").out == mergeplan("migrate").out == "The state database is up to date.\n"
    assert mergeplan("migrate", "-o", "json").result["ok"]


def test_bad_rows_are_masked_unless_they_are_asked_for(mergeplan: CommandLine) -> None:
    mergeplan.write("audits/dear.sql", "AUDIT (name dear, standalone true);\nSELECT total FROM shop.total")
    masked, full = mergeplan("audit", "prod"), mergeplan("audit", "prod", "--samples", "full")
    mergeplan.edit("config.yaml", "default_gateway", "audits: {show_samples: none}\ndefault_gateway")
    nothing = mergeplan("audit", "prod", "--output", "json")

    assert "✘ audit dear of shop.total: 1 failing row\n" in masked.out
    assert "│ ## " in masked.out and "│ 60 " in full.out
    assert nothing.lines[-2]["sample"] == {"columns": ["total"], "rows": []}
    assert (nothing.lines[-2]["path"], nothing.lines[-2]["line"]) == ("audits/dear.sql", 1)
