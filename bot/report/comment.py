"""The plan comment: everything that a pull request is shown about its plan, from what we know of it. Pure."""

import hashlib
import re

from mergeplan.bot.projects import add_label, label_of, repository_of
from mergeplan.bot.pull_parts import MovedTable
from mergeplan.bot.records import AFTER_MERGE, PullRecord, PullState
from mergeplan.bot.report.checks.plan import NAME as PLAN
from mergeplan.bot.report.inflight import inflight_block, stack_blocks
from mergeplan.bot.report.losses import reader_blocks
from mergeplan.bot.report.markdown import (
    COMMENT_LIMIT,
    MARKER,
    NAMES,
    code,
    details_block,
    fit_blocks,
    fit_lines,
    mermaid_graph,
)
from mergeplan.bot.report.models import (
    COMPUTED,
    OPEN,
    TO_COMPUTE,
    Site,
    category_legend,
    diffs_blocks,
    model_table,
    models_blocks,
)
from mergeplan.bot.report.offers import list_offers
from mergeplan.bot.report.physical import physical_blocks
from mergeplan.bot.report.rows import exposures_block, impact_block, rows_blocks, schema_block
from mergeplan.bot.report.shown import Shown
from mergeplan.bot.report.state_texts import lists_blockers
from mergeplan.bot.report.states import blockers, headline, state_row, status
from mergeplan.bot.report.words import (
    actual_words,
    audit_details,
    audit_line,
    change_words,
    check_words,
    cost_of,
    duration_words,
    estimate_words,
    open_words,
    override_end_words,
    problem_line,
    refusal_words,
    skip_summary,
    unbuilt_words,
    work_words,
)
from mergeplan.bot.results import PlannerOutcome, Problem, has_effect, problems_of, unreported_audits
from mergeplan.planner.wording import count_noun

PLAN_MARKER = re.compile(rf"{MARKER}:plan((?:~[A-Za-z0-9._-]+)*) -->")  # as `plan_marker` makes it
ROWS_OF_FEW, ROWS_OF_MANY = 5, 3  # models whose numbers of rows stand in the open
GRAPH_MOST = 120  # more than this: no graph, it could not be read
PROBLEMS_MOST = 12_000  # characters, as the next one: what is longer is cut at a line's end
WARNINGS_MOST = 6_000  # characters of what the plan warns of
AUDITS_MOST = 5  # whose query and rows are shown
FOOT_MOST = 12_000
SUMMARY_LIMIT = 250_000  # characters of a job's summary: GitHub takes 1 MiB, and a character may be four bytes
SUMMARY_ROWS = 100_000
DIFFS_APART = 6  # of more edited models the comment shows beginnings only
ROWS_SHOWN = AFTER_MERGE | {PullState.PLANNED}


def plan_comment(pull_view: Shown) -> str | None:
    """Return the plan comment; None for a pull request that never touched a model."""
    record, outcome = pull_view.record, pull_view.record.outcome
    if not record.comment.id and state_row(record).is_silent(record):
        return None
    of = f" · {code(pull_view.record.place.project)}" if pull_view.record.place.project else ""
    blocks = [
        "\n".join([plan_marker(record.repository), f"{headline(pull_view)}{of}", "", status(pull_view)]),
        *_note_blocks(pull_view),
        *_count_block(outcome),
        facts_line(pull_view),
        *stack_blocks(record),
        *_problem_blocks(record, outcome),
        *_plan_warnings(pull_view),
        *_warning_blocks(record, outcome),
        refusal_words(outcome.plan if outcome else None),
        *_change_blocks(record, outcome),
        *(inflight_block(record) if record.state is PullState.PLANNED else []),
        check_words(outcome.plan if outcome else None),
        *_cost_block(outcome),
        *_checks_block(outcome),
        comment_foot(pull_view),
    ]
    link = next((ref.url for ref in record.checks if ref.name == PLAN and ref.sha == record.head and ref.url), "")
    where = f"[the plan check]({link})" if link else f"the `{add_label(PLAN, label_of(record.repository))}` check"
    return fit_blocks(
        [block for block in blocks if block], COMMENT_LIMIT - 500, f"*Too large to show whole: the rest is in {where}.*"
    )


def plan_marker(project: str) -> str:
    """Return the hidden key of the plan comment for one project.

    >>> plan_marker("ann/shop"), plan_marker("ann/shop~ads")
    ('<!-- mergeplan:plan -->', '<!-- mergeplan:plan~ads -->')
    """
    return f"{MARKER}:plan{project.removeprefix(repository_of(project))} -->"


def comment_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def facts_line(pull_view: Shown) -> str:
    record = pull_view.record
    plan = record.outcome.plan if record.outcome else None
    revision = f" revision {record.base.prod_revision}" if record.base.prod_revision else ""
    base = f"base `prod`{revision}" + (f" at `{record.base.sha[:7]}`" if record.base.sha else "")
    parts = [
        f"**{code(record.environment.name)}**" if record.environment.name else "",
        f"head `{record.head[:7]}`",
        base,
        f"plan `{plan.id}`" if plan and plan.id else "",
        f"{record.run.planned_at[:16].replace('T', ' ')} UTC" if record.run.planned_at else "",
    ]
    return " · ".join(part for part in parts if part)


