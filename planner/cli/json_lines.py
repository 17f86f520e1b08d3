"""Talking to a program: one JSON object a line, the last one the result (docs/json.md)."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from planner.apply.events import (
    AuditRan,
    BatchDone,
    Compared,
    EnvironmentAwaited,
    EnvironmentTouched,
    Event,
    ModelFailed,
    ModelLate,
    ModelSkipped,
    PromotionFound,
    PromotionPending,
    PromotionRecovered,
    PromotionUndone,
    Recovery,
    RestatedThemselves,
    StageStarted,
    TableAwaited,
    TableCreated,
    TableDropped,
    ViewDropped,
    ViewSwapped,
)
from planner.apply.executor import Outcome
from planner.checks.audits import AuditResult
from planner.checks.linter import Violation
from planner.checks.unit_tests import TestResult
from planner.cli.plan_json import interval_json, plan_json, revised_json, touched_json
from planner.errors import AuditFailed, MergeplanError
from planner.parsing.files.model_file import line_of
from planner.plan.build import Plan
from planner.plan.costs import Estimate
from planner.snapshot.snapshot import Snapshot

Json = dict[str, Any]


class JsonLines:
    """Writes events as they come and gathers what the result repeats."""

    def __init__(self) -> None:
        self._tests: Json = {"passed": 0, "failed": 0}
        self._audits: list[Json] = []
        self._snapshots: Mapping[str, Snapshot] = {}
        self._plan: Json | None = None
        self.unfinished: Json = {}  # promotions that did not come to their end: "recovered", "pending"
        self._copied: dict[str, list[list[str]]] = {}  # model -> stretches whose rows came from its old table

    def lint(self, found: Sequence[Violation]) -> None:
        """One line a broken rule."""
        for each in found:
            where = {"path": each.place.path, "line": each.place.line, "column": each.place.column}
            told = {"rule": each.rule, "model": each.model, "message": each.message, **where}
            line({"event": "lint", **told, "severity": "error" if each.blocking else "warning"})

    def tests(self, results: Sequence[TestResult], seconds: float) -> None:
        """One line a test."""
        line({"event": "stage", "name": "tests", "total": len(results)})
        for result in results:
            test = result.test
            told = {"name": test.name, "ok": result.ok, "path": test.path, "line": test.line, "message": result.message}
            line({"event": "test", **told})
        failed = sum(not result.ok for result in results)
        self._tests = {"passed": len(results) - failed, "failed": failed, "seconds": round(seconds, 3)}

    def plan(self, plan: Plan, estimates: Mapping[str, Estimate]) -> None:
        """The plan, before anything is done about it."""
        self.knows(plan.new.snapshots)
        self._plan = plan_json(plan, estimates)
        line({"event": "plan", "plan": self._plan})

    def revised(self, plan: Plan, estimates: Mapping[str, Estimate]) -> None:
        """The plan as it was in the end; it keeps the id under which it was applied."""
        assert self._plan is not None
        self._plan = revised_json(self._plan, plan, estimates, self._copied)

    def due(self, plan: Plan, estimates: Mapping[str, Estimate]) -> None:
        """What a run would compute; after a plan (`--run`) the result is about that plan."""
        before = self._plan
        self.plan(plan, estimates)
        self._plan = before or self._plan

    def knows(self, snapshots: Mapping[str, Snapshot]) -> None:
        """The models that events will be about: an audit's line is found in them."""
        self._snapshots = snapshots

    def event(self, event: Event) -> None:
        """What happens while a plan is applied."""
        match event:
            case StageStarted(stage, total):
                line({"event": "stage", "name": str(stage), "total": total})
            case BatchDone():
                if event.copied:
                    self._copied.setdefault(event.model, []).append(interval_json(event.interval))
                line({
                    "event": "batch", "model": event.model, "index": event.index, "of": event.of,
                    "interval": interval_json(event.interval), "rows": event.rows, "seconds": round(event.seconds, 3),
                    "copied": event.copied,
                })  # fmt: skip
            case AuditRan(model, result):
                self._audits.append(self._audit(model, result))
                line({"event": "audit", **self._audits[-1]})
            case TableCreated(model, table):
                line({"event": "table", "model": model, "table": table})
            case ViewSwapped(view, table):
                line({"event": "view", "name": view, "table": table})
            case ViewDropped(view):
                line({"event": "view", "name": view, "table": None})
            case Compared(reader, model, columns, spared):
                told = {"reader": reader, "model": model, "columns": list(columns), "spared": spared}
                line({"event": "compared", **told})
            case TableAwaited(model, table, holder):
                line({"event": "waiting", "model": model, "table": table, "for": holder})
            case RestatedThemselves(models):
                line({"event": "restating", "models": list(models)})
            case EnvironmentTouched(environment, shared, outdated):
                line({"event": "touched", **touched_json(environment, shared, outdated)})
            case ModelFailed(model, message):
                line({"event": "failed", "model": model, "message": message})
            case ModelSkipped(model, because):
                line({"event": "skipped", "model": model, "because": because})
            case ModelLate(model, signals, late):
                waits = [interval_json(each) for each in late]
                line({"event": "late", "model": model, "signals": list(signals), "intervals": waits})
            case PromotionFound() | PromotionRecovered() | PromotionPending() | EnvironmentAwaited():
                self._promotion(event)
            case PromotionUndone(environment, message):
                line({"event": "undone", "environment": environment, "message": message})
            case TableDropped(table):
                line({"event": "dropped", "table": table})
            case _:
                pass

    def _promotion(self, event: PromotionFound | PromotionRecovered | PromotionPending | EnvironmentAwaited) -> None:
        """What is known of a promotion that did not come to its end."""
        match event:
            case PromotionFound(environment, revision):
                line({"event": "recovered", "environment": environment, "revision": revision})
            case PromotionRecovered(environment, ended=Recovery.FINISHED, views=views):
                self.unfinished.setdefault("recovered", {})[environment] = list(views)
            case PromotionPending(environment, revision, views, holder):
                self.unfinished.setdefault("pending", {})[environment] = list(views)
                told = {"environment": environment, "revision": revision, "views": list(views), "for": holder or None}
                line({"event": "pending", **told})
            case EnvironmentAwaited(environment, holder):
                line({"event": "waiting", "environment": environment, "for": holder})

    def warn(self, message: str) -> None:
        """Something that went wrong beside the plan."""
        line({"event": "warning", "message": message})

    def error(self, error: MergeplanError) -> None:
        """Something that is wrong; the result follows."""
        path, number, column = (error.place.path, error.place.line, error.place.column) if error.place else ("", 0, 0)
        told = {"message": error.message, "path": path, "line": number, "column": column, "hint": error.hint}
        found = {"audit": error.audit, "model": error.model} if isinstance(error, AuditFailed) else {}
        about = {"exit_code": error.exit_code, "kind": type(error).__name__, "retry": error.retry}
        line({"event": "error", **told, **about, **found})

    def result(self, ok: bool, outcome: Outcome | None = None, more: Mapping[str, object] | None = None) -> None:
        """The last line."""
        result: Json = {"event": "result", "ok": ok, "applied": outcome is not None and outcome.promoted is not None}
        if self._plan is not None:
            result |= {"plan": self._plan, "tests": self._tests, "audits": self._audits}
        if outcome is not None:
            result["backfill"] = {"rows": outcome.filled.rows, "batches": outcome.filled.batches}
        if outcome is not None and outcome.promoted is not None:
            result["promotion"] = promotion_json(outcome)
        line({**result, **self.unfinished, **(more or {})})

    def _audit(self, model: str, result: AuditResult) -> Json:
        snapshot = self._snapshots.get(model)
        place = line_of(snapshot.model, result.name, header=True) if snapshot else result.place
        return {
            "model": model,
            "reads": list(result.reads),
            "name": result.name,
            "ok": result.ok,
            "blocking": result.blocking,
            "count": result.count,
            "query": result.sql,
            "sample": {"columns": list(result.sample.columns), "rows": [list(row) for row in result.sample.rows]},
            "path": place.path if place else "",
            "line": place.line if place else 0,
        }


def promotion_json(outcome: Outcome) -> Json:
    """What a promotion did and what it cost."""
    assert outcome.promoted is not None
    done = outcome.promoted
    views = {"added": done.added, "swapped": done.swapped, "dropped": done.dropped, "unchanged": done.unchanged}
    batches = {"rows": outcome.filled.rows, "batches": outcome.filled.batches}
    return {"views": views, "spark_jobs": outcome.promotion_jobs, "revision": done.revision, "backfill": batches}


def line(event: Mapping[str, object]) -> None:
    """One event on stdout, at once."""
    sys.stdout.write(json.dumps(event, default=str) + "\n")
    sys.stdout.flush()
