"""`/status`: shows where the pull request stands. Pure."""

from __future__ import annotations

from mergeplan.bot.commands.form import Form, Request, Start


def _start_command(request: Request) -> Start:
    """Start a reply; every reply ends with the state of the pull request."""
    return Start("This is how it stands.")


STATUS = Form(
    usage="/status",
    does="shows where the pull request stands",
    example="/status",
    needs="read",
    start=_start_command,
)
