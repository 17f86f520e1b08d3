"""Comment text -> commands and mistakes."""

from __future__ import annotations

import pytest

from mergeplan.bot.commands.command import Command, Mistake, resolve_model
from mergeplan.bot.commands.reading import read_commands


def verbs(text: str) -> list[str]:
    return [command.verb if isinstance(command, Command) else "mistake" for command in read_commands(text)]


@pytest.mark.parametrize(
    "text",
    [
        "/plan",
        "/PLAN",
        "/plan   ",
        "`/plan`",
        "``/plan``",
        "hello\n/plan\nthanks",
        "/plan\r\n",
        "  /plan",
        "/mergeplan plan",
        "<!-- why -->\n/plan",
        "`<!--`\n/plan",
        "`<pre>`\n/plan",
        "<pre>a</PRE>\n/plan",
        "<prefix>\n/plan",
        "- ```\n  code\n  ```\n/plan",
        "/plan\u00a0",
    ],
)
def test_a_command_at_the_start_of_a_line_is_found(text: str) -> None:
    """Behaviour 37."""
    assert verbs(text) == ["plan"]


@pytest.mark.parametrize(
    "text",
    [
        "please /plan",
        "> /plan",
        "> quoted\n/lazy continuation is talk",
        "```\n/plan\n```",
        "~~~sql\n/plan\n```\n/plan\n~~~",
        "    /plan",
        "\t/plan",
        "/plans/2026 is the folder",
        "/usr/bin/env",
        "/lgtm",
        "/approve this",
        "<!-- /plan -->",
        "<!--\n/plan\n-->",
        "<!-- a --> <!-- b\n/plan\n-->",
        "Use `<!--` so:\n```\n-->\n/plan\n```",
        "- ```\n  /plan\n  ```",
        "1. ~~~sql\n   /plan\n   ~~~",
        "\uff0fplan",
        "/pl\u0430n",
        "/plan\u200b",
        "`/plan` is what I would type",
        "<!-- mergeplan:plan -->\n/plan",
        "<pre>\n/plan\n</pre>",
        "The log: <PRE><code>\n/plan\n",
        "",
    ],
)
def test_talk_quotes_and_code_give_nothing(text: str) -> None:
    """Behaviour 30."""
    assert read_commands(text) == ()


