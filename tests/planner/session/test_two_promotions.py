"""Two environments that are built and promoted at one moment: both whole, or one is refused and nothing of it stays."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from mergeplan.planner.apply.events import Stage, StageStarted
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import MergeplanError, Refused
from mergeplan.planner.session.session import Session
from mergeplan.planner.session.settings import SessionSettings
from mergeplan.planner.state.store import StateStore
from tests.planner.cli.conftest import TODAY, Lent
from tests.planner.shop import ALONE, FILES, write_shop
from tests.sampling import prove_rest

SUFFIX, HASHED = "environment_suffix_target: table\n", "physical_table_naming_convention: hash_md5\n"
SETTINGS = [SUFFIX + HASHED, SUFFIX, HASHED, ""]
Open = Callable[..., Session]


def full(name: str, number: int) -> str:
    return f"MODEL (name {name}, kind FULL);\nSELECT {number} AS n"


@pytest.fixture
def open_session(tmp_path: Path, engine: SparkEngine, state_url: str, project: str) -> Iterator[Open]:
    """Opens a folder with these models; all folders have one state and one Spark."""
    with ExitStack() as opened:

        def open_folder(folder: str, settings: str, **models: str) -> Session:
            write_shop(tmp_path / folder, **ALONE, config=FILES["config.yaml"] + settings, total="", **models)
            own = SessionSettings(
                tmp_path / folder, state_url=state_url, state_project=project, open_engine=lambda *_: Lent(engine)
            )
            return opened.enter_context(Session(own, TODAY))

        yield open_folder


def promote_together(*plans: tuple[Session, str]) -> list[MergeplanError | None]:
    """Plan each environment, and apply all plans so that each is checked before any is promoted; return the errors."""
    gate = threading.Barrier(len(plans), timeout=300)

    def wait(event: object) -> None:
        if isinstance(event, StageStarted) and event.stage is Stage.CREATE:
            gate.wait()

    def apply(session: Session, environment: str) -> MergeplanError | None:
        try:
            session.plan(environment).apply(on_event=wait)
        except MergeplanError as error:
            return error
        return None

    with ThreadPoolExecutor(len(plans)) as pool:
        return list(pool.map(lambda plan: apply(*plan), plans))


@pytest.mark.parametrize("settings", prove_rest(SETTINGS, 1))
def test_two_environments_of_other_views_are_both_promoted(open_session: Open, settings: str) -> None:
    one = open_session("one", settings, a=full("shop.a", 1), b=full("shop.b", 1))
    two = open_session("two", settings, a=full("shop.a", 1), b=full("shop.b", 2))

    errors = promote_together((one, "prod"), (two, "dev"))

    assert errors == [None, None]
    views = ("shop.a__dev", "shop.b__dev") if SUFFIX in settings else ("shop__dev.a", "shop__dev.b")
    shown = [one.fetch(f"SELECT n FROM {view}").rows for view in ("shop.a", "shop.b", *views)]
    assert shown == [((1,),), ((1,),), ((1,),), ((2,),)]


@pytest.mark.parametrize("settings", prove_rest(SETTINGS, 1))
def test_of_two_environments_with_a_view_of_one_name_one_is_refused_and_leaves_nothing(
    open_session: Open, store: StateStore, settings: str
) -> None:
    name = "shop.a__dev" if SUFFIX in settings else "shop__dev.a"
    one = open_session("one", settings, a=full(name, 1), b=full("other.b", 1))
    two = open_session("two", settings, a=full("shop.a", 2), c=full("shop.c", 2))

    errors = promote_together((one, "prod"), (two, "dev"))

    (refused,) = filter(None, errors)
    winner, loser = ("dev", "prod") if errors[0] else ("prod", "dev")
    assert isinstance(refused, Refused)
    assert f"`{name}` is the view of" in refused.message and f"in `{winner}`" in refused.message
    assert one.fetch(f"SELECT n FROM {name}").rows == ((2 if errors[0] else 1,),)
    assert (store.environments.get(loser).exists, store.promotions.pending()) == (False, ())
