"""Output for a person: progress bars during long work, ticks when it is done, tables of what went wrong."""

from collections.abc import Collection, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING

import click
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.text import Text

from mergeplan.planner.apply import events
from mergeplan.planner.apply.events import Stage
from mergeplan.planner.apply.outcome import Outcome
from mergeplan.planner.checks.audits import AuditResult
from mergeplan.planner.checks.linter import Violation
from mergeplan.planner.checks.unit_test_result import TestResult
from mergeplan.planner.cli.texts.plan_text import (
    batch_text,
    comparison_text,
    due_text,
    leftover_batch_text,
    plan_text,
    restatement_effect_text,
    savings_text,
)
from mergeplan.planner.cli.texts.tests_text import show_tests
from mergeplan.planner.cli.texts.unfinished_text import print_to_stderr, recovery_text
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.costs import Estimate
from mergeplan.planner.plan.stages import Stages
from mergeplan.planner.wording import count_noun, duration_text, join_names, visible_text

if TYPE_CHECKING:  # bars are imported when something is applied
    from rich.progress import Progress, TaskID

BARS = {
    Stage.CREATE: ("Updating physical layer", "Physical layer updated"),
    Stage.BACKFILL: ("Executing model batches", "Model batches executed"),
    Stage.COMPARE: ("Comparing tables", "Tables compared"),
    Stage.PROMOTE: ("Updating virtual layer ", "Virtual layer updated"),
}
NOTHING = {
    Stage.CREATE: "No physical layer updates to perform",
    Stage.BACKFILL: "No model batches to execute",
    Stage.PROMOTE: "No virtual layer updates to perform",
}
BESIDE = 48  # columns of a bar's line that are not the bar: its task, a share, a count, a time
WIDE = 1000  # columns without a terminal: a log or a pipe gets whole lines


