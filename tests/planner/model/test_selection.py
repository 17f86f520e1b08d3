import pytest

from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.graph import graph_of
from mergeplan.planner.model.selection import select
from tests.planner.building import model, project

CHAIN = graph_of(
    project(
        model("s.a", "SELECT 1 AS x"),
        model("s.b", "SELECT x FROM s.a", tags=("Daily",)),
        model("s.c", "SELECT x FROM s.b"),
        model("t.d", "SELECT x FROM s.a", tags=("daily", "hot")),
    )
)


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("s.b", "s.b"),
        (" S.B ", "s.b"),
        ("+s.b", "s.a s.b"),
        ("s.b+", "s.b s.c"),
        ("+s.b+", "s.a s.b s.c"),
        ("tag:daily", "s.b t.d"),
        ("+tag:hot", "s.a t.d"),
        ("tag:+hot", "s.a t.d"),
        ("tag:d*+", "s.b s.c t.d"),
        ("s.*", "s.a s.b s.c"),
        ("s.* & tag:daily", "s.b"),
        ("tag:daily&^tag:hot", "s.b"),
        ("^s.*", "t.d"),
        ("s.a | s.c & s.b | t.d", "s.a t.d"),
        ("(s.a | s.b) & ^s.a", "s.b"),
        ("+(s.c | t.d)", "s.a s.b s.c t.d"),
        ("(s.b)+ & ^s.b", "s.c"),
    ],
)
def test_a_selector_names_models_and_puts_them_together(selector: str, names: str) -> None:
    assert select(CHAIN, [selector]) == frozenset(names.split())


@pytest.mark.parametrize(
    ("selector", "meant"),
    [
        ("shop.ordres", "shop.orders"),
        ("ordrs", "shop.orders"),
        ("Shop.Order", "shop.orders"),
        ("^shop.ordrs", "shop.orders"),
        ("tag:dayly", "tag:daily"),
    ],
)
def test_a_selector_that_names_nothing_says_what_may_be_meant(selector: str, meant: str) -> None:
    orders, items = model("shop.orders", "SELECT 1 AS x", tags=("daily",)), model("shop.items", "SELECT 1 AS x")

    with pytest.raises(RequestError) as error:
        select(graph_of(project(orders, items)), [selector])

    assert error.value.hint == f"Did you mean `{meant}`?"


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        ("s.z", "`s.z` selects no model."),
        ("s.a | s.z", "`s.z` selects no model."),
        ("^s.z", "`s.z` selects no model."),
        ("s.a & s.b", "`s.a & s.b` selects no model."),
        ("tag:cold", "`tag:cold` selects no model."),
        ("", "`` is not a valid selector: a name is missing."),
        ("s.a |", "`s.a |` is not a valid selector: a name is missing."),
        ("| s.a", "`| s.a` is not a valid selector: a name is missing before `|`."),
        ("(s.a", "`(s.a` is not a valid selector: a bracket is not closed."),
        ("s.a)", "`s.a)` is not a valid selector: `)` is not expected there."),
        ("s.a s.b", "`s.a s.b` is not a valid selector: `s.b` is not expected there."),
        ("owner:me", "`owner:me` is not a valid selector: `owner:` is not known."),
        ("git:main", "`git:main` is not a valid selector: `git:` cannot be used here."),
    ],
)
def test_a_selector_that_names_nothing_or_cannot_be_read_is_refused(selector: str, told: str) -> None:
    with pytest.raises(RequestError) as caught:
        select(CHAIN, [selector])

    assert caught.value.message == told


@pytest.mark.parametrize("opening", ["(", "^", "^(", "(s.a | ", "+("])
def test_a_selector_of_2_000_brackets_is_refused_in_a_short_sentence(opening: str) -> None:
    with pytest.raises(RequestError) as caught:
        select(CHAIN, [opening * 2_000 + "s.a" + ")" * 2_000])

    assert "more than 50 brackets or `^` are nested" in caught.value.message
    assert len(caught.value.message) < 400


def test_a_selector_may_have_many_parts_beside_each_other() -> None:
    assert select(CHAIN, [" | ".join(["(s.a)"] * 500)]) == {"s.a"}


def test_git_selects_what_somebody_says_has_changed() -> None:
    assert select(CHAIN, ["git:main+"], lambda ref: frozenset({"s.b", f"gone.{ref}"})) == {"s.b", "s.c"}
