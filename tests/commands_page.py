"""The table of commands in docs/reference/bot.md, made from the bot's own by `python -m tests.commands_page`."""

from __future__ import annotations

import re
from pathlib import Path

from mergeplan.bot.commands.form import Form
from mergeplan.bot.commands.table import COMMANDS
from tests.doc_links import in_folder

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "bot.md"
MARKED = re.compile(r"(<!-- commands -->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = "| Command | What it does | Permission | Rejected if |\n|---|---|---|---|\n"


def page(text: str) -> str:
    """The page with the table as it must be."""
    rows = "".join(_row(form) for form in COMMANDS)
    return MARKED.sub(lambda match: f"{match[1]}{HEAD}{in_folder(rows, 'reference')}{match[2]}", text)


def _row(form: Form) -> str:
    needs = "anybody" if form.anybody else f"`{form.needs}`"
    return f"| `{form.usage}` | {form.does} | {needs} | {form.rejected} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