class Terminal:
    """A display of a plan and its application; one bar at a time, closed with a tick when its stage ends."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)
        self._whole = Console(highlight=False, width=WIDE)  # for texts to copy: the terminal wraps them
        if not self.console.is_terminal:
            self.console = self._whole
        self.diffs = True  # show the diffs of edited models
        self._plan: Plan | None = None
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._stage: Stage | None = None
        self._failed = False
        self._began: float | None = None  # when applying began
        self._computed: set[str] = set()
        self._audited: set[str] = set()  # models in which a blocking audit found rows
        self._batches = 1  # the most that a model has
        self._rounds: dict[Stage, bool] | None = None  # if comparisons divide the work: stage -> all of it is done
        click.get_current_context().call_on_close(self._stop_progress)  # an open bar would keep the cursor hidden

    def lint(self, violations: Sequence[Violation]) -> None:
        """Print each violation with its place, as a link for editors and CI."""
        for violation in violations:
            word, style = ("Error", "bold red") if violation.blocking else ("Warning", "bold yellow")
            where = f"{violation.place}:{violation.place.column}" if violation.place.column else str(violation.place)
            self._print_line(Text.assemble((f"{word}: ", style), f"{where}: {violation.rule}: {violation.message}"))

    def tests(self, results: Sequence[TestResult], seconds: float, *, verbose: bool = False) -> None:
        show_tests(self.console, results, seconds, verbose=verbose)

    def plan(self, plan: Plan, estimates: Mapping[str, Estimate]) -> None:
        self._plan, self._rounds = plan, {} if plan.comparisons else None
        self.console.print(plan_text(plan, estimates, diffs=self.diffs))

    def revise_plan(self, plan: Plan, estimates: Mapping[str, Estimate]) -> None:
        """Print which computations the comparison of tables saved, once the plan is carried out."""
        self.finish()
        if text := savings_text(plan, estimates):
            self.console.print()
            self._print_line(text)

    def due(self, plan: Plan, estimates: Mapping[str, Estimate]) -> None:
        self._plan = plan
        self.console.print(due_text(plan, estimates))

    def show(self, what: RenderableType) -> None:
        self.console.print(what)

    def explain(self, plan: Plan, stages: Stages) -> None:
        if not plan.is_empty:
            from mergeplan.planner.cli.texts.explanation import explain_plan

            self._whole.print(explain_plan(plan, stages))

    def confirm(self, plan: Plan) -> bool:
        action = "Virtual Update" if plan.is_virtual else "Backfill Tables"
        return self.ask(f"Apply - {action}", "Nothing was applied.")

    def ask(self, question: str, refusal: str) -> bool:
        """Ask the person; end of input is a no, and an interrupt ends the verb."""
        choice = click.Choice(["y", "n"], case_sensitive=False)
        try:
            answer: str = click.prompt(f"{question} [y/n]", type=choice, show_choices=False)
        except click.Abort as aborted:
            if isinstance(aborted.__context__, KeyboardInterrupt):
                raise
            self.console.print()
            answer = "n"
        if answer.lower() == "n":
            self.say(refusal)
        return answer.lower() == "y"

    def say(self, text: str) -> None:
        self.console.print(Text(text), soft_wrap=True)

    def say_wrapped(self, text: str) -> None:
        """Print text whose lines are broken between words where the terminal ends."""
        self.console.print(Text(text))

    def warn(self, message: str) -> None:
        self._print_line(Text.assemble(("Warning: ", "bold yellow"), message))

    def event(self, event: events.Event) -> None:
        match event:
            case events.StageStarted(stage, total):
                self._begin_stage(stage, total)
            case events.StageSkipped(stage, reason):
                self._skip_stage(stage, reason)
            case events.BatchDone():
                self._computed |= set() if event.unchanged else {event.model}
                self._print_line(batch_text(event, self._plan, self._batches, self.console.width))
                self._advance_bar()
            case events.TableCreated() | events.ViewSwapped() | events.ViewDropped():
                self._advance_bar()
            case events.AuditRan(model, result) if not result.ok:
                self._print_audit_failure(model, result)
            case events.ModelStarted(_, batches):
                self._batches = max(self._batches, batches)
                self._extend_bar(batches - 1)  # the stage counted the model as one
            case events.ModelFailed(model, message):
                # An audit's result was reported when it ran.
                text = f"{model} failed" if model in self._audited else f"{model}: {message}"
                self._print_line(Text.assemble(("✘ ", "red"), text))
                self._failed = True
            case events.ModelSkipped(model, because):
                self._print_line(Text(f"- {model}: not computed, because `{because}` failed", style="dim"))
            case events.ModelLate(model, signals, late):
                waits = ", ".join(str(interval) for interval in late)
                self._print_line(Text(f"- {model}: {waits} waits for {join_names([f'`{name}`' for name in signals])}"))
            case events.ModelUpToDate(model):
                self._print_line(Text(f"- {model}: computed by another process in the meantime", style="dim"))
                self._advance_bar()
            case events.Compared():
                self._advance_bar()
                self._print_line(comparison_text(event))
            case events.ClaimRefuted(model, reason):
                self._print_line(Text(f"! {model} is computed: the rules would keep it. {reason}", style="yellow"))
            case events.TableAwaited(model, _, holder):
                self._print_line(Text(f"- {model}: waiting for {holder}, which computes the same table", style="dim"))
            case events.BatchAwaited() | events.BatchRepeated():
                self._print_line(leftover_batch_text(event, self._plan))
            case events.RestatedThemselves(models):
                self._print_line(Text(f"Restated by their own cron: {', '.join(models)}."))
            case events.EnvironmentTouched():
                if self._plan is None or self._plan.restatement is None:  # else the plan names it
                    self._print_line(Text(f"- {restatement_effect_text(event)}", style="dim"))
            case events.TableDropped(table):
                self._print_line(Text(f"dropped {table}"))
            case _:
                self._print_promotion_event(event)

    def _print_promotion_event(self, event: events.Event) -> None:
        match event:
            case events.PromotionFound(environment, _):
                self.console.print(f"Finishing the promotion of `{environment}` that was interrupted.")
            case events.PromotionRecovered():
                self._end_stage()
                if text := recovery_text(event):
                    self.say(f"\n{text}")
            case events.PromotionPending():
                print_to_stderr(event)
            case events.EnvironmentAwaited(environment, holder):
                self._print_line(Text(f"- waiting for {holder}, which is changing `{environment}`", style="dim"))
            case events.PromotionUndone(environment, message):
                self._failed = True
                self._print_line(Text(f"✘ `{environment}` shows again what it showed before: {message}", style="red"))
            case _:
                pass

    def finish(self) -> None:
        self._end_stage()
        self._end_rounds()

    def conclude(self, outcome: Outcome) -> None:
        if self._began is not None:
            self.say(f"\n{closing_text(outcome, self._computed, monotonic() - self._began)}")

    def _skip_stage(self, stage: Stage, reason: str) -> None:
        self._end_stage()
        if self._rounds is not None and stage is not Stage.PROMOTE:
            return  # another round had work, or it is reported when the rounds end
        self._end_rounds()
        where = f"`{self._plan.environment}`" if self._plan else "the environment"
        stays = f"SKIP: {where} stays as it was, because {reason}"
        self.say(f"\n{stays}" if self._failed else f"\nSKIP: {NOTHING[stage]}")

    def _begin_stage(self, stage: Stage, total: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._end_stage()
        self._began = self._began or monotonic()
        if stage is Stage.PROMOTE:
            self._end_rounds()
        self.console.print()
        self._stage, self._failed = stage, False
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=max(10, min(40, self.console.width - BESIDE))),
            TextColumn("{task.percentage:>5.1f}%"),
            TextColumn("•"),
            MofNCompleteColumn(),
            TextColumn("•"),
            TimeElapsedColumn(),
            console=self.console,
        )
        self._progress.start()
        self._task = self._progress.add_task(BARS[stage][0], total=total)

    def _end_stage(self) -> None:
        if self._progress is None or self._stage is None:
            return
        stage, done = self._stage, all(task.finished for task in self._progress.tasks) and not self._failed
        self._stop_progress()
        if self._rounds is not None and stage is not Stage.PROMOTE:
            self._rounds[stage] = done and self._rounds.get(stage, True)
        elif done:
            self.console.print(f"\n[green]✔[/green] {BARS[stage][1]}")

    def _end_rounds(self) -> None:
        """Print the ticks of stages that came more than once, when they are complete."""
        if self._rounds is None:
            return
        rounds, self._rounds = self._rounds, None
        if self._failed:
            return  # the waiting stages were not begun
        self.console.print()
        for stage in (Stage.CREATE, Stage.BACKFILL, Stage.COMPARE):
            if rounds.get(stage):
                self.console.print(f"[green]✔[/green] {BARS[stage][1]}")
            elif stage not in rounds and stage in NOTHING:
                self.say(f"SKIP: {NOTHING[stage]}")

    def _stop_progress(self) -> None:
        if self._progress is not None:
            self._progress.stop()
        self._progress = self._task = self._stage = None

    def _advance_bar(self) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.advance(self._task)

    def _extend_bar(self, more: int) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, total=(self._progress.tasks[0].total or 0) + more)

    def _print_line(self, text: Text) -> None:
        text.plain = visible_text(text.plain)  # a text of the project could steer the terminal
        self.console.print(text, soft_wrap=True)

    def _print_audit_failure(self, model: str, result: AuditResult) -> None:
        style = "red" if result.blocking else "yellow"
        if result.blocking:
            self._audited.add(model)
        of = model or ", ".join(result.reads) or "no table of ours"
        self._print_line(Text(f"✘ audit {result.name} of {of}: {count_noun(result.count, 'failing row')}", style=style))
        self._print_line(Text(result.sql, style="dim"))
        if result.sample.rows:
            from rich.table import Table

            table = Table(*map(escape, result.sample.columns))
            for row in result.sample.rows:
                table.add_row(*(Text("NULL" if value is None else str(value)) for value in row))
            self.console.print(table)


def closing_text(outcome: Outcome, computed_names: Collection[str], seconds: float) -> str:
    """Return a text such as `Computed 3 models in 4 batches: 21 rows, 11 s.`, with failed and missing models."""
    filled, took = outcome.filled, duration_text(seconds)
    missed = [f"{count_noun(len(failures), 'model')} failed"] if (failures := filled.failures) else []
    missed += [f"{count_noun(len(filled.skipped), 'model')} not computed"] if filled.skipped else []
    if not computed_names:
        result = "; ".join(missed) or "no table was computed"
        return f"Done in {took}: {result}."
    batches, rows = count_noun(filled.batches, "batch", "batches"), count_noun(filled.rows, "row")
    return (
        "; ".join([f"Computed {count_noun(len(computed_names), 'model')} in {batches}: {rows}, {took}", *missed]) + "."
    )
