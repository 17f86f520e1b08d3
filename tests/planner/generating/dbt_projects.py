"""dbt projects as files, and random edits of them: numbered families of a seed, a macro, models and a snapshot."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

STRATEGIES = {
    "append": "",
    "merge": "unique_key='id', file_format='parquet'",
    "delete+insert": "unique_key='id', file_format='parquet'",
    "insert_overwrite": "partition_by=['day']",
    "microbatch": "event_time='day', begin='2026-01-01', batch_size='day', partition_by=['day']",
}
PROJECT = """
name: families
version: "1.0"
config-version: 2
profile: families
models:
  families:
    +materialized: table
vars: {lowest: 1}
"""
PROFILES = """
families:
  target: prod
  outputs:
    prod: {type: spark, method: session, host: none, schema: SCHEMA}
"""
SOURCES = """
version: 2
sources:
  - name: raw
    schema: raw
    tables:
      - name: items
        config: {event_time: day}
        columns:
          - {name: id, data_type: int}
          - {name: code, data_type: string}
          - {name: price, data_type: int}
      - name: people
"""
FILES = {  # a family's files; N is its number
    "seeds/rates_N.csv": "code,rate,note\nEUR,2,home\nUSD,3,away\n",
    "macros/cents_N.sql": "{% macro cents_N(column) %}{{ column }} * 100{% endmacro %}",
    "models/stg_N.sql": "{{ config(materialized='ephemeral') }}\n"
    "select id, day, code, price, {{ cents_N('price') }} as cents from {{ source('raw', 'items') }}\n"
    "where price >= {{ var('lowest') }}",
    "models/inc_N.sql": "{{ config(materialized='incremental', CONFIG) }}\n"
    "select id, day, code, cents from {{ ref('stg_N') }}\n"
    "{% if is_incremental() %}where day > LATEST{% endif %}",
    "models/total_N.sql": "select i.code, max(r.rate) as rate, sum(i.cents) as cents, count(*) as n\n"
    "from {{ ref('inc_N') }} as i left join {{ ref('rates_N') }} as r on i.code = r.code\n"
    "group by i.code",
    "models/shown_N.sql": "{{ config(materialized='view') }}\nselect code, cents from {{ ref('total_N') }} where n > 0",
    "snapshots/past_N.sql": "{% snapshot past_N %}\n"
    "{{ config(strategy='check', unique_key='id', check_cols=['name'], file_format='parquet') }}\n"
    "select id, name, at from {{ source('raw', 'people') }}\n"
    "{% endsnapshot %}",
    "models/people_N.sql": "select id, name from {{ ref('past_N') }} where dbt_valid_to is null",
}
BY_BATCH = "{{ config(materialized='incremental', CONFIG) }}\nselect id, day, code, cents from {{ ref('stg_N') }}"
EDITS = (  # a file, what stands there, and what comes in its place
    ("seeds/rates_N.csv", "EUR,2", "EUR,5"),
    ("seeds/rates_N.csv", "home", "'home'"),
    ("seeds/rates_N.csv", "home\nUSD,3,away", "home\nUSD,3,far"),
    ("seeds/rates_N.csv", "EUR,2,home\nUSD,3,away", "USD,3,away\nEUR,2,home"),
    ("macros/cents_N.sql", "* 100", "* 1000"),
    ("macros/cents_N.sql", "{{ column }} * 100", "(100 * {{ column }})"),
    ("macros/cents_N.sql", "{{ column }} * 100", "cast({{ column }} * 100 as bigint)"),
    ("macros/cents_N.sql", "{{ column }}", "{{ column | upper }}"),
    ("models/stg_N.sql", "ephemeral", "view"),
    ("models/stg_N.sql", "ephemeral", "table"),
    ("models/stg_N.sql", "as cents", "as cents, upper(code) as more"),
    ("models/stg_N.sql", "id, day, code, price", "price, code, id, day"),
    ("models/stg_N.sql", "as cents from", "as CENTS from"),
    ("models/stg_N.sql", "var('lowest')", "var('lowest') + 4"),
    ("models/stg_N.sql", "price >=", "price + 0 >="),
    ("models/stg_N.sql", "where price", "where code is not null and price"),
    ("models/stg_N.sql", "code, price", "coalesce(code, 'none') as code, price"),
    ("models/stg_N.sql", "price, {{", "{% if target.name == 'prod' %}price, {% endif %}{{"),
    ("models/inc_N.sql", "id, day, code, cents", "id, cents, day, code"),
    ("models/inc_N.sql", "id, day, code, cents", "id, day, code, cents, 1 as one"),
    ("models/inc_N.sql", "id, day, code, cents from", "* from (select id, day, code, cents from"),
    ("models/inc_N.sql", "code, cents", "lower(code) as code, cents"),
    ("models/inc_N.sql", "day >", "day >="),
    ("models/inc_N.sql", "is_incremental()", "not not is_incremental()"),
    ("models/inc_N.sql", "CONFIG", "on_schema_change='append_new_columns', CONFIG"),
    ("models/inc_N.sql", "CONFIG", "tags=['new'], CONFIG"),
    ("models/inc_N.sql", "CONFIG", "ANOTHER"),
    ("models/inc_N.sql", "materialized='incremental', CONFIG", "materialized='table'"),
    ("models/total_N.sql", "sum(i.cents)", "sum(i.cents + 1)"),
    ("models/total_N.sql", "count(*)", "count(i.code)"),
    ("models/total_N.sql", "count(*)", "count(1)"),
    ("models/total_N.sql", "left join", "join"),
    ("models/total_N.sql", "i.code = r.code", "r.code = i.code"),
    ("models/total_N.sql", "max(r.rate) as rate, ", ""),
    ("models/total_N.sql", "group by i.code", "group by all"),
    ("models/total_N.sql", "group by i.code", "group by i.code having count(*) > 1"),
    ("models/shown_N.sql", "'view'", "'table'"),
    ("models/shown_N.sql", "where n > 0", "where n > 1"),
    ("models/shown_N.sql", "code, cents", "cents, code"),
    ("models/shown_N.sql", "where n > 0", "where n > 0 -- all of them"),
    ("snapshots/past_N.sql", "select id, name, at from {{", "select * from {{"),
    ("snapshots/past_N.sql", "id, name, at", "id, upper(name) as name, at"),
    ("snapshots/past_N.sql", "id, name, at", "id, name, at, 1 as more"),
    ("snapshots/past_N.sql", "['name']", "['name', 'at']"),
    ("snapshots/past_N.sql", "strategy='check'", "hard_deletes='invalidate', strategy='check'"),
    ("snapshots/past_N.sql", "strategy='check', unique_key='id', check_cols=['name']",
     "strategy='timestamp', unique_key='id', updated_at='at'"),
    ("models/people_N.sql", "id, name", "name, id"),
    ("models/people_N.sql", "is null", "is not null"),
    ("models/people_N.sql", "select id", "select distinct id"),
)  # fmt: skip


@dataclass(frozen=True)
class Family:
    """The files of a family, and what was done to them."""

    number: int
    strategy: str
    files: Mapping[str, str]
    edits: tuple[str, ...] = ()

    def write(self, root: Path) -> None:
        for name, text in self.files.items():
            path = root / name.replace("N", str(self.number))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("_N", f"_{self.number}"))

    @property
    def models(self) -> tuple[str, ...]:
        """The stored models and views, parents first."""
        names = (Path(name).stem for name in self.files if not name.startswith("macros"))
        return tuple(name.replace("N", str(self.number)) for name in names if not name.startswith("stg"))


def choose_family(number: int, seed: int) -> tuple[Family, Family]:
    """Return a family, and the same after one or two edits."""
    rng = random.Random(seed)  # noqa: S311 # reproducible, not secret
    strategy = rng.choice(tuple(STRATEGIES))
    files = dict(FILES)
    if strategy == "microbatch":
        files["models/inc_N.sql"] = BY_BATCH
    edited, words = dict(files), list[str]()
    while not words or rng.random() < 0.3:
        name, old, new = rng.choice(EDITS)
        if old in edited[name]:
            words.append(f"{name}: {old!r} -> {new!r}")
            edited[name] = edited[name].replace(old, new, 1) + (") as q" if "* from (" in new else "")
    another = rng.choice([name for name in STRATEGIES if name in ("append", "merge", "insert_overwrite")])
    before = Family(number, strategy, _set_strategy(files, strategy, another))
    return before, replace(before, files=_set_strategy(edited, strategy, another), edits=tuple(words))


def _set_strategy(files: Mapping[str, str], strategy: str, another: str) -> dict[str, str]:
    settings = {
        word: f"incremental_strategy='{name}', {STRATEGIES[name]}"
        for word, name in (("CONFIG", strategy), ("ANOTHER", another))
    }
    # dbt-spark deletes before or after it reads the table itself, as the version decides
    latest = "date'2026-01-01'" if strategy == "delete+insert" else "(select max(day) from {{ this }})"
    text = files["models/inc_N.sql"].replace("LATEST", latest)
    for word, setting in settings.items():
        text = text.replace(word, setting)
    return {**files, "models/inc_N.sql": text}


def write_project(root: Path, schema: str, families: list[Family]) -> Path:
    """Write a project of these families, whose tables are in a schema."""
    top = {"dbt_project.yml": PROJECT, "profiles.yml": PROFILES.replace("SCHEMA", schema), "models/raw.yml": SOURCES}
    for name, text in top.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for family in families:
        family.write(root)
    return root
