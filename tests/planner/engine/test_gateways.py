"""Several gateways: each table is computed where its model says, everything else on the project's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mergeplan.planner.cli.main import VERBS, run
from mergeplan.planner.engine.gateways import Gateways, RoutedTables
from mergeplan.planner.engine.protocol import Connection, Engine, ProjectConnection, TableStore, Written
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.table import Table
from mergeplan.planner.project.loader import load_project, override_variables
from tests.planner.cli.conftest import Lent
from tests.planner.shop import NOW, rows, write_shop
from tests.stores import open_store

CONFIG = """
gateways:
  local:
    connection: {type: spark, shared_catalog: lake}
  big:
    connection: {type: spark, remote: 'sc://big:15002', shared_catalog: lake}
    variables: {least: 2}
  alias:
    connection: {type: spark, shared_catalog: lake}
variables: {least: 1}
model_defaults: {dialect: spark, start: 2026-01-01}
"""
BIG = "MODEL (name shop.big, kind FULL, gateway big, audits (not_null(columns := least)));"
CODED = """
from sqlmesh import model

@model("shop.coded", kind="FULL", gateway="big", columns={"least": "int", "at": "string"})
def execute(context, **kwargs):
    rows = context.fetchdf(f"SELECT least FROM {context.table('shop.last')}")
    return rows.assign(at=context.gateway)
"""
FILES = {
    "config": CONFIG,
    "apart": "MODEL (name shop.apart, kind FULL);\nSELECT @least AS least, @gateway AS at",
    "big": BIG + "\nSELECT max(least) + @least AS least, @gateway AS at FROM shop.apart",
    "last": "MODEL (name shop.last, kind FULL, gateway alias);\nSELECT least FROM shop.big",
    "items": "", "daily": "", "total": "", "shown": "",
}  # fmt: skip


class Watched(Lent):
    """A gateway's Spark; it says what it wrote, asked and forgot."""

    def __init__(self, engine: Engine, name: str, seen: list[tuple[str, str, str]]) -> None:
        super().__init__(engine)
        self.name, self.seen = name, seen

    def replace(self, table: Table, sql: str, *, is_fresh: bool = False) -> Written:
        self.seen.append((self.name, "wrote", table.name.split("__")[2]))
        written: Written = self._engine.tables.replace(table, sql, is_fresh=is_fresh)
        return written

    def fetch(self, sql: str, limit: int | None = None) -> object:
        self.seen.append((self.name, "asked", ""))
        return self._engine.fetch(sql, limit)

    def connect_project(self, path: Path, *, python: bool) -> ProjectConnection:
        self.seen.append((self.name, "let in", ""))
        connection: ProjectConnection = self._engine.connect_project(path, python=python)
        return connection

    def refresh(self, name: str) -> None:
        self.seen.append((self.name, "forgot", name.split("__")[2]))
        self._engine.tables.refresh(name)


def test_a_model_is_computed_and_audited_on_its_own_gateway(tmp_path: Path, engine: SparkEngine) -> None:
    write_shop(tmp_path, **FILES)
    (tmp_path / "models/coded.py").write_text(CODED)
    seen: list[tuple[str, str, str]] = []

    def open_engine(connection: Connection, _home: Path, _profile: str) -> Engine:
        return Watched(engine, connection.remote or "own", seen)  # type: ignore[return-value]

    code = run(VERBS, ["plan", "-p", str(tmp_path), "--auto-apply", "--execution-time", "2026-01-06"], open_engine)

    assert code == 0
    assert seen == [
        ("own", "wrote", "apart"),
        ("sc://big:15002", "forgot", "apart"),
        ("sc://big:15002", "wrote", "big"),
        ("own", "forgot", "big"),
        ("sc://big:15002", "asked", ""),
        ("own", "wrote", "last"),
        ("sc://big:15002", "forgot", "last"),
        ("sc://big:15002", "let in", ""),
        ("sc://big:15002", "wrote", "coded"),
        ("own", "forgot", "coded"),
    ]
    assert rows(engine, "SELECT * FROM shop.coded") == [(3, "big")]
    assert rows(engine, "SELECT * FROM shop.big") == [(3, "big")]
    assert rows(engine, "SELECT * FROM shop.last") == [(3,)]


