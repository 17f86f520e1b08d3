"""A table of texts, aligned for a prompt, and as HTML for a notebook: escaped, no script, a style that stays inside."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from unicodedata import east_asian_width

from mergeplan.planner.contract.base import convert_to_json

TEXT_MOST, HTML_MOST = 20, 100  # rows that are shown: a query may have millions
STYLE = """
.mergeplan-plan { font: 14px/1.5 system-ui, sans-serif; overflow-x: auto }
.mergeplan-plan table { border-collapse: collapse } .mergeplan-plan th, .mergeplan-plan td { text-align: left;
  vertical-align: top; padding: 3px 12px 3px 0; border-bottom: 1px solid #8c959f55; white-space: pre-wrap }
.mergeplan-plan pre { font: 12px/1.4 ui-monospace, Menlo, Consolas, monospace; margin: 4px 0 }
.mergeplan-plan .blocked { color: #cf222e } .mergeplan-plan .warned { color: #9a6700 }
"""


@dataclass(frozen=True)
class Listing:
    """Rows of texts under their titles; a column with no text in any row is not shown."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def drop_empty_columns(self) -> Listing:
        shown_indexes = [n for n in range(len(self.columns)) if not self.rows or any(row[n] for row in self.rows)]
        rows = tuple(tuple(row[n] for n in shown_indexes) for row in self.rows)
        return Listing(self.title, tuple(self.columns[n] for n in shown_indexes), rows)

    def text(self, most: int = TEXT_MOST) -> str:
        """Return the title and the aligned rows; of more than `most` only the first, and the number of the others."""
        hidden_count = len(self.rows) - most
        hidden_lines = [f"... and {hidden_count:,} more"] if hidden_count > 0 else []
        table = [align_rows(self.columns, self.rows[:most])] if self.rows else []
        return "\n".join([self.title, *table, *hidden_lines])

    def html(self, *parts: str) -> str:
        hidden_count = len(self.rows) - HTML_MOST
        hidden_parts = [f"<p>... and {hidden_count:,} more</p>"] if hidden_count > 0 else []
        table = [html_table(self.columns, self.rows[:HTML_MOST])] if self.rows else []
        return html_fragment(self.title, (*table, *hidden_parts, *parts))


class Listed:
    """What a prompt and a notebook show as its listing."""

    __slots__ = ()

    def listing(self) -> Listing:
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.listing().text()

    def _repr_html_(self) -> str:
        return self.listing().html()


def align_rows(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    cells = [[line_text(text) for text in row] for row in (columns, *rows)]
    widths = [max(_display_width(row[n]) for row in cells) for n in range(len(cells[0]))]
    return "\n".join(
        "  ".join(text + " " * (width - _display_width(text)) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )


def _display_width(text: str) -> int:
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def html_table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Render an HTML table; every text is escaped."""
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_fragment(title: str, parts: Sequence[str]) -> str:
    return f'<div class="mergeplan-plan"><style>{STYLE}</style><p><b>{escape(title)}</b></p>{"".join(parts)}</div>'


def cell_text(value: object) -> str:
    if value is None:
        return "NULL"
    shown = convert_to_json(value)
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)


def line_text(text: str) -> str:
    """Return the text without line breaks and control characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
