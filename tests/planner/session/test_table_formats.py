"""The formats that a project's Spark is opened with. Run by `make prove-lakehouse`."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.engine.protocol import Connection, Engine
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.session.session import Session
from mergeplan.planner.session.settings import SessionSettings
from tests.conftest import FORMAT
from tests.planner.cli.conftest import TODAY, Lent
from tests.planner.shop import ALONE, FILES, write_shop

pytestmark = [pytest.mark.prove, pytest.mark.skipif(not FORMAT, reason="`make prove-lakehouse` says which format")]
OUTER = FILES["config.yaml"].replace("concurrent_tasks: 2", "config: {spark.sql.catalogImplementation: hive}")


def test_an_outer_catalog_is_opened_with_the_formats_of_what_is_shown(tmp_path: Path, engine: SparkEngine) -> None:
    opened: list[tuple[str, ...]] = []

    def lend(connection: Connection, *_: object) -> Engine:
        opened.append(connection.formats)
        return Lent(engine)

    total = f"MODEL (name shop.total, kind FULL, table_format {FORMAT});\nSELECT 60 AS total"
    for text in (total, total.replace(f", table_format {FORMAT}", "")):
        write_shop(tmp_path, **ALONE | {"config": OUTER, "total": text})
        with Session(SessionSettings(tmp_path, open_engine=lend), TODAY) as session:
            session.plan().apply()
            assert session.fetch("SELECT total FROM shop.total").rows == ((60,),)
    assert opened == [(FORMAT,), (FORMAT,)]
