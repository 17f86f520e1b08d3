"""Plans and other jobs as pages: begun by a form, followed, categorized, applied, cancelled."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from mergeplan.planner.api.access import Access, Mode
from mergeplan.planner.api.jobs.job import JobKind
from mergeplan.planner.api.jobs.requests import ApplyBody, AuditBody, Jobs, PhysicalPlanBody, TableDiffBody
from mergeplan.planner.api.jobs.store import JobRequest
from tests.planner.ui.conftest import Browser, Open, printing

DONE = '{"event":"result","version":1,"ok":true}'
CHANGE: dict[str, Any] = {
    "name": "shop.daily",
    "kind": "INCREMENTAL_BY_TIME_RANGE",
    "change": "direct",
    "category": "breaking",
    "reason": "`price` is another one.",
    "intervals": [["2026-01-01", "2026-01-03"]],
    "diff": "--- a\n+++ b\n-SELECT 1\n+SELECT <2>\n",
}
PLAN: dict[str, Any] = {"id": "abc", "environment": "dev", "models": [CHANGE]}


def as_line(**values: Any) -> str:
    """A line as the planner prints it."""
    return json.dumps(values, separators=(",", ":"))


def plan_lines(**changes: Any) -> tuple[str, str]:
    plan = PLAN | changes
    result = as_line(event="result", version=1, ok=True, plan=plan)
    return as_line(event="plan", version=1, plan=plan), result


def make_plan(browse: Open, access: Access | None = None, **changes: Any) -> tuple[Browser, str]:
    """The address of a plan that is made."""
    browser = browse(access, printing(*plan_lines(**changes)))
    address = browser.post("/plans", environment="dev").headers["location"]
    browser.wait(address)
    return browser, address


def test_the_planner_plans_what_the_form_says(browse: Open) -> None:
    browser = browse(Access(Mode.PLAN))
    answer = browser.post("/plans", environment="dev", select="shop.apart", skip_tests="1")
    page = browser.wait(answer.headers["location"])

    assert answer.status_code == 303
    assert "Plan of <code>dev</code>" in page
    assert "<code>shop.apart</code> is not in <code>prod</code> yet." in page
    assert "shop.daily" not in page
    assert "Apply to dev" not in page  # the mode makes plans only


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"environment": "not a name"}, "environment"),
        ({"environment": "dev", "start": "when it rains"}, "when it rains"),
        ({"environment": "dev", "select": "x" * 400}, "select"),
    ],
)
def test_what_is_wrong_with_a_form_stands_above_it(browse: Open, fields: dict[str, str], sentence: str) -> None:
    browser = browse()
    page = browser.post("/plans", **fields).text

    assert 'role="alert"' in page
    assert sentence in page
    assert f'value="{fields["environment"]}"' in page
    assert not browser.context.jobs.list()


def test_a_plan_shows_why_what_is_computed_and_the_diff(browse: Open) -> None:
    browser, address = make_plan(browse)
    page = browser.get(address)

    assert "<code>price</code> is another one." in page
    assert "2026-01-01 to 2026-01-02" in page
    assert '<span class="add">+SELECT &lt;2&gt;\n</span>' in page
    assert address in browser.get("/plans")
    assert address in browser.get("/models/shop.daily")
    assert "breaking" in browser.get(f"/lineage?plan={address.rpartition('/')[2]}")


def test_categories_make_a_new_plan(browse: Open) -> None:
    browser, address = make_plan(browse)
    assert 'name="category:shop.daily"' in browser.get(address)
    again = browser.post(f"{address}/categories", **{"category:shop.daily": "forward-only", "category:shop.x": ""})
    wrong = browser.post(f"{address}/categories", **{"category:shop.daily": "fine"})
    nothing = browser.post(f"{address}/categories")

    record = browser.context.jobs.get(again.headers["location"].rpartition("/")[2])
    assert record
    assert record.request == {"environment": "dev", "categories": {"shop.daily": "forward-only"}}
    assert "--categorize=shop.daily=forward-only" in record.arguments
    assert (wrong.status_code, nothing.status_code) == (422, 422)


def test_a_plan_is_applied_only_after_the_box_is_checked(browse: Open) -> None:
    browser, address = make_plan(browse)
    assert "Apply to dev" in browser.get(address)
    answer = browser.post(f"{address}/apply")

    assert answer.status_code == 422
    assert "is not checked" in answer.text
    assert not browser.context.jobs.list([JobKind.APPLY])


@pytest.mark.parametrize("changes", [{"empty": True}, {"blockers": [{"message": "It is `so`."}]}])
def test_what_cannot_be_applied_is_not_offered(browse: Open, changes: dict[str, Any]) -> None:
    browser, address = make_plan(browse, **changes)
    page = browser.get(address)

    assert "Apply to dev" not in page
    assert ("It is <code>so</code>." in page) is ("blockers" in changes)


def submit(browser: Browser, request: JobRequest) -> str:
    return f"/jobs/{browser.context.submit(request).id}"


def test_an_apply_shows_its_progress_audits_and_errors(browse: Open) -> None:
    lines = (
        plan_lines()[0],
        '{"event":"stage","name":"backfill","total":2}',
        '{"event":"batch","model":"shop.daily","index":1,"of":2,"interval":["2026-01-01","2026-01-02"],"rows":7,"seconds":1}',
        '{"event":"audit","model":"shop.daily","name":"not_null","ok":false,"count":3}',
        "a library prints",
        as_line(event="error", message="`not_null` found 3 rows.", path="models/daily.sql", line=2),
        '{"event":"result","version":1,"ok":false}',
    )
    browser = browse(None, printing(*lines))
    page = browser.wait(submit(browser, Jobs(browser.context.settings, "ann").apply("abc", "dev", ApplyBody())))

    assert "1 of 2" in page
    assert "3 rows" in page
    assert "<code>models/daily.sql:2</code>: <code>not_null</code> found 3 rows." in page
    assert "not_null" in browser.get("/checks")
    assert "3 rows" in browser.get("/models/shop.daily")


def test_a_model_has_the_runs_that_computed_it(browse: Open) -> None:
    days = ["2026-01-01", "2026-01-02"]
    batch = as_line(event="batch", model="shop.daily", index=1, of=1, interval=days, rows=7, seconds=2)
    browser = browse(None, printing(batch, DONE))
    address = submit(browser, Jobs(browser.context.settings, "ann").apply("abc", "dev", ApplyBody()))
    browser.wait(address)
    page = browser.get("/models/shop.daily")

    assert (
        f'<a href="{address}">Apply to dev</a></td><td data-label="State"><span class="step done">done</span>' in page
    )
    assert '<td data-label="Rows">7</td><td data-label="Took">2 s</td>' in page
    assert "Runs</h2>" not in browser.get("/models/shop.total")


def test_a_page_of_a_job_that_runs_is_loaded_again_and_follows_its_events(browse: Open) -> None:
    browser = browse(None, (sys.executable, "-I", "-c", "import time; time.sleep(60)"))
    address = browser.post("/plans", environment="dev").headers["location"]
    page = browser.get(address)
    cancelled = browser.post(f"/jobs/{address.rpartition('/')[2]}/cancel")

    assert '<noscript><meta http-equiv="refresh"' in page
    assert f'data-events="/api/v1/jobs/{address.rpartition("/")[2]}/events"' in page
    assert cancelled.status_code == 303
    assert "cancelled" in browser.wait(address)
    assert "refresh" not in browser.get(address)


def test_a_table_diff_shows_counts_columns_and_masked_rows(browse: Open) -> None:
    difference = {
        "event": "table_diff", "model": "shop.daily", "first": "prod", "second": "dev", "same": False, "key": ["id"],
        "schema": {"added": [["tax", "INT"]]},
        "rows": {"first": 10, "second": 12, "only_first": 1, "only_second": 3, "common": 9, "matched": 7, "changed": 2,
                 "null_keys": [0, 0], "duplicate_keys": [0, 0]},
        "columns": [{"name": "price", "changed": 2}],
        "samples": {"only_second": {"columns": ["id"], "rows": [["9<"]]}},
    }  # fmt: skip
    browser = browse(None, printing(as_line(**difference), DONE))
    body = TableDiffBody(first="prod", second="dev")
    page = browser.wait(submit(browser, Jobs(browser.context.settings, "ann").table_diff(body)))

    assert "10 → 12" in page
    assert "added <code>tax</code> INT" in page
    assert "<td><code>9&lt;</code></td>" in page


def test_a_condition_of_a_diff_needs_the_scope_to_read_rows(browse: Open) -> None:
    browser = browse(Access(Mode.PLAN), printing(DONE))

    assert browser.post("/diff", first="prod", second="dev", where="id = 1").status_code == 403
    assert browser.post("/diff", first="prod", second="dev").status_code == 303
    assert 'role="alert"' in browser.post("/diff", first="", second="dev").text


def test_unit_tests_are_run_by_a_form(browse: Open) -> None:
    line = '{"event":"test","name":"test_daily","ok":false,"path":"tests/a.yaml","line":3,"message":"1 <> 2"}'
    browser = browse(None, printing(line, '{"event":"result","version":1,"ok":false}'))
    page = browser.wait(browser.post("/checks/tests", names="test_daily").headers["location"])

    assert "<code>test_daily</code>" in page
    assert "1 &lt;&gt; 2" in page
    assert "tests/a.yaml:3" in page


def test_the_audits_of_an_environment_that_is_not_there_are_refused(browse: Open) -> None:
    browser = browse(None, printing(DONE))

    assert browser.post("/checks/audits", environment="dev").status_code == 404
    assert submit(browser, Jobs(browser.context.settings, "ann").audit(AuditBody()))


def test_the_linter_is_read_on_a_page(browse: Open, tmp_path: Path) -> None:
    config = "gateways: {local: {connection: {type: spark}}}\nmodel_defaults: {dialect: spark, start: 2026-01-01}\n"
    browser = browse(config=config + "linter: {enabled: true, warn_rules: [nomissingowner]}\n")

    assert "nomissingowner" in browser.get("/checks/lint")


def test_physical_plans_are_sentences_beside_their_models(browse: Open) -> None:
    changes = [{"cost": "broadcast", "before": 0, "after": 1, "tables": ["shop.<b>"]}]
    rows = [{"model": "shop.daily", "changes": changes}, {"model": "shop.total", "note": "Spark did not answer."}]
    browser = browse(command=printing(as_line(event="result", version=1, ok=True, physical_plan=rows)))
    job = browser.context.submit(
        Jobs(browser.context.settings, "local").physical_plan(PhysicalPlanBody(environment="dev"))
    )
    page = browser.wait(f"/jobs/{job.id}")

    assert "the rows of <code>shop.&lt;b&gt;</code> are shuffled for a join" in page
    assert "Spark did not answer." in page
