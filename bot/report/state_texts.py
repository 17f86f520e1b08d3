"""Headlines and paragraphs of the plan comment; `states` says which state has which. Pure."""

from mergeplan.bot.records import PullRecord
from mergeplan.bot.report.approval import approval_problems, approval_title, hold_lines
from mergeplan.bot.report.inflight import (
    behind_words,
    below_name,
    is_behind,
    is_waiting_for_layer,
    layer_wait_words,
    stack_promise,
)
from mergeplan.bot.report.losses import find_losses, loss_lines, loss_title
from mergeplan.bot.report.markdown import code, inert_text
from mergeplan.bot.report.rows import rows_title
from mergeplan.bot.report.selection import AT_THE_MERGE, selection_words
from mergeplan.bot.report.shown import Shown
from mergeplan.bot.report.words import (
    cheaper_words,
    cost_sentence,
    cost_words,
    failure_title,
    problem_line,
    prod_words,
    promise_sentence,
    promotion_status,
    spark_link,
    waiting_words,
)
from mergeplan.bot.results import Problem, has_effect, is_free, problems_of
from mergeplan.planner.wording import count_noun

BLOCKERS_MAX = 5  # that stand in the box below the headline; more are listed at the end of the comment

# --- headlines ---


def planning_headline(pull_view: Shown) -> str:
    record = pull_view.record
    plan = record.outcome.plan if record.outcome else None
    builds = record.run.fresh and not (plan and plan.awaits_spark)
    return f"⏳ {'Building' if builds else 'Planning'} `{record.head[:7]}`"


def skip_headline(pull_view: Shown) -> str:
    return f"⏸️ Not planned: it has the label {code(pull_view.record.rules.skip_label)}"


def plan_headline(pull_view: Shown) -> str:
    record, outcome = pull_view.record, pull_view.record.outcome
    plan = outcome.plan if outcome else None
    if plan is None or not has_effect(plan):
        return "✅ No model changes"
    loss = loss_title(find_losses(outcome), record.nearby.readers)
    is_held = bool(plan.blockers or (outcome and outcome.is_too_costly))
    effect = prod_words(plan, is_held=is_held, with_drops=not loss)
    facts = [f"the stack {effect}" if effect and below_name(record) else effect, rows_title(outcome)]
    if plan.not_selected:
        summary = [loss, *facts] if plan.models else ["none of them changes"]
        return f"🔎 Plan of selected models: {' · '.join(filter(None, summary))}"
    if outcome and outcome.is_too_costly:
        parts = ["💰 Waits for an approval of its cost", loss, *facts]
    elif plan.blockers:
        parts = [f"⛔ Blocked by {count_noun(len(plan.blockers), 'problem')}", loss, *facts]
    elif not record.rules.decision.is_ok:
        waits = inert_text(approval_title(record.rules.decision))
        parts = [f"⚠️ {loss}", waits, *facts] if loss else [f"✋ {waits}", *facts]
    else:
        is_told = bool(loss) and not is_behind(record)
        parts = [f"⚠️ {loss}" if loss else "", "" if is_told else _ready_title(record), *facts]
    return " · ".join(filter(None, parts))


def _ready_title(record: PullRecord) -> str:
    if is_behind(record):
        return f"✋ Behind {below_name(record)}"
    below = below_name(record)
    return f"✅ Ready after {below}, or together with it" if below else "✅ Ready to merge"


def failure_headline(pull_view: Shown) -> str:
    return f"❌ {failure_title(pull_view.record.outcome)}"


def stop_headline(pull_view: Shown) -> str:
    if not pull_view.record.environment.exists:
        return "🧹 Environment deleted"
    return f"⏹️ The plan of `{pull_view.record.head[:7]}` was stopped"


def promotion_headline(pull_view: Shown) -> str:
    ended = pull_view.record.promotion.outcome
    done = ended.promotion if ended else None
    if done is None:
        return "✅ In prod: no view had to change"
    moved = done.views.swapped + done.views.added + done.views.dropped
    cost = "nothing was computed" if is_free(done) else cost_words(done)
    return f"✅ In prod: {count_noun(moved, 'view')} promoted, {cost}"


def hold_headline(pull_view: Shown) -> str:
    loss = loss_title(find_losses(pull_view.record.outcome), pull_view.record.nearby.readers)
    return f"✋ Merged; promotion on hold{f' · ⚠️ {loss}' if loss else ''}"


def close_headline(pull_view: Shown) -> str:
    if pull_view.record.environment.exists:
        return "↪️ Not on its way to prod" if pull_view.record.reason else "🗄️ Closed: its environment is kept"
    return "↪️ Not into prod any more" if pull_view.record.reason else "🧹 Closed; environment deleted"


# --- paragraphs ---


def planning_status(pull_view: Shown) -> str:
    record = pull_view.record
    plan = record.outcome.plan if record.outcome else None
    stale = "\n>\n> **What is shown below is the plan before.**" if plan and not record.run.fresh else ""
    doing = "The plan is made; its tables are being built." if record.run.fresh else "The plan is being made."
    words = (inert_text(record.reason), doing, inert_text(record.run.progress), spark_link(record))
    return "> [!NOTE]\n> " + " ".join(filter(None, words)) + stale


def waiting_headline(pull_view: Shown) -> str:
    if is_waiting_for_layer(pull_view.record):
        return f"⏳ Waiting for the plan of {below_name(pull_view.record)}"
    return "⏳ Waiting for prod's first build"


def waiting_status(pull_view: Shown) -> str:
    if is_waiting_for_layer(pull_view.record):
        return layer_wait_words(pull_view.record)
    return waiting_words(pull_view.prod)


