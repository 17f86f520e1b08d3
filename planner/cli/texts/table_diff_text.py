"""Differences between two tables, for a person."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from mergeplan.planner.checks.diff.table_diff import TableDiff
from mergeplan.planner.engine.protocol import Rows
from mergeplan.planner.session.notebook.listing import cell_text


def show_diff(console: Console, diff: TableDiff) -> None:
    first, second = diff.names
    of = f" for {diff.model}" if diff.model else ""
    console.print(Text(f"{first} and {second}{of}", style="bold"))
    console.print(_schema_tree(diff))
    console.print(_rows_tree(diff))
    for remark in _list_remarks(diff):
        console.print(Text(remark, style="yellow"), soft_wrap=True)
    differing = [(name, count) for name, count in diff.rows.columns if count]
    if differing:
        table = Table("column", "rows that differ", "% that match", title="Rows in both", title_justify="left")
        for name, count in differing:
            table.add_row(escape(name), str(count), _format_percent(diff.rows.common - count, diff.rows.common))
        console.print(table)
    sorts = {
        "Rows that differ": diff.samples.changed,
        f"Rows in {first} only": diff.samples.only_first,
        f"Rows in {second} only": diff.samples.only_second,
    }
    for title, rows in sorts.items():
        if rows.rows:
            console.print(_sample_table(title, rows, diff))
    console.print()


def _schema_tree(diff: TableDiff) -> Tree:
    tree = Tree("Schema")
    if diff.schema.same:
        tree.add("the same")
    for name, kind in diff.schema.added:
        tree.add(Text(f"+ {name} {kind}", style="green"))
    for name, kind in diff.schema.removed:
        tree.add(Text(f"- {name} {kind}", style="red"))
    for name, old, new in diff.schema.retyped:
        note = " (not compared)" if name in diff.schema.uncompared else ""
        tree.add(Text(f"~ {name} {old} -> {new}{note}", style="yellow"))
    return tree


def _rows_tree(diff: TableDiff) -> Tree:
    rows, (first, second) = diff.rows, diff.names
    if diff.same_files:
        return Tree("Rows: the same, as both are the same files; none was read")
    tree = Tree(f"Rows: {rows.counts[0]} in {first}, {rows.counts[1]} in {second}")
    if rows.same:
        tree.add(f"the same: {rows.common}")
        return tree
    tree.add(f"in both: {rows.common}, of which {rows.matched} match ({_format_percent(rows.matched, rows.common)} %)")
    tree.add(f"in {first} only: {rows.only[0]}")
    tree.add(f"in {second} only: {rows.only[1]}")
    return tree


def _list_remarks(diff: TableDiff) -> list[str]:
    remarks = []
    if not diff.key and not diff.rows.same:
        remarks.append("Whole rows were compared, since there is no key: give `grain` in MODEL, or --on.")
    for name, count in zip(diff.names, diff.rows.null_keys, strict=True):
        if count and diff.key:
            remarks.append(f"In {name} the key of {count} rows holds a NULL; NULL equals NULL here.")
    for name, count in zip(diff.names, diff.rows.duplicate_keys, strict=True):
        if count and diff.key:
            remarks.append(f"In {name} {count} keys have several rows; their rows were paired one by one.")
    return remarks


def _sample_table(title: str, rows: Rows, diff: TableDiff) -> Table:
    """Return rows as a table; of changed rows, columns that are equal in all of them are left out."""
    names = [name.replace("s__", f"{diff.names[0]}: ", 1).replace("t__", f"{diff.names[1]}: ", 1)
             if title == "Rows that differ" and name not in diff.key else name for name in rows.columns]  # fmt: skip
    shown_columns = [
        n for n, name in enumerate(rows.columns) if name in diff.key or not _is_equal_column(rows, n, diff)
    ]
    table = Table(*(escape(names[n]) for n in shown_columns), title=escape(title), title_justify="left")
    for row in rows.rows:
        table.add_row(*(Text(cell_text(row[n])) for n in shown_columns))
    return table


def _is_equal_column(rows: Rows, index: int, diff: TableDiff) -> bool:
    twin = index + (1 if rows.columns[index].startswith("s__") else -1)
    paired = rows is diff.samples.changed
    return paired and all(row[index] == row[twin] for row in rows.rows)


def _format_percent(part: int, whole: int) -> str:
    """Return a percentage with one decimal, and 100.0 only if it is all."""
    share = 100 * part / whole if whole else 100.0
    return f"{min(share, 99.9) if part < whole else share:.1f}"
