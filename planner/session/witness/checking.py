"""Check a plan with Spark's analyzer, its second witness: what the rules keep and it denies is computed."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from mergeplan.planner.apply.events import ClaimRefuted
from mergeplan.planner.apply.witness.questions import Questions
from mergeplan.planner.apply.witness.stand_ins import StandIns, TableColumns
from mergeplan.planner.apply.witness.stored_columns import external_columns, order_as_stored
from mergeplan.planner.checks.remembered_tests import spark_settings
from mergeplan.planner.engine.analysis import Analysis, PairResult
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.model.graph import reach_names
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.stages import find_downstream
from mergeplan.planner.plan.witness.check import COMPARING, Check, CheckState
from mergeplan.planner.plan.witness.claims import Claim, claims_of
from mergeplan.planner.serial import decode_json, encode_json
from mergeplan.planner.session.options import PlanOptions
from mergeplan.planner.session.use_cases.planning import make_plan
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.snapshot.snapshot import Snapshot

NO_SPARK = "no Spark was running"
NO_PLANS = "a Spark Connect server shows no plans: a local Spark checks it when it is applied"
NO_JVM = "a Spark Connect server shows no plans, and no local Spark can be started"


class PlansNotShownError(Exception):
    """The Spark does not show its plans."""


def make_checked_plan(
    work: Workspace, options: PlanOptions, models: Mapping[str, Model], *, may_start: bool = True
) -> Plan:
    """Make a plan that keeps no model whose rows Spark's analyzer says differ."""
    while True:
        plan = make_plan(work, options, models)
        plan, agreed = check_plan(work, plan, may_start=may_start)
        if agreed:
            return plan


def add_checks(
    work: Workspace, options: PlanOptions, plan: Plan, show_unchecked: Callable[[Plan], object] = lambda _plan: None
) -> Plan:
    """Return the plan checked by a Spark that runs already; make it again if Spark disagrees with the rules.

    `show_unchecked` gets the plan before Spark compares anything, which can take seconds.
    """
    claims = () if options.restate else claims_of(plan)
    if not claims:
        return plan
    if not (work.has_engine or work.is_warm):
        return _mark_unchecked(plan, claims, NO_SPARK)
    show_unchecked(_mark_unchecked(plan, claims, COMPARING))
    checked, agreed = check_plan(work, plan, may_start=False)
    if agreed:
        return checked
    remade = make_checked_plan(work, options, work.models, may_start=False)
    return replace(remade, warnings=tuple(dict.fromkeys((*remade.warnings, *plan.warnings))))


def check_plan(work: Workspace, plan: Plan, *, may_start: bool) -> tuple[Plan, bool]:
    """Return the plan with Spark's verdict on each model that it keeps, and False if it must be made again.

    With `may_start`, a local Spark starts if the project's own shows no plans.
    """
    claims = claims_of(plan)
    if not claims:
        return plan, True
    try:
        checks = Inquiry(work, plan, may_start).check_claims(claims)
    except PlansNotShownError:
        return _mark_unchecked(plan, claims, NO_JVM if may_start else NO_PLANS), True
    denied = {claim.key: (claim.model, _refutation_reason(checks[claim.model])) for claim in claims}
    denied = {key: (model, reason) for key, (model, reason) in denied.items() if reason}
    if denied:
        work.store.refuted_claims.record(denied)
        for model, reason in denied.values():
            work.on_event(ClaimRefuted(model, reason))
    return replace(plan, checks=checks), not denied


def _mark_unchecked(plan: Plan, claims: Sequence[Claim], reason: str) -> Plan:
    return replace(plan, checks={claim.model: Check(CheckState.UNCHECKED, reason) for claim in claims})


def _refutation_reason(check: Check) -> str:
    return check.detail if check.state is CheckState.DISAGREES else ""


