"""Unit tests for a person: how many passed, and for each failed one the expected beside the actual rows."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from mergeplan.planner.checks.diff.rows import RowDifference
from mergeplan.planner.checks.unit_test_result import OutputResult, TestResult
from mergeplan.planner.wording import count_noun

RULE = 70
MOST = 10  # rows of an output that are shown; all with -v


def show_tests(console: Console, results: Sequence[TestResult], seconds: float, *, verbose: bool) -> None:
    """Print the summary, and each failed test; with `verbose` each test's name and every differing row."""
    failed = [result for result in results if not result.ok]
    for result in results if verbose else ():
        mark, style = ("ok", "green") if result.ok else ("FAIL", "red")
        console.print(Text.assemble((f"{mark:<4} ", style), f"{result.test.path}::{result.test.name}"))
    console.print("=" * RULE)
    unchanged = sum(result.unchanged for result in results)
    unchanged_text = f" ({unchanged} unchanged since they passed)" if unchanged else ""
    if not failed and unchanged == len(results) > 0:
        console.print(f"{count_noun(len(results), 'test')} passed{unchanged_text}.")
    elif not failed and unchanged:
        console.print(f"{count_noun(len(results), 'test')} passed{unchanged_text} in {seconds:.1f} seconds.")
    elif not failed:
        console.print(f"{count_noun(len(results), 'test')} passed in {seconds:.1f} seconds.")
    else:
        console.print(f"{len(failed)} of {count_noun(len(results), 'test')} failed.", style="bold red")
    console.print("-" * RULE + "\n")
    for result in failed:
        console.print(Text(f"FAIL: {result.test.name} ({result.test.place})", style="bold red"))
        if result.test.description:
            console.print(Text(result.test.description, style="dim"))
        if result.error is not None:
            console.print(Text(str(result.error)), soft_wrap=True)
        for output in result.outputs:
            if not output.ok:
                _show_output(console, output, None if verbose else MOST)
        console.print()


def _show_output(console: Console, output: OutputResult, most: int | None) -> None:
    console.print(Text(f"Output `{output.output}` differs:"))
    remarks = [
        difference for difference in output.differences if difference.expected is None and difference.actual is None
    ]
    for difference in remarks:
        console.print(Text(difference.text), soft_wrap=True)
    rows = [difference for difference in output.differences if difference not in remarks]
    if rows:
        console.print(_difference_table(rows[:most]))
    if len(rows) > len(rows[:most]):
        console.print(f"and {count_noun(len(rows) - len(rows[:most]), 'row')} more; -v shows all")


def _difference_table(differences: Sequence[RowDifference]) -> Table:
    table = Table("", *map(escape, differences[0].columns))
    for difference in differences:
        if difference.expected is not None:
            mark = "missing" if difference.actual is None else "expected"
            table.add_row(
                Text(mark, style="green"),
                *_style_cells(difference, difference.expected, "green"),
                end_section=not difference.actual,
            )
        if difference.actual is not None:
            mark = "unexpected" if difference.expected is None else "actual"
            table.add_row(
                Text(mark, style="red"), *_style_cells(difference, difference.actual, "red"), end_section=True
            )
    return table


def _style_cells(difference: RowDifference, row: Sequence[object], style: str) -> list[Text]:
    return [
        Text("NULL" if cell is None else str(cell), style=f"bold {style}" if name in difference.differing else "dim")
        for name, cell in zip(difference.columns, row, strict=True)
    ]
