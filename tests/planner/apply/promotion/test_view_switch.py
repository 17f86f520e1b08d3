"""Atomic promotion on a real Spark: whenever a reader asks, and wherever it is cut off, he sees one revision."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mergeplan.planner.apply.events import ignore_event
from mergeplan.planner.apply.janitor import sweep_tables
from mergeplan.planner.apply.promotion.promotion import Wanted, promote_views
from mergeplan.planner.apply.promotion.recovery import recover_promotions
from mergeplan.planner.apply.promotion.view_switch import find_moved_views, position_query, switch_of, through_switch
from mergeplan.planner.engine.protocol import Stands, ViewText
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.table import Table
from mergeplan.planner.errors import QueryError
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.metadata import Metadata
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.model.property import replace_settings
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.environments import HistoryAction
from mergeplan.planner.state.promotions import Promotion, SwapOptions
from mergeplan.planner.state.store import StateStore
from tests.planner.builders import environment, snapshot
from tests.planner.engines import Double

ID, ADDED = Column("id", "int"), Column("other", "int", "what came")
JOINED = "SELECT a.id, b.id, c.id, (SELECT max(id) FROM s.d) FROM s.a CROSS JOIN (SELECT * FROM s.b) b CROSS JOIN s.c"


class Killed(BaseException):
    """The end of a process: nobody catches it."""


class Read(Double):
    """The engine, with a reader that joins all views after each call of the catalog; the nth call is the last."""

    def __init__(self, engine: SparkEngine, last: int = 0, fails: str = "") -> None:
        super().__init__(engine)
        self.engine, self.last, self.fails, self.reads = engine, last, fails, list[tuple[Any, ...]]()

    def swap_view(self, view: ViewText) -> bool:
        if view.name == self.fails and "WHERE" not in view.sql and "v2" in view.sql:
            raise QueryError("the catalog does not want it.")
        done = self.engine.catalog.swap_view(view)
        self._read()
        return done

    def drop_view(self, name: str, reads: str = "") -> None:
        self.engine.catalog.drop_view(name, reads)
        self._read()

    def _read(self) -> None:
        row: tuple[Any, ...] = self.engine.fetch(JOINED).rows[0]
        self.reads.append(tuple(sorted(set(row))))
        if len(self.reads) == self.last:
            raise Killed


@pytest.fixture
def prod(store: StateStore, engine: SparkEngine) -> dict[int, Environment]:
    """Two maps of prod, the first one promoted; in the second `b` has a column more, `e` comes and `f` goes."""
    maps = {}
    for number in (1, 2):
        made = [version(f"s.{name}", number) for name in ("abcde", "abcdf")[number % 2]]
        for model_version in made:
            columns = (ID, ADDED) if (model_version.name, number) == ("s.b", 2) else (ID,)
            values = f"SELECT {number} AS id{', 7 AS other' if len(columns) > 1 else ''}"
            if model_version.kind.is_stored:
                engine.tables.create(Table(model_version.table, columns))
                engine.tables.replace(Table(model_version.table, columns), values)
            else:
                engine.catalog.swap_view(ViewText(model_version.table, values, stands=Stands.NOTHING))
            store.tables.register(model_version.table, columns)
        maps[number] = environment("prod", *made)
    promote_to(store, engine, maps[1])
    return maps


def version(name: str, number: int) -> Snapshot:
    """A version of a model with comments of its own; only one is a table, which takes longer."""
    kind = Kind.FULL if name == "s.a" else Kind.VIEW
    model = Model(
        name, kind, f"models/{name}.sql", 1, "", "SELECT 1 AS id", metadata=Metadata(description=f"revision {number}")
    )
    return snapshot(replace_settings(model, {"column_descriptions": (("id", f"of {number}"),)}), f"v{number}")


def promote_to(store: StateStore, engine: Any, new: Environment, wait: float | None = 0.0) -> None:
    with store.leases.hold("prod", "test") as lease:
        wanted = Wanted(store.environments.get("prod"), new, swap=SwapOptions(wait))
        promote_views(store, engine, lease, wanted, emit=ignore_event)


def view_texts(engine: SparkEngine) -> list[str]:
    texts = (str(engine.fetch(f"SHOW CREATE TABLE s.{name}").rows[0][0]) for name in "abcde")
    return [re.sub(r"'transient_lastDdlTime' = '\d+'", "", text) for text in texts]


def view_rows(engine: SparkEngine) -> list[object]:
    return [engine.fetch(f"SELECT * FROM s.{name}").rows for name in sorted(engine.catalog.objects("s"))]


def test_views_of_other_catalogs_move_by_themselves() -> None:
    """How those find a view, they decide; the switch is none of theirs either."""
    old, new = (environment("prod", *(version(name, n) for name in ("lake.a.x", "s.a", "s.b"))) for n in (1, 2))
    promotion = Promotion("1", "prod", HistoryAction.PROMOTED, old, new, swap=SwapOptions(0.0))

    assert find_moved_views(promotion).keys() == {"s.a", "s.b"}
    assert switch_of(promotion).count(".") == 1


@pytest.mark.prove
def test_readers_see_an_atomic_promotion_at_one_moment(
    store: StateStore, engine: SparkEngine, prod: dict[int, Environment]
) -> None:
    """Behaviour 50: whatever a query joins, directly or through subqueries, all of it is of one revision."""
    read, by_one = Read(engine), Read(engine)

    promote_to(store, read, prod[2])
    promote_to(store, by_one, prod[1], wait=None)

    assert set(read.reads) == {(1,), (2,)}
    assert (1, 2) in by_one.reads, "one by one they are seen"


def test_after_an_atomic_promotion_views_are_as_after_any_other(
    store: StateStore, engine: SparkEngine, prod: dict[int, Environment]
) -> None:
    promote_to(store, engine, prod[2])
    texts = view_texts(engine)
    promote_to(store, engine, prod[1], wait=None)
    promote_to(store, engine, prod[2], wait=None)

    assert texts == view_texts(engine)
    assert engine.catalog.objects("s") == set("abcde")


@pytest.mark.parametrize(
    "last", [n if n == 9 else pytest.param(n, marks=pytest.mark.prove) for n in range(1, 13)]
)  # the sixth call is the last before the switch is thrown, with the eighth all are promoted
def test_an_atomic_promotion_that_is_cut_off_is_finished_at_one_moment(
    store: StateStore, engine: SparkEngine, prod: dict[int, Environment], last: int
) -> None:
    killed, next_one = Read(engine, last), Read(engine)

    with pytest.raises(Killed):
        promote_to(store, killed, prod[2])
    recover_promotions(store, next_one, ignore_event)  # type: ignore[arg-type]

    reads = [numbers for numbers in (*killed.reads, *next_one.reads) if numbers]
    assert set(reads) == {(1,), (2,)}
    assert reads == sorted(reads), "nobody saw the new rows and then the old ones again"
    assert view_rows(engine) == [((2,),), ((2, 7),), *[((2,),)] * 3]


@pytest.mark.prove
def test_an_atomic_promotion_that_fails_goes_back_at_one_moment(
    store: StateStore, engine: SparkEngine, prod: dict[int, Environment]
) -> None:
    before, read = view_rows(engine), Read(engine, fails="s.e")

    with pytest.raises(QueryError):
        promote_to(store, read, prod[2])

    assert set(read.reads) == {(1,), (2,)}
    assert view_rows(engine) == before
    assert store.promotions.pending() == ()


def test_a_switch_that_nobody_needs_any_more_goes_like_a_table(
    store: StateStore, engine: SparkEngine, prod: dict[int, Environment]
) -> None:
    promote_to(store, engine, prod[2])
    (switch,) = [name for name in engine.catalog.objects("mergeplan__s") if name.startswith("promotion_")]

    gone = sweep_tables(store, engine, datetime.now(UTC) + timedelta(days=2), timedelta(days=9), emit=ignore_event)

    assert gone == (f"mergeplan__s.{switch}",)
    assert switch not in engine.catalog.objects("mergeplan__s")


@pytest.mark.prove
def test_a_query_sees_a_switch_in_one_position_however_often_it_is_changed(engine: SparkEngine) -> None:
    """Behaviour 50: Spark looks the switch up once for all views of a query, while it is changed without a pause."""
    for name, sql in {"o": "SELECT 1 AS id", "n": "SELECT 2 AS id", "switch": position_query(shows_new=False)}.items():
        engine.catalog.swap_view(ViewText(f"p.{name}", sql, stands=Stands.NOTHING))
    query = through_switch("p.switch", ("p.o", (ID,)), ("p.n", (ID,))) or ""
    for number in range(8):
        engine.catalog.swap_view(ViewText(f"s.v{number}", query, stands=Stands.NOTHING))
    stop, changes = threading.Event(), list[bool]()

    def change() -> None:
        while not stop.is_set():
            changes.append(len(changes) % 2 == 0)
            engine.catalog.swap_view(
                ViewText("p.switch", position_query(shows_new=changes[-1]), stands=Stands.ALL_BUT_QUERY)
            )

    with ThreadPoolExecutor(1) as pool:
        changing = pool.submit(change)
        joined = " UNION ALL ".join(f"SELECT id FROM s.v{number}" for number in range(8))
        try:
            seen = [set(engine.fetch(joined).rows) for _ in range(6)]
        finally:
            stop.set()
        changing.result()

    assert {len(row_set) for row_set in seen} == {1}
    assert len(changes) > len(seen)


@pytest.mark.parametrize(
    ("new", "query"),
    [
        ((ID, ADDED), "SELECT `id`, `other` FROM `p`.`n` WHERE .*, NULL AS `other` FROM `p`.`o`"),
        ((ADDED, ID), "SELECT `other`, `id` FROM .*\nSELECT NULL AS `other`, `id` FROM `p`.`o`"),
        ((Column("id", "string"),), None),
        ((ADDED,), None),
    ],
)
def test_columns_may_come_but_neither_go_nor_change(new: tuple[Column, ...], query: str | None) -> None:
    view_text = through_switch("p.switch", ("p.o", (ID,)), ("p.n", new))

    assert view_text is None if query is None else re.match(query, view_text or "", re.DOTALL)
