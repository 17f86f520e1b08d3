"""`/help`: lists the commands. Pure."""

import re
from collections.abc import Mapping, Sequence

from mergeplan.bot.commands.form import Form, Start
from mergeplan.bot.policy.roles import Role

LINKS = re.compile(r"\[([^\[\]]+)\]\([^)]*\)")


def help_text(forms: Sequence[Form], needs: Mapping[str, Role], project: str = "") -> str:
    """List the enabled commands, their users and examples; `project` is the folder of one of several projects."""
    lines = [
        "Write a command at the start of a line in a comment; several run in order. The end of the plan comment lists "
        "those that are accepted now, most with a box to tick; with the App they are buttons on the checks too.",
        "",
    ]
    if project:
        project_command = f"`/plan --project {project}`"
        lines[1:1] = [
            "",
            f"A command is for the projects that the pull request changes; {project_command} is for one of them.",
        ]
    for form in forms:
        who = "anybody" if form.anybody else f"needs `{needs.get(form.verb, 'admin')}`"
        does = LINKS.sub(r"\1", form.does)  # they lead through the documentation
        lines.append(f"- `{form.usage}`: {does}. *{who[0].upper() + who[1:]}.* Example: `{form.example}`")
    return "\n".join(lines)


HELP = Form(
    usage="/help",
    does="lists the commands with permissions and examples",
    example="/help",
    needs="read",
    parse=lambda line: line.command,  # any words after it are ignored
    anybody=True,
    start=lambda request: Start(help_text(request.forms, request.needs, request.record.place.project)),
)
