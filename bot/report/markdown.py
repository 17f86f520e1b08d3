"""Text that cannot break out of where it is put: spans, fences, tables, folds, graphs; blocks within a budget. Pure."""

import html
import re
from collections.abc import Iterable, Sequence
from datetime import date, timedelta

from mergeplan.planner.contract.base import Span
from mergeplan.planner.contract.plan import ModelChange
from mergeplan.planner.wording import count_noun, first_names, printable_text

MARKER = "<!-- mergeplan"  # every comment of the bot carries one; its own words are never commands
COMMENT_LIMIT = 65_536
CHECK_LIMIT = 65_535
LIST_LIMIT = 20_000  # of a list in a reply
CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
ZERO_WIDTH = "\u200b"
REFERENCE = re.compile(r"(#(?=\d)|\bGH-(?=\d)|\bwww(?=\.))", re.IGNORECASE)  # what GitHub makes a link of
BLOCK = re.compile(r"[#>+=-]|\d+[.)]")  # what at a line's begin is a heading, a quote, a rule or a list
WRAPPED = 12  # letters of a name from which on it may be broken, so that a table fits a phone

NAMES = {
    "breaking": "Breaking",
    "non_breaking": "Non-breaking",
    "forward_only": "Forward-only",
    "metadata": "Metadata",
    "equivalent": "Equivalent",
    "indirect_breaking": "Indirect breaking",
    "indirect_non_breaking": "Indirect non-breaking",
    "undecided": "Undecided",
    "added": "Added",
    "removed": "Removed",
}
SIGNS = {
    "breaking": "🔴",
    "undecided": "🟣",
    "non_breaking": "🟢",
    "forward_only": "🔵",
    "indirect_breaking": "🟠",
    "indirect_non_breaking": "⚪",
    "metadata": "⚪",
    "equivalent": "⚪",
    "added": "🆕",
    "removed": "🗑️",
}
COLOURS = {  # fill, border, text: readable on GitHub's light and dark pages
    "breaking": ("#ffd7d5", "#cf222e", "#82071e"),
    "undecided": ("#e9d8fd", "#8250df", "#3e1f79"),
    "non_breaking": ("#d3f5db", "#1a7f37", "#044f1e"),
    "forward_only": ("#d5e8ff", "#0969da", "#033d8b"),
    "indirect_breaking": ("#ffe3c2", "#bc4c00", "#762d0a"),
    "indirect_non_breaking": ("#f3f4f6", "#8c959f", "#32383f"),
    "metadata": ("#f3f4f6", "#8c959f", "#32383f"),
    "equivalent": ("#f3f4f6", "#8c959f", "#32383f"),
    "added": ("#d3f5db", "#1a7f37", "#044f1e"),
    "removed": ("#eaeef2", "#57606a", "#32383f"),
}


def category_of(model: ModelChange) -> str:
    return model.change if model.change in ("added", "removed") else model.category or "undecided"


def code(text: str) -> str:
    """Return a code span that holds any text, on one line: the back-ticks around are longer than those within."""
    flat = " ".join(printable_text(text).split()) or " "
    ticks = "`" * (longest_ticks(flat) + 1) if "`" in flat else "`"
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{ticks}{pad}{flat}{pad}{ticks}"


def fence(text: str, language: str = "", limit: int = 20_000) -> str:
    """Return a fenced block that holds any text; cut at a line's end, followed by the number of lines left out."""
    lines = printable_text(text).rstrip("\n").split("\n")
    shown_lines: list[str] = []
    room = limit
    for line in lines:
        room -= min(len(line), 2000) + 1
        if room < 0:
            break
        shown_lines.append(line[:2000])
    ticks = "`" * max(3, longest_ticks("\n".join(shown_lines)) + 1)
    omission = f"\n*{len(lines) - len(shown_lines)} more lines.*" if len(shown_lines) < len(lines) else ""
    return f"{ticks}{language}\n" + "\n".join(shown_lines) + f"\n{ticks}{omission}"


def inert_text(text: str) -> str:
    """Return foreign text in one line: code spans stay, all else cannot mention, link, embed or fold."""
    flat = " ".join(printable_text(text).split())
    parts, at = [], 0
    for match in CODE_SPAN.finditer(flat):
        parts += [_escape_markdown(flat[at : match.start()]), code(match[2].strip() or " ")]
        at = match.end()
    text = "".join([*parts, _escape_markdown(flat[at:])])
    return f"{ZERO_WIDTH}{text}" if BLOCK.match(flat) else text


def tag_text(text: str) -> str:
    """Return text for between HTML tags, where Markdown is not read."""
    return html.escape(" ".join(printable_text(text).split())).replace("@", f"@{ZERO_WIDTH}")


def table_cell(text: str) -> str:
    """Return Markdown that stays within its table cell; a long name in code can break at its dots and underscores."""
    flat = CODE_SPAN.sub(_break_name, text.replace("\\|", "|"))
    return flat.replace("|", "\\|").replace("\n", " ")


def _break_name(span: re.Match[str]) -> str:
    name = span[2].strip()
    if len(name) <= WRAPPED or " " in name or not re.search(r"[._]", name):
        return span[0]
    return f"<code>{'<wbr>'.join(map(_escape_markdown, re.split(r'(?<=[._])(?![._])', name)))}</code>"


def longest_ticks(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)


