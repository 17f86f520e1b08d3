"""`/status`: shows the state of the pull request. Pure."""

from mergeplan.bot.commands.form import Form, Request, Start


def _start_command(request: Request) -> Start:
    """Start a reply; every reply ends with the state of the pull request."""
    return Start("This is the state.")


STATUS = Form(
    usage="/status", does="shows the state of the pull request", example="/status", needs="read", start=_start_command
)
