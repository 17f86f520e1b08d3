"""The table of commands in docs/bot.md, made from the bot's own: `python -m tests.commands_page` writes it anew."""

from __future__ import annotations

import re
from pathlib import Path

from mergeplan.bot.commands.form import Form
from mergeplan.bot.commands.table import COMMANDS

PAGE = Path(__file__).parent.parent / "docs" / "bot.md"
MARKED = re.compile(r"(<!-- commands -->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = "| Command | What it does | Permission | Rejected if |\n|---|---|---|---|\n"


def page(text: str) -> str:
    """The page with the table as it must be."""
    rows = "".join(_row(form) for form in COMMANDS)
    return MARKED.sub(lambda found: f"{found[1]}{HEAD}{rows}{found[2]}", text)


def _row(form: Form) -> str:
    needs = "anybody" if form.anybody else f"`{form.needs}`"
    return f"| `{form.usage}` | {form.does} | {needs} | {form.rejected} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
