"""A plan, a promotion and what went wrong, in words: the sentences that comment, checks and replies share. Pure."""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from mergeplan.bot.records import Prod, ProdRecord, PullRecord, PullState
from mergeplan.bot.report.markdown import (
    NAMES,
    SIGNS,
    category_of,
    clip_text,
    code,
    details_block,
    fence,
    format_table,
    inert_text,
    table_cell,
    tag_text,
    whole_days,
)
from mergeplan.bot.report.reverts import revert_words
from mergeplan.bot.results import (
    RULE_BROKEN,
    WITHOUT_VIEW,
    PlannerOutcome,
    Problem,
    audit_subject,
    find_skips,
    is_free,
    view_changes,
    was_interrupted,
)
from mergeplan.planner.contract.lines import AuditRow
from mergeplan.planner.contract.plan import ModelChange, OverrideRow, PlanView
from mergeplan.planner.contract.result import PromotionRow
from mergeplan.planner.site.progress import WEB_ADDRESS
from mergeplan.planner.wording import count_noun, duration_text, first_names, join_names, size_text

WHOLE_KINDS = frozenset({"FULL", "SEED"})
WHY_MOST = 4  # reasons, names: what is longer is counted
CONDITIONS_MAX = 2  # that are written out
REFUSED_MOST = 20  # files that cannot be opened
COLUMNS_MOST = 8
QUERY_MOST = 4_000  # characters


def failure_title(outcome: PlannerOutcome | None) -> str:
    if outcome is None or (outcome.is_defect and not outcome.is_at_file):
        return "The plan could not be made: the fault is mergeplan's"
    kinds = {problem.kind for problem in outcome.problems}
    conflicts = [problem.message for problem in outcome.problems if problem.kind == "Conflict"]
    if outcome.failed:
        return f"{count_noun(outcome.failed, 'unit test')} failed"
    blocking_audits = [audit for audit in outcome.audits if not audit.ok and audit.blocking]
    if "AuditFailed" in kinds or blocking_audits:
        return _audit_title(blocking_audits)
    if conflicts:
        return conflicts[0].partition(" in `")[0].rstrip(".")  # without the paths
    if outcome.plan is not None:
        return f"The environment {code(outcome.plan.environment)} could not be built"
    if kinds == {RULE_BROKEN}:
        return "The project breaks rules of its linter"
    if "ProjectError" in kinds or any(problem.path for problem in outcome.problems):
        return "The project does not load"
    return "The plan could not be made"


def _audit_title(audits: Sequence[AuditRow]) -> str:
    if len(audits) != 1:
        return f"{len(audits)} blocking audits found rows" if audits else "A blocking audit found rows"
    (audit,) = audits
    of = f" of {code(audit.model)}" if audit.model else ""
    return f"The audit {code(audit.name)}{of} found {count_noun(audit.count, 'row')}"


def change_words(plan: PlanView) -> str:
    """Return the number of models of each category: `1 non-breaking, 2 indirect non-breaking`."""
    counts = Counter(category_of(model) for model in plan.models)
    parts = [f"{counts[key]:,} {NAMES[key].lower()}" for key in SIGNS if counts[key]]
    return ", ".join(parts) or "Only views change"


def prod_words(plan: PlanView, *, is_held: bool = False, with_drops: bool = True) -> str:
    """Return what a merge does to prod: `replaces 2 tables of prod, adds 1 and drops 1`; `would replace` if held.

    Without drops it is '' if there is nothing else.
    """
    moved = view_changes(plan)
    removed = [model for model in plan.models if model.change == "removed" and model.kind.upper() not in WITHOUT_VIEW]
    added = [model for model in moved if model.change == "added"]
    replaced = [model for model in moved if model.change != "added"]
    groups = {"replaces": replaced, "adds": added, "drops": removed if with_drops else []}
    (verb, models), *others = [group for group in groups.items() if group[1]] or [("changes", [])]
    if not models and removed:
        return ""
    of = "to" if verb == "adds" else "of"
    view_count = sum(model.kind.upper() == "VIEW" for model in models)
    counts = (("table", len(models) - view_count), ("view", view_count))
    tables = join_names([count_noun(number, noun) for noun, number in counts if number]) or "no table"
    first = f"{verb} {tables} {of} prod"
    text = join_names([first, *(f"{verb} {len(models):,}" for verb, models in others)])
    return "would " + re.sub(r"\b(replace|add|drop|change)s\b", r"\1", text) if is_held else text


