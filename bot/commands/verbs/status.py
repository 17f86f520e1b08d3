"""`/status`: shows the state of the pull request. Pure."""

from mergeplan.bot.commands.form import Form, Start

STATUS = Form(
    usage="/status",
    does="shows the state of the pull request",
    example="/status",
    needs="read",
    start=lambda _: Start("This is the state."),
)
