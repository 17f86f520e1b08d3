"""dag: the graph of models as text, JSON, Mermaid or a page."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import click

from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.model.graph import graph_of
from mergeplan.planner.model.model import Model
from mergeplan.planner.session.use_cases.git_changes import select_by_request
from mergeplan.planner.wording import count_noun

LETTER, SMALL, BOX, APART, BESIDE = 8, 7, 44, 64, 18  # of the page's drawing, in pixels
STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --dim: #656d76; --line: #8c959f; --page: #fff; --box: #f6f8fa }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --dim: #8d96a0; --line: #6e7681; --page: #0d1117; --box: #161b22 } }
body { margin: 24px; background: var(--page); color: var(--ink); font: 14px/1.5 system-ui, sans-serif }
h1 { font-size: 18px } p { color: var(--dim) } div { overflow: auto } text { fill: var(--ink) }
text { font: 13px/1 ui-monospace, Menlo, Consolas, monospace } text + text { font-size: 10px; fill: var(--dim) }
rect { fill: var(--box); stroke: #0969da; stroke-width: 1.5 } g:hover rect { stroke-width: 3 }
path { fill: none; stroke: var(--line); stroke-width: 1.5 }
.SEED rect, .EXTERNAL rect { stroke: #1a7f37 } .VIEW rect { stroke: #8250df; stroke-dasharray: 5 3 }
.EMBEDDED rect { stroke: var(--line); stroke-dasharray: 2 3 } .INCREMENTAL_BY_TIME_RANGE rect { stroke: #bc4c00 }
"""


@click.command()
@click.argument("selection", nargs=-1)
@click.option("--select", "selectors", multiple=True, help="Only these models; the same as SELECTION.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "mermaid", "json", "html"]), default="text", help="How to draw it."
)
@click.option("--to", "path", metavar="FILE", type=click.Path(path_type=Path), help="Write it to this file.")
@workspace
def dag(
    selection: tuple[str, ...],
    selectors: tuple[str, ...],
    output: str,
    path: Path | None,
    root: Path,
    gateway: str | None,
) -> int:
    """Draw the graph of models, or of a SELECTION: names, globs, tag:x, git:x, +up, down+, &, |, ^.

    \b
    mergeplan dag
    mergeplan dag +shop.orders+ --output mermaid
    mergeplan dag --output html --to graph.html
    """
    with open_workspace(root, gateway) as work:
        graph = graph_of(work.project.models)
    all_selectors = (*selection, *selectors)
    chosen = select_by_request(work.project, all_selectors, graph) if all_selectors else frozenset(graph.order)
    order = [name for name in graph.order if name in chosen]
    parents = {name: [p for p in graph.parents[name] if p in chosen] for name in order}
    models = {name: graph.models[name] for name in order}
    draw = {"text": dag_text, "json": dag_json, "mermaid": dag_mermaid, "html": dag_html}[output]
    text = draw(models, parents)
    whole = f"{text}\n" if text else ""
    if path is not None:
        path.write_text(whole, encoding="utf-8")
    else:
        click.echo(whole, nl=False)
    return 0


def dag_text(models: Mapping[str, Model], parents: Mapping[str, Sequence[str]]) -> str:
    reads = {name: f"  <- {', '.join(parents[name])}" if parents[name] else "" for name in models}
    return "\n".join(f"{name} ({_kind_of(model)}){reads[name]}" for name, model in models.items())


def _kind_of(model: Model) -> str:
    return f"{model.kind} by {model.materialization}" if model.materialization else str(model.kind)


def dag_json(models: Mapping[str, Model], parents: Mapping[str, Sequence[str]]) -> str:
    from mergeplan.planner.contract.result import GraphNode, ResultLine  # which no person reads
    from mergeplan.planner.contract.wire import serialize_line

    nodes = tuple(GraphNode(name=name, parents=tuple(parents[name])) for name in models)
    kinds = {name: str(model.kind) for name, model in models.items()}
    return serialize_line(ResultLine(ok=True, models=nodes, kinds=kinds))


def dag_mermaid(models: Mapping[str, Model], parents: Mapping[str, Sequence[str]]) -> str:
    """Return the graph as Mermaid's text; a model without a query is a cylinder."""
    ids = {name: f"m{number}" for number, name in enumerate(models)}
    lines = ["graph LR"]
    for name, model in models.items():
        text = f'"{quote_mermaid(name)}"'
        lines.append(f"  {ids[name]}[({text})]" if not model.kind.has_query else f"  {ids[name]}[{text}]")
        lines += [f"  {ids[parent]} --> {ids[name]}" for parent in parents[name]]
    return "\n".join(lines)


def dag_html(models: Mapping[str, Model], parents: Mapping[str, Sequence[str]]) -> str:
    width = {name: max(LETTER * len(name), SMALL * len(model.kind)) + 24 for name, model in models.items()}
    places = _place_boxes(parents, width)
    paths, boxes = [], []
    for name, model in models.items():
        x, y = places[name]
        for parent in parents[name]:
            start_x, start_y = places[parent][0] + width[parent], places[parent][1] + BOX // 2
            bend, middle = (start_x + x) // 2, y + BOX // 2
            paths.append(f'<path d="M{start_x} {start_y} C{bend} {start_y} {bend} {middle} {x} {middle}"/>')
        about = f"<title>{escape(model.metadata.description or model.path)}</title>"
        box = f'<rect x="{x}" y="{y}" width="{width[name]}" height="{BOX}" rx="6"/>'
        title = f'<text x="{x + 12}" y="{y + 19}">{escape(name)}</text>'
        kind = f'<text x="{x + 12}" y="{y + 34}">{model.kind}</text>'
        boxes.append(f'<g class="{model.kind}">{about}{box}{title}{kind}</g>')
    right = max((places[name][0] + width[name] for name in models), default=0) + 2
    low = max((y for _, y in places.values()), default=0) + BOX + 2
    legend = f"{count_noun(len(models), 'model')}. A line leads from a model to one that reads it, on its right."
    head = f'<meta charset="utf-8"><title>Models</title><style>{STYLE}</style>'
    drawn = "\n".join((f'<div><svg width="{right}" height="{low}">', *paths, *boxes, "</svg></div>"))
    body = f"<h1>Models</h1><p>{legend}</p>\n{drawn}"
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{body}</body></html>'


def _place_boxes(parents: Mapping[str, Sequence[str]], width: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Return the corner of each box: in columns by the distance from the start, beside its parents."""
    depth: dict[str, int] = {}
    for name in parents:
        depth[name] = max((depth[parent] + 1 for parent in parents[name]), default=0)
    places: dict[str, tuple[int, int]] = {}
    x = 2
    for level in range(max(depth.values(), default=-1) + 1):
        column = [name for name in parents if depth[name] == level]
        column.sort(key=lambda name: sum(places[p][1] for p in parents[name]) / max(len(parents[name]), 1))
        places |= {name: (x, 2 + row * (BOX + BESIDE)) for row, name in enumerate(column)}
        x += max(width[name] for name in column) + APART
    return places


def quote_mermaid(text: str) -> str:
    return re.sub(r'["#&<>\x00-\x1f]', lambda match: f"#{ord(match[0])};", text)