def test_a_gateways_variables_are_its_models_and_a_tests_own_hide_them(tmp_path: Path) -> None:
    project = write_shop(tmp_path, **FILES)
    big = project.models["shop.big"]

    assert "+ 2 AS least, 'big' AS at" in big.sql
    assert "1 AS least, 'local' AS at" in project.models["shop.apart"].sql
    assert "+ 9 AS least, 'big' AS at" in override_variables(project, big, {"Least": 9}).sql
    assert load_project(tmp_path, NOW, "big").models["shop.apart"].sql == "SELECT 2 AS least, 'big' AS at"


@pytest.mark.prove
def test_a_run_on_a_gateway_that_went_is_told(
    tmp_path: Path, engine: SparkEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    write_shop(tmp_path, **FILES)

    def open_engine(_connection: Connection, _home: Path, _profile: str) -> Engine:
        return Lent(engine)  # type: ignore[return-value]

    assert run(VERBS, ["plan", "-p", str(tmp_path), "--auto-apply", "--execution-time", "2026-01-06"], open_engine) == 0
    store = open_store(f"sqlite:///{tmp_path}/.mergeplan/state.db")
    (tmp_path / "config.yaml").write_text(CONFIG.replace("  big:", "  bigger:"))
    (tmp_path / "models/big.sql").unlink()
    (tmp_path / "models/last.sql").unlink()
    capsys.readouterr()

    assert run(VERBS, ["run", "-p", str(tmp_path), "--execution-time", "2026-01-08"], open_engine) == 1
    assert "is computed on the gateway `big`: it is not in config.yaml." in capsys.readouterr().err
    assert store.environments.get("prod").revision == 1


def test_each_verb_about_a_table_has_its_route_and_the_others_forget_what_it_wrote() -> None:
    """A verb that is new and not routed would go unseen until a table of another gateway needs it."""
    seen: list[tuple[str, str]] = []
    gateways = Gateways(Silent("own", seen), {"local"}, lambda name: Silent(name, seen))  # type: ignore[arg-type,return-value]
    gateways.engine_for("big")
    verbs = {name for name in vars(TableStore) if not name.startswith("_")}

    assert {name for name in vars(RoutedTables) if not name.startswith("_")} == verbs
    for verb in sorted(
        verbs - {"create", "contents", "files", "version", "last_write", "size", "refresh", "expire", "drop"}
    ):
        seen.clear()
        getattr(gateways.tables, verb)(Table("s.t", (), gateway="big"), *ARGUMENTS[verb])
        assert seen == [("big", verb), ("own", "refresh")]


def test_a_gateway_that_is_opened_under_a_guard_is_under_it() -> None:
    seen: list[tuple[str, str]] = []
    gateways = Gateways(Silent("own", seen), {"local"}, lambda name: Silent(name, seen))  # type: ignore[arg-type,return-value]

    with gateways.guarding(lambda: None):
        gateways.engine_for("big")
        gateways.engine_for("big")
        assert seen == [("own", "guarded"), ("big", "guarded")]
    assert seen[2:] == [("big", "released"), ("own", "released")]
    gateways.engine_for("other")
    assert len(seen) == 4


ARGUMENTS: dict[str, tuple[object, ...]] = {
    "take_over": ("s.old", ()), "replace": ("SELECT 1",), "replace_interval": ("SELECT 1", None),
    "replace_partitions": ("SELECT 1",), "overwrite": ("SELECT 1", "ab"), "merge": (str, "ab"),
    "unmerge": ("ab",), "load": ([],),
}  # fmt: skip


class Silent:
    """An engine that says which of its verbs were called."""

    def __init__(self, name: str, seen: list[tuple[str, str]]) -> None:
        self.name, self.seen = name, seen

    @property
    def tables(self) -> Silent:
        return self

    @contextmanager
    def guarding(self, check: Callable[[], None]) -> Iterator[None]:
        self.seen.append((self.name, "guarded"))
        yield
        self.seen.append((self.name, "released"))

    def __getattr__(self, verb: str) -> Any:
        return lambda *_, **__: self.seen.append((self.name, verb))
