"""The output of a verb for a person or a program, and what a use case reports through it."""

from typing import TYPE_CHECKING, Any, TypeAlias

import click

from mergeplan.planner.apply.events import Emit, Event
from mergeplan.planner.cli.terminal import Terminal
from mergeplan.planner.cli.texts.unfinished_text import print_to_stderr, show_progress
from mergeplan.planner.parsing.files.lint_config import REFUSED
from mergeplan.planner.session import events

if TYPE_CHECKING:
    from mergeplan.planner.cli.json_lines import JsonLines

Output: TypeAlias = "Terminal | JsonLines"


def output_option(command: Any) -> Any:
    about = "For a person, or JSON lines for a program."
    return click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help=about)(command)


def execution_time_option(command: Any) -> Any:
    about = "Plan and compute as if it were this moment, not now."
    return click.option("--execution-time", metavar="DATE", help=about)(command)


def output_of(output: str) -> Output:
    if output != "json":
        return Terminal()
    from mergeplan.planner.cli.json_lines import JsonLines  # with the whole contract, which no person reads

    return JsonLines()


def make_emitter(out: Output) -> Emit:
    def show(event: Event) -> None:
        match event:
            case events.Linted(violations) if isinstance(out, Terminal):
                out.lint([violation for violation in violations if violation.rule != REFUSED])  # the plan names them
            case events.Linted(violations):
                out.lint(violations)
            case events.Tested(results, seconds):
                out.tests(results, seconds)
            case events.Due(plan, estimates):
                out.due(plan, estimates)
            case events.Revised(plan, estimates):
                out.revise_plan(plan, estimates)
            case events.Warned(message):
                out.warn(message)
            case events.StateUnknown():
                print_to_stderr(event)
            case events.SparkStarting() | events.SparkStarted() | events.TestsStarted():
                if isinstance(out, Terminal):  # a program gets results only, no progress
                    show_progress(event)
            case _:
                out.event(event)

    return show
