"""What a planner child said: its JSON lines, read once into types that the bot can reason about."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

Days = tuple[str, str]  # half-open: ["2026-01-01", "2026-01-08") as ISO text
KEPT = frozenset({"plan", "error", "lint", "test", "audit", "result"})  # the events that a report is made of


@dataclass(frozen=True)
class ModelChange:
    """One model of a plan, as the planner decided it."""

    name: str
    change: str
    category: str
    rule: str = ""
    reason: str = ""
    kind: str = ""
    added: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    every: bool = False  # rows change, and so every column
    recomputed: bool = False
    spared: bool = False  # cut off: it would be computed, had no tables been compared
    table: str = ""
    shares: str = ""
    intervals: tuple[Days, ...] = ()  # what was missing when the plan was made
    copies: tuple[Days, ...] = ()  # what of that comes from its old table, which holds the same rows
    needed: tuple[Days, ...] = ()  # what its table must hold
    preview: bool = False
    keeps: tuple[Days, ...] = ()  # the stretches whose rows a forward-only change keeps
    rows: int = 0
    size: int = 0
    seconds: float = 0.0
    parents: tuple[str, ...] = ()
    diff: str = ""
    path: str = ""
    line: int = 0
    said_by: str = ""


@dataclass(frozen=True)
class Problem:
    """Something that is wrong, and where: an error of the planner or a blocker of its plan."""

    message: str
    path: str = ""
    line: int = 0
    column: int = 0
    hint: str = ""
    kind: str = ""
    audit: str = ""  # the audit that this is about
    model: str = ""  # and its model, '' for a standalone one
    retry: bool = False  # nothing has to be mended: the same request may succeed later

    @property
    def where(self) -> str:
        """`models/orders.sql:7`, or nothing when the place is unknown."""
        return f"{self.path}:{self.line}" if self.path and self.line else self.path


@dataclass(frozen=True)
class Word:
    """A person's category for a model, in force or no longer about anything."""

    model: str
    category: str
    who: str = ""


@dataclass(frozen=True)
class Comparison:
    """Two tables that will be compared: where they hold the same rows in these columns, the reader is not computed."""

    reader: str
    model: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlanView:
    """The planner's plan, as far as a pull request shows it."""

    id: str
    promise: str
    environment: str
    base: str
    models: tuple[ModelChange, ...] = ()
    added: tuple[str, ...] = ()
    swapped: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    blockers: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    words: tuple[Word, ...] = ()
    unused_words: tuple[Word, ...] = ()
    comparisons: tuple[Comparison, ...] = ()  # not made yet
    promised: str = ""  # the promise as it was shown, where comparing tables has changed it since

    @property
    def spared(self) -> tuple[ModelChange, ...]:
        """The models that were cut off."""
        return tuple(each for each in self.models if each.spared)

    @property
    def touches(self) -> bool:
        """False when no model would change and nothing is wrong."""
        return bool(self.models or self.blockers)

    @property
    def moving(self) -> tuple[ModelChange, ...]:
        """The models whose view in the base environment would show another table."""
        without_view = ("EMBEDDED", "EXTERNAL")
        return tuple(
            each
            for each in self.models
            if each.change != "removed" and each.shares != self.base and each.kind.upper() not in without_view
        )

    @property
    def direct(self) -> tuple[ModelChange, ...]:
        """The models that the pull request itself edits and that a person may categorise."""
        return tuple(each for each in self.models if each.change == "direct")


@dataclass(frozen=True)
class TestCase:
    """One unit test of the project."""

    name: str
    ok: bool
    path: str = ""
    line: int = 0
    message: str = ""


@dataclass(frozen=True)
class Audit:
    """One audit over what was just written."""

    model: str
    name: str
    ok: bool
    blocking: bool = True
    count: int = 0
    path: str = ""
    line: int = 0
    query: str = ""
    columns: tuple[str, ...] = ()  # of the sample
    sample: tuple[tuple[str, ...], ...] = ()  # a few bad rows as texts, as far as the planner shows them
    reads: tuple[str, ...] = ()  # of a standalone audit, which has no model

    @property
    def subject(self) -> str:
        """What it looks at: the model, or the tables that a standalone audit reads."""
        return self.model or ", ".join(self.reads)


@dataclass(frozen=True)
class Promotion:
    """What a promotion did: views by what happened to them, and what it cost."""

    added: int = 0
    swapped: int = 0
    dropped: int = 0
    unchanged: int = 0
    spark_jobs: int = 0
    seconds: float = 0.0
    revision: int = 0
    batches: int = 0  # computed before the views moved, because something was missing
    cut_off: bool = False  # by a run that did not live to tell; what it computed is not known

    @property
    def is_free(self) -> bool:
        """True when nothing was computed at all."""
        return not self.spark_jobs and not self.batches and not self.cut_off