def work_words(plan: PlanView) -> str:
    todo = [model for model in plan.models if model.intervals]
    if not todo:
        return "nothing"
    total = sum(day_count(model) for model in todo)
    in_days = f", {count_noun(total, 'day')}" if total else ""
    return f"{count_noun(len(todo), 'table')}{in_days}"


def day_count(model: ModelChange) -> int:
    """Return the number of days of an incremental model that a plan computes; 0 for a table that is computed whole."""
    return 0 if model.first_load or model.kind.upper() in WHOLE_KINDS else whole_days(model.intervals)


def spark_link(record: PullRecord) -> str:
    if not (record.run.fresh and WEB_ADDRESS.fullmatch(record.run.spark_ui)):
        return ""
    return f"[Spark UI]({record.run.spark_ui})"


def skip_summary(plan: PlanView) -> str:
    """Return what was skipped because its inputs hold the same rows, why, and what that saved; '' for nothing.

    `**2 models were not computed.** Computed again, ... That saved about 2 min, 1.2 GiB.`
    """
    models = find_skips(plan)
    if not models:
        return ""
    head = f"**{count_noun(len(models), 'model was', 'models were')} not computed.**"
    reasons = list(dict.fromkeys(inert_text(model.reason) for model in models if model.rule == "same-data"))
    more_text = f" And {len(reasons) - WHY_MOST} more like that." if len(reasons) > WHY_MOST else ""
    cost = cost_of(models)
    return " ".join([head, *reasons[:WHY_MOST]]) + more_text + (f" That saved {cost}." if cost else "")


def check_words(plan: PlanView | None) -> str:
    """Return the sentence with the results of Spark's analyzer for models that keep rows; '' if there are none.

    `Checked by Spark: 3 models keep rows. Not checked by Spark: 1 model (a Python model has no query).`
    """
    checks = [model.checked for model in plan.models if model.checked] if plan else []
    agreed = sum(check.state in ("agrees", "explained") for check in checks)
    open_checks = Counter(check.detail for check in checks if check.state == "unchecked")
    parts = [f"Checked by Spark: {count_noun(agreed, 'model keeps', 'models keep')} rows."] if agreed else []
    parts += [
        f"Not checked by Spark: {count_noun(number, 'model')} ({inert_text(reason)})."
        for reason, number in open_checks.items()
    ]
    return " ".join(parts)


def override_end_words(unused: OverrideRow) -> str:
    """Return why a category that somebody gave no longer applies, as a clause."""
    if unused.ended_by == "base":
        return "prod has a newer version of this model"
    return "the model, or what it reads, was edited since"


def open_words(plan: PlanView) -> str:
    """Return what may still be skipped, by the table that decides it; '' when nothing is open.

    What reads a model that may be skipped is not named: it is skipped with it. Of many, one is an example.
    """
    waiting = {comparison.reader for comparison in plan.comparisons}
    readers: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for comparison in plan.comparisons:
        if comparison.model not in waiting:
            readers.setdefault((comparison.model, comparison.columns), []).append(code(comparison.reader))
    parts = [_skip_condition(model, columns, names) for (model, columns), names in readers.items()]
    if len(parts) <= CONDITIONS_MAX:
        return f"**May still be skipped**, with what reads it: {'; '.join(parts)}." if parts else ""
    number = sum(map(len, readers.values()))
    return f"**{number:,} models may still be skipped**, with what reads them: {parts[0]}, and so on."


