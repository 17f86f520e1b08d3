"""The parameters of commands: each function takes what its options and arguments are called."""

from __future__ import annotations

import inspect
from importlib import import_module

import click
import pytest

from mergeplan.bot.main import BOT_VERBS
from mergeplan.planner.cli.main import VERBS


def list_commands(place: str) -> list[click.Command]:
    module, name = place.split(":")
    command = getattr(import_module(module), name)
    return list(command.commands.values()) if isinstance(command, click.Group) else [command]


@pytest.mark.parametrize("place", sorted({place for place, _ in (VERBS | BOT_VERBS).values()}))
def test_a_commands_function_takes_what_its_options_are_called(place: str) -> None:
    """click calls it by keywords, which no type checker sees."""
    for command in list_commands(place):
        assert command.callback
        parameters = inspect.signature(inspect.unwrap(command.callback)).parameters.values()
        options = {option.name for option in command.params if option.expose_value}
        takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
        names = {parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD}
        needed = {parameter.name for parameter in parameters if parameter.default is parameter.empty}

        assert (needed & names) <= options, command.name
        assert takes_any or options <= names, command.name
