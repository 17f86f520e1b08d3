"""A plan as JSON: the contract that the bot and other tools read (docs/json.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import Any

from planner.intervals import Interval, Timeline
from planner.plan.build import Plan
from planner.plan.change import Blocker, Change, Columns, Word
from planner.plan.costs import Estimate
from planner.plan.early_cutoff import Comparison
from planner.plan.restatement import Restatement

Json = dict[str, Any]


def plan_json(plan: Plan, estimates: Mapping[str, Estimate]) -> Json:
    """The plan with everything a reader needs to show it."""
    return {
        "id": plan.id,
        "promise": plan.digest,
        "environment": plan.environment,
        "base": plan.base,
        "virtual": plan.is_virtual,
        "empty": plan.is_empty,
        "models": [_model(plan, change, estimates.get(change.name, Estimate())) for change in plan.changes],
        "views": {
            "added": [view.name for view in plan.views.added],
            "swapped": [view.name for view in plan.views.swapped],
            "dropped": [view.name for view in plan.views.dropped],
        },
        "comparisons": [_comparison(each) for each in plan.comparisons],
        "blockers": [_blocker(blocker) for blocker in plan.blockers],
        "warnings": [_blocker(warning) for warning in plan.warnings],
        "words": [_word(word) for word in plan.words],
        "unused_words": [_word(word) for word in plan.unused_words],
        "restatement": _restatement(plan.restatement) if plan.restatement else None,
    }


def revised_json(
    shown: Json, plan: Plan, estimates: Mapping[str, Estimate], copied: Mapping[str, list[list[str]]]
) -> Json:
    """A plan as it was in the end, told as of the plan that was shown: under its id, with the time that was computed,
    which by now is missing no more, less what comparing tables spared."""
    final, asked = plan_json(plan, estimates), {model["name"]: model["intervals"] for model in shown["models"]}
    for model in final["models"]:
        model["intervals"] = [] if model["spared"] else asked.get(model["name"], model["intervals"])
        model["copies"] = copied.get(model["name"], [])
    kept = {key: shown[key] for key in ("id", "virtual", "empty")}
    return {**final, **kept, "promised": shown["promise"]}


def _model(plan: Plan, change: Change, estimate: Estimate) -> Json:
    shown = change.new or change.old
    assert shown is not None
    return {
        "name": change.name,
        "change": str(change.change),
        "category": str(change.category) if change.category else None,
        "rule": change.rule,
        "reason": change.reason,
        "kind": str(change.kind),
        "columns": _columns(change.columns),
        "recomputed": change.recomputed,
        "spared": change.name in plan.spared,
        "table": shown.table,
        "shares": change.shares,
        "intervals": _timeline(change.missing),
        "copies": _timeline(change.copies),
        "needed": _timeline(change.needed),
        "recorded": _timeline(change.recorded),
        "preview": change.preview,
        "keeps": _timeline(change.forward.rows) if change.forward else [],
        "estimate": _estimate(estimate),
        "parents": list(plan.parents.get(change.name, ())),
        "diff": change.diff,
        "path": shown.model.path,
        "line": shown.model.line,
        "word": _word(change.word) if change.word else None,
    }


def _estimate(estimate: Estimate) -> Json:
    """What is not known is 0."""
    return {
        "bytes": estimate.bytes or 0,
        "rows": estimate.rows or 0,
        "seconds": round(estimate.seconds or 0, 3),
    }


def interval_json(interval: Interval) -> list[str]:
    """Half-open, as days where it is made of whole days."""
    form = (
        "%Y-%m-%d"
        if interval.start.time() == interval.end.time() == interval.start.min.time()
        else "%Y-%m-%dT%H:%M:%SZ"
    )
    return [interval.start.strftime(form), interval.end.strftime(form)]


def _timeline(timeline: Timeline) -> list[list[str]]:
    return [interval_json(interval) for interval in timeline]


def _columns(columns: Columns) -> Json:
    return {
        "added": sorted(columns.added),
        "altered": sorted(columns.altered),
        "removed": sorted(columns.removed),
        "every": columns.every,
    }


def _comparison(comparison: Comparison) -> Json:
    return {"reader": comparison.reader, "model": comparison.model, "columns": list(comparison.columns)}


def _restatement(restatement: Restatement) -> Json:
    left_out = [{"model": each.model, "reason": each.reason} for each in restatement.left_out]
    return {"left_out": left_out, "environments": [touched_json(*astuple(each)) for each in restatement.touched]}


def touched_json(environment: str, shared: Sequence[str], outdated: Sequence[str]) -> Json:
    """What another environment feels of a restatement."""
    return {"environment": environment, "shared": list(shared), "outdated": list(outdated)}


def _blocker(blocker: Blocker) -> Json:
    place = blocker.place
    return {"message": blocker.message, "path": place.path if place else "", "line": place.line if place else 0}


def _word(word: Word) -> Json:
    at = word.at.isoformat() if word.at else None
    return {"model": word.model, "category": str(word.category), "who": word.who, "at": at}
