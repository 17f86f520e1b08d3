"""Going back, dropping an environment, sweeping: told in a sentence, and only what nobody needs is gone."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from mergeplan.planner.apply.events import ignore_event
from mergeplan.planner.apply.promotion.promotion import Wanted, promote_views
from mergeplan.planner.engine.protocol import ViewText
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.model.storage import Storage
from mergeplan.planner.snapshot.environment import Environment
from tests.planner.builders import snapshot
from tests.planner.cli.conftest import TODAY, CommandLine
from tests.planner.shop import ALONE, rows

Shop = Callable[..., CommandLine]
ONE = "MODEL (name shop.total, kind FULL);\nSELECT 1 AS a"
TWO = "MODEL (name shop.total, kind FULL);\nSELECT 2 AS a"
DAILY = """MODEL (name shop.days, kind INCREMENTAL_BY_TIME_RANGE (time_column d), start '2026-01-01');
SELECT explode(sequence(CAST(@start_ds AS DATE), CAST(@end_ds AS DATE))) AS d, 1 AS x"""
FAILING = "MODEL (name shop.total, kind FULL, audits (not_null(columns := (a))));\nSELECT CAST(NULL AS INT) AS a"
WRITTEN = """# mine
- name: ext.mine
- name: ext.raw
  gateway: local
  columns:
    a: int
    b: string