def _skip_condition(model: str, columns: Sequence[str], readers: Sequence[str]) -> str:
    where = f" in {first_names([code(column) for column in columns], COLUMNS_MOST)}" if columns else ""
    return f"{first_names(readers, WHY_MOST)} if {code(model)} holds the same rows as before{where}"


def refusal_words(plan: PlanView | None) -> str:
    if plan is None or not plan.refused:
        return ""
    lines = []
    for file in plan.refused:
        names = first_names([code(name) for name in file.models], WHY_MOST) or code(file.path)
        stays = " It stays in prod as it is." if file.deployed else ""
        lines.append(
            f"- {names} ({code(f'{file.path}:{file.line}')}): {inert_text(clip_text(file.message, 300))}{stays}"
        )
    files = len({file.path for file in plan.refused})
    title = f"**Not planned:** {count_noun(files, 'file')} of models cannot be opened."
    readers = first_names([code(model.model) for model in plan.left_out], WHY_MOST)
    reader_lines = [f"- Left out, because they read one of these: {readers}."] if readers else []
    more_lines = [f"- … and {len(lines) - REFUSED_MOST} more"] if len(lines) > REFUSED_MOST else []
    return "\n".join([f"🚫 {title}", "", *lines[:REFUSED_MOST], *more_lines, *reader_lines])


def cost_of(models: Sequence[ModelChange]) -> str:
    seconds, size = sum(model.estimate.seconds for model in models), sum(model.estimate.bytes for model in models)
    parts = (f"about {duration_text(seconds)}" if seconds else "", f"{size_text(size)} read" if size else "")
    return ", ".join(part for part in parts if part)


def estimate_words(models: Sequence[ModelChange]) -> str:
    """Return the estimated cost and its source; an unknown part makes it `at least`."""
    todo = [model for model in models if model.intervals and not model.skipped]
    parts = []
    if sized := [model for model in todo if "statistics" in model.estimate.basis]:
        qualifier = "at least " if len(sized) < len(todo) else ""
        size = size_text(sum(model.estimate.bytes for model in sized))
        parts.append(f"{qualifier}{size} to read (Spark's statistics{_known_part(sized, todo)})")
    if timed := [model for model in todo if "batches" in model.estimate.basis]:
        qualifier = "at least " if len(timed) < len(todo) else "about "
        took = duration_text(sum(model.estimate.seconds for model in timed))
        parts.append(f"{qualifier}{took} (earlier batches{_known_part(timed, todo)})")
    return ", ".join(parts)


def cost_sentence(outcome: PlannerOutcome) -> str:
    return next((inert_text(problem.message) for problem in outcome.problems if problem.kind == "TooCostly"), "")


def _known_part(known: Sequence[ModelChange], todo: Sequence[ModelChange]) -> str:
    return "" if len(known) == len(todo) else f", {len(known)} of {count_noun(len(todo), 'table')}"


def actual_words(outcome: PlannerOutcome) -> str:
    done = outcome.backfill
    if done is None or not done.batches or done.seconds is None:
        return ""
    written = count_noun(done.rows, "row")
    return f"{duration_words(outcome)}: {count_noun(done.batches, 'batch', 'batches')}, {written} written"


def duration_words(outcome: PlannerOutcome) -> str:
    done = outcome.backfill
    return duration_text(done.seconds) if done and done.batches and done.seconds is not None else ""


def cheaper_words(plan: PlanView) -> str:
    """Return `If a.b were non-breaking, 1 table instead of 14 would be computed.`; '' if it would save none."""
    edited = [model for model in plan.models if model.change == "direct" and model.category == "breaking"]
    todo = sum(bool(model.intervals) for model in plan.models)
    below = sum(bool(m.intervals) and m.category == "indirect_breaking" for m in plan.models)
    if not edited or not below:
        return ""
    model_text = code(edited[0].name) if len(edited) == 1 else f"these {len(edited)} models"
    return (
        f"If {model_text} were non-breaking, {count_noun(todo - below, 'table')} instead of {todo:,} would be computed."
    )


