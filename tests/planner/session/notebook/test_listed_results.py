"""What a session lists is data that shows itself as a table, at a prompt and in a notebook."""

from __future__ import annotations

from datetime import UTC, datetime
from xml.etree import ElementTree

from mergeplan.planner.checks.diff.table_diff import RowDiff, Samples, SchemaDiff, TableDiff
from mergeplan.planner.engine.protocol import Rows
from mergeplan.planner.session.notebook.listed_results import Environments, FetchedRows, History, TableDiffs
from mergeplan.planner.session.session import Session
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.state.environments import HistoryAction, Revision

AT = datetime(2026, 11, 25, 3, 4, 5, tzinfo=UTC)


def cells(html: str) -> list[str]:
    """The texts of a part's cells; what is not closed or not escaped fails."""
    return ["".join(cell.itertext()) for cell in ElementTree.fromstring(html).iter("td")]  # noqa: S314  # our own text


def test_rows_are_aligned_below_their_columns_and_escaped_in_a_notebook() -> None:
    rows = FetchedRows(("id", "name"), ((1, "<b>"), (20, None), (3, "two\nlines")))

    assert repr(rows).splitlines() == ["3 rows", "id  name", "1   <b>", "20  NULL", "3   two\\nlines"]
    assert cells(rows._repr_html_()) == ["1", "<b>", "20", "NULL", "3", "two\nlines"]
    assert "&lt;b&gt;" in rows._repr_html_()
    assert rows == FetchedRows(rows.columns, rows.rows)


def test_of_many_rows_the_first_are_shown_and_the_others_counted() -> None:
    rows = FetchedRows(("id",), tuple((n,) for n in range(2_000)))

    assert repr(rows).splitlines()[-2:] == ["19", "... and 1,980 more"]
    assert "... and 1,900 more" in rows._repr_html_()
    assert len(cells(rows._repr_html_())) == 100


def test_environments_and_revisions_are_tuples_without_empty_columns() -> None:
    prod = Environment("prod", revision=3, plan_id="ab12", promoted_at=AT, views=frozenset({"s.a"}))
    past = Revision("prod", 3, HistoryAction.PROMOTED, {"s.a": "x"}, frozenset(), "ab12", "ann", AT, "")

    assert Environments([prod]) == (prod,)
    assert repr(Environments([prod])).split("\n")[1].split() == (
        ["Environment", "Models", "Views", "Revision", "Plan", "Promoted", "(UTC)"]
    )
    assert cells(History([past])._repr_html_()) == ["3", "promoted", "ab12", "2026-11-25 03:04:05", "1", "ann"]
    assert repr(History()) == "0 revisions"


def test_differences_of_tables_show_counts_and_the_sampled_rows() -> None:
    samples = Samples(changed=Rows(("id", "s__x", "t__x"), ((1, 5, None),)))
    rows = RowDiff((10, 12), (0, 2), 10, 1, (("x", 1), ("y", 0)))
    diff = TableDiff(("prod", "dev"), ("id",), SchemaDiff(added=(("z", "INT"),)), rows, samples, "s.a")

    shown = TableDiffs([diff])

    assert cells(shown._repr_html_()) == [
        "s.a: prod and dev", "+ z INT", "10 → 12", "1 changed, 2 in dev only", "x (1)", "1", "5", "NULL"
    ]  # fmt: skip
    assert "<th>prod: x</th><th>dev: x</th>" in shown._repr_html_()
    assert repr(TableDiffs([])) == "No table differs."


def test_a_session_lists_what_shows_itself(offline: Session) -> None:
    assert repr(offline.environments()) == "0 environments"
    assert "<b>0 environments</b>" in offline.environments()._repr_html_()