def _count_block(outcome: PlannerOutcome | None) -> list[str]:
    plan = outcome.plan if outcome else None
    if outcome is None or plan is None or not has_effect(plan):
        return []
    shared = sum(1 for model in plan.models if model.shares)
    waits = not outcome.applied and any(model.intervals for model in plan.models)
    took = duration_words(outcome)
    cost = f"took {took}" if took else cost_of([model for model in plan.models if not model.skipped])
    facts = [
        change_words(plan),
        f"{'To compute' if waits else 'Computed here'}: {work_words(plan)}",
        f"{count_noun(shared, 'table')} shared" if shared else "",
        estimate_words(plan.models) if waits else cost,
    ]
    return [" · ".join(filter(None, facts))]


def _problem_blocks(record: PullRecord, outcome: PlannerOutcome | None) -> list[str]:
    ended = record.promotion.outcome if record.state is PullState.UNPROMOTED else outcome
    if ended is None or record.state not in (PullState.FAILED, PullState.UNPROMOTED, PullState.PLANNED):
        return []
    if record.state is PullState.PLANNED and ended.plan and ended.plan.blockers:
        return []  # they stand at the end
    if ended.is_too_costly:
        return []  # the status says it
    if ended.is_defect and not ended.is_at_file:
        return [f"Internal error in mergeplan (run `{record.run.id}`). Type `/plan` to try again."]
    failed = [
        problem_line(Problem(test.message or "failed", test.path, test.line), test.name)
        for test in ended.tests
        if not test.ok
    ]
    lines = [problem_line(problem) for problem in ended.problems] + failed
    lines += [audit_line(audit) for audit in unreported_audits(ended)]
    details = [audit_details(audit) for audit in ended.audits if not audit.ok and audit.query][:AUDITS_MOST]
    return ["\n".join(fit_lines(lines, PROBLEMS_MOST)), *details] if lines else []


def _warning_blocks(record: PullRecord, outcome: PlannerOutcome | None) -> list[str]:
    """Return the linter's warnings, while something can still be done about them."""
    if outcome is None or not outcome.warnings or record.state not in (PullState.FAILED, PullState.PLANNED):
        return []
    warnings = [warning for warning in outcome.warnings if not _is_shown(warning, outcome)]
    if not warnings:
        return []
    lines = fit_lines([problem_line(warning) for warning in warnings], PROBLEMS_MOST)
    return [details_block(f"⚠️ {count_noun(len(warnings), 'warning')} of the linter", "\n".join(lines))]


def _is_shown(warning: Problem, outcome: PlannerOutcome) -> bool:
    """Return True for a misspelled table of which a warning of the plan says that Spark has none."""
    remarks = outcome.plan.warnings if outcome.plan else ()
    place = (warning.path, _first_name(warning.message))
    return warning.message.startswith("misspelledtable:") and any(
        (remark.path, _first_name(remark.message)) == place for remark in remarks
    )


def _first_name(message: str) -> str:
    """Return the first name in back-ticks.

    >>> _first_name("misspelledtable: `shop.order` is no model. Did you mean `shop.orders`?")
    'shop.order'
    """
    return message.partition("`")[2].partition("`")[0]


def _plan_warnings(pull_view: Shown) -> list[str]:
    """Return the plan's warnings, such as a missing view of prod; a prod never built comes first."""
    outcome = pull_view.record.outcome
    warnings = problems_of(outcome.plan.warnings) if outcome and outcome.plan else ()
    is_open = pull_view.record.state in (PullState.PLANNED, PullState.FAILED)
    unbuilt = unbuilt_words(pull_view.prod) if is_open else ""
    lines = [f"- {unbuilt}"] if unbuilt else []
    lines += [problem_line(warning) for warning in warnings]
    quoted = [f"> {line.removeprefix('- ') if len(lines) == 1 else line}" for line in fit_lines(lines, WARNINGS_MOST)]
    return ["\n".join(["> [!WARNING]", *quoted])] if quoted else []