def fork_status(pull_view: Shown) -> str:
    head = pull_view.record.head
    return (
        "This pull request comes from a fork. None of its code runs until a maintainer looks at "
        f"`{head[:7]}` and types `/ok-to-plan {head}`. The next push needs a new approval."
    )


def skip_status(pull_view: Shown) -> str:
    record = pull_view.record
    label, plan_once = code(record.rules.skip_label), code(pull_view.write_command("/plan"))
    return (
        f"`{record.head[:7]}` was not planned: the project's `skip_label` is {label}. Remove the label, and it is "
        f"planned; {plan_once} plans this commit once, whatever its labels. If it is merged like this, it is planned "
        "after the merge and judged by the project's rules, before prod changes."
    )


def plan_status(pull_view: Shown) -> str:
    record, outcome = pull_view.record, pull_view.record.outcome
    plan = outcome.plan if outcome else None
    if plan and plan.not_selected:
        return f"> [!IMPORTANT]\n> **Not ready.** {selection_words(record)} {AT_THE_MERGE}"
    if plan and plan.blockers:
        return f"> [!WARNING]\n> **Blocked: a merge does not change prod.**{_blocker_list(record)}"
    if plan and outcome and outcome.is_too_costly:
        over = f"**Nothing was computed: the estimate is over the project's budget.** {cost_sentence(outcome)}"
        cheaper = f" {words}" if (words := cheaper_words(plan)) else ""
        allow = f" {code(pull_view.write_command('/approve-cost'))} lets it be computed."
        return f"> [!WARNING]\n> {over}{cheaper}{allow}"
    if plan and has_effect(plan):
        verdict = _verdict(record, promise_sentence(plan, outcome))
        if losses := find_losses(outcome):
            lines = "\n".join(f"> {line}".rstrip() for line in loss_lines(plan, losses, record.nearby.readers))
            return f"> [!WARNING]\n> **The merge takes something away from prod:**\n>\n{lines}\n>\n> {verdict}"
        is_ready = record.rules.decision.is_ok and not is_behind(record)
        return f"> [!{'TIP' if is_ready else 'IMPORTANT'}]\n> {verdict}"
    return "This pull request changes no model: nothing to plan, nothing to promote."


def _verdict(record: PullRecord, promise: str) -> str:
    if is_behind(record):
        return f"**Not ready.** {behind_words(record)}"
    promise = stack_promise(record, promise)
    if record.rules.decision.is_ok:
        return f"**Ready.** {promise}"
    later = promise.replace("Merging", "Once allowed, merging", 1)
    return (
        f"**Built; not allowed into prod yet.**{_blocker_list(record)}\n>\n> A merge before that does not change prod. "
        f"{later}"
    )


def plan_blockers(record: PullRecord) -> tuple[Problem, ...]:
    outcome = record.outcome
    if outcome and outcome.is_too_costly:
        return (Problem("The cost of this plan is not approved yet."),)
    behind = (Problem(behind_words(record)),) if is_behind(record) else ()
    if outcome is None or not has_effect(outcome.plan):
        return behind
    unselected = (Problem(f"{words} Type `/plan` to plan all."),) if (words := selection_words(record)) else ()
    plan_problems = problems_of(outcome.plan.blockers if outcome.plan else ())
    return (*behind, *unselected, *plan_problems, *approval_problems(record.rules.decision))


def lists_blockers(record: PullRecord) -> bool:
    """Return True if the box below the headline has all that blocks the plan."""
    outcome = record.outcome
    plan = outcome.plan if outcome else None
    if outcome and outcome.is_too_costly and not (plan and plan.not_selected):
        return True
    return not (plan and plan.not_selected) and len(plan_blockers(record)) <= BLOCKERS_MAX


def _blocker_list(record: PullRecord) -> str:
    lines = [problem_line(problem) for problem in plan_blockers(record)]
    more_text = f"\n>\n> {len(lines) - BLOCKERS_MAX:,} more are at the end." if len(lines) > BLOCKERS_MAX else ""
    return "\n>" + "".join(f"\n> {line}" for line in lines[:BLOCKERS_MAX]) + more_text


def stop_status(pull_view: Shown) -> str:
    environment_text = (
        " The environment keeps what was already computed." if pull_view.record.environment.exists else ""
    )
    return f"{inert_text(pull_view.record.reason)}{environment_text}"


def hold_status(pull_view: Shown) -> str:
    record = pull_view.record
    lines = "\n".join(f"> - {line}" for line in hold_lines(record))
    reason = "the rules keep it from prod, which shows what it showed"
    return f"> [!IMPORTANT]\n> Merged as `{record.promotion.merge_sha[:7]}`; {reason}.\n>\n{lines}"


def merge_status(pull_view: Shown) -> str:
    record, held = pull_view.record, pull_view.prod.held
    waits = (
        f"\n>\n> Prod waits at the commit `{held[:7]}` of its branch, which the project's rules do not allow into prod."
        if held
        else ""
    )
    doing = f"Merged as `{record.promotion.merge_sha[:7]}`. {inert_text(record.run.progress)}".rstrip()
    return f"> [!NOTE]\n> {doing}{waits}"


def end_status(pull_view: Shown) -> str:
    return promotion_status(pull_view.record)


def close_status(pull_view: Shown) -> str:
    reason = inert_text(pull_view.record.reason) or "Closed without merging."
    if pull_view.record.environment.exists:
        how_long = "a day" if pull_view.record.reason else "some days, as requested"
        return f"{reason} Its environment is kept for {how_long}; prod is unchanged."
    return f"{reason} The environment and the tables that only it used are deleted; prod is unchanged."
