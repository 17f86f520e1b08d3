"""`plan --select-model` over the models of another environment, on a real Spark."""

from __future__ import annotations

from collections.abc import Callable

from tests.planner.cli.conftest import TODAY, CommandLine, Ran

Shop = Callable[..., CommandLine]
AT = ("--execution-time", TODAY, "--output", "json")
SEVEN, EIGHT = (f"MODEL (name shop.apart, kind FULL);\nSELECT {n} AS seven" for n in (7, 8))
ITEMS = "MODEL (name shop.more, kind FULL);\nSELECT 1 AS one"


def names(ran: Ran) -> tuple[set[str], list[str]]:
    assert ran.code == 0, ran.out + ran.err
    plan = ran.result["plan"]
    return {model["name"] for model in plan["models"]}, plan["not_selected"]


def test_the_models_that_are_not_selected_are_those_of_the_other_environment(shop: Shop) -> None:
    mergeplan = shop(shown="", total="", daily="", items="", apart=SEVEN)
    assert mergeplan("plan", "--auto-apply", *AT).code == 0
    mergeplan.write("models/apart.sql", EIGHT)
    mergeplan.write("models/more.sql", ITEMS)
    assert mergeplan("plan", "pr_1", "--auto-apply", *AT).code == 0

    chosen = ("pr_1", "--select-model", "shop.more", *AT)
    as_prod = names(mergeplan("plan", *chosen, "--others-from", "prod", "--auto-apply"))
    assert as_prod == ({"shop.more"}, ["shop.apart"])
    assert mergeplan.state.environments.get("pr_1").snapshots["shop.apart"].model.sql.strip() == "SELECT 7 AS seven"
    shown = mergeplan("plan", *chosen[:-2], "--others-from", "prod").out
    assert "Not selected, so not planned: shop__pr_1.apart." in shown


def test_others_from_goes_with_a_selection_and_an_environment_that_exists(shop: Shop) -> None:
    mergeplan = shop(shown="", total="", daily="", items="", apart=SEVEN)
    assert "does nothing without `--select-model`" in mergeplan("plan", "dev", "--others-from", "prod").err
    refused = mergeplan("plan", "dev", "--select-model", "shop.apart", "--others-from", "nowhere")
    assert (refused.code, "There is no environment `nowhere`." in refused.err) == (1, True)
