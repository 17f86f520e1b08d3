"""Which audits may pass again without running, by their query alone."""

from __future__ import annotations

import pytest

from mergeplan.planner.apply.audits.reuse import is_open_query, read_tables
from mergeplan.planner.parsing.macros.expand import spark_tree

ROW = "SELECT * FROM t WHERE"
ODD = (
    "SELECT rand() AS x FROM t",
    f"{ROW} id < rand()",
    f"{ROW} d < current_date",
    f"{ROW} d < current_date()",
    f"{ROW} at < now()",
    f"{ROW} d < DATE 'today'",
    f"{ROW} d < CAST('yesterday' AS DATE)",
    f"{ROW} at < current_timestamp - INTERVAL 1 DAY",
    f"{ROW} unix_timestamp() > 1",
    f"{ROW} who <> current_user()",
    f"{ROW} zone = current_timezone()",
    f"{ROW} my_function(id) > 1",
    f"{ROW} uuid() = id",
    "SELECT * FROM t LIMIT 3",
    f"{ROW} id IN (SELECT id FROM t LIMIT 1)",
    "SELECT * FROM t TABLESAMPLE (10 PERCENT)",
    "SELECT first(id) AS x FROM t HAVING x > 1",
    "SELECT any_value(id) AS x FROM t HAVING x > 1",
    "SELECT * FROM (SELECT *, row_number() OVER (ORDER BY d) AS n FROM t) WHERE n > 7",
    "SELECT * FROM (SELECT *, lag(id) OVER (ORDER BY d) AS b FROM t) WHERE b > id",
    "SELECT collect_list(id) AS x FROM t HAVING size(x) > 3",
    "SELECT avg(x) AS x FROM t HAVING x > 1",
    "SELECT stddev(x) AS x FROM t HAVING x > 1",
    "SELECT max_by(id, d) AS x FROM t HAVING x > 1",
    f"{ROW} monotonically_increasing_id() > 7",
    f"{ROW} input_file_name() = 'x'",
    f"{ROW} spark_partition_id() = 3",
)
PLAIN = (
    f"{ROW} id IS NULL",
    f"{ROW} d < DATE '2026-01-01'",
    "SELECT id FROM t GROUP BY id HAVING count(*) > 1",
    "WITH c AS (SELECT max(id) AS m FROM t) SELECT * FROM c WHERE m > 100",
    "SELECT * FROM t LEFT ANTI JOIN s ON t.id = s.id",
)


@pytest.mark.parametrize("sql", ODD)
def test_chance_clocks_orders_and_unknown_functions_keep_an_audit_running(sql: str) -> None:
    assert is_open_query(spark_tree(sql))


@pytest.mark.parametrize("sql", PLAIN)
def test_a_query_that_follows_from_its_tables_is_closed(sql: str) -> None:
    assert not is_open_query(spark_tree(sql))


def test_the_tables_of_a_query_are_without_its_ctes() -> None:
    tree = spark_tree(
        "WITH c AS (SELECT * FROM a.b) SELECT * FROM c JOIN `D`.e USING (id) WHERE id IN (SELECT id FROM f.g)"
    )
    assert read_tables(tree) == {"a.b", "d.e", "f.g"}
