"""`/lineage`: lists what is made from a model or one of its columns. Pure."""

from mergeplan.bot.commands.command import parse_model
from mergeplan.bot.commands.facts import require_plan
from mergeplan.bot.commands.form import Form, ask_planner
from mergeplan.bot.report.markdown import LIST_LIMIT, code, fit_lines
from mergeplan.bot.results import PlannerOutcome
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.wording import count_noun


def _format_reply(outcome: PlannerOutcome, result: ResultLine) -> str:
    start_name = code(".".join(filter(None, (result.model, result.column))))
    columns: dict[str, list[str]] = {}
    for node in result.nodes or ():
        if node.model != result.model:
            columns.setdefault(node.model, []).append("its rows" if node.column is None else node.column)
    if not columns:
        return f"Nothing is made from {start_name}."
    lines = [
        f"- {code(model)}: {', '.join(sorted(code(column) for column in names))}" for model, names in columns.items()
    ]
    head = (
        f"From {start_name} {count_noun(len(columns), 'model')} downstream {'is' if len(columns) == 1 else 'are'} made:"
    )
    return "\n".join([head, "", *fit_lines(lines, LIST_LIMIT)])


LINEAGE = Form(
    usage="/lineage MODEL[.COLUMN]",
    does="lists what is made from a model or one of its columns, as the pull request has it",
    example="/lineage shop.orders.amount",
    needs="write",
    rejected="no plan is shown",
    parse=parse_model,
    rule=require_plan,
    start=lambda request: ask_planner("lineage", request.command.model, "--downstream"),
    tree="merged",
    reply=_format_reply,
)
