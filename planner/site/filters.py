"""How templates write names, kinds, moments and the ends of lineage."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from mergeplan.planner.fingerprint import digest
from mergeplan.planner.project.lineage import ALL, ROWS, Node
from mergeplan.planner.site.highlight import highlight_code
from mergeplan.planner.wording import count_noun, duration_text, lateness_text, printable_text, size_text

COLUMN_WORDS = {ROWS: "its rows", ALL: "every column"}
_SAFE = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,150}")


def _group_by_model(nodes: Iterable[Node]) -> list[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = {}
    for node in nodes:
        groups.setdefault(node.model, []).append(COLUMN_WORDS.get(node.column, node.column))
    return list(groups.items())


def _breakable_name(name: str) -> Markup:
    return Markup("<wbr>").join(escape(printable_text(part)) for part in re.split(r"(?<=[._])(?![._])", name))


def _first_line(text: str) -> str:
    line = next((line.strip() for line in text.split("\n") if line.strip()), "")
    return line if len(line) <= 160 else f"{line[:159]}…"


def kind_words(kind: str) -> str:
    """Return a kind as all pages write it.

    >>> kind_words("SCD_TYPE_2_BY_COLUMN")
    'SCD type 2 by column'
    """
    return kind.lower().replace("_", " ").replace("scd type 2", "SCD type 2")


def page_filters() -> Mapping[str, Callable[..., Any]]:
    return dict(_list_filters())


def _list_filters() -> Iterator[tuple[str, Callable[..., Any]]]:
    yield "by_model", _group_by_model
    yield "namers", lambda columns: sorted({name for column in columns for name in column.named_by})
    yield "breakable", _breakable_name
    yield "first_line", _first_line
    yield "kind_words", kind_words
    yield "code", highlight_code
    yield "grouped", lambda number: f"{number:,}"
    yield "took", duration_text
    yield "counted", count_noun
    yield "limits", lambda freshness: lateness_text(freshness.warn_after, freshness.error_after)
    yield "size", size_text
    yield "anchor", lambda schema: f"schema-{page_name(schema)}"
    yield "moment", lambda at: at.astimezone(UTC).strftime(_moment_form(at))


def _moment_form(at: datetime) -> str:
    return "%Y-%m-%d" if at.time() == datetime.min.time() else "%Y-%m-%d %H:%M UTC"


def page_name(model: str) -> str:
    """Return the file of a model's page, which is its id within a single file.

    >>> page_name("shop.orders")
    'shop.orders'
    """
    if _SAFE.fullmatch(model) and not model.endswith(".") and model != "index":
        return model
    return f"{re.sub('[^a-z0-9_]+', '_', model.lower())[:100].strip('_')}-{digest('page', model)[:10]}"
