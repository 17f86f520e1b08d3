"""What edits do to physical plans, explained by a real Spark: only the edit counts, and nothing is computed for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mergeplan.planner.checks.physical_diff import Cost, PhysicalChange, PhysicalDiff
from mergeplan.planner.errors import RequestError
from mergeplan.planner.session.session import Session
from mergeplan.planner.session.use_cases import physical_plan

ALONE = dict.fromkeys(("shown", "apart", "total"), "")
NAMES = "MODEL (name shop.names, kind FULL);\nSELECT id, concat('n', id) AS name FROM shop.items"
DAYS = "SELECT id, day, price FROM shop.daily WHERE day BETWEEN @start_date AND @end_date"
JOINED = "SELECT d.id, d.price, n.name FROM shop.daily AS d JOIN shop.names AS n ON d.id = n.id"
RANKED = "SELECT id, row_number() OVER ({} ORDER BY price) AS n FROM shop.daily"
SETTING = "SET spark.sql.autoBroadcastJoinThreshold = -1;\n"
# model -> its query before and after, and what is reported: nothing where Spark does the same
EDITS: Mapping[str, tuple[str, str, PhysicalChange | None]] = {
    "report": (
        DAYS, DAYS.replace("day B", "date_add(day, 0 * id) B"),
        PhysicalChange(Cost.PRUNING, 0, 1, ("shop.daily",), ("day",)),
    ),
    "pairs": (
        JOINED, JOINED.replace("ON d.id = n.id", ""),
        PhysicalChange(Cost.CARTESIAN_PRODUCT, 0, 1, ("shop.daily", "shop.names")),
    ),
    "loops": (
        JOINED, JOINED.replace("= n.id", "< n.id"),
        PhysicalChange(Cost.NESTED_LOOP_JOIN, 0, 1, ("shop.daily", "shop.names")),
    ),
    "hinted": (
        JOINED, JOINED.replace("SELECT d", "SELECT /*+ MERGE(n) */ d"),
        PhysicalChange(Cost.BROADCAST, 0, 1, ("shop.names",)),
    ),
    "setting": (JOINED, SETTING + JOINED, PhysicalChange(Cost.BROADCAST, 0, 1, ("shop.names",))),
    "ranked": (
        RANKED.format("PARTITION BY day"), RANKED.format(""),
        PhysicalChange(Cost.ONE_TASK, 0, 1, ("shop.daily",)),
    ),
    "grouped": (
        "SELECT id, price FROM shop.daily", "SELECT id, price FROM shop.daily GROUP BY id, price",
        PhysicalChange(Cost.SHUFFLE, 0, 1, (), ("id", "price")),
    ),
    "whole": (
        "SELECT id FROM shop.daily WHERE price > 3", "SELECT id FROM shop.daily",
        PhysicalChange(Cost.FILTER, 0, 1, ("shop.daily",)),
    ),
    "better": (
        "SELECT DISTINCT id FROM shop.daily", "SELECT id FROM shop.daily",
        PhysicalChange(Cost.SHUFFLE, 1, 0, (), ("id",)),
    ),
    "renamed": (JOINED, JOINED.replace("AS d", "AS x").replace("d.", "x.").replace("n.name", "n.name AS label"), None),
    "shifted": (
        RANKED.format("PARTITION BY day"),
        RANKED.format("PARTITION BY day").replace("AS n", "AS rank").replace("SELECT id", "SELECT id + 1 AS id"), None,
    ),
}  # fmt: skip


def model(name: str, query: str, kind: str = "VIEW") -> str:
    kind = {"report": "INCREMENTAL_BY_TIME_RANGE (time_column day)", "setting": "FULL"}.get(name, kind)
    return f"MODEL (name shop.{name}, kind {kind});\n{query}"


def edit_in_dev(session: Session, folder: Path, **files: str) -> dict[str, PhysicalDiff]:
    """Prod is built, these models are edited in `dev`; what that does to physical plans, by model."""
    session.plan().apply()
    for stem, text in files.items():
        (folder / f"models/{stem}.sql").write_text(text)
    session.plan("dev").apply()
    return {diff.model: diff for diff in session.physical_plan("dev")}


@pytest.mark.prove
def test_an_edit_that_makes_a_query_expensive_is_reported(shop: Callable[..., Session], tmp_path: Path) -> None:
    """Behaviour 47: what an edit makes Spark do is known before it is merged; of what it does alike nothing is."""
    before = {name: model(name, old) for name, (old, _, _) in EDITS.items()}
    after = {name: model(name, new) for name, (_, new, _) in EDITS.items()}
    session = shop(**ALONE | {"names": NAMES, "untouched": model("untouched", JOINED)} | before)
    diffs = edit_in_dev(session, tmp_path, **after)

    reported = {f"shop.{name}": (change,) if change else () for name, (_, _, change) in EDITS.items()}
    assert {name: diff.note for name, diff in diffs.items()} == dict.fromkeys(reported, "")
    assert {name: diff.changes for name, diff in diffs.items()} == reported


@pytest.mark.prove
def test_an_edited_view_is_compared_with_those_that_read_it_and_their_tables_are_the_same(
    shop: Callable[..., Session], tmp_path: Path
) -> None:
    """A view, and an embedded model, stands as its query in its readers; tables that were built anew count for both."""
    reader = "SELECT id FROM shop.{} WHERE day = DATE '2026-01-02'"
    view, inline = "SELECT id, day FROM shop.daily", "SELECT id, day, price FROM shop.daily"
    files = {"v": model("v", view, "VIEW"), "e": model("e", inline, "EMBEDDED"),
             "of_v": model("of_v", reader.format("v"), "FULL"),
             "of_e": model("of_e", reader.format("e"), "FULL")}  # fmt: skip
    session = shop(**ALONE | files)
    diffs = edit_in_dev(
        session, tmp_path,
        daily=(tmp_path / "models/daily.sql").read_text().replace("price FROM", "2 * price AS price FROM"),
        v=model("v", view.replace(", day", ", date_add(day, 0 * id) AS day"), "VIEW"),
        e=model("e", f"{inline} WHERE price > 0", "EMBEDDED"),
    )  # fmt: skip

    assert {name: [change.cost for change in diff.changes] for name, diff in diffs.items()} == {
        "shop.daily": [], "shop.of_e": [], "shop.of_v": [Cost.PRUNING], "shop.v": [],
    }  # fmt: skip


@pytest.mark.prove
def test_what_cannot_be_compared_is_noted_and_nothing_is_computed(
    shop: Callable[..., Session], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"old": "SELECT id, name FROM shop.names", "says": "SELECT id FROM shop.names", "third": "SELECT 1 AS x"}
    session = shop(**ALONE | {"names": NAMES} | {name: model(name, query) for name, query in files.items()})
    monkeypatch.setattr(physical_plan, "MOST", 3)
    diffs = edit_in_dev(
        session, tmp_path,
        names=NAMES.replace("AS name", "AS label"),
        old=model("old", "SELECT id, label AS name FROM shop.names"),
        says=model("says", "DECLARE x INT DEFAULT 3;\nSELECT id + 1 AS id FROM shop.names"),
        third=model("third", "SELECT 2 AS x"),
    )  # fmt: skip

    assert {name: diff.note for name, diff in diffs.items()} == {
        "shop.names": "",
        "shop.old": "not compared: Spark does not explain its old query here",
        "shop.says": "not compared: a statement before its query computes something",
        "shop.third": "not compared: only the 3 largest models are",
    }
    monkeypatch.setattr(physical_plan, "SECONDS", 0.0)
    assert {diff.note for diff in session.physical_plan("dev") if diff.model == "shop.names"} == {
        "not compared: the 0 seconds for it were over"
    }
    assert "<td>not compared: the 0 seconds for it were over</td>" in session.physical_plan("dev")._repr_html_()
    with pytest.raises(RequestError, match="no environment `test`"):
        session.physical_plan("test")
