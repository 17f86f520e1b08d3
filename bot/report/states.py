"""What a pull request shows in each state: headline, paragraph, checks, blockers and deployment, in one table. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from mergeplan.bot.records import PullRecord, PullState
from mergeplan.bot.report import state_texts as texts
from mergeplan.bot.report.inflight import below_name, is_waiting_for_layer, layer_wait_words
from mergeplan.bot.report.markdown import code, inert_text
from mergeplan.bot.report.shown import Shown
from mergeplan.bot.report.words import failure_title, view_words, waiting_words
from mergeplan.bot.results import Problem, changes_nothing, has_effect
from mergeplan.planner.snapshot.environment import PROD

Text = str | Callable[[Shown], str]
PLANNING = "Being planned and built."  # true of a plan that stands, too


@dataclass(frozen=True)
class CheckText:
    """What all checks show alike; `conclusion` is '' until they are completed."""

    title: str
    summary: str
    conclusion: str = ""
    status: str = "completed"


@dataclass(frozen=True)
class StateRow:
    headline: Text
    status: Text  # the paragraph below the headline
    checks: Callable[[Shown], CheckText | None] = lambda _: None  # None: each shows what it knows of the plan
    blockers: Callable[[PullRecord], tuple[Problem, ...]] = lambda _: ()  # of the promotion
    is_silent: Callable[[PullRecord], bool] = lambda _: False  # no comment is written for this alone
    deployment: Callable[[PullRecord], tuple[str, str] | None] = lambda _: None  # of prod: GitHub's word, description


def state_row(record: PullRecord) -> StateRow:
    return HELD_MERGE if record.state is PullState.MERGED and record.rules.held else STATES[record.state]


def headline(pull_view: Shown) -> str:
    return f"### {_resolve_text(state_row(pull_view.record).headline, pull_view)}"


def status(pull_view: Shown) -> str:
    """Return one paragraph: what is happening or has happened, and what it means for prod."""
    return _resolve_text(state_row(pull_view.record).status, pull_view)


def blockers(record: PullRecord) -> tuple[Problem, ...]:
    """Return what prevents a merge from reaching prod, in the order in which a person would fix it."""
    return state_row(record).blockers(record)


def _resolve_text(text: Text, pull_view: Shown) -> str:
    return text if isinstance(text, str) else text(pull_view)


# --- checks ---


def _waiting_checks(pull_view: Shown) -> CheckText:
    if is_waiting_for_layer(pull_view.record):
        title = f"Waiting for the plan of {below_name(pull_view.record)}, the layer below."
        return CheckText(title, layer_wait_words(pull_view.record), status="queued")
    failed = bool(pull_view.prod.outcome and pull_view.prod.outcome.problems)
    title = "Prod could not be built yet." if failed else "Waiting for prod's first build."
    return CheckText(title, waiting_words(pull_view.prod), status="queued")


def _fork_checks(pull_view: Shown) -> CheckText:
    text = f"A maintainer types `/ok-to-plan {pull_view.record.head}` to allow this commit of a fork to be planned."
    return CheckText("A maintainer must allow this commit to be planned", text, "action_required")


def _skip_checks(pull_view: Shown) -> CheckText:
    """Return a conclusion that blocks the merge, because GitHub takes `neutral` and `skipped` for a success."""
    title = f"Not planned: it has the label {pull_view.record.rules.skip_label}"
    return CheckText(title, texts.skip_status(pull_view), "action_required")


def _stop_checks(pull_view: Shown) -> CheckText:
    reason = pull_view.record.reason.replace("`", "") or "Stopped."
    again = f"`{pull_view.write_command('/plan')}` plans it again."
    return CheckText(reason, "Prod is unchanged." if "/plan" in reason else again, "cancelled")


def _close_checks(pull_view: Shown) -> CheckText:
    if reason := pull_view.record.reason:  # a success here would be one there, when it gets its old base back
        return CheckText("Not on its way to prod", inert_text(reason), "cancelled")
    return CheckText("Closed: the environment was dropped", "Prod is unchanged.", "cancelled")


# --- blockers ---


def _make_blocker(sentence: str) -> Callable[[PullRecord], tuple[Problem, ...]]:
    return lambda _: (Problem(sentence),)


def _stop_blockers(record: PullRecord) -> tuple[Problem, ...]:
    return (Problem("The plan was stopped." if record.environment.exists else "Its environment was deleted."),)


def _skip_blockers(record: PullRecord) -> tuple[Problem, ...]:
    return (Problem(f"It has the label {code(record.rules.skip_label)}, so it was not planned."),)


# --- silence, and deployments of prod ---


def _is_without_models(record: PullRecord) -> bool:
    return changes_nothing(record.outcome)


def _promotion_deployment(record: PullRecord) -> tuple[str, str] | None:
    done = record.promotion.outcome.promotion if record.promotion.outcome else None
    return ("success", view_words(done)) if done else None


# --- the table ---

UNFINISHED = _make_blocker("The plan is not finished.")
PLANNING_ROW = StateRow(
    texts.planning_headline,
    texts.planning_status,
    checks=lambda _: CheckText(PLANNING, "The result is shown here when the plan is made.", status="in_progress"),
    blockers=UNFINISHED,
    is_silent=lambda record: not (record.run.fresh and record.outcome and has_effect(record.outcome.plan)),
)
HELD_MERGE = StateRow(texts.hold_headline, texts.hold_status, is_silent=_is_without_models)
STATES: Mapping[PullState, StateRow] = {
    PullState.NEW: replace(PLANNING_ROW, is_silent=lambda _: True),
    PullState.HELD: StateRow(
        "✋ A maintainer must allow this commit to be planned",
        texts.fork_status,
        checks=_fork_checks,
        blockers=_make_blocker("No maintainer has allowed this commit to be planned."),
    ),
    PullState.SKIPPED: StateRow(texts.skip_headline, texts.skip_status, checks=_skip_checks, blockers=_skip_blockers),
    PullState.WAITING: StateRow(
        texts.waiting_headline,
        texts.waiting_status,
        checks=_waiting_checks,
        blockers=UNFINISHED,
        is_silent=lambda _: True,
    ),
    PullState.PLANNING: PLANNING_ROW,
    PullState.PLANNED: StateRow(
        texts.plan_headline, texts.plan_status, blockers=texts.plan_blockers, is_silent=_is_without_models
    ),
    PullState.FAILED: StateRow(
        texts.failure_headline,
        "> [!CAUTION]\n> **A merge would not change prod.** Push a fix, and it is planned again.",
        blockers=lambda record: (Problem(f"{failure_title(record.outcome)}."),),
    ),
    PullState.CANCELLED: StateRow(texts.stop_headline, texts.stop_status, checks=_stop_checks, blockers=_stop_blockers),
    PullState.MERGED: StateRow("🚚 Merged: promoting to prod", texts.merge_status, is_silent=_is_without_models),
    PullState.PROMOTED: StateRow(
        texts.promotion_headline, texts.end_status, is_silent=_is_without_models, deployment=_promotion_deployment
    ),
    PullState.UNPROMOTED: StateRow(
        "❌ Merged; prod is unchanged", texts.end_status, deployment=lambda _: ("failure", "Prod was not changed.")
    ),
    PullState.ROLLED_BACK: StateRow(
        "↩️ Rolled back: prod shows what it showed before this pull request",
        texts.end_status,
        deployment=lambda record: ("inactive", record.reason) if record.deployment(PROD) else None,
    ),
    PullState.CLOSED: StateRow(
        texts.close_headline, texts.close_status, checks=_close_checks, is_silent=_is_without_models
    ),
}
