"""Commands that the planner answers, and its answer is the reply: they change no plan, and may be given again."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from mergeplan.bot.child.planner_process import Finished, new_run_id
from mergeplan.bot.commands.form import QUESTION, Tree
from mergeplan.bot.commands.table import form_of
from mergeplan.bot.context import DEFECT_TRIES, BotContext, PlannerCall, failure_result
from mergeplan.bot.git.call import CheckoutFailed
from mergeplan.bot.git.checkout import Checkout
from mergeplan.bot.inbox.queue import Job
from mergeplan.bot.records import Answer, CommandRow, PullRecord
from mergeplan.bot.report.markdown import inert_text
from mergeplan.planner.contract.result import ResultLine


@dataclass(frozen=True)
class Questions:
    context: BotContext
    job: Job
    checkout: Checkout
    should_stop: Callable[[], str]
    is_fork: bool = False  # the pull request comes from one

    def answer_all(self, record: PullRecord) -> str:
        """Send all open questions to the planner; return the reason if it was stopped, '' when all are answered."""
        for row in self.context.inbox.commands.open(self.job.repository, self.job.number):
            for index, answer in enumerate(row.answers):
                if row.state != "accepted" or answer.waits_for != QUESTION:
                    continue
                finished = self._try_question(answer, record)
                if finished.stopped and not finished.stopped.startswith("It took"):
                    return finished.stopped
                row = self._save_answer(row, index, complete_answer(answer, finished))
        return ""

    def _save_answer(self, row: CommandRow, index: int, answer: Answer) -> CommandRow:
        row = replace(row, answers=(*row.answers[:index], answer, *row.answers[index + 1 :]))
        self.context.inbox.commands.answer(row)
        return row

    def _try_question(self, answer: Answer, record: PullRecord) -> Finished:
        """Run the question; one that fails again and again is answered, so that it blocks nothing."""
        try:
            return self._run_question(answer.asked, form_of(answer.text).tree, record)
        except CheckoutFailed as error:
            if self.job.attempts + 1 < DEFECT_TRIES:
                raise
            return failure_result(f"The commit cannot be read: {error}", "RequestError", hint="Ask again later.")

    def _run_question(self, arguments: tuple[str, ...], tree: Tree, record: PullRecord) -> Finished:
        """Run a question: of prod and rows on prod's commit, without the pull request's code; lineage on its tree."""
        base, run_id = record.base.sha, new_run_id()
        if tree == "prod":
            commit = self.context.inbox.prods.get(self.job.repository).promoted_commit
            with self.context.project(self.checkout, commit) as folder:
                return self.context.plan(PlannerCall(self.job, folder, arguments, run_id), should_stop=self.should_stop)
        if not (base and record.head and self.checkout.has(base) and self.checkout.has(record.head)):
            return failure_result("There is no plan of this pull request.", "RequestError", hint="Type `/plan` first.")
        if tree == "before":  # prod's own code and gateways
            base = commit = self.context.inbox.prods.get(self.job.repository).promoted_commit or base
        else:
            commit = self.checkout.merge(base, record.head).commit
            if not commit:  # an end, not a failure: it would be tried again for ever, and what follows it would wait
                hint = "Resolve the conflict first."
                return failure_result("The branch cannot be merged into prod's commit.", "Conflict", hint=hint)
        call = PlannerCall(self.job, Path(), arguments, run_id, is_fork=self.is_fork and tree != "before")
        with self.context.open_change(call, self.checkout, base, commit) as call:
            return self.context.plan(call, should_stop=self.should_stop)


def complete_answer(answer: Answer, finished_run: Finished) -> Answer:
    outcome = finished_run.outcome
    if not outcome.ok:
        reason = finished_run.stopped or "; ".join(
            inert_text(f"{problem.message} {problem.hint}") for problem in outcome.problems
        )
        reason = reason or "Internal error in mergeplan."
        return replace(answer, ok=False, sentence=f"{reason} Nothing was changed.", waits_for="")
    result = next((line for line in reversed(finished_run.lines) if isinstance(line, ResultLine)), ResultLine(ok=False))
    return replace(answer, sentence=form_of(answer.text).reply(outcome, result), waits_for="")
