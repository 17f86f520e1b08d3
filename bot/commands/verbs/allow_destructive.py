"""`/allow-destructive`: lets a forward-only change drop columns of a model, or change their types. Pure."""

from functools import partial

from mergeplan.bot.commands.command import Mistake, parse_model, resolve_model
from mergeplan.bot.commands.facts import require_shown_plan
from mergeplan.bot.commands.form import OTHER_PLAN, Form, Request, Start
from mergeplan.bot.report.markdown import code
from mergeplan.bot.transitions.requests import allow_destructive


def _start_command(request: Request) -> Start:
    record, plan = request.record, request.record.outcome.plan if request.record.outcome else None
    model = resolve_model(request.command, [change.name for change in plan.models] if plan else [])
    if isinstance(model, Mistake):
        return Start(model.sentence, ok=False)
    models = tuple(dict.fromkeys((*record.may_be_destructive, model)))
    allow = partial(allow_destructive, models=models, head=record.head)
    return Start(f"{code(model)} may lose columns in the plan of this head.", transition=allow, waits_for="plan")


ALLOW_DESTRUCTIVE = Form(
    usage="/allow-destructive MODEL",
    does="lets a forward-only change of a model drop columns, or change their types, in the plan of this head and at "
    "its merge",
    example="/allow-destructive shop.orders",
    needs="maintain",
    rejected=OTHER_PLAN,
    parse=parse_model,
    rule=require_shown_plan,
    start=_start_command,
)
