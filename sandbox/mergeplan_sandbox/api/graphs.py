"""A mermaid graph of the plainest kind as an SVG: boxes in columns, arrows from left to right."""

import html
import re
from dataclasses import dataclass

NODE = re.compile(r'(\w+)\["(.*)"\](?::::(\w+))?')
EDGE = re.compile(r"(\w+) --> (\w+)")
STYLE = re.compile(r"classDef (\w+) fill:(#[0-9a-f]{6}),stroke:(#[0-9a-f]{6}),color:(#[0-9a-f]{6})")
TAG = re.compile(r"</?\w+/?>")
LINE, LETTER, GAP = 18, 7.4, 46
PLAIN = ("#f6f8fa", "#8c959f", "#1f2328")
MOST = 200


@dataclass(frozen=True)
class Box:
    """Where a node is drawn."""

    x: float
    y: float
    width: float
    height: float
    lines: tuple[str, ...]
    style: str


def draw_graph(source: str) -> str | None:
    """Return the SVG of a `graph LR`; None if its syntax is not supported."""
    head, *lines = [line.strip() for line in source.strip().split("\n")]
    nodes: dict[str, tuple[tuple[str, ...], str]] = {}
    edges: list[tuple[str, str]] = []
    styles: dict[str, tuple[str, ...]] = {}
    for line in lines:
        if match := NODE.fullmatch(line):
            nodes[match[1]] = (tuple(TAG.sub("", part) for part in match[2].split("<br/>")), match[3] or "")
        elif match := EDGE.fullmatch(line):
            edges.append((match[1], match[2]))
        elif match := STYLE.fullmatch(line):
            styles[match[1]] = match.groups()[1:]
        elif line:
            return None
    if head != "graph LR" or not 0 < len(nodes) <= MOST or any(end not in nodes for edge in edges for end in edge):
        return None
    return _render_svg(_place_nodes(nodes, edges), edges, styles)


def _place_nodes(nodes: dict[str, tuple[tuple[str, ...], str]], edges: list[tuple[str, str]]) -> dict[str, Box]:
    column = dict.fromkeys(nodes, 0)
    for _ in nodes:  # a child stands right of all its parents; a cycle ends with the last round
        for parent, child in edges:
            column[child] = min(max(column[child], column[parent] + 1), len(nodes))
    boxes: dict[str, Box] = {}
    x = 8.0
    for number in sorted(set(column.values())):
        column_names = [name for name in nodes if column[name] == number]
        width = max(len(line) for name in column_names for line in nodes[name][0]) * LETTER + 24
        y = 8.0
        for name in column_names:
            lines, style = nodes[name]
            boxes[name] = Box(x, y, width, LINE * len(lines) + 14, lines, style)
            y += boxes[name].height + 16
        x += width + GAP
    return boxes


def _render_svg(boxes: dict[str, Box], edges: list[tuple[str, str]], styles: dict[str, tuple[str, ...]]) -> str:
    wide = max(box.x + box.width for box in boxes.values()) + 8
    high = max(box.y + box.height for box in boxes.values()) + 8
    parts = [
        f'<svg class="graph" role="img" width="{wide:.0f}" height="{high:.0f}" viewBox="0 0 {wide:.0f} {high:.0f}">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#57606a"/></marker></defs>',
    ]
    for parent, child in edges:
        one, two = boxes[parent], boxes[child]
        x1, y1, x2, y2 = one.x + one.width, one.y + one.height / 2, two.x - 2, two.y + two.height / 2
        bend = f"M{x1:.0f},{y1:.0f} C{x1 + GAP / 2:.0f},{y1:.0f} {x2 - GAP / 2:.0f},{y2:.0f} {x2:.0f},{y2:.0f}"
        parts.append(f'<path d="{bend}" fill="none" stroke="#57606a" marker-end="url(#tip)"/>')
    for box in boxes.values():
        fill, stroke, colour = styles.get(box.style, PLAIN)
        parts.append(
            f'<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" rx="4" '
            f'fill="{fill}" stroke="{stroke}"/>'
        )
        for number, line in enumerate(box.lines, start=1):
            at = f'x="{box.x + box.width / 2:.0f}" y="{box.y + 4 + LINE * number:.0f}"'
            parts.append(f'<text {at} text-anchor="middle" fill="{colour}">{html.escape(line)}</text>')
    return "".join([*parts, "</svg>"])