def _change_blocks(record: PullRecord, outcome: PlannerOutcome | None) -> list[str]:
    """Return what changes, as rows, readers, models, graph, diffs; of many models groups, with the rest folded."""
    plan = outcome.plan if outcome else None
    if plan is None or not plan.models or record.state in (PullState.HELD, PullState.WAITING):
        return []
    shown = [model for model in plan.models if model.change != "unchanged"]
    many, site = len(shown) > OPEN, Site(record.place.site, record.head, record.place.folder)
    table, *model_blocks = models_blocks(shown, site, COMPUTED if outcome and outcome.applied else TO_COMPUTE)
    still_open = "" if record.state is PullState.FAILED or plan.blockers else open_words(plan)
    notes = [f"✂️ {words}" for words in (skip_summary(plan), still_open) if words]
    rows = []
    if record.state in ROWS_SHOWN:
        rows = [
            *rows_blocks(outcome, ROWS_OF_MANY if many else ROWS_OF_FEW),
            *schema_block(outcome),
            *physical_blocks(outcome),
            *impact_block(plan),
            *exposures_block(plan),
            *reader_blocks(record.nearby.readers),
        ]
    drawn = mermaid_graph(shown) if 1 < len(shown) <= GRAPH_MOST else ""
    if many:
        drawn = details_block(f"Graph of {len(shown)} models", drawn) if drawn else ""
        return [*notes, table, category_legend(shown), *rows, *model_blocks, drawn, *diffs_blocks(shown, site)]
    return [*notes, *rows, drawn, table, category_legend(shown), *model_blocks, *diffs_blocks(shown, site)]


def _cost_block(outcome: PlannerOutcome | None) -> list[str]:
    took = actual_words(outcome) if outcome else ""
    estimated = estimate_words(outcome.plan.models) if outcome and outcome.plan else ""
    return [f"Estimated: {estimated}. It took {took}."] if took and estimated else []


def _checks_block(outcome: PlannerOutcome | None) -> list[str]:
    if outcome is None or not (outcome.passed or outcome.audits):
        return []
    passed = sum(audit.ok for audit in outcome.audits)
    parts = [f"{count_noun(outcome.passed, 'unit test')} passed"] if outcome.passed else []
    unchanged_count = sum(audit.unchanged for audit in outcome.audits)
    unchanged_text = f" ({unchanged_count} unchanged since they passed)" if unchanged_count else ""
    parts += [f"{count_noun(passed, 'audit')} passed{unchanged_text}"] if passed else []
    return [" · ".join(parts)] if parts else []


def _note_blocks(pull_view: Shown) -> list[str]:
    record, outcome = pull_view.record, pull_view.record.outcome
    notes = []
    if record.rules.edits_rules:
        notes.append(
            "This pull request edits the project's configuration. Permissions, the prod branch and all `cicd_bot` "
            "keys are read from the base branch: the edit takes effect after the merge."
        )
    is_open = record.state in (PullState.PLANNING, PullState.PLANNED, PullState.FAILED)
    for unused in outcome.plan.unused_overrides if is_open and outcome and outcome.plan else ():
        if unused.restates:
            act, again = f"restated {code(unused.model)}", "Restate it again if its rows are still wrong."
        else:
            name = NAMES.get(unused.category, unused.category)
            act, again = f"set {code(unused.model)} to {name}", "Categorize it again if it is still right."
        notes.append(f"{code(unused.who)} {act}: that no longer applies, because {override_end_words(unused)}. {again}")
    notes += [_moved_line(table) for table in record.nearby.moved] if record.state is PullState.PLANNED else []
    return ["\n".join(f"> {note}" for note in notes)] if notes else []


def _moved_line(table: MovedTable) -> str:
    moment = table.at[:16].replace("T", " ")
    return (
        f"{code(table.name)} changed in another project at {moment} UTC. Tables that were computed here before keep "
        f"their rows: {code(f'/restate {table.name}')} computes them again."
    )


def comment_foot(pull_view: Shown) -> str:
    record = pull_view.record
    # in other states, and where they are few, the headline and the paragraph below it name them
    blocked = blockers(record) if record.state is PullState.PLANNED and not lists_blockers(record) else ()
    lines = ["---"]
    if blocked:
        lines += [
            "**What blocks promotion**",
            "",
            *fit_lines([problem_line(problem) for problem in blocked], FOOT_MOST),
            "",
        ]
    offered = list_offers(pull_view.record, pull_view.prod)
    if offered:
        or_tick = "" if all(offer.moves_prod for offer in offered) else ", or tick its box"
        lines += [f"**Commands accepted now**: write one on a line of its own in a comment{or_tick}.", ""]
        lines += fit_lines([offer.line for offer in offered], FOOT_MOST)
    return "\n".join(lines) if len(lines) > 1 else ""


def job_summary(pull_view: Shown) -> str:
    """Return the text of an Action's job: the comment, and what it had no room for; '' without a comment."""
    comment = plan_comment(pull_view)
    if comment is None:
        return ""
    outcome = pull_view.record.outcome
    models = [model for model in outcome.plan.models if model.change != "unchanged"] if outcome and outcome.plan else []
    site = Site(pull_view.record.place.site, pull_view.record.head, pull_view.record.place.folder)
    edited = [model for model in models if model.diff]
    blocks = [f"#### Each model\n\n{model_table(models, SUMMARY_ROWS, site)}"] if len(models) > OPEN else []
    if len(edited) > DIFFS_APART:
        diffs = [block for model in edited for block in diffs_blocks([model], site)]
        blocks += ["#### Each diff", *diffs]
    return fit_blocks([comment, *blocks, ""], SUMMARY_LIMIT, "*The rest is in the pull request's files.*")