@dataclass(frozen=True)
class EnvironmentRow:
    """One row of `mergeplan environments`."""

    name: str
    revision: int
    plan_id: str = ""
    pending: bool = False  # a promotion of it has not come to its end: its views may be of two revisions


@dataclass(frozen=True)
class Outcome:
    """How one child ended, and all that it said worth keeping."""

    exit_code: int
    ok: bool
    applied: bool = False
    plan: PlanView | None = None
    promotion: Promotion | None = None
    tests: tuple[TestCase, ...] = ()
    passed: int = 0
    failed: int = 0
    audits: tuple[Audit, ...] = ()
    problems: tuple[Problem, ...] = ()
    environments: tuple[EnvironmentRow, ...] | None = None
    warnings: tuple[Problem, ...] = ()  # of the linter: they stop nothing

    @property
    def is_defect(self) -> bool:
        """True when the fault is ours (exit 3, a signal, no result at all), not the project's."""
        return not self.ok and self.exit_code not in (1, 2, 4)

    @property
    def is_blocked(self) -> bool:
        """True when the plan was made and is refused for what it would do, and nothing else went wrong."""
        blocked = bool(self.plan and self.plan.blockers) and not self.failed
        return blocked and all(each.kind == "Refused" for each in self.problems)

    @property
    def may_pass_later(self) -> bool:
        """True when nothing has to be mended: somebody else held what it needs, the world moved, Spark was away."""
        return not self.ok and any(each.retry for each in self.problems)


def read_event(line: str) -> Mapping[str, Any] | None:
    """One JSON line as a mapping with an `event`, or None when it is anything else."""
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) and isinstance(value.get("event"), str) else None


def kept_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """The lines that a report needs; passed tests, progress and a plan that the result repeats are left out."""
    kept = [(event, line.strip()) for line in lines if (event := read_event(line)) and event["event"] in KEPT]
    repeated = any(event["event"] == "result" and event.get("plan") for event, _ in kept)
    return tuple(
        line
        for event, line in kept
        if not (event["event"] == "test" and event.get("ok")) and not (event["event"] == "plan" and repeated)
    )


def read_outcome(lines: Iterable[str], exit_code: int) -> Outcome:
    """The outcome that a child's lines and exit code amount to."""
    events = [event for event in map(read_event, lines) if event]
    results = [event for event in events if event["event"] == "result"]
    result: Mapping[str, Any] = results[-1] if results else {}
    plans = [event["plan"] for event in [*events, result] if isinstance(event.get("plan"), dict)]
    tests = tuple(_test(event) for event in events if event["event"] == "test")
    counts = _mapping(result.get("tests"))
    audits = result.get("audits") or [event for event in events if event["event"] == "audit"]
    promotion, before = result.get("promotion"), result.get("promoted_before")
    rows = result.get("environments")
    failed = sum(not test.ok for test in tests)
    return Outcome(
        exit_code=exit_code,
        ok=exit_code == 0 and bool(result) and bool(result.get("ok", True)),
        applied=bool(result.get("applied")),
        plan=_plan(plans[-1]) if plans else None,
        promotion=_promotion(promotion)
        if isinstance(promotion, dict)
        else replace(_promotion(before), cut_off=True)
        if isinstance(before, dict)
        else None,
        tests=tests,
        passed=_whole(counts.get("passed")) or sum(test.ok for test in tests),
        failed=_whole(counts.get("failed")) or failed,
        audits=tuple(_audit(each) for each in audits if isinstance(each, dict)),
        problems=_problems(event for event in events if event["event"] == "error"),
        environments=tuple(_row(each, result) for each in rows if isinstance(each, dict))
        if isinstance(rows, list)
        else None,
        warnings=_warnings(events),
    )


def _warnings(events: Iterable[Mapping[str, Any]]) -> tuple[Problem, ...]:
    """What the linter only tells; a rule that stops the plan comes as an error too."""
    told = (each for each in events if each["event"] == "lint" and each.get("severity") == "warning")
    return tuple(
        replace(_problem(each), message=f"{_text(each.get('rule'))}: {_text(each.get('message'))}") for each in told
    )


def _problems(events: Iterable[Mapping[str, Any]]) -> tuple[Problem, ...]:
    return tuple(dict.fromkeys(_problem(event) for event in events))


def _plan(value: Mapping[str, Any]) -> PlanView:
    views = _mapping(value.get("views"))
    return PlanView(
        id=_text(value.get("id")),
        promise=_text(value.get("promise")),
        environment=_text(value.get("environment")),
        base=_text(value.get("base")),
        models=tuple(_model(each) for each in _list(value.get("models")) if isinstance(each, dict)),
        added=_names(views.get("added")),
        swapped=_names(views.get("swapped")),
        dropped=_names(views.get("dropped")),
        blockers=tuple(_problem(each) for each in _list(value.get("blockers")) if isinstance(each, dict)),
        warnings=tuple(_problem(each) for each in _list(value.get("warnings")) if isinstance(each, dict)),
        words=_words(value.get("words")),
        unused_words=_words(value.get("unused_words")),
        comparisons=tuple(_comparison(each) for each in _list(value.get("comparisons")) if isinstance(each, dict)),
        promised=_text(value.get("promised")),
    )