def details_block(summary: str, body: str) -> str:
    """Return a <details> block; blank lines around the body have its Markdown rendered."""
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>"


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a column that is empty in every row is left out.

    >>> format_table(("Model", "By column"), [("`a`", "")])
    '| Model |\\n| --- |\\n| `a` |'
    """
    rows = list(rows)
    shown = [n for n in range(len(head)) if not rows or any(row[n] for row in rows)]
    head, rows = [head[n] for n in shown], [[row[n] for n in shown] for row in rows]
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join(" --- " for _ in head) + "|"]
    lines += ["| " + " | ".join(table_cell(content) for content in row) + " |" for row in rows]
    return "\n".join(lines)


def fit_blocks(blocks: Sequence[str], limit: int, left_out: str) -> str:
    """Return the blocks that fit, in order, always with the first and the last; `left_out` replaces the rest."""
    first, *middle, last = blocks if len(blocks) > 1 else (*blocks, "")
    room = limit - len(first) - len(last) - len(left_out) - 8
    shown_blocks, dropped = [first], False
    for block in middle:
        if len(block) + 2 <= room:
            shown_blocks.append(block)
            room -= len(block) + 2
        else:
            dropped = True
    return (
        "\n\n".join(paragraph for paragraph in [*shown_blocks, left_out if dropped else "", last] if paragraph) + "\n"
    )


def fit_lines(lines: Sequence[str], limit: int, rest: str = "- and {} more") -> list[str]:
    """Return the first lines that fit; `rest` formats the number of those that do not.

    >>> fit_lines(["- one", "- two", "- three"], 12)
    ['- one', '- two', '- and 1 more']
    """
    shown_lines: list[str] = []
    room = limit
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            return [*shown_lines, rest.format(f"{len(lines) - len(shown_lines):,}")]
        shown_lines.append(line)
    return shown_lines


def clip_text(text: str, limit: int = 2_000) -> str:
    return text if len(text) <= limit else text[:limit] + "…"


def name_list(names: Sequence[str]) -> str:
    return first_names([code(name) for name in names], 6)


def format_days(intervals: Sequence[Span]) -> str:
    """Return half-open intervals as a person writes them.

    >>> format_days([("2026-01-01", "2026-01-08")])
    '7 days, 2026-01-01 to 2026-01-07'
    """
    whole = [_whole_days(span) for span in intervals]
    if not intervals:
        return ""
    if all(whole):
        spans = [span for span in whole if span]
        total = sum((end - start).days for start, end in spans)
        texts = [_date_range(start, end - timedelta(days=1)) for start, end in spans[:3]]
        more_text = f" and {len(spans) - 3} more ranges" if len(spans) > 3 else ""
        return f"{count_noun(total, 'day')}, {', '.join(texts)}{more_text}"
    texts = [f"{start} until {end}" for start, end in intervals]
    return first_names(texts, 3)


def whole_days(intervals: Sequence[Span]) -> int:
    """Return the number of days of the intervals, 0 if one of them does not consist of whole days."""
    spans = [_whole_days(interval) for interval in intervals]
    return sum((end - start).days for start, end in filter(None, spans)) if all(spans) else 0


def mermaid_graph(models: Sequence[ModelChange]) -> str:
    ids = {model.name: f"m{index}" for index, model in enumerate(models)}
    lines = ["```mermaid", "graph LR"]
    for model in models:
        category = category_of(model)
        label = re.sub(r"[^A-Za-z0-9_. -]", "_", model.name)
        work = "<br/>recomputed" if model.recomputed and model.change != "added" else "<br/>skipped" * model.skipped
        lines.append(
            f'  {ids[model.name]}["{label}<br/><i>{NAMES.get(category, "Changed")}</i>{work}"]:::{_css_class(category)}'
        )
    edges = sorted({(ids[parent], ids[model.name]) for model in models for parent in model.parents if parent in ids})
    lines += [f"  {parent} --> {child}" for parent, child in edges]
    used = dict.fromkeys(_css_class(category_of(model)) for model in models)
    for style in used:
        fill, stroke, text = COLOURS[style.removeprefix("c_")]
        lines.append(f"  classDef {style} fill:{fill},stroke:{stroke},color:{text}")
    return "\n".join([*lines, "```"])


def _css_class(category: str) -> str:
    return f"c_{category if category in COLOURS else 'undecided'}"


def _escape_markdown(text: str) -> str:
    safe = html.escape(text, quote=False)
    safe = re.sub(r"([\\`*_\[\]~$])", r"\\\1", safe)  # `$` begins a formula on GitHub
    safe = safe.replace("@", f"@{ZERO_WIDTH}").replace("://", f":{ZERO_WIDTH}//")
    return REFERENCE.sub(rf"\1{ZERO_WIDTH}", safe)


def _whole_days(interval: Span) -> tuple[date, date] | None:
    """Return both ends as dates if they are midnights, else None."""
    ends = []
    for text in interval:
        clock = text[10:].strip(" T").removesuffix("Z").removesuffix("+00:00")
        if clock.strip("0:."):
            return None
        try:
            ends.append(date.fromisoformat(text[:10]))
        except ValueError:
            return None
    return (ends[0], ends[1]) if ends[0] < ends[1] else None


def _date_range(first: date, last: date) -> str:
    return f"{first}" if first == last else f"{first} to {last}"
