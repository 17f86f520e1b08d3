"""Calls of the planner for prod, each on the tree of one commit."""

from collections.abc import Callable
from dataclasses import dataclass

from mergeplan.bot.child.planner_process import Finished, new_run_id
from mergeplan.bot.context import BotContext, PlannerCall, error_result, failure_result, unreadable_error
from mergeplan.bot.git.call import BadCommit
from mergeplan.bot.git.checkout import Checkout
from mergeplan.bot.inbox.queue import Job
from mergeplan.bot.inflight import MOVES_MOST, Move, build_move
from mergeplan.bot.prod.decide import Step
from mergeplan.bot.records import ProdRecord, PullState
from mergeplan.bot.results import PlannerOutcome, pack_outcome
from mergeplan.planner.contract.result import EnvironmentRow
from mergeplan.planner.contract.wire import Line
from mergeplan.planner.snapshot.environment import PROD

OnLine = Callable[[Line], None]


@dataclass(frozen=True)
class Ended:
    finished: Finished
    outcome: PlannerOutcome
    row: EnvironmentRow | None  # prod as the planner has it afterwards

    @property
    def lines(self) -> str:
        return pack_outcome(self.finished.lines, self.finished.exit_code)

    def position(self, prod: ProdRecord) -> tuple[int, str]:
        """Return the revision that prod is at after a promotion, and the id of its plan."""
        return (self.row.revision, self.row.plan_id) if self.row else (prod.revision + 1, "")


