"""What audits find, and what changes do to rows and physical plans, is data that shows itself as a table."""

from __future__ import annotations

from mergeplan.planner.checks.audits import AuditResult
from mergeplan.planner.checks.diff.data_diff import ModelDiff
from mergeplan.planner.checks.diff.table_diff import RowDiff, Samples, SchemaDiff
from mergeplan.planner.checks.physical_diff import Cost, PhysicalChange, PhysicalDiff
from mergeplan.planner.engine.protocol import Rows
from mergeplan.planner.errors import Place
from mergeplan.planner.session.notebook.check_results import AuditResults, DataDiffs, PhysicalDiffs
from tests.planner.session.notebook.test_listed_results import cells


def test_differences_of_models_show_counts_and_the_sampled_rows() -> None:
    rows = RowDiff((10, 9), (2, 1), 8, 1, (("x", 1),))
    samples = Samples(only_first=Rows(("id", "x"), ((1, "<b>"), (2, None))))
    diff = ModelDiff("s.a", SchemaDiff(added=(("z", "INT"),)), (), (10, 9), rows, ("id",), samples=samples)
    large = ModelDiff("s.b", SchemaDiff(), (), (5_000_000, 5), note="more rows than 1,000 are not compared")

    shown = DataDiffs([diff, large])

    assert shown == (diff, large)
    assert repr(shown).startswith("1 model compared, 1 not")
    assert cells(shown._repr_html_()) == [
        "s.a", "+ z INT", "10 → 9", "1 changed, 2 gone, 1 new", "x (1)", "by id",
        "s.b", "", "5,000,000 → 5", "not compared", "", "more rows than 1,000 are not compared",
        "1", "<b>", "2", "NULL",
    ]  # fmt: skip
    assert repr(DataDiffs()) == "No table differs from prod's."


def test_audits_show_which_failed_where_and_the_rows() -> None:
    bad = AuditResult("not_null", "s.a", True, 1, Rows(("id",), ((None,),)), "SELECT 1", Place("models/a.sql", 4))
    kept = AuditResult("unique_values", "s.a", True, 0, Rows(("id",), ()), "SELECT 2", Place("models/a.sql", 5))

    shown = AuditResults([bad, kept])

    assert repr(shown).splitlines()[0] == "2 audits ran, 1 failed"
    assert cells(shown._repr_html_()) == [
        "not_null", "s.a", "failed", "1", "models/a.sql:4",
        "unique_values", "s.a", "passed", "", "models/a.sql:5",
        "NULL",
    ]  # fmt: skip


def test_changes_of_physical_plans_are_sentences_and_what_was_not_compared_says_why() -> None:
    worse = PhysicalDiff("s.a", (PhysicalChange(Cost.SHUFFLE, 1, 2),))
    shown = PhysicalDiffs([worse, PhysicalDiff("s.b", note="not compared")])

    assert repr(shown).splitlines()[0] == "2 queries explained before and after"
    assert cells(shown._repr_html_()) == [
        "s.a",
        "rows are shuffled twice; before, once.",
        "s.b",
        "not compared",
    ]
