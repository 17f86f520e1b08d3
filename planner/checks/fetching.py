"""Many small queries as few Spark queries: each is a scalar subquery that gathers its rows."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from mergeplan.planner.engine.protocol import Engine, Rows
from mergeplan.planner.errors import MergeplanError, QueryError

THREADS = 4
TOGETHER = 12  # queries per Spark query


def fetch_all(engine: Engine, queries: Sequence[str]) -> Mapping[str, Rows | MergeplanError]:
    """Return, by query, its rows (unordered, columns unnamed) or Spark's refusal; one by one where a query fails."""
    distinct = list(dict.fromkeys(queries))
    parts = [distinct[start : start + TOGETHER] for start in range(0, len(distinct), TOGETHER)]
    answers: dict[str, Rows | MergeplanError] = {}
    with ThreadPoolExecutor(THREADS, thread_name_prefix="query") as pool:
        for part in parts:
            try:
                answers |= _fetch_together(engine, part)
            except QueryError:
                answers |= zip(part, pool.map(lambda sql: _fetch_alone(engine, sql), part), strict=True)
    return answers


def _fetch_together(engine: Engine, queries: Sequence[str]) -> dict[str, Rows | MergeplanError]:
    gathered = (f"(SELECT COLLECT_LIST(STRUCT(*)) FROM ({sql})) AS q{n}" for n, sql in enumerate(queries))
    (answers,) = engine.fetch(f"SELECT {', '.join(gathered)}").rows
    return {
        sql: Rows((), tuple(tuple(row) for row in answer if isinstance(row, tuple)))
        for sql, answer in zip(queries, answers, strict=True)
        if isinstance(answer, list)
    }


def _fetch_alone(engine: Engine, sql: str) -> Rows | MergeplanError:
    try:
        return engine.fetch(sql)
    except QueryError as error:
        return error
