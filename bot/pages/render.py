"""The pages as HTML: templates over a view. They load nothing, run nothing and send nothing."""

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from mergeplan.bot.pages.links import DAYS
from mergeplan.bot.pages.text import render_foreign, render_sentence
from mergeplan.bot.pages.view import PageView, count_steps
from mergeplan.bot.report.losses import READING_HEAD, UPPER_BOUND, reader_lines, reading_rows
from mergeplan.bot.report.markdown import format_days
from mergeplan.bot.report.rows import format_share
from mergeplan.bot.report.words import actual_words, audit_line, estimate_words
from mergeplan.planner.site.filters import page_filters
from mergeplan.planner.site.html_templates import open_templates
from mergeplan.planner.site.pages import TEMPLATES as SITE
from mergeplan.planner.ui.render import name_category
from mergeplan.planner.wording import count_noun, duration_text, size_text

TEMPLATES = Path(__file__).parent / "templates"
REFRESH_SECONDS = 5
TABS = (
    ("plan", "Plan"),
    ("diffs", "Diffs"),
    ("lineage", "Lineage"),
    ("progress", "Progress"),
    ("promotion", "Promotion"),
)


def render_page(view: PageView, name: str, key: str, catalog: str = "") -> str:
    """Render one page of a pull request, or of prod; `catalog` is the address of the catalog, '' if there is none."""
    template = "prod" if view.is_prod else name
    refresh = REFRESH_SECONDS if view.is_running else 0
    values = {"view": view, "here": name, "key": key, "refresh": refresh, "catalog": catalog}
    return _load_templates().get_template(f"{template}.html").render(**values)


def render_refusal(title: str, text: str) -> str:
    return _load_templates().get_template("refusal.html").render(title=title, text=text, refresh=0)


def register_form(target: str, text: str, site: str) -> str:
    """Render the page whose button sends the App's manifest to GitHub."""
    values = {"title": "Register the GitHub App", "target": target, "text": text, "site": site}
    return _load_templates().get_template("register.html").render(**values, refresh=0)


def register_done(name: str, link: str) -> str:
    """Render the page that GitHub leads back to, once the App exists."""
    values = {"title": f"{name} is registered", "target": "", "link": link}
    return _load_templates().get_template("register.html").render(**values, refresh=0)


@cache
def headers(forms: str = "'none'") -> Mapping[str, str]:
    """Forbid the browser scripts, pictures, frames, other sites, copies, and forms unless sent to one of `forms`."""
    style = b64encode(hashlib.sha256(_read_style().encode()).digest()).decode()
    parts = ("default-src 'none'", f"style-src 'sha256-{style}'", "base-uri 'none'", f"form-action {forms}")
    policy = "; ".join((*parts, "frame-ancestors 'none'"))
    return {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",  # the address opens the page
        "Cache-Control": "no-store",
        "X-Robots-Tag": "noindex, nofollow",
        "Cross-Origin-Opener-Policy": "same-origin",
    }


@cache
def _read_style() -> str:
    files = (SITE / "primer.css", SITE / "header.css", TEMPLATES / "style.css")
    return "".join(file.read_text(encoding="utf-8") for file in files)


@cache
def _load_templates() -> Environment:
    filters: dict[str, Any] = {
        "breakable": page_filters()["breakable"],
        "sentence": render_sentence,
        "foreign": render_foreign,
        "size": size_text,
        "duration": duration_text,
        "days": format_days,
        "counted": count_noun,
        "category_name": name_category,
        "share": format_share,
        "counts": count_steps,
        "estimate": estimate_words,
        "actual": actual_words,
        "readers": reader_lines,
        "readings": reading_rows,
        "audit": lambda row: render_sentence(audit_line(row).removeprefix("- ")),
        "moment": lambda at: datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }
    environment = open_templates([TEMPLATES, SITE], filters)
    style = Markup(_read_style())  # noqa: S704 - a file of ours
    words = {"reading_head": READING_HEAD, "upper_bound": UPPER_BOUND}
    environment.globals.update({"style": style, "tabs": TABS, "link_days": DAYS, **words})
    return environment