def promise_sentence(plan: PlanView, outcome: PlannerOutcome | None) -> str:
    applied = bool(outcome and outcome.applied)
    is_computed = applied or not any(model.intervals for model in plan.models)
    acts = _view_acts(plan, "the tables already built here" if is_computed else "the result")
    if not acts:
        return "Merging changes no table and no view of prod: only the metadata of the models."
    if applied and any(model.category == "forward_only" for model in plan.models):
        dropped = sum(model.change == "removed" for model in plan.models)
        gone = f" It drops {count_noun(dropped, 'view')}." if dropped else ""
        return _forward_sentence(plan, len(view_changes(plan))) + gone
    if is_computed:
        return f"Merging {acts}. Nothing is computed{' again' if view_changes(plan) else ''}."
    bound, less = ("up to ", " (skips those whose inputs are unchanged)") if plan.comparisons else ("", "")
    return f"Merging computes {bound}{work_words(plan)}{less}, then {acts}."


def _view_acts(plan: PlanView, tables: str) -> str:
    """Return what happens to views of prod; new views are not re-pointed; '' for nothing."""
    added = sum(model.change == "added" for model in view_changes(plan))
    pointed, dropped = len(view_changes(plan)) - added, sum(model.change == "removed" for model in plan.models)
    acts = [f"points {count_noun(pointed, 'view')} of prod at {tables}"] if pointed else []
    acts += [f"adds {count_noun(added, 'view')}" + (f" to prod over {tables}" if not pointed else "")] if added else []
    acts += [f"drops {count_noun(dropped, 'view')}" + ("" if acts else " of prod")] if dropped else []
    return join_names(acts)


def _forward_sentence(plan: PlanView, views: int) -> str:
    previews = [model for model in plan.models if model.preview and model.kind.upper() not in ("VIEW", "EMBEDDED")]
    forward_count = sum(model.category == "forward_only" for model in previews)
    later = [code(model.name) for model in previews if model.category != "forward_only"]
    shown = (
        f" This environment shows a preview of {count_noun(forward_count, 'model')}: in prod existing rows stay."
        if forward_count
        else ""
    )
    work = f" It computes {', '.join(later)}, built of previews here." if later else " Nothing is computed again."
    return (
        f"Merging points {count_noun(views, 'view')} of prod at its forward-only and newly built tables.{shown}{work}"
    )


def waiting_words(prod: ProdRecord) -> str:
    problems = prod.outcome.problems if prod.outcome else ()
    if not problems:
        return "Prod is being built for the first time; this pull request is planned when it is built."
    reason = inert_text(clip_text(problems[0].message))
    at = f" at {datetime.fromtimestamp(prod.again_at, UTC):%H:%M:%S} UTC" if prod.again_at else ""
    retry_text = f"The build is tried again automatically{at}; this pull request is planned when it is built."
    return f"Prod could not be built yet: {reason} {retry_text}"


def unbuilt_words(prod: ProdRecord) -> str:
    """Return why prod was never built, and every model is new, if only an edit fixes that; '' in other cases."""
    if prod.state is not Prod.FAILED or prod.revision or not (prod.outcome and prod.outcome.problems):
        return ""
    problems = prod.outcome.problems
    reason = problem_line(problems[0]).removeprefix("- ")
    return f"Prod could not be built: {reason} Until a merge fixes that, every model is planned as new."


def promotion_status(record: PullRecord) -> str:
    outcome = record.promotion.outcome
    done = outcome.promotion if outcome else None
    if record.state is PullState.ROLLED_BACK:
        return f"> [!IMPORTANT]\n> {revert_words(record)}\n>\n> {inert_text(record.reason)}"
    if record.state is PullState.UNPROMOTED:
        mend = "Fix it with another pull request, or type `/plan` to try again."
        return f"> [!CAUTION]\n> Prod still shows what it showed before. {mend}"
    at = f"`{record.promotion.merge_sha[:7]}`"
    if done is None:
        return f"Merged as {at}; {inert_text(record.reason) or 'prod needed no change.'}"
    work = "**Nothing was computed: 0 Spark jobs.**" if is_free(done) else f"{cost_words(done)} first."
    if was_interrupted(done):
        work = "The run that promoted it was interrupted, and the next run found its result."
    moved = f" {inert_text(record.reason)}" if record.reason else ""
    revision = f" Prod is now at revision {record.promotion.revision}." if record.promotion.revision else ""
    return f"> [!TIP]\n> Merged as {at}. {view_words(done)} {work}{revision}{moved}"


