"""lineage: what is made from what, column by column, as text, JSON, Mermaid or a page."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from mergeplan.planner.cli.terminal import WIDE
from mergeplan.planner.cli.texts.line_tree import LineTree
from mergeplan.planner.cli.verbs.dag import quote_mermaid
from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.model.model import Model
from mergeplan.planner.project.lineage import ALL, ROWS, How, Lineage, Node
from mergeplan.planner.session.use_cases.lineage import find_lineage

UP = {How.MADE_FROM: "made from ", How.DECIDES_ROWS: "decided by ", How.EVERY_COLUMN: "perhaps from "}
DOWN = {How.MADE_FROM: "goes into ", How.DECIDES_ROWS: "decides ", How.EVERY_COLUMN: "perhaps goes into "}
ARROWS = {How.MADE_FROM: "-->", How.DECIDES_ROWS: "-.->", How.EVERY_COLUMN: "==>"}


@click.command()
@click.argument("target", metavar="MODEL[.COLUMN]", required=False)
@click.option("--downstream", is_flag=True, help="Show what is made from it (downstream), not its sources.")
@click.option("--unused-columns", is_flag=True, help="List the columns that nothing needs; of MODEL, or of all.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json", "mermaid", "html"]), default="text", help="How to draw it."
)
@click.option("--to", "path", metavar="FILE", type=click.Path(path_type=Path), help="Write it to this file.")
@workspace
def lineage(target: str | None, path: Path | None, root: Path, gateway: str | None, **option_values: Any) -> int:
    """Show the sources of MODEL or of one COLUMN, and the columns that decide its rows.

    \b
    mergeplan lineage shop.orders
    mergeplan lineage shop.orders.amount
    mergeplan lineage shop.orders.amount --downstream
    mergeplan lineage shop.orders.amount -o mermaid
    mergeplan lineage shop.orders -o html --to lineage.html
    mergeplan lineage --unused-columns
    """
    output, downstream = option_values["output"], option_values["downstream"]
    with open_workspace(root, gateway) as work:
        if option_values["unused_columns"]:
            from mergeplan.planner.cli.verbs.unused_columns import print_unused_columns  # with the whole catalog

            return print_unused_columns(work, target, output, path)
        if target is None:
            raise click.UsageError("Missing argument 'MODEL[.COLUMN]'.", click.get_current_context())
        models, column_lineage = work.project.models, find_lineage(work, target, downstream=downstream)
    if output == "text" and path is None:
        console = Console(highlight=False)
        _print_tree(console if console.is_terminal else Console(highlight=False, width=WIDE), column_lineage, models)
        return 0
    draw = {"json": lineage_json, "mermaid": lambda item, _: lineage_mermaid(item), "html": _lineage_page}
    if path is None:
        click.echo(draw[output](column_lineage, models))
    elif output == "text":
        with path.open("w", encoding="utf-8") as file:
            _print_tree(Console(file=file, highlight=False, width=WIDE), column_lineage, models)
    else:
        path.write_text(f"{draw[output](column_lineage, models)}\n", encoding="utf-8")
    return 0


def _print_tree(console: Console, lineage_found: Lineage, models: Mapping[str, Model]) -> None:
    console.print(lineage_tree(lineage_found, models))
    if not lineage_found.edges:
        console.print("Nothing is made from it." if lineage_found.downstream else "It is made from nothing else.")
    for model, reason in lineage_found.unfollowed:
        console.print(Text(f"`{model}` is not followed column by column: {reason}.", style="yellow"), soft_wrap=True)
    unfollowed = [models[model] for model, _ in lineage_found.unfollowed if model in models]
    if any(name not in models for model in unfollowed for name in model.depends_on):
        console.print("`mergeplan create_external_models` asks Spark for the columns of tables that no file defines.")


def lineage_tree(lineage_found: Lineage, models: Mapping[str, Model]) -> LineTree:
    """Return the lineage as a tree; a node that occurs several times is expanded only the first time."""
    words = DOWN if lineage_found.downstream else UP
    near = "source" if lineage_found.downstream else "target"
    edges: dict[Node, list[tuple[str, Node]]] = {}
    for edge in lineage_found.edges:
        far = edge.target if lineage_found.downstream else edge.source
        edges.setdefault(getattr(edge, near), []).append((words[edge.how], far))
    lineage_node = Node(lineage_found.model, lineage_found.column or ALL)
    tree = LineTree(
        _node_label("", lineage_node, models)
        if lineage_found.column
        else Text.assemble(lineage_found.model, _kind_text(lineage_found.model, models))
    )
    shown: set[Node] = set()
    waiting: list[tuple[LineTree, str, Node]] = []
    for start in reversed(lineage_found.starts):
        if start != lineage_node:
            waiting += [(tree, "", start)] if start.column != ROWS or start in edges else []
        else:
            waiting += [(tree, word, node) for word, node in reversed(edges.get(start, []))]
    while waiting:
        above, word, node = waiting.pop()
        is_repeated = node in shown and node in edges
        inside = not word and node.model == lineage_found.model
        label = Text(_short_name(node)) if inside else _node_label(word, node, models)
        branch = above.add(label.append(" (as above)", "dim") if is_repeated else label)
        shown.add(node)
        if not is_repeated:
            waiting += [(branch, edge_word, child) for edge_word, child in reversed(edges.get(node, []))]
    return tree


def lineage_json(lineage_found: Lineage, models: Mapping[str, Model]) -> str:
    from mergeplan.planner.contract.from_tables import lineage_result  # which no person reads
    from mergeplan.planner.contract.wire import serialize_line

    return serialize_line(lineage_result(lineage_found, models))


def _lineage_page(lineage_found: Lineage, models: Mapping[str, Model]) -> str:
    from mergeplan.planner.session.notebook.lineage_page import lineage_html  # few draw one

    return lineage_html(lineage_found, models)


def lineage_mermaid(lineage_found: Lineage) -> str:
    """Return the lineage as a flowchart of models; dotted arrows decide rows, and thick ones are not followed."""
    ids = {node: f"n{number}" for number, node in enumerate(lineage_found.nodes)}
    lines = ["flowchart LR"]
    for number, model in enumerate(dict.fromkeys(node.model for node in ids)):
        lines.append(f'  subgraph m{number}["{quote_mermaid(model)}"]')
        for node in (node for node in ids if node.model == model):
            ends = "[]" if node.column not in (ROWS, ALL) else "()"
            lines.append(f'    {ids[node]}{ends[0]}"{quote_mermaid(_short_name(node))}"{ends[1]}')
        lines.append("  end")
    lines += [f"  {ids[edge.source]} {ARROWS[edge.how]} {ids[edge.target]}" for edge in lineage_found.edges]
    return "\n".join(lines)


def _node_label(word: str, node: Node, models: Mapping[str, Model]) -> Text:
    name = {ROWS: f"the rows of {node.model}", ALL: f"every column of {node.model}"}.get(node.column)
    kind = _kind_text(node.model, models) if node.model not in models or not models[node.model].kind.has_query else ""
    return Text.assemble((word, "dim"), name or f"{node.model}.{node.column}", (kind, "dim"))


def _short_name(node: Node) -> str:
    return {ROWS: "its rows", ALL: "every column"}.get(node.column, node.column)


def _kind_text(model: str, models: Mapping[str, Model]) -> str:
    return f" ({models[model].kind})" if model in models else " (no model)"
