"""Keywords of Spark as names: each keyword in each place where a name may stand."""

from __future__ import annotations

from collections.abc import Iterator

USES = {
    "a column": "SELECT {} AS x FROM s.o",
    "a column of a table": "SELECT o.{} AS x FROM s.o",
    "a column without an alias": "SELECT id, {} FROM s.o",
    "an alias": "SELECT id AS {} FROM s.o",
    "an alias without AS": "SELECT id {} FROM s.o",
    "an alias in a list": "SELECT id AS {}, n AS x FROM s.o",
    "the alias of a table": "SELECT {}.id FROM s.o AS {}",
    "the alias of a table without AS": "SELECT id FROM s.o {} WHERE id > 1",
    "the last word": "SELECT id FROM s.o {}",
    "the alias of a joined table": "SELECT o.id FROM s.o JOIN s.e AS {} ON o.id = {}.id",
    "the alias of a subquery": "SELECT x FROM (SELECT 1 AS x) {}",
    "a CTE": "WITH {} AS (SELECT 1 AS x) SELECT x FROM {}",
    "a column of a CTE": "WITH c({}) AS (SELECT 1) SELECT {} + 1 AS x FROM c",
    "a new name of a column": "SELECT 1 AS x FROM s.o AS t({}, b, c, d)",
    "a column in WHERE": "SELECT id FROM s.o WHERE {} = 1 AND id > 0",
    "a column in GROUP BY": "SELECT COUNT(*) AS x FROM s.o GROUP BY {}",
    "a column in ORDER BY": "SELECT id FROM s.o ORDER BY {} LIMIT 1",
    "an argument": "SELECT MAX({}) AS x FROM s.o",
    "a second argument": "SELECT COALESCE(id, {}) AS x FROM s.o",
    "an operand": "SELECT 1 + {} * 2 AS x FROM s.o",
    "a branch": "SELECT CASE WHEN {} > 1 THEN {} ELSE {} END AS x FROM s.o",
    "a field": "SELECT st.{} AS x FROM s.t",
    "a field of STRUCT": "SELECT STRUCT(id AS {}) AS x FROM s.o",
    "a field of a type": "SELECT CAST(NULL AS STRUCT<{}: INT>) AS x FROM s.o",
    "a variable": "SELECT TRANSFORM(arr, {} -> {} + 1) AS x FROM s.t",
    "a table": "SELECT 1 AS x FROM s.{}",
    "a window": "SELECT SUM(id) OVER {} AS x FROM s.o WINDOW {} AS (PARTITION BY n)",
    "a column of USING": "SELECT 1 AS x FROM s.o JOIN s.e USING ({})",
    "a column of LATERAL VIEW": "SELECT id FROM s.t LATERAL VIEW EXPLODE(arr) q AS {}",
}


def keyword_uses(keywords: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """Each keyword, each use and the query that it makes."""
    for keyword in keywords:
        for use, template in USES.items():
            yield keyword, use, template.replace("{}", keyword.lower())