def view_words(promotion: PromotionRow) -> str:
    """Return the sentence `2 views re-pointed, 1 added, 5 unchanged`."""
    named = (
        (promotion.views.swapped, "re-pointed"),
        (promotion.views.added, "added"),
        (promotion.views.dropped, "dropped"),
        (promotion.views.unchanged, "unchanged"),
    )
    counts = [(number, verb) for number, verb in named if number]
    if not counts:
        return "No view had to change."
    first, *other_counts = counts
    parts = ", ".join(
        [f"{count_noun(first[0], 'view')} {first[1]}", *(f"{number:,} {verb}" for number, verb in other_counts)]
    )
    return f"{parts}."


def promotion_summary(outcome: PlannerOutcome) -> str:
    return view_words(outcome.promotion) if outcome.promotion else "No view had to change."


def first_problem(outcome: PlannerOutcome) -> str:
    return outcome.problems[0].message if outcome.problems else f"The planner ended with {outcome.exit_code}."


def problem_words(outcome: PlannerOutcome) -> str:
    hint = outcome.problems[0].hint if outcome.problems else ""
    return f"{first_problem(outcome)} {hint}".strip()


def cost_words(promotion: PromotionRow) -> str:
    if promotion.spark_jobs is None:
        return "by a run that was interrupted"
    if promotion.backfill and promotion.backfill.batches:
        return f"{count_noun(promotion.backfill.batches, 'batch', 'batches')} computed"
    return f"{count_noun(promotion.spark_jobs, 'Spark job')} run"


def problem_line(problem: Problem, name: str = "") -> str:
    """Return `models/orders.sql:7`, the error, and its hint."""
    where = f"{code(problem.where)}: " if problem.where else ""
    return f"- {where}{code(name) + ': ' if name else ''}{inert_text(clip_text(problem.message))}" + (
        f" {inert_text(clip_text(problem.hint))}" if problem.hint else ""
    )


def audit_line(audit: AuditRow) -> str:
    weight = "" if audit.blocking else " (a warning: it does not block)"
    model = code(audit_subject(audit) or audit.name)
    return f"- {model}: audit {code(audit.name)} found {count_noun(audit.count, 'row')}{weight}"


def audit_details(audit: AuditRow) -> str:
    title = f"What <code>{tag_text(audit.name)}</code> of <code>{tag_text(audit_subject(audit))}</code> found"
    rows = format_table(
        [table_cell(code(column)) for column in audit.sample.columns],
        [[code("NULL" if content is None else str(content) or " ") for content in row] for row in audit.sample.rows],
    )
    return details_block(
        title, "\n\n".join([*([rows] if audit.sample.rows else []), fence(audit.query, "sql", QUERY_MOST)])
    )


def drift_sentence(planned_digest: str, outcome: PlannerOutcome) -> str:
    """Return what was computed at the merge because something moved since that plan; '' for nothing."""
    plan = outcome.plan
    if plan is None or not planned_digest or planned_digest in (plan.digest, plan.planned_digest):
        return ""
    todo = [model.name for model in plan.models if model.intervals]
    if not todo:
        return "Prod had moved since the plan; the merge was planned again, and nothing had to be computed."
    names = ", ".join(f"`{name}`" for name in todo[:6]) + (
        f" and {count_noun(len(todo) - 6, 'more table')}" if len(todo) > 6 else ""
    )
    return f"Prod had moved since the plan, so {names} ({work_words(plan)}) was computed before any view moved."
