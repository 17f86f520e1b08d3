"""Whether the rules let what was merged or pushed into prod; what they do not let in waits, and nothing goes around it.

The rules are those of the commit that prod shows: a merge does not change the rules that it is judged by. What is
judged is the plan of the merged tree against prod as it is: where that is the plan that the pull request showed, no
planner is asked.
"""

from collections.abc import Sequence
from dataclasses import replace

import structlog

from mergeplan.bot.context import BotContext
from mergeplan.bot.forge.port import RepositoryGateway
from mergeplan.bot.git.checkout import Checkout, changes_no_model
from mergeplan.bot.policy.approvals import Decision
from mergeplan.bot.prod.decide import Gate, Step
from mergeplan.bot.prod.planner_calls import ProdPlanner
from mergeplan.bot.pull_parts import PlanBase, PullSource
from mergeplan.bot.pulls.arguments import merge_arguments
from mergeplan.bot.pulls.reviews import Reviewers, changes_rules
from mergeplan.bot.records import AFTER_MERGE, ProdRecord, PullRecord
from mergeplan.bot.rules import BotConfig, MergeMethod

log = structlog.get_logger(__name__)


class Gatekeeper:
    def __init__(
        self, context: BotContext, gateway: RepositoryGateway, checkout: Checkout, planner: ProdPlanner
    ) -> None:
        self._context = context
        self._gateway = gateway
        self._checkout = checkout
        self._planner = planner
        self._reviewers: dict[str, Reviewers] = {}
        self._decided: dict[tuple[Step, str, str], Decision] = {}
        self._records: dict[Step, PullRecord] = {}  # as they were judged

    def look(self, prod: ProdRecord, steps: Sequence[Step]) -> Gate:
        """Return what the rules say of the first step, and whether a later one may take all before it along."""
        if not steps or not self._has_rules(prod):
            return Gate()
        first, *later = steps
        if top := self._find_stack_top(prod, steps):
            return Gate(is_open=False, through=top)
        if self.is_open(prod, first):
            return Gate()
        for index, step in enumerate(later, start=1):
            if self._get_record(steps[index - 1]).restates:
                break  # what it restates is in no tree: with a later step it would be lost
            # a step that takes back what is held: prod needs nothing of it
            paths = self._checkout.diff_paths(prod.promoted_commit, step.commit)
            if changes_no_model(paths, self._checkout.project) or self._was_shown_and_approved(prod, step):
                return Gate(is_open=False, through=index)
        return Gate(is_open=False, noted=self._is_noted(prod, first))

    def _find_stack_top(self, prod: ProdRecord, steps: Sequence[Step]) -> int:
        """Return the last of the first steps that were merged as one stack, each open with the plan that it showed.

        One by one, the first of them would make other plans of the others, which nobody has reviewed.
        """
        top, numbers = 0, list[int]()
        for index, step in enumerate(steps):
            record = self._get_record(step)
            is_next = [layer.number for layer in record.stack.planned_on.layers] == numbers and step.number
            if not (is_next and self._is_the_plan_shown(prod, step, record) and self.is_open(prod, step)):
                break
            top = index
            numbers.append(step.number)
        return top

    def is_open(self, prod: ProdRecord, step: Step) -> bool:
        """Return True if a step may be promoted now, by the rules or by an administrator for that merge."""
        return _is_overruled(self._get_record(step)) or not self._has_rules(prod) or self.decision(prod, step).is_ok

    def decision(self, prod: ProdRecord, step: Step) -> Decision:
        """Return what the rules say of a step; computed once a pass for the same plan, prod and override."""
        key = (step, prod.promoted_commit, f"{prod.revision} {self._get_record(step).shown.plans[-1:]}")
        if key not in self._decided:
            self._decided[key] = self._decide_step(prod, step)
        return self._decided[key]

    def decision_of(self, prod: ProdRecord, record: PullRecord) -> Decision:
        return self._get_reviewers(prod).decide(record)

    def merge_method(self, prod: ProdRecord) -> MergeMethod:
        return self._get_reviewers(prod).config.merge_method

    def record_at(self, step: Step) -> PullRecord:
        """Return the pull request of a step, with the plan that was judged."""
        return self._records.get(step) or self._get_record(step)

    def _has_rules(self, prod: ProdRecord) -> bool:
        """Return True where rules hold, or cannot be read."""
        reviewer = self._get_reviewers(prod) if prod.promoted_commit else None
        return reviewer is not None and bool(reviewer.config.rules or reviewer.unread)

    def _get_reviewers(self, prod: ProdRecord) -> Reviewers:
        commit = prod.promoted_commit
        if commit not in self._reviewers:
            self._reviewers[commit] = Reviewers(self._context, self._gateway, self._checkout, commit)
        return self._reviewers[commit]

    def _get_record(self, step: Step) -> PullRecord:
        repository = self._gateway.name
        return self._context.inbox.pulls.get(repository, step.number) if step.number else PullRecord(repository, 0)

    def _decide_step(self, prod: ProdRecord, step: Step) -> Decision:
        record = self.as_merged(prod, step)
        if not self._is_the_plan_shown(prod, step, record):
            planned = self._preview_record(prod, step, record)
            if planned is None:
                return Decision(ruled=True)  # it has no plan: its promotion fails, and says why
            record = planned
        self._records[step] = record
        return self._get_reviewers(prod).decide(record)

    def as_merged(self, prod: ProdRecord, step: Step) -> PullRecord:
        """Return the record with the merged head: reviews and permits are of that head, planned or not."""
        record = self._get_record(step)
        if not step.number:
            return record
        pull = self._gateway.pull(step.number)
        site, folder = self._gateway.clone_url.removesuffix(".git"), self._checkout.project
        config = self._get_reviewers(prod).config if prod.promoted_commit else BotConfig()
        is_planned = record.head == pull.head and record.outcome is not None
        forward_only = record.source.forward_only if is_planned else config.is_forward_only(pull.head_ref)
        return replace(
            record,
            head=pull.head,
            source=PullSource(pull.author, pull.base_ref, forward_only),
            place=replace(record.place, site=site, folder=folder),
        )

    def _is_the_plan_shown(self, prod: ProdRecord, step: Step, record: PullRecord) -> bool:
        plan = record.outcome.plan if record.outcome and record.comment_plan else None  # not of an earlier head
        has_plan = plan is not None and not plan.not_selected
        same_base = record.base.prod_revision == prod.revision and record.base.tree == self._checkout.tree(step.commit)
        return bool(step.number) and has_plan and same_base

    def _preview_record(self, prod: ProdRecord, step: Step, record: PullRecord) -> PullRecord | None:
        """Return the record as if it had been planned at the merge; None where no plan can be made."""
        ended = self._planner.preview(step, merge_arguments(record, expect=False) if step.number else ())
        if ended.outcome.plan is None:
            return None
        log.info("merge_planned", commit=step.commit, pull_request=step.number, plan=ended.outcome.plan.id)
        lines = ended.lines
        changes = changes_rules(self._context, self._checkout, prod.promoted_commit, step.commit)
        return replace(
            record,
            base=PlanBase(prod.promoted_commit, self._checkout.tree(step.commit), prod.revision),
            run=replace(record.run, lines=lines),
            rules=replace(record.rules, changes_rules=changes),
        )

    def _was_shown_and_approved(self, prod: ProdRecord, step: Step) -> bool:
        overruled = _is_overruled(self._get_record(step))
        shown = self._is_the_plan_shown(prod, step, self._get_record(step))
        return overruled or (shown and self.decision(prod, step).is_ok)

    def _is_noted(self, prod: ProdRecord, step: Step) -> bool:
        decision = self.decision(prod, step)
        if not step.number:
            return (prod.held, prod.held_by) == (step.commit, decision)
        record = self._get_record(step)
        return record.rules.held and record.rules.decision == decision


def _is_overruled(record: PullRecord) -> bool:
    """Return True when an administrator let the merge in; a /deploy of an open pull request is different."""
    return bool(record.deploy.by) and not record.deploy.head and record.state in AFTER_MERGE