"""
SMALL = {**ALONE, "total": ONE}


def promote_environment(mergeplan: CommandLine, environment: str = "prod") -> None:
    assert mergeplan("plan", environment, "--auto-apply", "--execution-time", TODAY).code == 0


def test_rollback_shows_what_was_there_before_and_computes_nothing(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(**SMALL)
    promote_environment(mergeplan)
    mergeplan.write("models/total.sql", TWO)
    promote_environment(mergeplan)

    ran = mergeplan("rollback", "prod", "--who", "ann", "--note", "too early")
    back = mergeplan("rollback", "prod", "--to", "2", "--output", "json")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith("\n`prod` shows again what it showed before; this is its revision 3.\n")
    assert back.result["promotion"]["spark_jobs"] == 0
    assert back.result["promotion"]["views"]["swapped"] == 1
    assert rows(engine, "SELECT a FROM shop.total") == [(2,)]
    history = mergeplan("environments", "prod", "-o", "json").result["revisions"]
    assert [row["action"] for row in history] == ["rolled_back", "rolled_back", "promoted", "promoted"]
    assert (history[1]["who"], history[1]["note"]) == ("ann", "too early")


def test_a_dry_run_of_a_rollback_says_what_would_move_and_starts_no_spark(shop: Shop) -> None:
    mergeplan = shop(**SMALL)
    promote_environment(mergeplan)
    mergeplan.write("models/total.sql", TWO)
    mergeplan.write("models/more.sql", "MODEL (name shop.more, kind VIEW);\nSELECT 1 AS b")
    assert mergeplan("plan", "--auto-apply", "--execution-time", TODAY, "--note", "#7").code == 0
    mergeplan.opened.clear()

    ran = mergeplan("rollback", "prod", "--dry-run")
    shown = mergeplan("rollback", "prod", "--dry-run", "-o", "json").result["rollback"]

    assert (ran.code, ran.err, mergeplan.opened) == (0, "", [])
    assert ran.out.startswith("`prod` is at revision 2 and would show revision 1 again, which it showed until 20")
    assert (
        "\n2 views would move:\n  shop.more goes away\n  shop.total:\n    from mergeplan__shop.shop__total__" in ran.out
    )
    assert re.search(r"Taken back:\n  revision 2  promoted  [-\d]+ [:\d]+  #7\n\nNothing was changed\.\n$", ran.out)
    assert (shown["revision"], shown["target"]["revision"], shown["gone"]) == (2, 1, [])
    assert [(view["view"], view["after"] is None) for view in shown["views"]] == [
        ("shop.more", True),
        ("shop.total", False),
    ]
    assert mergeplan.state.environments.get("prod").revision == 2


def test_a_dry_run_and_a_rollback_name_the_table_that_is_gone_before_anything_moves(shop: Shop) -> None:
    mergeplan = shop(**SMALL)
    promote_environment(mergeplan)
    mergeplan.write("models/total.sql", TWO)
    promote_environment(mergeplan)
    before = mergeplan.state.environments.get_revision("prod", 1).snapshots["shop.total"].table
    mergeplan.state.tables.forget([before])
    mergeplan.opened.clear()

    dry, real = mergeplan("rollback", "prod", "--dry-run", "-o", "json"), mergeplan("rollback", "prod")

    assert (dry.code, real.code, mergeplan.opened) == (4, 4, [])
    assert (dry.result["ok"], dry.result["rollback"]["gone"]) == (False, [before])
    assert real.err.startswith(f"Error: The table `{before}` of revision 1 is gone. Take the change back in")
    assert mergeplan.state.environments.get("prod").revision == 2


def test_a_rollback_names_the_days_that_runs_computed_since_and_the_next_run_computes_them(
    shop: Shop, engine: SparkEngine
) -> None:
    mergeplan = shop(**SMALL, days=DAILY)
    assert mergeplan("plan", "--auto-apply", "--execution-time", "2026-01-04 05:00:00").code == 0
    mergeplan.edit("models/days.sql", "1 AS x", "2 AS x")
    assert mergeplan("plan", "--auto-apply", "--execution-time", "2026-01-04 05:00:00").code == 0
    assert mergeplan("run", "--execution-time", "2026-01-06 05:00:00").code == 0
    lacks = "shop.days lacks up-to-date rows of [2026-01-04 - 2026-01-05], which the later table holds; "
    lacks += "`mergeplan run prod` computes ["

    dry, done = mergeplan("rollback", "prod", "--dry-run").out, mergeplan("rollback", "prod").out
    ran = mergeplan("run", "--execution-time", "2026-01-06 05:00:00")

    assert f"\n1 table would be behind:\n  {lacks}" in dry
    assert f"this is its revision 3.\n{lacks}" in done
    assert ran.code == 0
    assert rows(engine, "SELECT count(*), sum(x) FROM shop.days") == [(5, 5)]


def test_a_person_at_a_terminal_is_asked_before_a_rollback(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    mergeplan = shop(**SMALL)
    promote_environment(mergeplan)
    mergeplan.write("models/total.sql", TWO)
    promote_environment(mergeplan)
    monkeypatch.setattr("mergeplan.planner.cli.verbs.environments.is_interactive", lambda: True)

    refused = mergeplan("rollback", "prod", answer="n\n")
    revision = mergeplan.state.environments.get("prod").revision
    done = mergeplan("rollback", "prod", answer="y\n")

    assert (refused.code, revision, done.code) == (0, 2, 0)
    assert "would show revision 1 again" in refused.out
    assert "Roll back - 1 view of `prod` [y/n]" in refused.out and "Nothing was changed." in refused.out
    assert mergeplan.state.environments.get("prod").revision == 3


def test_rollback_to_where_there_is_nothing_is_refused(shop: Shop) -> None:
    mergeplan = shop(**SMALL)
    promote_environment(mergeplan)

    first = mergeplan("rollback", "prod")
    unknown = mergeplan("rollback", "prod", "--to", "9")
    same = mergeplan("rollback", "prod", "--to", "1")

    assert (first.code, unknown.code, same.code) == (1, 1, 4)
    assert first.err == "Error: `prod` has no earlier revision. There is nothing to go back to.\n"
    assert unknown.err.startswith("Error: `prod` has no revision 9 to go back to.")
    assert mergeplan.state.environments.get("prod").revision == 1


def test_invalidate_drops_an_environment_and_what_only_it_used(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(**SMALL)
    promote_environment(mergeplan)
    mergeplan.write("models/total.sql", TWO)
    promote_environment(mergeplan, "dev")
    assert len(engine.catalog.objects("mergeplan__shop")) == 2

    ran = mergeplan("invalidate", "dev")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith("\n`dev` is gone, and with it 1 table.\n")
    assert not engine.catalog.objects("shop__dev")
    assert len(engine.catalog.objects("mergeplan__shop")) == 1
    assert rows(engine, "SELECT a FROM shop.total") == [(1,)]


def test_the_janitor_drops_what_nobody_needs_and_says_so_first(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(**SMALL)
    promote_environment(mergeplan)

    dry = mergeplan("janitor", "--days", "0", "--dry-run")
    ran = mergeplan("janitor", "--days", "0", "--output", "json")

    assert dry.out == "0 tables would be dropped.\n"
    assert ran.result["tables"] == []
    assert rows(engine, "SELECT a FROM shop.total") == [(1,)]


def test_the_janitor_forgets_revisions_that_are_older_than_the_history_is_kept(shop: Shop) -> None:
    mergeplan = shop(**SMALL)
    promote_environment(mergeplan)
    mergeplan.write("models/total.sql", TWO)
    promote_environment(mergeplan)
    mergeplan.edit("config.yaml", "default_gateway", "history_ttl: in 0 days\nsnapshot_ttl: in 0 days\ndefault_gateway")

    said = mergeplan("janitor").out
    listed = mergeplan("environments", "prod", "-o", "json").result["revisions"]

    assert re.search(r"^\d+ old records removed from the state\.$", said, re.MULTILINE)
    assert [row["revision"] for row in listed] == [2]


def test_the_janitor_names_the_tables_whose_old_versions_go_and_why_others_keep_theirs(
    shop: Shop, engine: SparkEngine
) -> None:
    mergeplan = shop(**SMALL)
    promote_environment(mergeplan)
    one, two = (
        snapshot(
            Model(f"lake.{name}", Kind.FULL, "m.sql", 1, "", "SELECT 1 AS id", storage=Storage(table_format="delta"))
        )
        for name in ("one", "two")
    )
    for name, reads in ((one.table, ()), (two.table, ()), ("lake.clone", (two.table,))):
        mergeplan.state.tables.register(name, (Column("id", "int"),), reads)
    with mergeplan.state.leases.hold("lake", "test") as lease:
        wanted = Wanted(mergeplan.state.environments.get("lake"), Environment("lake", {one.name: one, two.name: two}))
        promote_views(mergeplan.state, engine, lease, wanted, emit=ignore_event)
    assert "versions" not in mergeplan("janitor", "--dry-run").out
    mergeplan.edit("config.yaml", "default_gateway", "table_history_ttl: in 1 week\ndefault_gateway")

    dry, as_json = mergeplan("janitor", "--dry-run").out, mergeplan("janitor", "--dry-run", "-o", "json").result
    ran = mergeplan("janitor").out  # the catalog has none of them, so that there is nothing to clean

    assert f"Old versions of {one.table} would be removed, unless its last merge needs them.\n" in dry
    reason = "`lake.clone` was made from it, and may read its files"
    assert f"Old versions of {two.table} kept: {reason}.\n" in dry
    assert (f"Old versions of {two.table} kept: {reason}.\n" in ran, one.table in ran) == (True, False)
    assert (as_json["cleaned"], as_json["kept"]) == ([one.table], [{"table": two.table, "reason": reason}])


def test_an_environment_expires_unless_a_plan_renews_it(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(**SMALL)
    promote_environment(mergeplan)
    mergeplan.write("models/total.sql", TWO)
    mergeplan.edit("config.yaml", "default_gateway", "environment_ttl: in 0 days\ndefault_gateway")
    promote_environment(mergeplan, "dev")

    listed = mergeplan("environments", "-o", "json").result["environments"]
    dry = mergeplan("janitor", "--dry-run")
    ran = mergeplan("janitor")
    ignored = mergeplan("janitor", "--ignore-ttl", "-o", "json")

    assert [(row["name"], row["expires_at"] is None) for row in listed] == [("dev", False), ("prod", True)]
    assert dry.out == "`dev` has expired and would be dropped.\n0 tables would be dropped.\n"
    assert ran.out == "`dev` has expired and is dropped.\n0 tables dropped.\n"
    assert ignored.result["tables"] == []  # the plan of this day needs its table still
    assert not engine.catalog.objects("shop__dev")
    assert rows(engine, "SELECT a FROM shop.total") == [(1,)]


@pytest.mark.prove
def test_a_plan_that_has_nothing_to_do_renews_its_environment(shop: Shop) -> None:
    mergeplan = shop(**SMALL)
    promote_environment(mergeplan)
    mergeplan.write("models/total.sql", TWO)
    promote_environment(mergeplan, "dev")
    first = mergeplan.state.environments.get("dev").expires_at

    promote_environment(mergeplan, "dev")
    second = mergeplan.state.environments.get("dev").expires_at
    mergeplan.edit("config.yaml", "default_gateway", "pinned_environments: [dev]\ndefault_gateway")
    promote_environment(mergeplan, "dev")

    assert first is not None
    assert second is not None
    assert second > first
    assert mergeplan.state.environments.get("dev").expires_at is None


def test_a_plan_that_only_fills_a_table_renews_its_environment(shop: Shop) -> None:
    mergeplan = shop(**SMALL)
    promote_environment(mergeplan)
    mergeplan.write("models/total.sql", TWO)
    assert mergeplan("plan", "dev", "--auto-apply", "--skip-backfill", "--execution-time", TODAY).code == 0
    first = mergeplan.state.environments.get("dev")

    promote_environment(mergeplan, "dev")
    second = mergeplan.state.environments.get("dev")

    assert first.expires_at and second.expires_at
    assert (second.revision, second.expires_at > first.expires_at) == (first.revision, True)


def test_a_plan_that_is_only_shown_or_that_fails_renews_nothing(shop: Shop) -> None:
    mergeplan = shop(**SMALL)
    promote_environment(mergeplan)
    mergeplan.write("models/total.sql", TWO)
    promote_environment(mergeplan, "dev")
    expires = mergeplan.state.environments.get("dev").expires_at

    shown = mergeplan("plan", "dev", "--no-prompts", "--execution-time", TODAY)
    explained = mergeplan("plan", "dev", "--explain", "--execution-time", TODAY)
    mergeplan.write("models/total.sql", FAILING)
    failed = mergeplan("plan", "dev", "--auto-apply", "--execution-time", TODAY)

    assert (shown.code, explained.code, failed.code) == (0, 0, 4)
    assert mergeplan.state.environments.get("dev").expires_at == expires


@pytest.mark.prove
def test_views_and_tables_move_with_the_next_plans_when_their_naming_changes(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(**SMALL)
    promote_environment(mergeplan)
    mergeplan.write("models/total.sql", TWO)
    promote_environment(mergeplan, "dev")
    keys = "environment_suffix_target: table\nphysical_schema_mapping: {'^shop$': store}\n"
    mergeplan.edit("config.yaml", "default_gateway", keys + "default_gateway")

    promote_environment(mergeplan, "dev")
    moved = (
        engine.catalog.objects("shop__dev"),
        engine.catalog.objects("shop"),
        rows(engine, "SELECT a FROM shop.total__dev"),
    )
    mergeplan.edit("models/total.sql", "2", "3")
    promote_environment(mergeplan)
    built = rows(engine, "SELECT a FROM shop.total")
    back = mergeplan("rollback", "prod")
    gone = mergeplan("invalidate", "dev")

    assert moved == (frozenset(), {"total", "total__dev"}, [(2,)])
    assert (back.code, gone.code) == (0, 0)
    assert [name.startswith("shop__total__") for name in engine.catalog.objects("store")] == [True]
    assert (built, rows(engine, "SELECT a FROM shop.total")) == ([(3,)], [(1,)])
    assert engine.catalog.objects("shop") == {"total"}


def test_diff_tells_how_the_project_or_an_environment_differs(shop: Shop) -> None:
    mergeplan = shop(**SMALL, more="MODEL (name shop.more, kind VIEW);\nSELECT a FROM shop.total")
    promote_environment(mergeplan)
    same = mergeplan("diff", "prod")
    mergeplan.write("models/total.sql", TWO)
    promote_environment(mergeplan, "dev")
    mergeplan.write("models/extra.sql", "MODEL (name shop.extra);\nSELECT 1 AS x")

    local = mergeplan("diff", "prod")
    between = mergeplan("diff", "prod", "dev", "-o", "json").result

    assert (same.code, same.out) == (0, "The project matches the `prod` environment.\n")
    assert local.code == 1
    assert local.out.startswith("Differences of the project from the `prod` environment:\n")
    assert "-SELECT 1 AS a\n+SELECT 2 AS a" in local.out
    assert "Added:\n│   └── shop.extra" in local.out
    assert "backfill" not in local.out
    assert between["different"] is True
    assert [(change["name"], change["change"]) for change in between["changes"]] == [
        ("shop.total", "direct"),
        ("shop.more", "indirect"),
    ]


def test_the_state_goes_out_and_comes_back(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(**SMALL)
    promote_environment(mergeplan)

    out = mergeplan("state", "export", "-o", "state.json")
    again = mergeplan("state", "export", "-o", "state.json", answer="n\n")
    refused = mergeplan("state", "import", "-i", "state.json")
    declined = mergeplan("state", "import", "-i", "state.json", "--replace", answer="n\n")
    replaced = mergeplan("state", "import", "-i", "state.json", "--replace", "--no-confirm", "-o", "json")
    mergeplan.write("other.json", "{")
    broken = mergeplan("state", "import", "-i", "other.json")

    assert (out.code, out.out) == (0, "1 environment in state.json.\n")
    assert (again.code, refused.code, declined.code, broken.code) == (1, 4, 1, 1)
    assert refused.err.startswith("Error: The state knows `prod` already. `--replace`")
    assert replaced.result["environment_names"] == ["prod"]
    assert broken.err.startswith("Error: `other.json` is not JSON: ")
    assert mergeplan("rollback", "prod").err.startswith("Error: `prod` has no earlier revision.")
    promote_environment(mergeplan)
    assert rows(engine, "SELECT a FROM shop.total") == [(1,)]


def test_tables_of_others_are_written_down_and_audited_before_they_are_read(shop: Shop, engine: SparkEngine) -> None:
    mergeplan = shop(**ALONE, total="MODEL (name shop.total, kind FULL);\nSELECT r.a FROM ext.raw AS r, ext.none AS n")
    strict = mergeplan("create-external-models", "--strict")
    mergeplan.edit("models/total.sql", ", ext.none AS n", "")
    engine.catalog.swap_view(ViewText("ext.raw", "SELECT 1 AS a, CAST(NULL AS STRING) AS b"))
    mergeplan.write("external_models.yaml", "# mine\n- name: ext.mine\n")

    ran = mergeplan("create-external-models", "--gateway", "local")
    again = mergeplan("create-external-models", "-o", "json")
    file = (mergeplan.root / "external_models.yaml").read_text()
    mergeplan.write("external_models.yaml", f"{file}  audits:\n  - not_null(columns := b)\n")
    stopped = mergeplan("plan", "--auto-apply", "--execution-time", TODAY)
    engine.catalog.swap_view(ViewText("ext.raw", "SELECT 1 AS a, 'x' AS b"))
    promote_environment(mergeplan)

    assert strict.err == (
        "Error: models/total.sql:2: `shop.total` reads `ext.none`, which is neither a model nor in Spark's catalog. "
        "Nothing was written.\n"
    )
    assert ran.out == "1 table added to external_models.yaml.\n"
    assert file == WRITTEN
    assert again.result["tables"] == []
    assert stopped.code == 4
    assert stopped.err == "Error: external_models.yaml:3: The audit `not_null` of `ext.raw` found 1 row.\n"
    assert rows(engine, "SELECT a FROM shop.total") == [(1,)]
    assert mergeplan("audit").out.endswith("1 audit ran, 0 failed.\n")
