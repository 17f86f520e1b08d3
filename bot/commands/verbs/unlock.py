"""`/unlock`: stops a promotion where it hangs; `prod/actions/promotions` does it. Pure."""

from functools import partial

from mergeplan.bot.commands.form import Form, Start
from mergeplan.bot.transitions.requests import stop_promotion

UNLOCK = Form(
    usage="/unlock",
    does="stops this pull request's promotion where it hangs, so that others get their turn; prod stays whole, and "
    "`/plan` tries again",
    example="/unlock",
    needs="maintain",
    rejected="no promotion of it is running",
    rule=lambda _, facts: "" if facts.is_promoting else "No promotion of this pull request is running.",
    start=lambda request: Start(
        "The promotion was stopped.",
        transition=partial(stop_promotion, who=request.who),
        wakes_prod=True,
        waits_for="plan",
    ),
)
