"""A lineage as a page that needs nothing else: a box for each model, a row for each column, lines between rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from html import escape

from mergeplan.planner.model.model import Model
from mergeplan.planner.project.lineage import ALL, ROWS, Lineage, Node

LETTER, ROW, HEAD, APART, BESIDE, EDGE = 8, 22, 42, 72, 18, 2  # of the drawing, in pixels
STYLE = """
.mergeplan { color-scheme: light dark; --ink: #1f2328; --dim: #656d76; --line: #8c959f; --page: #fff; --box: #f6f8fa;
  color: var(--ink); font: 14px/1.5 system-ui, sans-serif }
@media (prefers-color-scheme: dark) {
  .mergeplan { --ink: #e6edf3; --dim: #8d96a0; --line: #6e7681; --page: #0d1117; --box: #161b22 } }
.mergeplan h1 { font-size: 18px } .mergeplan p { color: var(--dim) } .mergeplan div { overflow: auto }
.mergeplan text { font: 13px/1 ui-monospace, Menlo, Consolas, monospace; fill: var(--ink) }
.mergeplan .kind { font-size: 10px; fill: var(--dim) }
.mergeplan .rows text { font-style: italic; fill: var(--dim) }
.mergeplan .box { fill: var(--box); stroke: #0969da; stroke-width: 1.5 }
.mergeplan .asked rect { fill: #0969da; opacity: .18 }
.mergeplan .SEED .box, .mergeplan .EXTERNAL .box, .mergeplan .outer .box { stroke: #1a7f37 }
.mergeplan .VIEW .box { stroke: #8250df; stroke-dasharray: 5 3 }
.mergeplan .EMBEDDED .box { stroke: var(--line); stroke-dasharray: 2 3 }
.mergeplan path { fill: none; stroke: var(--line); stroke-width: 1.5 }
.mergeplan .decides_rows { stroke-dasharray: 3 3 } .mergeplan .every_column { stroke-width: 3 }
"""
PAGE = "body { margin: 24px; background: var(--page) }"


@dataclass(frozen=True)
class LineageBox:
    """A model's box: its corner, its size, and its rows from the top."""

    x: int
    y: int
    width: int
    rows: tuple[Node, ...]

    @property
    def height(self) -> int:
        return HEAD + ROW * len(self.rows) + 4

    def middle(self, node: Node) -> int:
        return self.y + HEAD + ROW * self.rows.index(node) + ROW // 2 - 4


def lineage_html(lineage: Lineage, models: Mapping[str, Model]) -> str:
    """Render the lineage as a page: dotted lines decide rows, and thick ones start at a query that is not analysed."""
    title = escape(_lineage_title(lineage))
    head = f'<meta charset="utf-8"><title>{title}</title><style>{STYLE}{PAGE}</style>'
    body = f"<h1>{title}</h1>{_render_body(lineage, models)}"
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body class="mergeplan">{body}</body></html>'


def lineage_fragment(lineage: Lineage, models: Mapping[str, Model]) -> str:
    title = escape(_lineage_title(lineage))
    return f'<div class="mergeplan"><style>{STYLE}</style><h1>{title}</h1>{_render_body(lineage, models)}</div>'


def _lineage_title(lineage: Lineage) -> str:
    start_name = f"{lineage.model}.{lineage.column}" if lineage.column else lineage.model
    return f"{'What is made from' if lineage.downstream else 'What goes into'} {start_name}"


def _render_body(lineage: Lineage, models: Mapping[str, Model]) -> str:
    boxes = _place_boxes(lineage, models)
    lines = []
    for edge in lineage.edges:
        source_box, target_box = boxes[edge.source.model], boxes[edge.target.model]
        x, y = source_box.x + source_box.width, source_box.middle(edge.source)
        to, down = target_box.x, target_box.middle(edge.target)
        bend = (x + to) // 2
        lines.append(f'<path class="{edge.how}" d="M{x} {y} C{bend} {y} {bend} {down} {to} {down}"/>')
    drawn = [_draw_box(name, box, lineage, models) for name, box in boxes.items()]
    wide = max(box.x + box.width for box in boxes.values()) + EDGE
    high = max(box.y + box.height for box in boxes.values()) + EDGE
    notes = [
        f"<p>{escape(f'{model} is not followed column by column: {reason}.')}</p>"
        for model, reason in lineage.unfollowed
    ]
    legend = "A line leads from what goes in to what comes out; a dotted one decides which rows there are."
    picture = "\n".join((f'<div><svg width="{wide}" height="{high}">', *lines, *drawn, "</svg></div>"))
    return f"<p>{legend}</p>{''.join(notes)}\n{picture}"


def _draw_box(name: str, box: LineageBox, lineage: Lineage, models: Mapping[str, Model]) -> str:
    kind = str(models[name].kind) if name in models else "no model"
    parts = [
        f'<rect class="box" x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="6"/>',
        f'<text x="{box.x + 12}" y="{box.y + 18}">{escape(name)}</text>',
        f'<text class="kind" x="{box.x + 12}" y="{box.y + 31}">{kind}</text>',
    ]
    for node in box.rows:
        whole = node.column in (ROWS, ALL)
        text = {ROWS: "its rows", ALL: "every column"}.get(node.column, node.column)
        style = " ".join((["rows"] if whole else []) + (["asked"] if node in lineage.starts else []))
        y = box.middle(node)
        mark = f'<rect x="{box.x + 4}" y="{y - 11}" width="{box.width - 8}" height="{ROW - 2}" rx="4"/>'
        row = f'<text x="{box.x + 12}" y="{y + 4}">{escape(text)}</text>'
        parts.append(f'<g class="{style}">{mark if node in lineage.starts else ""}{row}</g>')
    return f'<g class="{kind if name in models else "outer"}">{"".join(parts)}</g>'


def _place_boxes(lineage: Lineage, models: Mapping[str, Model]) -> dict[str, LineageBox]:
    rows: dict[str, list[Node]] = {}
    for node in lineage.nodes:
        rows.setdefault(node.model, []).append(node)
    parents: dict[str, set[str]] = {name: set() for name in rows}
    for edge in lineage.edges:
        parents[edge.target.model].add(edge.source.model)
    boxes: dict[str, LineageBox] = {}
    x = EDGE
    for level in _list_levels(parents):
        y, widest = EDGE, 0
        for name in level:
            kind = str(models[name].kind) if name in models else "no model"
            texts = [name, kind, *(node.column or "its rows" for node in rows[name]), "every column"]
            width = LETTER * max(map(len, texts)) + 24
            ordered = tuple(sorted(rows[name], key=lambda node: node.column in (ROWS, ALL)))
            boxes[name] = LineageBox(x, y, width, ordered)
            y, widest = y + boxes[name].height + BESIDE, max(widest, width)
        x += widest + APART
    return boxes


def _list_levels(parents: Mapping[str, set[str]]) -> Sequence[Sequence[str]]:
    depth: dict[str, int] = {}
    for name in TopologicalSorter(parents).static_order():
        depth[name] = max((depth[parent] + 1 for parent in parents[name]), default=0)
    return [[name for name in parents if depth[name] == level] for level in range(max(depth.values()) + 1)]
