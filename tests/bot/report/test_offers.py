"""What is offered now: within GitHub's limits whatever the project is called, and distinct from all else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeplan.bot.commands.command import Command, Mistake
from mergeplan.bot.commands.reading import read_commands
from mergeplan.bot.commands.table import FORMS
from mergeplan.bot.policy.roles import ROLES
from mergeplan.bot.records import Press, PullState
from mergeplan.bot.report.checks.table import CHECKS, attach_buttons, checks
from mergeplan.bot.report.comment import plan_comment
from mergeplan.bot.report.offers import BOX, find_ticks, has_ticks, list_offers, resolve_press
from mergeplan.bot.report.shown import Shown
from tests.bot.changing import change_record
from tests.bot.report.test_comment import run_lines, show

EDITED = {"name": "shop.orders", "change": "direct", "category": "breaking", "kind": "FULL"}
READER = {"name": "shop.totals", "change": "indirect", "category": "indirect_breaking", "parents": ["shop.orders"]}
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,90}(\.[a-z_][a-z0-9_]{0,90}){0,2}", fullmatch=True) | st.text(max_size=60)
COSTLY = {"event": "error", "kind": "TooCostly", "message": "Too much.", "retry": False}


@st.composite
def views(draw: st.DrawFn) -> Shown:
    """A pull request in any state, of any models, under any rules."""
    names = draw(st.lists(NAMES, max_size=4))
    models = [{"name": name, "change": "direct", "category": "breaking", "kind": "FULL"} for name in names]
    models += [{**READER, "name": f"below.m{number}", "parents": [name]} for number, name in enumerate(names)]
    plan = {"id": "p1", "digest": "q", "environment": "pr_7", "base": "prod", "models": models, "blockers": []}
    costly = draw(st.booleans())
    result = {"event": "result", "ok": not costly, "applied": draw(st.booleans()), "plan": plan}
    run = run_lines([COSTLY, result] if costly else [result], 4 if costly else 0)
    view = show(draw(st.sampled_from(PullState)), run_lines=run, merge_sha="b" * 40, held=draw(st.booleans()))
    role = draw(st.sampled_from(ROLES))
    needs = tuple((verb, role) for verb in FORMS)
    namespace = draw(st.sampled_from(["", "warehouse"]))
    prod = replace(view.prod, needs=needs, deploys=draw(st.booleans()), namespace=namespace)
    return replace(view, record=change_record(view.record, promotion_revision=draw(st.integers(0, 3))), prod=prod)


@given(views())
def test_buttons_and_boxes_are_within_githubs_limits_and_each_is_the_one_command_it_says(view: Shown) -> None:
    """Behaviour 36: three buttons of a check, their lengths, no two alike; what is taken up is what is typed."""
    record, prod = view.record, view.prod
    for check in (attach_buttons(check, view) for check in checks(view)):
        assert len(check.actions) <= 3
        assert check.is_completed or not check.actions
        for action in check.actions:
            assert 0 < len(action.label) <= 20
            assert 0 < len(action.description) <= 40
            assert 0 < len(action.identifier) <= 20
    offered = list_offers(record, prod)
    assert len({offer.identifier for offer in offered}) == len({offer.box for offer in offered})
    for offer in offered:
        assert (BOX.fullmatch(offer.line) is None) == offer.moves_prod
        assert sum(check.has_button(offer) for check in CHECKS) == 1 or offer.button is None
        boxed = resolve_press(offer.box, Press((offer.box,)), record, prod)
        (typed,) = read_commands(offer.typed, prod.namespace)
        assert typed == resolve_press(offer.identifier, Press((offer.identifier,), record.head), record, prod)
        assert isinstance(boxed, Mistake) if offer.moves_prod else boxed == typed


@pytest.mark.parametrize(
    "changes",
    [{"head": "c" * 40}, {"prod_revision": 9}, {"state": PullState.FAILED}, {"number": 8}, {"repository": "eve/shop"}],
)
def test_what_was_shown_with_something_else_is_not_taken_up(changes: dict[str, object]) -> None:
    """Behaviour 4: another head, prod, state or pull request; nor a button's identifier on a check of another head."""
    view = show()
    old, prod = view.record, view.prod
    now = change_record(old, **changes)
    for offer in list_offers(old, prod):
        assert not isinstance(resolve_press(offer.box, Press((offer.box,)), now, prod), Command)
        assert not isinstance(resolve_press(offer.identifier, Press((offer.identifier,), now.head), now, prod), Command)
        assert not isinstance(resolve_press(offer.identifier, Press((offer.identifier,), "d" * 40), old, prod), Command)
        assert not isinstance(resolve_press(offer.identifier, Press((offer.identifier,)), old, prod), Command)


def test_only_an_edit_that_ticks_and_does_nothing_else_is_a_tick() -> None:
    """GitHub may end lines otherwise; who unticks, or edits anything beside, ticks nothing."""
    view = show(models=[EDITED, READER])
    text = plan_comment(view)
    assert text is not None
    boxes = [offer.box for offer in list_offers(view.record, view.prod)]
    first = text.replace(boxes[0], boxes[0].replace("[ ]", "[x]"))
    both = first.replace(boxes[1], boxes[1].replace("[ ]", "[X]"))

    assert find_ticks(text, first) == (boxes[0],)
    assert find_ticks(text.replace("\n", "\r\n"), both.replace("\n", "\r\n").strip()) == tuple(boxes)
    assert find_ticks(first, both) == (boxes[1],)
    assert (
        find_ticks(both, first),
        find_ticks(first, first),
        find_ticks("", first),
        find_ticks(text, first + "!"),
    ) == ((),) * 4
    assert (has_ticks(text), has_ticks(first), has_ticks("- [x] `/plan`: mine")) == (False, True, False)


@pytest.mark.parametrize("missing", [True, False])
def test_rows_are_offered_only_where_the_environment_lacks_them(missing: bool) -> None:
    """A plan that found all of an earlier one applied nothing, and its environment is built."""
    model = {**EDITED, "intervals": [["2026-01-01", "2026-01-02"]] if missing else []}
    plan = {"id": "p1", "digest": "q", "environment": "pr_7", "base": "prod", "models": [model], "blockers": []}
    view = show(run_lines=run_lines([{"event": "result", "ok": True, "applied": False, "plan": plan}], 0))
    outcome = view.record.outcome
    skipped = replace(view.record, wishes=replace(view.record.wishes, backfill="skip"))

    assert outcome and outcome.is_built is not missing
    assert ("/backfill" in [offer.typed for offer in list_offers(view.record, view.prod)]) is missing
    assert "/backfill" in [offer.typed for offer in list_offers(skipped, view.prod)]


@pytest.mark.parametrize(
    ("category", "reader", "offered"),
    [
        ("breaking", "indirect_breaking", ["/categorize shop.orders non-breaking"]),
        ("breaking", "indirect_non_breaking", []),
        ("non_breaking", "indirect_non_breaking", ["/categorize shop.orders breaking"]),
        ("equivalent", "indirect_non_breaking", []),
        ("forward_only", "forward_only", []),
    ],
)
def test_a_category_is_offered_only_where_it_changes_what_becomes_of_a_reader(
    category: str, reader: str, offered: list[str]
) -> None:
    view = show(models=[{**EDITED, "category": category}, {**READER, "category": reader}])
    alone = show(models=[{**EDITED, "category": category}])

    assert [offer.command for offer in list_offers(view.record, view.prod)] == [*offered, "/plan"]
    assert [offer.command for offer in list_offers(alone.record, alone.prod)] == ["/plan"]
