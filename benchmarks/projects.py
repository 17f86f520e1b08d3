"""Writes projects of any size: sources, staging by day, joined intermediate models, marts; macros and mixed kinds.

The tables are wide, the queries have CTEs, joins and windows over some forty lines, and the hub (`staging.m0`) has a
sixth of all models downstream. The same size and seed give the same files. Every tenth staging model is read by many.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path

CONFIG = """gateways:
  local:
    connection:
      type: spark

model_defaults:
  dialect: spark
  start: 2026-01-01
  owner: data-team

variables:
  minimum: 10
  countries: [DE, FR, IT]
"""
SOURCES = 20
COLUMNS = (("id", "bigint"), ("customer_id", "bigint"), ("country", "string"), ("amount", "decimal(12,2)"),
           ("status", "string"), ("ds", "string"), ("updated_at", "timestamp"))  # fmt: skip
MEASURES = tuple(f"measure_{number}" for number in range(24))
HUB = "staging.m0"
HUB_SHARE = 0.2  # of the intermediate models; the marts that read those make it a sixth of all models


def write_project(root: Path, size: int, seed: int = 1) -> dict[str, Path]:
    """Write a project of that many models into the folder; model -> its file."""
    (root / "config.yaml").write_text(CONFIG)
    (root / "external_models.yaml").write_text("".join(_sources()))
    rng = random.Random(seed)  # noqa: S311 # reproducible, not secret
    files: dict[str, Path] = {}
    layers: dict[str, list[str]] = {"staging": [], "intermediate": [], "marts": []}
    for number in range(size):
        layer = "staging" if number < size * 0.35 else "intermediate" if number < size * 0.7 else "marts"
        name = f"{layer}.m{number}"
        path = root / "models" / layer / f"{name.split('.')[1]}.sql"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_WRITERS[layer](name, number, layers, rng))
        layers[layer].append(name)
        files[name] = path
    return files


def _sources() -> Iterator[str]:
    for number in range(SOURCES):
        columns = "".join(
            f"    {name}: {kind}\n" for name, kind in (*COLUMNS, *((name, "double") for name in MEASURES))
        )
        yield f"- name: raw.source_{number}\n  columns:\n{columns}"


def _staging(name: str, number: int, _: dict[str, list[str]], rng: random.Random) -> str:
    kind = (
        "VIEW" if number % 4 == 0 else "INCREMENTAL_BY_TIME_RANGE (time_column ds, batch_size 30)"
        if number % 4 == 1 else "FULL"
    )  # fmt: skip
    where = "ds BETWEEN @start_ds AND @end_ds" if "TIME" in kind else f"amount > {number % 7}"
    audits = (
        ""
        if "VIEW" in kind
        else ",\n  audits (not_null(columns := (id, ds)), accepted_range(column := amount, min_v := 0))"
    )
    return f"""MODEL (
  name {name},
  kind {kind},
  cron '@daily',
  grain id,
  description 'Cleaned rows of source {number % SOURCES}'{audits}
);

-- one row an event
WITH cleaned AS (
  SELECT
    id,
    customer_id,
    UPPER(TRIM(country)) AS country,
    amount,
    COALESCE(status, 'unknown') AS status,
    ds,
    updated_at,
{join_names("    {0}", MEASURES)}
  FROM raw.source_{rng.randrange(SOURCES)}
  WHERE {where}
)
SELECT
  id,
  customer_id,
  country,
  CAST(amount AS DECIMAL(12, 2)) AS amount, /* in euro */
  status,
  CASE WHEN amount >= @minimum THEN 'large' WHEN amount > 0 THEN 'small' ELSE 'none' END AS size_class,
  ds,
  updated_at,
{join_names("  COALESCE({0}, 0) AS {0}", MEASURES)}
FROM cleaned
"""


def join_names(form: str, names: Iterable[str]) -> str:
    return ",\n".join(form.format(name) for name in names)


def _intermediate(name: str, number: int, layers: dict[str, list[str]], rng: random.Random) -> str:
    hubs = layers["staging"][::10]
    left = rng.choice(hubs) if number % 3 == 0 else rng.choice(layers["staging"][1:])
    left = HUB if rng.random() < HUB_SHARE else left
    right = rng.choice(layers["staging"][1:])
    measures = rng.sample(MEASURES, 10)
    return f"""MODEL (
  name {name},
  kind {"FULL" if number % 5 else "VIEW"},
  description 'Events of two sources, the latest first'
);

WITH latest AS (
  SELECT
    id, customer_id, country, amount, status, ds,
{join_names("    {0}", measures)},
    ROW_NUMBER() OVER (PARTITION BY id ORDER BY updated_at DESC, ds DESC) AS place
  FROM {left}
), other AS (
  SELECT
    customer_id, SUM(amount) AS spent, COUNT(*) AS events, MAX(ds) AS last_ds,
{join_names("    AVG({0}) AS mean_{0}", measures[:4])}
  FROM {right}
  WHERE status <> 'deleted' AND country IN ('DE', 'FR', 'IT')
  GROUP BY customer_id
  HAVING SUM(amount) > {number % 50}
)
SELECT
  l.id,
  l.customer_id,
  l.country,
  l.amount,
  l.amount * 1.{number % 90 + 10} AS gross,
  o.spent,
  o.events,
  SUM(l.amount) OVER (PARTITION BY l.customer_id ORDER BY l.ds, l.id) AS running_amount,
  CONCAT(l.country, '-', CAST(l.id AS STRING)) AS label_{number},
{join_names("  l.{0}", measures)},
{join_names("  l.{0} - o.mean_{0} AS above_{0}", measures[:4])},
  l.ds
FROM latest AS l
LEFT JOIN other AS o ON l.customer_id = o.customer_id AND o.last_ds >= l.ds
WHERE l.place = 1
"""


def _mart(name: str, number: int, layers: dict[str, list[str]], rng: random.Random) -> str:
    first, second = rng.sample(layers["intermediate"], 2)
    return f"""MODEL (
  name {name},
  kind FULL,
  tags (mart, daily),
  column_descriptions (country = 'ISO code', revenue = 'Sum of gross amounts')
);

WITH joined AS (
  SELECT a.country, a.ds, a.gross, b.events, b.spent
  FROM {first} AS a
  JOIN {second} AS b ON a.customer_id = b.customer_id
)
SELECT
  country,
  ds,
  COUNT(*) AS orders_{number},
  SUM(gross) AS revenue,
  AVG(spent) AS average_spent,
  @EACH(@countries, c -> SUM(CASE WHEN country = c THEN gross ELSE 0 END) AS revenue_@c),
  MAX(events) AS most_events
FROM joined
GROUP BY country, ds
"""


_WRITERS = {"staging": _staging, "intermediate": _intermediate, "marts": _mart}
