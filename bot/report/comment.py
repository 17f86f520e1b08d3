"""The plan comment: everything that a pull request is shown about its plan, from what we know of it. Pure."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from mergeplan.bot.projects import add_label, label_of, repository_of
from mergeplan.bot.records import AFTER_MERGE, PLAN, ProdRecord, PullRecord, PullState
from mergeplan.bot.report.approval import approval_problems, hold_lines
from mergeplan.bot.report.inflight import inflight_block
from mergeplan.bot.report.markdown import (
    COMMENT_LIMIT,
    MARKER,
    NAMES,
    code,
    count_noun,
    details_block,
    fitting,
    graph,
    inert,
    within,
)
from mergeplan.bot.report.models import OPEN, Site, diffs_blocks, models_blocks
from mergeplan.bot.report.offers import offers
from mergeplan.bot.report.physical import physical_blocks
from mergeplan.bot.report.rows import impact_block, rows_blocks, rows_title, schema_block
from mergeplan.bot.report.words import (
    actual_words,
    audit_details,
    audit_line,
    change_words,
    cheaper_words,
    cost_of,
    cost_words,
    estimate_words,
    failure_title,
    open_words,
    problem_line,
    promise_sentence,
    promotion_status,
    refusal_words,
    skip_summary,
    spark_link,
    unbuilt_words,
    waiting_words,
    work_words,
)
from mergeplan.bot.results import PlannerOutcome, Problem, is_free, problems_of, touches

PLAN_MARKER = re.compile(rf"{MARKER}:plan((?:~[A-Za-z0-9._-]+)*) -->")  # as `plan_marker` makes it
ROWS_OF_FEW, ROWS_OF_MANY = 5, 3  # models whose numbers of rows stand in the open
GRAPH_MOST = 120  # more than this: no graph, it could not be read
PROBLEMS_MOST = 12_000  # characters, as the next one: what is longer is cut at a line's end
WARNINGS_MOST = 6_000  # characters of what the plan warns of
AUDITS_MOST = 5  # whose query and rows are shown
FOOT_MOST = 12_000
ROWS_SHOWN = AFTER_MERGE | {PullState.PLANNED}


@dataclass(frozen=True)
class Shown:
    """All that the comment is made of."""

    record: PullRecord
    prod: ProdRecord
    categories: tuple[str, ...] = ("breaking", "non-breaking", "forward-only")


def plan_comment(shown: Shown) -> str | None:
    """The plan comment's text; None when the pull request needs none (it touches no models and never did)."""
    record, outcome = shown.record, shown.record.outcome
    if needs_no_comment(record):
        return None
    blocks = [
        "\n".join([plan_marker(record.repository), _comment_title(shown), "", facts_line(shown), *_counts(outcome)]),
        status(shown),
        *_problem_blocks(record, outcome),
        *_plan_warnings(shown),
        *_warning_blocks(record, outcome),
        refusal_words(outcome.plan if outcome else None),
        *_change_blocks(record, outcome),
        *(inflight_block(record) if record.state is PullState.PLANNED else []),
        *_cost_block(outcome),
        *_checks_block(outcome),
        *_notes(shown),
        foot(shown),
    ]
    link = next((ref.url for ref in record.checks if ref.name == PLAN and ref.sha == record.head and ref.url), "")
    where = f"[the plan check]({link})" if link else f"the `{add_label(PLAN, label_of(record.repository))}` check"
    return within(
        [block for block in blocks if block], COMMENT_LIMIT - 500, f"*Too large to show whole: the rest is in {where}.*"
    )


def plan_marker(project: str) -> str:
    """The hidden key of the plan comment for one project.

    >>> plan_marker("ann/shop"), plan_marker("ann/shop~ads")
    ('<!-- mergeplan:plan -->', '<!-- mergeplan:plan~ads -->')
    """
    return f"{MARKER}:plan{project.removeprefix(repository_of(project))} -->"