@pytest.mark.parametrize("part", ["`a`<!---->", "<!--", "`" * 7 + " ", "- ", "/plan ", "`/plan", "> ", "1. ~~~"])
def test_no_comment_is_long_to_read(part: str) -> None:
    """Behaviour 7: GitHub's longest comment, of whatever it is made, in one line and in many, has an end."""
    for text in (part * (65_536 // len(part)), (part + "\n") * (65_536 // (len(part) + 1))):
        assert all(isinstance(command, (Command, Mistake)) for command in read_commands(text))


def test_several_commands_come_in_order() -> None:
    """Behaviour 36."""
    assert verbs("/plan\ntext\n/help\n/cancel") == ["plan", "help", "cancel"]


def test_a_category_is_written_in_several_ways() -> None:
    """non-breaking, non_breaking, nonbreaking are one."""
    text = "/categorize a non-breaking\n/categorize a NON_BREAKING\n/categorize a nonbreaking"

    assert {command.category for command in read_commands(text) if isinstance(command, Command)} == {"non_breaking"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/pln", "Did you mean `/plan`?"),
        ("/mergeplan ship", "Commands: `/plan`"),
        ("/dif shop.orders", "Did you mean `/diff`?"),
        ("/diff a b", "one model, or none"),
        ("/diff --where", "There is no condition after `--where`"),
        ("/lineage", "the name of one model"),
        ("/allow-destructive --all", "the name of one model"),
        ("/categorize a non-braking", "Did you mean `non-breaking`?"),
        ("/categorize", "It takes a category"),
        ("/categorize a b c", "It takes a category"),
        ("/categorize a;b breaking", "cannot be the name of a model"),
        ("/plan the work", "takes nothing after it"),
        ("/deploy staging", "takes nothing after it"),
        ("/rollback last", "the number of a revision, or nothing"),
        ("/rollback --dryrun", "and `--dry-run`"),
        ("/rollback 3 --dry-run --dry-run", "and `--dry-run`"),
        ("/extend -1", "one whole number, or nothing"),
        ("/restate", "It takes models, and days"),
        ("/restate --start 2026-01-01", "It takes models, and days"),
        ("/restate a.b --since 2026-01-01", "Write `--start` and `--end`"),
        ("/restate a.b --start 2026-01-01 --start 2026-01-02", "each once"),
        ("/restate a.b --end 2026-02-30", "`2026-02-30` is no day"),
        ("/restate a.b --start 2026-01-02 --end 2026-01-01", "`2026-01-01` comes before"),
        ("/restate a.b --reset", "`--reset` takes back a `--copy`"),
        ("/restate a.b --copy --reset --end 2026-01-01", "`--reset` takes back a `--copy`"),
        ("/restate a.b --copy --copy", "Write `--start` and `--end`"),
        ("/restate --copy shop.daily", "It takes models, and days"),
        ("/restate --copy", "It takes models, and days"),
        ("/restate $(id)", "It takes models, and days"),
        ("/ok-to-plan", "needs the full SHA"),
        ("/ok-to-plan 4f2a9c", "needs the full SHA"),
    ],
)
def test_a_mistake_names_the_cause_and_what_to_type(text: str, said: str) -> None:
    """Behaviour 35."""
    (mistake,) = read_commands(text)

    assert isinstance(mistake, Mistake)
    assert said in f"{mistake.cause} {mistake.instead}"


def test_with_a_namespace_other_commands_are_other_bots() -> None:
    """Behaviour 30: beside a bot with a /plan of its own."""
    text = "/plan\n/warehouse help\n/mergeplan status\n/Warehouse `diff` a.b\n/pln"
    commands = [command for command in read_commands(text, "Warehouse") if isinstance(command, Command)]

    assert [command.verb for command in commands] == ["help", "status", "diff"]


@pytest.mark.parametrize(
    ("text", "model", "where"),
    [
        ("/diff", "", ""),
        ("/diff Shop.Orders", "shop.orders", ""),
        ("/diff --where a = 'X  y' AND `b c` > 1", "", "a = 'X  y' AND `b c` > 1"),
        ("`/diff shop.orders --where=a > 1`", "shop.orders", "a > 1"),
        ("/diff `shop.orders`", "shop.orders", ""),
        ("/diff a.b --where a = '--where'", "a.b", "a = '--where'"),
    ],
)
def test_a_condition_is_what_was_written(text: str, model: str, where: str) -> None:
    """Behaviour 7: as one argument, whatever it holds."""
    assert [(command.model, command.where) for command in read_commands(text) if isinstance(command, Command)] == [
        (model, where)
    ]


def test_models_are_restated_for_days_that_are_given_in_any_way() -> None:
    """As one argument each, whatever stands between."""
    text = "/restate Tag:pii+ --end=2026-01-07 --start 2026-01-01\n/restate shop.*\n/rollback 3"
    selections = [
        (command.model, command.days, command.number) for command in read_commands(text) if isinstance(command, Command)
    ]

    assert selections == [("tag:pii+", ("2026-01-01", "2026-01-07"), 0), ("shop.*", ("", ""), 0), ("", ("", ""), 3)]


def test_a_restatement_in_a_copy_is_told_by_its_word() -> None:
    text = "/restate shop.* --copy --start=2026-01-01\n/restate shop.* --end 2026-01-07 --copy"
    commands = [command for command in read_commands(text) if isinstance(command, Command)]

    assert [(command.copy, command.days) for command in commands] == [
        (True, ("2026-01-01", "")),
        (True, ("", "2026-01-07")),
    ]


def test_a_model_may_be_given_by_its_last_part() -> None:
    """When only one has it; else the names are listed."""
    command = Command("categorize", "/c", model="orders")

    assert resolve_model(command, ["shop.orders", "shop.items"]) == "shop.orders"
    assert isinstance(resolve_model(command, ["shop.orders", "raw.orders"]), Mistake)
    assert isinstance(resolve_model(Command("categorize", "/c", model="rders"), ["shop.orders"]), Mistake)
