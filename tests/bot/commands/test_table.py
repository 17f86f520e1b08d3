"""The table of commands."""

from __future__ import annotations

from mergeplan.bot.commands.form import offer_nothing
from mergeplan.bot.commands.reading import read_commands
from mergeplan.bot.commands.table import COMMANDS, FORMS, OFFERED, form_of


def test_every_command_that_is_offered_stands_in_the_order_of_the_comment_once() -> None:
    offering = {form.verb for form in COMMANDS if form.offers is not offer_nothing}

    assert sorted(form.verb for form in OFFERED) == sorted(offering)


def test_every_example_is_read_as_the_command_that_it_is_of() -> None:
    read = [read_commands(form.example) for form in COMMANDS]

    assert [[command.verb for command in commands] for commands in read] == [[verb] for verb in FORMS]
    assert [form_of(commands[0].text) for commands in read] == list(COMMANDS)


def test_a_command_of_another_version_waits_for_the_plan() -> None:
    assert form_of("/retired shop.orders").verb == "status"
