"""`/diff`: compares the rows of the changed models with prod's. Pure."""

from dataclasses import replace

from mergeplan.bot.budgets import diff_arguments
from mergeplan.bot.commands.command import MODEL, Command, Line, Mistake
from mergeplan.bot.commands.facts import require_environment
from mergeplan.bot.commands.form import Form, Request, Start, ask_planner
from mergeplan.bot.report.rows import rows_blocks, rows_title, schema_block
from mergeplan.bot.results import PlannerOutcome
from mergeplan.planner.contract.result import ResultLine


def _parse_line(line: Line) -> Command | Mistake:
    """Read the text after `--where` as the condition, unchanged."""
    model_text, separator, where = line.rest.partition("--where")
    words = model_text.replace("`", " ").split()
    if len(words) > 1 or (words and not MODEL.fullmatch(words[0])):
        return line.mistake("It takes the name of one model, or none.")
    where = where.strip().removeprefix("=").strip()
    if separator and not where:
        return line.mistake("There is no condition after `--where`.")
    return replace(line.command, model=words[0].lower() if words else "", where=where)


def _start_command(request: Request) -> Start:
    """Compare rows even if the plan shows none, but show no samples for a fork, whose author wrote the query."""
    command, record, rules = request.command, request.record, request.diff
    if request.pull.is_fork:
        rules = rules.without_samples()
    if rules.is_off:
        rules = replace(rules, detail=(("*", "counts"),))
    where = (f"--where={command.where}",) if command.where else ()
    models = (command.model,) if command.model else ()
    return ask_planner("data_diff", *diff_arguments(rules), *where, record.environment.name, *models)


def _format_reply(outcome: PlannerOutcome, result: ResultLine) -> str:
    blocks = [*rows_blocks(outcome), *schema_block(outcome)]
    return (
        "\n\n".join([f"**{rows_title(outcome)}**", *blocks]) if blocks else "No model has another table than in prod."
    )


DIFF = Form(
    usage="/diff [MODEL] [--where CONDITION]",
    does="compares the rows of the changed models, or of one, with prod's; with a condition only the rows for which it "
    "holds",
    example="/diff shop.orders --where amount > 100",
    needs="write",
    rejected="no environment is built",
    parse=_parse_line,
    rule=require_environment,
    start=_start_command,
    tree="before",
    reply=_format_reply,
)
