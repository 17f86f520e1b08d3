"""The bot's sentences, Markdown for GitHub, as HTML: code spans and bold type, and nothing that leads away. Pure."""

import re
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markupsafe import Markup

from mergeplan.bot.report.markdown import inert_text
from mergeplan.planner.wording import printable_text

ALERT = re.compile(r"\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]")
# Links, images and HTML stay the text that they are written as, whoever wrote them.
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).disable(["link", "image", "autolink", "html_inline"])


@dataclass(frozen=True)
class Alert:
    """A highlighted paragraph of one of GitHub's kinds; '' is an ordinary one."""

    sort: str
    lines: tuple[str, ...]


def render_sentence(markdown: str) -> Markup:
    return Markup(_MARKDOWN.renderInline(printable_text(markdown)).strip())  # noqa: S704 - no tag gets through


def render_foreign(text: str) -> Markup:
    """Return foreign text as HTML: code spans, and all other characters as they are."""
    return render_sentence(inert_text(text))


def split_alert(markdown: str) -> Alert:
    lines = [line.removeprefix(">").strip() for line in markdown.split("\n")]
    match = ALERT.fullmatch(lines[0]) if lines else None
    text_lines = tuple(line for line in (lines[1:] if match else lines) if line)
    return Alert(match[1].lower() if match else "", text_lines)
