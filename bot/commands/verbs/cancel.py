"""`/cancel`: stops the running plan. Pure."""

from functools import partial

from mergeplan.bot.commands.form import UNFINISHED, Choice, Form, Request, Start
from mergeplan.bot.transitions.planning import cancel_planning


def _start_command(request: Request) -> Start:
    cancel = partial(cancel_planning, reason=f"{request.who} stopped it.")
    return Start("The running plan was stopped.", transition=cancel)


CANCEL = Form(
    usage="/cancel",
    does="stops the running plan; the environment keeps what was computed",
    example="/cancel",
    needs="write",
    rejected="nothing is running",
    rule=lambda _, facts: "" if facts.is_running else "Nothing is running.",
    start=_start_command,
    offers=lambda record, _: (Choice("/cancel", "stops this plan"),) if record.state in UNFINISHED else (),
)
