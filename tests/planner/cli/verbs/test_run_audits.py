"""`run` on a real Spark: audits of a table that was left as it is run again only where they may find something else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.planner.cli.conftest import CommandLine, Ran
from tests.planner.cli.verbs.test_run import run_at

Shop = Callable[..., CommandLine]
TOP = """MODEL (name shop.top, kind FULL, audits (
  not_null(columns := (price)), no_gap(), dated(), seen_before(), chancy(), high(blocking := false)
));
SELECT max(price) AS price FROM shop.items"""
AUDITS = """;
AUDIT (name no_gap);
SELECT * FROM @this_model LEFT ANTI JOIN shop.items USING (price);
AUDIT (name dated);
SELECT * FROM @this_model WHERE @execution_ds < '2020-01-01';
AUDIT (name seen_before);
SELECT * FROM shop.seen WHERE price < 0;
AUDIT (name chancy);
SELECT * FROM @this_model WHERE rand() > 2;
AUDIT (name high);
SELECT * FROM @this_model WHERE price > 1;
"""
SEEN = "MODEL (name shop.seen, kind VIEW);\nSELECT price FROM shop.daily"


def reused(ran: Ran) -> dict[str, bool]:
    """Audit of `shop.top` -> whether it was not run."""
    assert ran.code == 0, ran.out + ran.err
    rows = (line for line in ran.lines if line["event"] == "audit" and line["model"] == "shop.top")
    return {row["name"]: bool(row.get("unchanged")) for row in rows}


@pytest.fixture
def mergeplan(shop: Shop) -> CommandLine:
    opened = shop(shown="", apart="", total="", top=TOP + AUDITS, seen=SEEN)
    assert opened("plan", "--auto-apply", "--execution-time", "2026-01-06 05:00:00").code == 0
    return opened


def test_a_pass_that_still_holds_is_reused_and_told(mergeplan: CommandLine) -> None:
    none = dict.fromkeys(("not_null", "no_gap", "dated", "seen_before", "chancy", "high"), False)
    assert reused(run_at(mergeplan, "2026-01-07 05:00:00")) == none

    again = run_at(mergeplan, "2026-01-08 05:00:00")

    assert reused(again) == {**none, "not_null": True, "no_gap": True}
    (batch,) = [line for line in again.lines if line["event"] == "batch" and line["model"] == "shop.top"]
    assert batch["audits_unchanged"] == 2
    history = mergeplan("audit", "--history", "--output", "json", "--model", "shop.top").result["audit_history"]
    assert sum(row["audit"] == "not_null" for row in history) == 2  # those that ran
    assert "2 audits unchanged" in mergeplan("run", "--execution-time", "2026-01-09 05:00:00").out


@pytest.mark.prove
def test_a_written_table_or_an_edited_audit_runs_anew(mergeplan: CommandLine) -> None:
    run_at(mergeplan, "2026-01-07 05:00:00")
    at = ("--auto-apply", "--execution-time", "2026-01-07 06:00:00")
    assert mergeplan("plan", "--restate-model", "shop.top", "--start", "2026-01-01", *at).code == 0
    assert not any(reused(run_at(mergeplan, "2026-01-08 05:00:00")).values())
    assert reused(run_at(mergeplan, "2026-01-09 05:00:00"))["no_gap"] is True

    mergeplan.write("models/top.sql", TOP + AUDITS.replace("USING (price)", "ON true"))
    at = ("--auto-apply", "--execution-time", "2026-01-09 06:00:00")
    assert mergeplan("plan", *at).code == 0
    assert reused(run_at(mergeplan, "2026-01-10 05:00:00"))["no_gap"] is False


@pytest.mark.prove
def test_audit_skips_what_is_unchanged_when_asked(mergeplan: CommandLine) -> None:
    skipping = ("audit", "--model", "shop.top", "--skip-unchanged")
    assert not any(reused(mergeplan(*skipping, "--output", "json")).values())

    again = mergeplan(*skipping, "--output", "json")

    assert [name for name, same in reused(again).items() if same] == ["not_null", "no_gap", "dated"]  # of the same day
    assert again.result["audit_counts"] == {"passed": 5, "failed": 1, "unchanged": 3}
    assert "3 audits ran, 1 failed, 3 unchanged since they passed." in mergeplan(*skipping).out
    assert not any(reused(mergeplan("audit", "--model", "shop.top", "--output", "json")).values())
