"""Templates to HTML, and the restrictions of a browser on each page."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup, escape

from mergeplan.planner.contract.base import Spans
from mergeplan.planner.contract.physical_words import physical_sentence
from mergeplan.planner.contract.plan import ModelChange
from mergeplan.planner.site.diff_lines import DiffLine, diff_lines
from mergeplan.planner.site.filters import page_filters
from mergeplan.planner.site.html_templates import open_templates
from mergeplan.planner.site.pages import TEMPLATES as SITE
from mergeplan.planner.ui.addresses import environment_address, page_links
from mergeplan.planner.ui.assets import load_assets
from mergeplan.planner.wording import duration_text, printable_text

TEMPLATES = Path(__file__).parent / "templates"
DIFF_MOST = 200_000  # characters of one diff
SPANS_MOST = 6
TABS = (
    ("/", "Catalog"),
    ("/lineage", "Lineage"),
    ("/environments", "Environments"),
    ("/checks", "Checks"),
    ("/plans", "Plans"),
    ("/diff", "Table diff"),
)
CATALOG_TABS = TABS[:4]  # of a server that makes no plans
CATEGORY_NAMES = {"non_breaking": "Non-breaking", "forward_only": "Forward-only"}
# Everything is loaded from this server, and no script in a page is run.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "style-src 'self'",
        "script-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@dataclass(frozen=True)
class Frame:
    project: str
    csrf: str = ""
    may_plan: bool = False
    may_apply: bool = False
    may_read_jobs: bool = False
    tabs: tuple[tuple[str, str], ...] = TABS
    base: str = ""  # before the address of every page
    notice: str = ""  # a sentence above every page
    environment_pages: Mapping[str, str] | None = None  # the page of each environment; None: each has one of its own

    def environment_link(self, name: str) -> str:
        """Return the page of an environment; '' for one that has none."""
        default_address = environment_address(name, self.base)
        return default_address if self.environment_pages is None else self.environment_pages.get(name, "")


def render(template: str, frame: Frame, **values: object) -> str:
    defaults: dict[str, object] = {"here": "", "refresh": 0, "tree": (), "environment_link": frame.environment_link}
    return (
        _page_templates().get_template(template).render(defaults | page_links(frame.base) | {"frame": frame, **values})
    )


def format_prose(text: str) -> Markup:
    """Return a sentence with its `code` set as code, and everything else escaped.

    >>> format_prose("`a<b` is wrong")
    Markup('<code>a&lt;b</code> is wrong')
    """
    parts = re.split(r"`([^`\n]+)`", printable_text(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part) for number, part in enumerate(parts)
    )


def format_spans(spans: Spans) -> str:
    """Return the first few intervals; for whole days the last day is named, not the day after it."""
    remainder = f" and {len(spans) - SPANS_MOST} more" if len(spans) > SPANS_MOST else ""
    return ", ".join(_format_span(*span) for span in spans[:SPANS_MOST]) + remainder


def _format_span(start: str, end: str) -> str:
    if "T" in start or "T" in end:
        return f"{start} to {end}"
    last = date.fromisoformat(end) - timedelta(days=1)
    return start if last.isoformat() == start else f"{start} to {last}"


def format_when(at: str | float | None) -> str:
    """Return a moment, in ISO 8601 or in seconds, in a readable form."""
    if at is None or at == "":
        return "\N{EN DASH}"
    moment = datetime.fromtimestamp(at, UTC) if isinstance(at, (int, float)) else datetime.fromisoformat(at)
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def name_category(category: str) -> str:
    return CATEGORY_NAMES.get(category, category.replace("_", " ").capitalize())


def _computation_text(model: ModelChange) -> str:
    """Return the time of a model that is computed; the end of a half-open interval is not part of it."""
    return format_spans(model.intervals) if model.kind.startswith("INCREMENTAL") else "full refresh"


def _lines_of(diff: str) -> Iterable[DiffLine]:
    lines, remaining_count = diff_lines(diff, DIFF_MOST)
    return (*lines, DiffLine("at", f"and {remaining_count} more lines")) if remaining_count else lines


def _list_filters() -> Iterator[tuple[str, Callable[..., Any]]]:
    yield from page_filters().items()
    yield "prose", format_prose
    yield "spans", format_spans
    yield "when", format_when
    yield "category_name", name_category
    yield "computed", _computation_text
    yield "physical", lambda change: physical_sentence(change, lambda name: f"`{name}`")
    yield "diff_lines", _lines_of
    yield "duration", duration_text


@cache
def _page_templates() -> Environment:
    environment = open_templates([TEMPLATES, SITE], dict(_list_filters()))
    environment.globals["asset"] = lambda name: load_assets()[name]
    return environment
