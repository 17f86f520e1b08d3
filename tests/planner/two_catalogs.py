"""A project with models in two catalogs, from its first plan to the janitor, in a process and a Spark of its own.

`python -m tests.planner.two_catalogs jdbc FOLDER` prints what is shown after each step, one line of JSON each. Of the
catalogs of type hadoop, which hold no views, the views lie in Spark's own.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import mergeplan
from mergeplan import RequestError, Session
from mergeplan.planner.apply.events import ignore_event
from mergeplan.planner.apply.janitor import sweep_tables
from mergeplan.planner.apply.old_versions import remove_old_versions
from tests.planner.lakehouse import NO_JARS

CONFIG = """
gateways:
  local:
    connection:
      type: spark
      master: local[2]
      config:
        spark.driver.memory: 700m
        spark.sql.shuffle.partitions: 2
        spark.jars.packages: org.xerial:sqlite-jdbc:3.46.0.0
        spark.sql.catalog.lake: org.apache.iceberg.spark.SparkCatalog
        spark.sql.catalog.lake.warehouse: {folder}/lake
        spark.sql.catalog.lake.cache-enabled: 'false'
        spark.sql.catalog.lake.type: {kind}
        spark.sql.catalog.lake.uri: jdbc:sqlite:{folder}/lake.db
        spark.sql.catalog.lake.jdbc.schema-version: V1
default_gateway: local
model_defaults: {{dialect: spark, start: 2026-01-01}}
environment_catalog_mapping: {{{mapping}}}
"""
MODELS = {
    "raw": "MODEL (name shop.raw, kind FULL);\nSELECT id, v FROM VALUES (1, 10), (2, 20) AS t(id, v)",
    "facts": "MODEL (name lake.shop.facts, kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id), description 'all facts');\n"
    "SELECT raw.id, spark_catalog.shop.raw.{column} AS v FROM spark_catalog.shop.raw",
    "days": "MODEL (name lake.shop.days, kind INCREMENTAL_BY_TIME_RANGE (time_column day), start '2026-01-01');\n"
    "SELECT id, v, d AS day FROM lake.shop.facts CROSS JOIN VALUES (DATE '2026-01-01'), (DATE '2026-01-02') AS t(d)\n"
    "WHERE d BETWEEN @start_date AND @end_date",
    "sums": "MODEL (name shop.{sums}, kind FULL);\nSELECT f.id, max(f.v) + sum(s.v) AS v FROM lake.shop.facts AS f\n"
    "JOIN Lake.Shop.{read} AS s ON f.id = s.id GROUP BY f.id",
}
VIEW = "MODEL (name lake.shop.seen, kind VIEW);\nSELECT id, v FROM lake.shop.days WHERE day = DATE '2026-01-01'"


def write(folder: Path, column: str, views: bool) -> None:
    """The project's models, of which one takes its values from this column."""
    for name, text in {**MODELS, **({"seen": VIEW} if views else {})}.items():
        names = {"sums": "facts", "read": "Seen"} if views else {"sums": "sums", "read": "Days"}
        (folder / f"models/{name}.sql").write_text(text.format(column=column, **names))


def full_pass(folder: Path, kind: str) -> None:
    """Build, edit, try the edit in an environment, promote it, roll back, sweep; what is shown after each."""
    views = kind == "jdbc"
    shown = ("lake.shop.facts", "lake.shop.seen", "shop.facts") if views else ("shop.facts", "shop.days", "shop.sums")
    dev = "lake.shop__dev.seen" if views else "spark_catalog.shop__dev.days"
    with mergeplan.open(folder, execution_time="2026-01-03 05:00:00") as session:
        for name, column, environment in (
            ("built", "v", "prod"),
            ("edited", "v + 1", "dev"),
            ("promoted", "v + 1", "prod"),
        ):
            write(folder, column, views)
            outcome = session.plan(environment).apply()
            line(name, [outcome.filled.batches, *(rows(session, table) for table in shown)])
            if name == "built":
                for view in (shown[0], shown[2]):
                    session.fetch(f"ALTER VIEW {view} SET TBLPROPERTIES ('by' = 'hand')")
        line("dev", rows(session, dev))
        line("kept", [hand_property(session, view) for view in (shown[0], shown[2])])
        session.rollback("prod")
        line("rolled back", [0, *(rows(session, table) for table in shown)])
        line(
            "tables", sorted({snapshot.table for one in session.environments() for snapshot in one.snapshots.values()})
        )
        session.invalidate("dev")
        swept(session)


def swept(session: Session) -> None:
    """The janitor, long after: what it drops, what is left in the second catalog, and whose old versions go."""
    work, later = session._work, datetime(2036, 1, 1, tzinfo=UTC)
    line("dropped", sorted(sweep_tables(work.store, work.engine, later, emit=ignore_event)))
    left = session.fetch("SHOW TABLES IN lake.mergeplan__shop").rows
    line("left", sorted(str(row[1]) for row in left))
    for table in (f"lake.mergeplan__shop.{row[1]}" for row in left):
        session.fetch(f"DELETE FROM {table} WHERE v = 10")
    line("cleaned", remove_old_versions(work.store, work.engine, timedelta(days=7), later).removed)
    line("still", [len(session.fetch(f"SELECT v FROM lake.mergeplan__shop.{row[1]}").rows) for row in left])


def line(name: str, value: object) -> None:
    """One line of JSON."""
    sys.stdout.write(json.dumps([name, value], default=str) + "\n")


def rows(session: Session, name: str) -> list[object]:
    """The values that a view shows."""
    return [row[0] for row in session.fetch(f"SELECT v FROM {name} ORDER BY id, v").rows]


def hand_property(session: Session, name: str) -> object:
    """The property that somebody set on a view."""
    return {row[0]: row[1] for row in session.fetch(f"SHOW TBLPROPERTIES {name}").rows}.get("by")


def main(kind: str, folder: Path) -> None:
    """All of it, in a folder that is not there yet."""
    (folder / "models").mkdir(parents=True)
    mapping = "" if kind == "jdbc" else "'.*': spark_catalog"
    (folder / "config.yaml").write_text(CONFIG.format(folder=folder, kind=kind, mapping=mapping))
    try:
        full_pass(folder, kind)
    except RequestError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(NO_JARS if error.message.startswith("Spark cannot fetch") else 1)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
