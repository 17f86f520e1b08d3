"""The stages of an apply: what `--explain` lists is what the executor does."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from mergeplan.planner.apply.events import AuditRan, BatchDone, Event, TableCreated, ViewDropped, ViewSwapped
from mergeplan.planner.cli.texts.explanation import explain_plan
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.intervals import Interval, merge_intervals
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.stages import build_stages
from mergeplan.planner.state.store import StateStore
from tests.planner.shop import ALONE, FILES, make_plan, plan_and_apply, rows, write_shop

VIEW = "MODEL (name shop.shown, kind VIEW, audits (not_null(columns := (total))));\nSELECT total FROM shop.total"
ABS = FILES["models/total.sql"].replace("sum(price)", "sum(abs(price))")
UNIQUE = FILES["models/daily.sql"].replace("not_null(", "unique_values(")
TARGET = re.compile(r"^.   [├└]── (\S+) -> (\S+)$")
EDITS = (
    ("prod", {"shown": VIEW}),  # a first plan
    ("dev", {"shown": VIEW, "total": ABS}),  # `shown` waits for a comparison, and an audit runs again
    ("prod", {"shown": VIEW, "total": ABS}),  # dev has the tables
    ("prod", {"shown": VIEW, "total": ABS, "apart": ""}),  # a view is dropped
    ("prod", {"shown": VIEW, "total": ABS, "apart": "", "daily": UNIQUE}),  # a new audit of a kept table
)


def explain(plan: Plan) -> dict[str, list[str]]:
    """The lines of each section of the explained plan."""
    console = Console(width=400, file=StringIO(), record=True)
    console.print(explain_plan(plan, build_stages(plan)))
    _, _, text = console.export_text().partition("Explained plan\n")
    sections: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line[0] in "├└":
            sections[line.split()[1]] = lines = []
        else:
            lines.append(line)
    return sections


def targets(lines: list[str]) -> set[str]:
    """The tables of a section."""
    return {match[2] for line in lines if (match := TARGET.match(line))}


def batch_times(events: list[Event]) -> dict[str, str]:
    times: dict[str, list[Interval]] = {}
    for event in events:
        if isinstance(event, BatchDone):
            times.setdefault(event.model, []).append(event.interval)
    return {model: ", ".join(map(str, merge_intervals(intervals))) for model, intervals in times.items()}


def test_what_explain_lists_is_what_the_executor_does(tmp_path: Path, engine: SparkEngine, store: StateStore) -> None:
    for environment, changed in EDITS:
        project, events = write_shop(tmp_path / "shop", **changed), list[Event]()
        plan = make_plan(project, store, environment)
        sections, tasks = explain(plan), build_stages(plan).backfill.tasks
        done = plan_and_apply(project, engine, store, environment, events.append, plan)

        spared = {task.snapshot.table for task in tasks if done.plan and task.snapshot.name in done.plan.spared}
        created = {event.table for event in events if isinstance(event, TableCreated)}
        views = {event.view for event in events if isinstance(event, ViewSwapped | ViewDropped)}
        audited = {event.result.name for event in events if isinstance(event, AuditRan)}
        assert targets(sections["Validate"]) - spared == created
        assert {task.snapshot.name for task in tasks if task.snapshot.table not in spared} == batch_times(events).keys()
        assert {line.split(" -> ")[0].split()[-1] for line in sections["Update"] if "->" in line} == views
        audits = [(line.split("'")[1], "unless it passed" in line) for line in sections["Backfill"] if "audit" in line]
        assert {name for name, unless in audits if not unless} <= audited <= {name for name, _ in audits}
        inserted = [line.partition("Insert ")[2] for line in sections["Backfill"] if "Insert 2" in line]
        assert all(text in batch_times(events).values() for text in inserted)


@pytest.mark.prove
def test_the_contract_of_a_model_that_waits_is_checked_in_its_round(
    tmp_path: Path, engine: SparkEngine, store: StateStore
) -> None:
    same = "MODEL (name shop.same, kind FULL);\nSELECT total FROM shop.total"
    top = "MODEL (name shop.top, kind FULL, contract true, columns (top BIGINT));\nSELECT total AS top FROM shop.same"
    shop = {**ALONE, "total": "MODEL (name shop.total, kind FULL);\nSELECT 1L AS total, 1 AS more", "same": same}
    plan_and_apply(write_shop(tmp_path / "shop", **shop, top=top), engine, store)
    edited = shop["total"].replace("1L", "2L")

    done = plan_and_apply(write_shop(tmp_path / "shop", **{**shop, "total": edited}, top=top), engine, store)

    assert (done.failures, rows(engine, "SELECT top FROM shop.top")) == ((), [(2,)])
