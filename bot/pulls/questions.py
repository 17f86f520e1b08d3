"""Commands that the planner answers, and its answer is the reply: they change no plan, and may be given again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from mergeplan.bot.child.isolated import brings_code
from mergeplan.bot.child.planner_process import Finished, new_run_id
from mergeplan.bot.commands import Command
from mergeplan.bot.context import DEFECT_TRIES, BotContext, PlannerCall, failure_result
from mergeplan.bot.git.call import CheckoutFailed
from mergeplan.bot.git.checkout import Checkout
from mergeplan.bot.inbox.queue import Job
from mergeplan.bot.pulls.arguments import cost_limits, diff_arguments
from mergeplan.bot.records import Answer, CommandRow, PullRecord
from mergeplan.bot.report.replies import diff_reply, lineage_reply, restate_reply
from mergeplan.bot.report.rollback import rollback_words
from mergeplan.bot.rules import BotConfig
from mergeplan.bot.verbs import Verb
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.snapshot.environment import PROD

WAITS = "answer"  # of an Answer: the planner has to be asked


def question(command: Command, record: PullRecord, config: BotConfig) -> tuple[str, ...]:
    """The planner's arguments that a command asks for."""
    if command.verb is Verb.RESTATE:
        named = zip(("--start", "--end"), command.days, strict=True)
        days = (f"{option}={day}" for option, day in named if day)
        restated = ("plan", record.environment, "--auto-apply", f"--restate-model={command.model}")
        return (*restated, *days, *cost_limits(record, config))
    if command.verb is Verb.ROLLBACK:
        return ("rollback", PROD, "--to", str(command.number or record.promoted_revision - 1), "--dry-run")
    if command.verb is Verb.LINEAGE:
        return ("lineage", command.model, "--downstream")
    where = (f"--where={command.where}",) if command.where else ()
    models = (command.model,) if command.model else ()
    rules = config.diff
    asked = rules if not rules.is_off else replace(rules, detail=(("*", "counts"),))
    return ("data_diff", *diff_arguments(asked), *where, record.environment, *models)


@dataclass(frozen=True)
class Questions:
    """What answers the questions of one pull request, while its job has the turn."""

    context: BotContext
    job: Job
    checkout: Checkout
    should_stop: Callable[[], str]

    def answer_all(self, record: PullRecord) -> str:
        """Asks the planner whatever was asked here; why it was stopped, '' when all is answered."""
        for row in self.context.inbox.commands.open(self.job.repository, self.job.number):
            for index, answer in enumerate(row.answers):
                if row.state != "accepted" or answer.waits_for != WAITS:
                    continue
                finished = self._try_question(answer.asked, record)
                if finished.stopped and not finished.stopped.startswith("It took"):
                    return finished.stopped
                row = self._keep(row, index, complete_answer(answer, finished))
        return ""

    def _keep(self, row: CommandRow, index: int, answer: Answer) -> CommandRow:
        row = replace(row, answers=(*row.answers[:index], answer, *row.answers[index + 1 :]))
        self.context.inbox.commands.answer(row)
        return row

    def _try_question(self, arguments: tuple[str, ...], record: PullRecord) -> Finished:
        """What became of it; what fails again and again is answered, so that it holds nothing up for ever."""
        try:
            return self._run_question(arguments, record)
        except CheckoutFailed as error:
            if self.job.attempts + 1 < DEFECT_TRIES:
                raise
            return failure_result(f"The commit cannot be read: {error}", "RequestError", hint="Ask again later.")

    def _run_question(self, arguments: tuple[str, ...], record: PullRecord) -> Finished:
        """Prod and rows are asked for on prod's commit, where no code of the pull request runs; lineage is its own."""
        base, run_id = record.base_sha, new_run_id()
        if arguments[0] == "rollback":
            commit = self.context.inbox.prods.get(self.job.repository).promoted_commit
            with self.context.project(self.checkout, commit) as folder:
                return self.context.plan(PlannerCall(self.job, folder, arguments, run_id), should_stop=self.should_stop)
        if not (base and record.head and self.checkout.has(base) and self.checkout.has(record.head)):
            return failure_result("There is no plan of this pull request.", "RequestError", hint="Type `/plan` first.")
        if arguments[0] == "data_diff":
            prod = self.context.inbox.prods.get(self.job.repository)
            commit, own_code = prod.promoted_commit or base, False
        else:
            commit = self.checkout.merge(base, record.head).commit
            if not commit:  # an end, not a failure: it would be tried again for ever, and what follows it would wait
                hint = "Resolve the conflict first."
                return failure_result("The branch cannot be merged into prod's commit.", "Conflict", hint=hint)
            own_code = brings_code(self.checkout.diff_paths(base, commit))
        with (
            self.context.project(self.checkout, commit) as folder,
            self.context.gateways(self.checkout, base, run_id) as gateways,
        ):
            call = PlannerCall(self.job, folder, arguments, run_id, gateways, own_code)
            return self.context.plan(call, should_stop=self.should_stop)


def complete_answer(answer: Answer, finished: Finished) -> Answer:
    """The answer with what the planner said."""
    outcome = finished.outcome
    if not outcome.ok:
        why = finished.stopped or "; ".join(f"{problem.message} {problem.hint}".strip() for problem in outcome.problems)
        why = why or "Internal error in mergeplan."
        return replace(answer, ok=False, sentence=f"{why} Nothing was changed.", waits_for="")
    if answer.asked[0] == "data_diff":
        return replace(answer, sentence=diff_reply(outcome), waits_for="")
    if outcome.rollback:
        return replace(answer, sentence=rollback_words(outcome.rollback), waits_for="")
    if answer.asked[0] == "plan":
        return replace(answer, sentence=restate_reply(outcome), waits_for="")
    result = next((line for line in reversed(finished.lines) if isinstance(line, ResultLine)), ResultLine(ok=False))
    return replace(answer, sentence=lineage_reply(result), waits_for="")
