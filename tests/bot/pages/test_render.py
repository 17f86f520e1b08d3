"""The pages: each in every state, inert whatever they quote, and readable however much there is."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from mergeplan.bot.pages.links import PAGES
from mergeplan.bot.pages.render import headers, render_page
from mergeplan.bot.pages.text import render_foreign, render_sentence
from mergeplan.bot.pages.view import RUNNING, Decision, PageView
from mergeplan.bot.readers.impact import ReaderSummary, Reading
from mergeplan.bot.records import ProdRecord, PullRecord, PullState
from mergeplan.bot.report.shown import Shown
from mergeplan.planner.site.progress import ModelProgress, RunProgress, Step
from tests.bot.report.test_comment import run_lines, show

EVIL = "@team <img src=x onerror=alert(1)> [a](javascript:alert(1)) `</code><script>` \"'> {{ 7777*3 }}\u202e"
TAGS = frozenset(
    "html head meta title style body header main footer nav section details summary p h1 h2 h4 a b br ul li dl dt dd "
    "code pre span div strong em table thead tbody tr th td progress svg g rect text path wbr".split()
)


class Tags(HTMLParser):
    """The tags of a page, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def view_of(shown_: Shown, **more: Any) -> PageView:
    return PageView(shown_, more.pop("progress", RunProgress("run-1")), (Decision(1.0, "wim", "merge `x`", "p1"),))


def links(text: str) -> list[str]:
    return [attributes["href"] or "" for tag, attributes in Tags(text).found if tag == "a"]


@pytest.mark.parametrize("state", list(PullState))
def test_every_page_stands_in_every_state_and_is_loaded_anew_only_while_something_runs(state: PullState) -> None:
    for name in PAGES:
        text = render_page(view_of(show(state, merge_sha="b" * 40)), name, "1.x")

        assert text.startswith("<!doctype html>")
        assert ('http-equiv="refresh"' in text) == (state in RUNNING)


def test_a_decision_is_shown_as_the_reply_that_it_was() -> None:
    decision = Decision(1.0, "ann", "`/deploy`: **Not ready**, because `a` is &lt;b&gt;.", "p1")
    text = render_page(replace(view_of(show()), decisions=(decision,)), "plan", "1.x")

    assert "<code>/deploy</code>: <strong>Not ready</strong>, because <code>a</code> is &lt;b&gt;." in text


@pytest.mark.parametrize("name", PAGES)
def test_text_of_others_is_inert_on_every_page(name: str) -> None:
    """Behaviour 14: no tag, no address, no handler comes from a model, its SQL, its branch or a person."""
    model: dict[str, Any] = {
        "name": EVIL,
        "change": "direct",
        "category": EVIL,
        "reason": EVIL,
        "diff": f"--- {EVIL}\n+{EVIL}",
    }
    model |= {"owner": EVIL, "rule": EVIL, "parents": [EVIL, "a.b"], "path": EVIL, "line": 3, "kind": EVIL}
    other = {"name": "a.b", "change": "indirect", "parents": [EVIL], "columns": {"altered": [EVIL]}, "recomputed": True}
    view = show(models=[model, other], site="https://github.com/ann/shop", environment_name=EVIL)
    progress = RunProgress("", "", EVIL, 1, 2, (ModelProgress(EVIL, Step.FAILED, note=EVIL),), EVIL)
    text = render_page(
        replace(view_of(view, progress=progress), decisions=(Decision(1.0, EVIL, EVIL, EVIL),)), name, EVIL
    )

    tags = Tags(text).found
    assert {tag for tag, _ in tags} <= TAGS
    assert not [key for _, attributes in tags for key in attributes if key.startswith("on") or key == "style"]
    assert not [href for href in links(text) if not re.match(r"https://github\.com/ann/shop/|[a-z]+\?key=|#", href)]
    assert "23331" not in text
    assert "\u202e" not in text


def test_javascript_is_no_address_of_a_repository() -> None:
    text = render_page(view_of(show(site="javascript:alert(1)//")), "plan", "1.x")
    assert "javascript:" not in text


def test_a_page_may_load_run_and_send_nothing_and_nobody_learns_its_address() -> None:
    fields = headers()

    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-\S+'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        fields["Content-Security-Policy"],
    )
    assert (fields["Referrer-Policy"], fields["Cache-Control"]) == ("no-referrer", "no-store")


def test_code_and_bold_type_are_kept_and_links_are_text() -> None:
    assert render_sentence("**Ready.** `a.b` [x](https://e.vil)") == (
        "<strong>Ready.</strong> <code>a.b</code> [x](https://e.vil)"
    )
    assert render_foreign("**not** bold, `code`") == "**not** bold, <code>code</code>"