def _comparison(value: Mapping[str, Any]) -> Comparison:
    return Comparison(_text(value.get("reader")), _text(value.get("model")), _names(value.get("columns")))


def _model(value: Mapping[str, Any]) -> ModelChange:
    columns, estimate = _mapping(value.get("columns")), _mapping(value.get("estimate"))
    word = _mapping(value.get("word"))
    return ModelChange(
        name=_text(value.get("name")),
        change=_text(value.get("change")),
        category=_text(value.get("category")),
        rule=_text(value.get("rule")),
        reason=_text(value.get("reason")),
        kind=_text(value.get("kind")),
        added=_names(columns.get("added")),
        altered=_names(columns.get("altered")),
        removed=_names(columns.get("removed")),
        every=bool(columns.get("every")),
        recomputed=bool(value.get("recomputed")),
        spared=bool(value.get("spared")),
        table=_text(value.get("table")),
        shares=_text(value.get("shares")),
        intervals=_timeline(value.get("intervals")),
        copies=_timeline(value.get("copies")),
        needed=_timeline(value.get("needed")),
        preview=bool(value.get("preview")),
        keeps=_timeline(value.get("keeps")),
        rows=_whole(estimate.get("rows")),
        size=_whole(estimate.get("bytes")),
        seconds=float(estimate.get("seconds") or 0),
        parents=_names(value.get("parents")),
        diff=_text(value.get("diff")),
        path=_text(value.get("path")),
        line=_whole(value.get("line")),
        said_by=_text(word.get("who")),
    )


def _problem(value: Mapping[str, Any]) -> Problem:
    return Problem(
        message=_text(value.get("message")),
        path=_text(value.get("path")),
        line=_whole(value.get("line")),
        column=_whole(value.get("column")),
        hint=_text(value.get("hint")),
        kind=_text(value.get("kind")),
        audit=_text(value.get("audit")),
        model=_text(value.get("model")) if value.get("audit") else "",
        retry=value.get("retry") is True,
    )


def _test(value: Mapping[str, Any]) -> TestCase:
    return TestCase(
        name=_text(value.get("name")),
        ok=bool(value.get("ok")),
        path=_text(value.get("path")),
        line=_whole(value.get("line")),
        message=_text(value.get("message")),
    )


def _audit(value: Mapping[str, Any]) -> Audit:
    return Audit(
        model=_text(value.get("model")),
        name=_text(value.get("name")),
        ok=bool(value.get("ok")),
        blocking=bool(value.get("blocking", True)),
        count=_whole(value.get("count")),
        path=_text(value.get("path")),
        line=_whole(value.get("line")),
        query=_text(value.get("query")),
        columns=tuple(map(str, _list(_mapping(value.get("sample")).get("columns")))),
        sample=tuple(
            tuple("NULL" if each is None else str(each) for each in _list(row))
            for row in _list(_mapping(value.get("sample")).get("rows"))
        ),
        reads=tuple(map(str, _list(value.get("reads")))),
    )


def _promotion(value: Mapping[str, Any]) -> Promotion:
    views = _mapping(value.get("views"))
    return Promotion(
        added=_whole(views.get("added")),
        swapped=_whole(views.get("swapped")),
        dropped=_whole(views.get("dropped")),
        unchanged=_whole(views.get("unchanged")),
        spark_jobs=_whole(value.get("spark_jobs")),
        seconds=float(value.get("seconds") or 0),
        revision=_whole(value.get("revision")),
        batches=_whole(_mapping(value.get("backfill")).get("batches")),
    )


def _row(value: Mapping[str, Any], result: Mapping[str, Any]) -> EnvironmentRow:
    name, pending = _text(value.get("name")), _mapping(result.get("pending"))
    return EnvironmentRow(name, _whole(value.get("revision")), _text(value.get("plan_id")), name in pending)


def _words(value: object) -> tuple[Word, ...]:
    return tuple(
        Word(_text(each.get("model")), _text(each.get("category")), _text(each.get("who")))
        for each in _list(value)
        if isinstance(each, dict)
    )


def _timeline(value: object) -> tuple[Days, ...]:
    return tuple((str(each[0]), str(each[1])) for each in _list(value) if isinstance(each, list) and len(each) == 2)


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _whole(value: object) -> int:
    return int(value) if isinstance(value, (int, float)) else 0


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _names(value: object) -> tuple[str, ...]:
    return tuple(_text(each) for each in _list(value))