def comment_digest(text: str) -> str:
    """What distinguishes a comment's text from every other."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def needs_no_comment(record: PullRecord) -> bool:
    """True while there is nothing to show, and for a pull request that touches no models."""
    if record.comment_id:
        return False
    outcome = record.outcome
    changes = bool(outcome and touches(outcome.plan))
    match record.state:
        case PullState.NEW | PullState.WAITING:
            return True
        case PullState.PLANNING:
            return not (record.fresh and changes)
        case PullState.PLANNED | PullState.CLOSED | PullState.MERGED | PullState.PROMOTED:
            return outcome is None or (outcome.ok and not changes)
        case _:
            return False


def _comment_title(shown: Shown) -> str:
    """The headline, and of which project it is where there are several."""
    of = f" · {code(shown.record.project)}" if shown.record.project else ""
    return f"{headline(shown)}{of}"


def headline(shown: Shown) -> str:
    """The first line: the state, then what matters most."""
    record, outcome = shown.record, shown.record.outcome
    plan = outcome.plan if outcome else None
    match record.state:
        case PullState.HELD:
            return "### ✋ A maintainer must let this commit be planned"
        case PullState.SKIPPED:
            return f"### ⏸️ Not planned: it has the label {code(record.skip_label)}"
        case PullState.WAITING:
            return "### ⏳ Waiting for prod's first build"
        case PullState.NEW | PullState.PLANNING:
            return f"### ⏳ {'Building' if record.fresh else 'Planning'} `{record.head[:7]}`"
        case PullState.CANCELLED if not record.environment_exists:
            return "### 🧹 Environment deleted"
        case PullState.CANCELLED:
            return f"### ⏹️ The plan of `{record.head[:7]}` was stopped"
        case PullState.MERGED if record.held:
            return "### ✋ Merged; promotion on hold"
        case PullState.MERGED:
            return "### 🚚 Merged: promoting to prod"
        case PullState.PROMOTED:
            return f"### ✅ In prod: {_promotion_title(record)}"
        case PullState.UNPROMOTED:
            return "### ❌ Merged; prod is unchanged"
        case PullState.ROLLED_BACK:
            return "### ↩️ Rolled back: prod shows what it showed before this pull request"
        case PullState.CLOSED:
            if record.environment_exists:
                return "### 🗄️ Closed: its environment is kept"
            return "### ↪️ Not into prod any more" if record.reason else "### 🧹 Closed; environment deleted"
        case PullState.FAILED:
            return f"### ❌ {failure_title(outcome)}"
        case PullState.PLANNED:
            if plan is None or not touches(plan):
                return "### ✅ No models change"
            if outcome and outcome.is_too_costly:
                return f"### 💰 {change_words(plan)} · waits for an approval of its cost"
            summary = " · ".join(filter(None, (change_words(plan), rows_title(outcome))))
            sign = "⛔" if plan.blockers else "✅" if record.decision.is_ok else "✋"
            return f"### {sign} {summary}"


def facts_line(shown: Shown) -> str:
    """Environment, head, base, plan id and time: what the rest of the comment is about."""
    record, prod = shown.record, shown.prod
    plan = record.outcome.plan if record.outcome else None
    revision = f" revision {record.prod_revision}" if record.prod_revision else ""
    base = f"base `prod`{revision}" + (f" at `{record.base_sha[:7]}`" if record.base_sha else "")
    parts = [f"**{code(record.environment)}**" if record.environment else "", f"head `{record.head[:7]}`", base]
    parts.append(f"plan `{plan.id}`" if plan and plan.id else "")
    parts.append(f"{record.planned_at[:16].replace('T', ' ')} UTC" if record.planned_at else "")
    del prod
    return " · ".join(part for part in parts if part)


def _counts(outcome: PlannerOutcome | None) -> list[str]:
    """What is computed, what is shared, what it costs; the first line has counted the models."""
    plan = outcome.plan if outcome else None
    if outcome is None or plan is None or not touches(plan):
        return []
    shared = sum(1 for model in plan.models if model.shares)
    cost = cost_of([model for model in plan.models if not model.skipped])
    facts = [
        f"{'Computed here' if outcome.applied else 'To compute'}: {work_words(plan)}",
        f"{count_noun(shared, 'table')} shared" if shared else "",
        cost,
    ]
    return ["", " · ".join(filter(None, facts))]


def status(shown: Shown) -> str:
    """One paragraph: what is happening or has happened, and what it means for prod."""
    record, outcome = shown.record, shown.record.outcome
    plan = outcome.plan if outcome else None
    match record.state:
        case PullState.HELD:
            return (
                "This pull request comes from a fork. No code of it runs until somebody who may let it looks at "
                f"`{record.head[:7]}` and types `/ok-to-plan {record.head}`. The next push needs a new approval."
            )
        case PullState.SKIPPED:
            return skip_words(shown)
        case PullState.WAITING:
            return waiting_words(shown.prod)
        case PullState.NEW | PullState.PLANNING:
            stale = "\n>\n> **What is shown below is the plan before.**" if plan and not record.fresh else ""
            doing = "The plan stands; its tables are being built." if record.fresh else "The plan is being made."
            return (
                "> [!NOTE]\n> "
                + " ".join(filter(None, (inert(record.reason), doing, inert(record.progress), spark_link(record))))
                + stale
            )
        case PullState.PLANNED:
            return _plan_status(record)
        case PullState.CANCELLED:
            kept = " The environment keeps what was already computed." if record.environment_exists else ""
            return f"{inert(record.reason)}{kept}"
        case PullState.PROMOTED | PullState.ROLLED_BACK | PullState.UNPROMOTED:
            return promotion_status(record)
        case PullState.MERGED if record.held:
            lines = "\n".join(f"> - {line}" for line in hold_lines(record))
            why = "the rules keep it from prod, which shows what it showed"
            return f"> [!IMPORTANT]\n> Merged as `{record.merge_sha[:7]}`; {why}.\n>\n{lines}"
        case PullState.MERGED:
            return f"> [!NOTE]\n> Merged as `{record.merge_sha[:7]}`. {inert(record.progress)}".rstrip()
        case PullState.CLOSED:
            why = inert(record.reason) or "Closed without merging."
            if record.environment_exists:
                return f"{why} Its environment is kept for some days, as requested; prod is unchanged."
            return f"{why} The environment and the tables that only it used are deleted; prod is unchanged."
        case PullState.FAILED:
            return "Prod is unchanged. Push a fix to plan again."


def skip_words(shown: Shown) -> str:
    """What a label does to a pull request, and how it goes on."""
    record = shown.record
    label, typed = code(record.skip_label), code(offers(record, shown.prod)[0].typed)
    return (
        f"`{record.head[:7]}` was not planned: the project's `skip_label` is {label}. Take the label away, and it is "
        f"planned; {typed} plans this commit once, whatever its labels. If it is merged like this, it is planned "
        "after the merge and judged by the project's rules, before prod changes."
    )


def _plan_status(record: PullRecord) -> str:
    outcome = record.outcome
    plan = outcome.plan if outcome else None
    if plan and plan.blockers:
        number = count_noun(len(plan.blockers), "blocker")
        return f"> [!WARNING]\n> Blocked: merging will not change prod ({number}, see below)."
    if plan and outcome and outcome.is_too_costly:
        over = f"The estimate is over the project's budget: {estimate_words(plan.models)}."
        cheaper = f" {words}" if (words := cheaper_words(plan)) else ""
        return f"> [!WARNING]\n> **Nothing was computed.** {over}{cheaper}"
    if plan and touches(plan) and not record.decision.is_ok:
        then = promise_sentence(plan, outcome)
        return f"> [!IMPORTANT]\n> **Built; not allowed into prod yet**, see below. {then}"
    if plan and touches(plan):
        return f"> [!TIP]\n> **Ready.** {promise_sentence(plan, outcome)}"
    return "This pull request changes no model: nothing to plan, nothing to promote."


def _promotion_title(record: PullRecord) -> str:
    done = record.promotion_outcome.promotion if record.promotion_outcome else None
    if done is None:
        return "no view had to change"
    moved = done.views.swapped + done.views.added + done.views.dropped
    cost = "nothing was computed" if is_free(done) else cost_words(done)
    return f"{count_noun(moved, 'view')} promoted, {cost}"


def _problem_blocks(record: PullRecord, outcome: PlannerOutcome | None) -> list[str]:
    ended = record.promotion_outcome if record.state is PullState.UNPROMOTED else outcome
    if ended is None or record.state not in (PullState.FAILED, PullState.UNPROMOTED, PullState.PLANNED):
        return []
    if record.state is PullState.PLANNED and ended.plan and ended.plan.blockers:
        return []  # they stand at the end
    if ended.is_too_costly:
        return []  # the status says it
    if ended.is_defect and not ended.is_at_file:
        return [f"Internal error in mergeplan (run `{record.run_id}`). Type `/plan` to try again."]
    failed = [
        problem_line(Problem(test.message or "failed", test.path, test.line), test.name)
        for test in ended.tests
        if not test.ok
    ]
    lines = [problem_line(problem) for problem in ended.problems] + failed
    already = {(problem.model, problem.audit) for problem in ended.problems if problem.audit}
    lines += [audit_line(audit) for audit in ended.audits if not audit.ok and (audit.model, audit.name) not in already]
    details = [audit_details(audit) for audit in ended.audits if not audit.ok and audit.query][:AUDITS_MOST]
    return ["\n".join(fitting(lines, PROBLEMS_MOST)), *details] if lines else []


def _warning_blocks(record: PullRecord, outcome: PlannerOutcome | None) -> list[str]:
    """What the linter only warns of, while there is still something to do about it."""
    if outcome is None or not outcome.warnings or record.state not in (PullState.FAILED, PullState.PLANNED):
        return []
    lines = fitting([problem_line(problem) for problem in outcome.warnings], PROBLEMS_MOST)
    return [details_block(f"⚠️ {count_noun(len(outcome.warnings), 'warning')} of the linter", "\n".join(lines))]


def _plan_warnings(shown: Shown) -> list[str]:
    """What the plan warns of, such as a view of prod that is gone; first of all that prod was never built."""
    outcome = shown.record.outcome
    warnings = problems_of(outcome.plan.warnings) if outcome and outcome.plan else ()
    unbuilt = unbuilt_words(shown.prod) if shown.record.state is PullState.PLANNED else ""
    lines = [f"- {unbuilt}"] if unbuilt else []
    lines += [problem_line(warning) for warning in warnings]
    quoted = [f"> {line.removeprefix('- ') if len(lines) == 1 else line}" for line in fitting(lines, WARNINGS_MOST)]
    return ["\n".join(["> [!WARNING]", *quoted])] if quoted else []


def _change_blocks(record: PullRecord, outcome: PlannerOutcome | None) -> list[str]:
    """What changes: rows and columns, who is hit, each model, the graph, the diffs. Of many models the groups of like
    ones come first, and all else is folded."""
    plan = outcome.plan if outcome else None
    if plan is None or not plan.models or record.state in (PullState.HELD, PullState.WAITING):
        return []
    shown = [model for model in plan.models if model.change != "unchanged"]
    many, site = len(shown) > OPEN, Site(record.site, record.head, record.folder)
    table, *model_blocks = models_blocks(shown, site)
    notes = [f"✂️ {words}" for words in (skip_summary(plan), open_words(plan)) if words]
    rows = []
    if record.state in ROWS_SHOWN:
        rows = [
            *rows_blocks(outcome, ROWS_OF_MANY if many else ROWS_OF_FEW),
            *schema_block(outcome),
            *physical_blocks(outcome),
            *impact_block(plan),
        ]
    drawn = graph(shown) if 1 < len(shown) <= GRAPH_MOST else ""
    if many:
        drawn = details_block(f"Graph of {len(shown)} models", drawn) if drawn else ""
        return [*notes, table, *rows, *model_blocks, drawn, *diffs_blocks(shown, site)]
    return [*notes, *rows, drawn, table, *model_blocks, *diffs_blocks(shown, site)]


def _cost_block(outcome: PlannerOutcome | None) -> list[str]:
    """The estimate beside what it took, once something was computed."""
    took = actual_words(outcome) if outcome else ""
    estimated = estimate_words(outcome.plan.models) if outcome and outcome.plan else ""
    return [f"Estimated: {estimated}. It took {took}."] if took and estimated else []


def _checks_block(outcome: PlannerOutcome | None) -> list[str]:
    if outcome is None or not (outcome.passed or outcome.audits):
        return []
    passed = sum(audit.ok for audit in outcome.audits)
    parts = [f"{count_noun(outcome.passed, 'unit test')} passed"] if outcome.passed else []
    parts += [f"{count_noun(passed, 'audit')} passed"] if passed else []
    return [" · ".join(parts)] if parts else []


def _notes(shown: Shown) -> list[str]:
    record, outcome = shown.record, shown.record.outcome
    notes = []
    if record.edits_rules:
        notes.append(
            "This pull request edits the project's configuration. Who may do what, which branch is prod and every "
            "`cicd_bot` key are read from the base branch: the edit counts after the merge."
        )
    for unused in outcome.plan.unused_overrides if outcome and outcome.plan else ():
        name = NAMES.get(unused.category, unused.category)
        notes.append(
            f"{code(unused.who)} set {code(unused.model)} to {name}: no longer in force, "
            f"{_end_words(unused.ended_by)}. Categorize it again if that still holds."
        )
    return ["\n".join(f"> {note}" for note in notes)] if notes else []


def _end_words(ended_by: str) -> str:
    if ended_by == "base":
        return "prod has another version of that model since"
    return "that model or what it reads was edited since"


def foot(shown: Shown) -> str:
    """The end: what blocks promotion, and the exact commands that would be accepted now."""
    # what failed stands above, below the headline that names it
    blocked = () if shown.record.state is PullState.FAILED else blockers(shown.record)
    lines = ["---"]
    if blocked:
        lines += [
            "**What blocks promotion**",
            "",
            *fitting([problem_line(problem) for problem in blocked], FOOT_MOST),
            "",
        ]
    offered = offers(shown.record, shown.prod)
    if offered:
        or_tick = "" if all(offer.moves_prod for offer in offered) else ", or tick its box"
        lines += [f"**Commands accepted now**: write one on a line of its own in a comment{or_tick}.", ""]
        lines += fitting([offer.line for offer in offered], FOOT_MOST)
    return "\n".join(lines) if len(lines) > 1 else ""


def blockers(record: PullRecord) -> tuple[Problem, ...]:
    """What keeps a merge from reaching prod, in the order in which a person would mend it."""
    outcome = record.outcome
    if record.state is PullState.FAILED:
        return (Problem(f"{failure_title(outcome)}."),)
    if record.state in (PullState.NEW, PullState.PLANNING, PullState.WAITING):
        return (Problem("The plan is not finished."),)
    if record.state is PullState.HELD:
        return (Problem("Nobody has let this commit be planned."),)
    if record.state is PullState.SKIPPED:
        return (Problem(f"It has the label {code(record.skip_label)}, so it was not planned."),)
    if record.state is PullState.CANCELLED:
        return (Problem("The plan was stopped."),)
    if outcome and outcome.is_too_costly and record.state is PullState.PLANNED:
        return (Problem("Nobody has approved the cost of this plan."),)
    if not (outcome and touches(outcome.plan) and record.state is PullState.PLANNED):
        return ()
    return (*problems_of(outcome.plan.blockers if outcome.plan else ()), *approval_problems(record.decision))
