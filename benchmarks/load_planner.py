"""Planner children of `bot_load`, on a Spark that agrees to everything and computes nothing: bots are timed, not Spark.

`python load_planner.py` waits for its call, as `mergeplan.bot.child.ready` does; with arguments it is the planner, and
`python load_planner.py --serve` is `mergeplan serve`, whose children are such. A file `hangs` in the home of a
repository has its planners wait until it is gone.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mergeplan.bot.child import planner_process, ready, standby
from mergeplan.bot.settings import Settings
from mergeplan.planner.apply import drift, physical_tables
from mergeplan.planner.apply.witness.questions import AGREES
from mergeplan.planner.cli import main as planner
from mergeplan.planner.engine.protocol import Written
from mergeplan.planner.model.model import Column
from mergeplan.planner.plan.witness.check import Check
from mergeplan.planner.plan.witness.claims import Claim
from mergeplan.planner.session.witness.checking import Inquiry
from mergeplan.planner.session.workspace import Workspace

COMMAND = (sys.executable, "-I", "-u", str(Path(__file__).resolve()))


class AllNames(frozenset[str]):
    """The names of a catalog in which everything is."""

    def __contains__(self, name: object) -> bool:
        return True


class AgreeingSpark:
    """An engine, its tables and its catalog: every table is there, every query is fine, every batch has no row."""

    outlasts = goes_on = is_lost = False

    @property
    def tables(self) -> AgreeingSpark:
        return self

    catalog = tables

    def engine_for(self, gateway: str) -> AgreeingSpark:
        return self

    def reads(self, sql: str) -> frozenset[str]:
        return frozenset()

    def schema(self, sql: str) -> tuple[Column, ...]:
        return Column("id", "bigint"), Column("ds", "string")

    def dry_run(self, sql: str) -> tuple[tuple[Column, ...], frozenset[str]]:
        return self.schema(sql), frozenset()

    def objects(self, schema: str) -> frozenset[str]:
        return AllNames()

    def jobs(self) -> int:
        return 0

    def swap_view(self, view: object) -> bool:
        return True

    def replace(self, *_: object, **__: object) -> Written:
        return Written(0)

    replace_interval = replace

    @contextmanager
    def guarding(self, *_: object) -> Iterator[None]:
        yield

    separate_session = reattaching = guarding

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *_, **__: None


def plan() -> None:
    """Become the planner that the arguments ask for, or that a line on standard input asks for."""
    engine, everything = AgreeingSpark(), AllNames()

    def agree(_: Inquiry, claims: Sequence[Claim]) -> Mapping[str, Check]:
        return {claim.model: AGREES for claim in claims}

    for owner, name, value in (
        (Workspace, "engine", property(lambda _: engine)),
        (Inquiry, "check_claims", agree),
        (drift, "list_objects", lambda *_: everything),
        (physical_tables, "list_objects", lambda *_: everything),
    ):
        setattr(owner, name, value)
    run = planner.main

    def run_or_hang() -> None:
        while Path(os.environ.get("MERGEPLAN_HOME", "."), "hangs").exists():
            time.sleep(0.1)
        run()

    planner.main = run_or_hang
    (planner.main if sys.argv[1:] else ready.main)()


def serve() -> None:
    """Serve as `mergeplan serve` does."""
    from mergeplan.bot.main import main

    def argv_of(settings: Settings) -> tuple[str, ...]:
        return COMMAND

    setattr(standby, "READY", COMMAND)  # noqa: B010 - of another length
    planner_process.planner_argv = argv_of
    sys.argv[1:] = ["serve"]
    main()


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["--serve"] else plan()