class Inquiry:
    """The questions to a workspace's Spark about a plan; an answer is cached by all that it depends on."""

    def __init__(self, work: Workspace, plan: Plan, may_start: bool) -> None:
        self._work, self._plan, self._may_start = work, plan, may_start
        self._settings = spark_settings(work.connection)
        snapshots = [s for c in plan.changes for s in (c.old, c.new) if s] + [*plan.new.snapshots.values()]
        self._known = work.store.tables.all()
        outside = {s.table: s for s in snapshots if s.kind.is_external and s.name in self._read_names()}
        self._external = external_columns(work.engine, outside.values())

    def check_claims(self, claims: Sequence[Claim]) -> Mapping[str, Check]:
        checks = Questions(StandIns(self._plan, self._find_stored_columns), self._ask_spark).check_claims(claims)
        self._work.lookups.keep()
        padded = dict(self._find_padded_views())
        return {
            name: next((padded[view] for view in padded if name in find_downstream(self._plan, {view})), check)
            for name, check in checks.items()
        }

    def _find_padded_views(self) -> Iterator[tuple[str, Check]]:
        """Yield views that become tables, or the reverse, over a CHAR that external_models.yaml calls something else.

        Spark pads such a column in a view and not in a table, where it is a STRING.
        """
        for change in self._plan.changes:
            if change.old and change.new and change.old.kind.is_stored is not change.new.kind.is_stored:
                above = [self._plan.new.snapshots[name] for name in reach_names([change.name], self._plan.parents)]
                outside = {snapshot.table: snapshot for snapshot in above if snapshot.kind.is_external}
                for table, columns in external_columns(self._work.engine, outside.values()).items():
                    declared = {column.name: column.type for column in outside[table].model.columns}
                    for column in columns:
                        if column.type.startswith("char(") and declared.get(column.name, "").lower() != column.type:
                            reason = f"`{table}.{column.name}` is a {column.type} in Spark, and is declared otherwise."
                            yield change.name, Check(CheckState.DISAGREES, reason)

    def _read_names(self) -> frozenset[str]:
        changes = {change.name for change in self._plan.changes}
        old = {p for c in self._plan.changes if c.old for p in c.old.model.depends_on}
        return frozenset(parent for name in changes for parent in self._plan.parents.get(name, ())) | old | changes

    def _find_stored_columns(self, snapshot: Snapshot) -> TableColumns | None:
        if snapshot.kind.is_external:
            return self._external.get(snapshot.table) or snapshot.model.columns
        stored_table = self._known.get(snapshot.table)
        if stored_table is None or stored_table.garbage or not stored_table.columns:
            return None
        return order_as_stored(snapshot, stored_table.columns)

    def _ask_spark(self, analysis: Analysis) -> Sequence[PairResult]:
        keys = {pair: self._cache_key(analysis, index) for index, pair in enumerate(analysis.pairs)}
        remembered = {
            pair: cached_answer for pair, key in keys.items() if (cached_answer := self._recall_answer(key)) is not None
        }
        fresh = tuple(pair for pair in keys if pair not in remembered)
        if fresh:
            answers = self._work.engine.compare_queries(replace(analysis, pairs=fresh), may_start=self._may_start)
            if answers is None:
                raise PlansNotShownError
            for pair, answer in zip(fresh, answers, strict=True):
                remembered[pair] = answer
                if keys[pair] and not (answer.error or answer.unknown or answer.gave_up):
                    self._work.lookups.put(keys[pair], json.dumps(encode_json(answer)))
        return [remembered[pair] for pair in analysis.pairs]

    def _cache_key(self, analysis: Analysis, index: int) -> str:
        """Return the cache key of a pair; stand-ins are named by digests, so that the texts of a pair determine it."""
        if self._settings is None:
            return ""
        return digest("compared plans", self._settings, repr(analysis.pairs[index]))

    def _recall_answer(self, key: str) -> PairResult | None:
        text = self._work.lookups.get(key) if key else None
        if text is not None:
            with suppress(ValueError, TypeError, KeyError, AttributeError):
                return decode_json(PairResult, json.loads(text))
        return None