@dataclass(frozen=True)
class ProdPlanner:
    context: BotContext
    job: Job
    checkout: Checkout

    def look(self, commit: str) -> EnvironmentRow | None:
        """Return prod as the planner has it; None if it was never promoted, or only half: a plan then finishes that."""
        run_id = new_run_id()
        try:
            with self.context.project(self.checkout, commit) as folder:
                listed = self.context.plan(PlannerCall(self.job, folder, ("environments",), run_id))
        except BadCommit:
            return None  # a build of it says what is wrong
        outcome = listed.outcome
        whole = (environment for environment in outcome.environments or () if environment.name not in outcome.pending)
        return next(
            (environment for environment in whole if environment.name == PROD and environment.revision > 0), None
        )

    def apply(self, commit: str, number: int, more: tuple[str, ...] = (), on_line: OnLine = lambda line: None) -> Ended:
        """Plan and apply a commit's tree, for a pull request or (0) a push; /unlock stops it."""
        note = ("--note", f"#{number}" if number else commit[:12])
        arguments = ("plan", PROD, "--auto-apply", *self._add_categories(commit, number, more), *note)
        return self._call_planner(commit, arguments, on_line, number=number)

    def _add_categories(self, commit: str, number: int, options: tuple[str, ...]) -> tuple[str, ...]:
        """Return the options with the categories of a pull request, and of merges that prod lacks and gets with it.

        A branch that asks for forward-only plans does so for what its own plan edits, and the commit's tree still does.
        """
        pulls, project = self.context.inbox.pulls, self.job.repository
        lacking = [pull for pull in pulls.filter_by_state(project, PullState.UNPROMOTED) if not pull.restates]
        records = [pulls.get(project, number), *lacking]
        if len({pull.source.forward_only for pull in records}) > 1:
            merged = _list_edited_models(self._call_planner(commit, ("plan", PROD), look=False).outcome)
            keeps_rows: dict[str, bool] = {}  # the tree of a later pull request has the edits of an earlier one, too
            for pull in (*lacking, records[0]):
                edited = _list_edited_models(pull.outcome) & merged if pull.outcome else ()
                keeps_rows = dict.fromkeys(edited, pull.source.forward_only) | keeps_rows
            options = tuple(option for option in options if option != "--forward-only")
            options += tuple(f"--categorize={name}=forward-only" for name in sorted(keeps_rows) if keeps_rows[name])
        names = dict.fromkeys(pull.environment.name for pull in records if pull.environment.name)
        return (*(("--overrides-from", ",".join(names)) if names else ()), *options)

    def _unlock_reason(self, number: int) -> str:
        record = self.context.inbox.pulls.get(self.job.repository, number) if number else None
        return f"{record.promotion.unlock_by} stopped it." if record and record.promotion.unlock_by else ""

    def preview(self, step: Step, more: tuple[str, ...] = ()) -> Ended:
        arguments = ("plan", PROD, *self._add_categories(step.commit, step.number, more))
        return self._call_planner(step.commit, arguments, look=False)

    def roll_back(self, commit: str, revision: int, who: str, number: int) -> Ended:
        note = f"/rollback in #{number}"
        return self._call_planner(commit, ("rollback", PROD, "--to", str(revision), "--who", who, "--note", note))

    def sweep(self, commit: str, keep: tuple[str, ...]) -> PlannerOutcome:
        """Run the janitor; the environments to `keep` do not expire."""
        arguments = ("janitor", *(part for name in keep for part in ("--keep", name)))
        with self.context.project(self.checkout, commit) as folder:
            return self.context.plan(PlannerCall(self.job, folder, arguments, new_run_id())).outcome

    def _call_planner(
        self,
        commit: str,
        arguments: tuple[str, ...],
        on_line: OnLine = lambda line: None,
        *,
        look: bool = True,
        number: int = 0,
    ) -> Ended:
        try:
            return self._call_on_tree(commit, arguments, on_line, look, number)
        except BadCommit as error:
            refused = error_result(unreadable_error(error))
            return Ended(refused, refused.outcome, None)

    def _call_on_tree(self, commit: str, arguments: tuple[str, ...], on_line: OnLine, look: bool, number: int) -> Ended:
        if not self.context.has_project(self.checkout, commit):
            refused = self.context.no_project(self.checkout, "This commit")
            return Ended(refused, refused.outcome, None)
        run_id = new_run_id()
        with self.context.project(self.checkout, commit) as folder:
            call = PlannerCall(self.job, folder, arguments, run_id)
            finished = self.context.plan(call, on_event=on_line, should_stop=lambda: self._unlock_reason(number))
            if finished.stopped:
                finished = failure_result(finished.stopped, "RequestError", hint="Type `/plan` to try again.")
            row = _prod_row(finished.outcome)
            if look and finished.outcome.ok and row is None:
                listed = self.context.plan(PlannerCall(self.job, folder, ("environments",), run_id))
                rows = listed.outcome.environments or ()
                row = next((environment for environment in rows if environment.name == PROD), None)
        return Ended(finished, finished.outcome, row)


def _list_edited_models(outcome: PlannerOutcome) -> frozenset[str]:
    models = outcome.plan.models if outcome.plan else ()
    return frozenset(model.name for model in models if model.change == "direct")


def _prod_row(outcome: PlannerOutcome) -> EnvironmentRow | None:
    """Return prod as a plan made it, by the plan's own result; None if nothing was promoted, or not by this run."""
    plan, promotion = outcome.plan, outcome.promotion
    if not outcome.ok or plan is None or promotion is None or promotion.spark_jobs is None or promotion.revision < 1:
        return None
    return EnvironmentRow(name=PROD, revision=promotion.revision, plan_id=plan.id)


def append_move(prod: ProdRecord, revision: int, outcome: PlannerOutcome) -> tuple[Move, ...]:
    """Append what this revision changed to prod's last moves; a run that was cut off is unknown."""
    whole = outcome.promotion is not None and outcome.promotion.spark_jobs is not None
    return (*prod.moves, build_move(revision, outcome.plan if whole else None))[-MOVES_MOST:]


def list_reasons(outcome: PlannerOutcome) -> list[str]:
    return [f"{problem.kind}: {problem.message}" for problem in outcome.problems] or [f"exit code {outcome.exit_code}"]