def test_the_plan_says_models_rows_columns_and_what_can_be_typed() -> None:
    rows = {"first": 10, "second": 10, "only_first": 1, "only_second": 0, "common": 9, "matched": 6, "changed": 3}
    difference = {"model": "shop.orders", "before": 10, "after": 9, "columns": [{"name": "amount", "changed": 3}]}
    difference |= {"rows": rows | {"null_keys": [0, 0], "duplicate_keys": [0, 0]}}
    difference |= {"schema": {"added": [["tax", "INT"]], "removed": [], "retyped": []}}
    plan = {"id": "p1", "environment": "pr_7", "models": [{"name": "shop.orders", "change": "direct"}]}
    costly = {"cost": "shuffle", "before": 1, "after": 2, "columns": ["day"]}
    result = {"event": "result", "ok": True, "applied": True, "plan": plan, "data_diff": [difference]}
    result |= {"physical_plan": [{"model": "shop.orders", "changes": [costly], "note": ""}]}
    text = render_page(view_of(show(run_lines=run_lines([result], 0))), "plan", "1.x")

    for part in (
        "shop.orders",
        "10 → 9",
        "<b>3</b> (33%)",
        "<code>amount</code>",
        "tax",
        "/plan",
        "wim",
        "by <code>day</code>",
    ):
        assert part in text, part


def test_three_thousand_models_with_large_diffs_make_pages_that_a_browser_opens() -> None:
    many = [
        {"name": f"shop.m{index}", "change": "direct", "category": "breaking", "diff": "+ a line of it\n" * 500}
        for index in range(3_000)
    ]
    view = view_of(show(models=many))
    plan, diffs, lineage = (render_page(view, name, "1.x") for name in ("plan", "diffs", "lineage"))

    assert "3,000" in plan or "3000" in plan
    assert "more lines: see the file in the pull request" in diffs
    assert max(map(len, (plan, diffs, lineage))) < 8_000_000
    assert 'class="graph"' not in lineage


def test_the_graph_stands_from_left_to_right_and_says_the_same_as_its_table() -> None:
    models: list[dict[str, Any]] = [
        {"name": "shop.a", "change": "direct", "category": "breaking"},
        {"name": "shop.b", "change": "indirect", "category": "indirect_breaking", "parents": ["shop.a", "raw.x"]},
        {"name": "shop.c", "change": "indirect", "category": "indirect_breaking", "parents": ["shop.b", "shop.a"]},
    ]
    text = render_page(view_of(show(models=models)), "lineage", "1.x")
    boxes = [int(attributes["x"] or 0) for tag, attributes in Tags(text).found if tag == "rect"]

    assert boxes == sorted(boxes) and len(set(boxes)) == 3
    assert text.count('class="edge"') == 3


def test_progress_is_of_this_head_and_a_promotion_of_this_pull_request() -> None:
    other = RunProgress("run-2", models=(ModelProgress("shop.other"),))
    mine = RunProgress("run-1", models=(ModelProgress("shop.mine", Step.RUNNING, 3, 12),))
    promotion = RunProgress("run-9", "#7", models=(ModelProgress("shop.moved"),))
    record = show(PullState.PLANNING, run_id="run-1")

    assert "shop.other" not in render_page(view_of(record, progress=other), "progress", "1.x")
    assert "3 of 12" in render_page(view_of(record, progress=mine), "progress", "1.x")
    merged = show(PullState.MERGED, run_id="run-3")
    assert "shop.moved" in render_page(view_of(merged, progress=promotion), "promotion", "1.x")
    assert "shop.moved" not in render_page(
        view_of(merged, progress=replace(promotion, subject="#8")), "promotion", "1.x"
    )


def test_before_the_merge_the_promotions_page_names_the_views_of_prod_that_move() -> None:
    models: list[dict[str, Any]] = [
        {"name": "shop.a", "change": "direct", "kind": "FULL"},
        {"name": "shop.b", "change": "indirect", "kind": "FULL", "shares": "prod"},
        {"name": "shop.c", "change": "added", "kind": "FULL"},
        {"name": "shop.d", "change": "removed", "kind": "FULL"},
    ]
    view = view_of(show(models=models))
    text = render_page(view, "promotion", "1.x")

    assert view.changes.moves == (("re-pointed", ("shop.a",)), ("added", ("shop.c",)), ("dropped", ("shop.d",)))
    assert "<dt>1 re-pointed</dt><dd><code>shop.a</code>" in text


def test_prods_page_says_why_it_could_not_be_built() -> None:
    error = {"event": "error", "message": "Spark refused `a`.", "path": "models/a.sql", "line": 7}
    prod = ProdRecord("ann/shop", run_lines=run_lines([error], 1))
    text = render_page(PageView(Shown(PullRecord("ann/shop", 0), prod)), "progress", "1.x")

    assert "models/a.sql:7" in text
    assert "Spark refused" in text


def test_the_plan_has_the_readers_of_other_projects_as_the_comment_names_them() -> None:
    """Also their texts are inert; a repository whose names are not shown stays a number."""
    reading = Reading(EVIL, "shop.orders", ("id",), owner=EVIL)
    readers = (ReaderSummary(EVIL, 1, owners=(EVIL,), readings=(reading,)), ReaderSummary(models=2))
    view = show(models=[{"name": "shop.orders", "change": "direct", "category": "breaking"}])
    record = replace(view.record, nearby=replace(view.record.nearby, readers=readers))
    text = render_page(view_of(replace(view, record=record)), "plan", "1.x")

    assert "Another repository: 2 models" in text
    assert "🟠 Indirect breaking" in text
    assert {tag for tag, _ in Tags(text).found} <= TAGS
    assert "Readers in other projects" not in render_page(view_of(view), "plan", "1.x")
