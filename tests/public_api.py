"""What others build on, as a text that is read line by line: `python -m tests.public_api` writes it.

The keys of config.yaml and of the JSON are published themselves, as docs/schema/config.json and docs/schema/plan.json.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import typing
from collections.abc import Iterator
from enum import EnumType
from functools import cached_property
from pathlib import Path

import click
import yaml

import mergeplan
import mergeplan.events
from mergeplan.bot.commands.table import COMMANDS
from mergeplan.bot.main import BOT_VERBS
from mergeplan.bot.settings import Settings
from mergeplan.planner.cli.main import VERBS

ROOT = Path(__file__).parent.parent
SNAPSHOT = Path(__file__).parent / "public_api.txt"


def render_api() -> str:
    """Everything public, a line each, in sections."""
    sections = {
        "Python: mergeplan": python_lines(),
        "Python: what calls return": result_lines(),
        "Python: mergeplan.events": event_lines(),
        "Command line": cli_lines(),
        "Commands on pull requests": (form.usage for form in COMMANDS),
        "Action": action_lines(),
        "Variables of the service": setting_lines(),
    }
    parts = [f"# {title}\n\n" + "".join(f"{line}\n" for line in lines) for title, lines in sections.items()]
    return "\n".join(parts)


def python_lines() -> Iterator[str]:
    for name in sorted(dir(mergeplan)):
        thing = getattr(mergeplan, name)
        yield from class_lines(thing) if isinstance(thing, type) else [f"{name}{signature_text(thing)}"]


def event_lines() -> Iterator[str]:
    for kind in sorted(mergeplan.events.Event.__subclasses__(), key=lambda kind: kind.__name__):
        yield from class_lines(kind)


def result_lines() -> Iterator[str]:
    """The classes that a session's calls and a plan give back, and that are not among the names of `mergeplan`."""
    kinds = {kind for owner in (mergeplan.Session, mergeplan.SessionPlan) for kind in returned_classes(owner)}
    named = {getattr(mergeplan, name) for name in dir(mergeplan)}
    for kind in sorted(kinds - named, key=lambda kind: kind.__name__):
        yield from class_lines(kind)


def returned_classes(owner: type) -> Iterator[type]:
    for _, call in inspect.getmembers(owner, inspect.isfunction):
        if not call.__name__.startswith("_"):
            returned = typing.get_type_hints(call)["return"]
            candidates = [returned, *typing.get_args(returned)]
            yield from (kind for kind in candidates if isinstance(kind, type) and "mergeplan" in kind.__module__)


def class_lines(kind: type) -> Iterator[str]:
    """A class: its bases of ours, then its fields, properties and methods."""
    bases = [base.__name__ for base in kind.__bases__ if base.__module__.startswith("mergeplan")]
    yield f"{kind.__name__}({', '.join(bases)})" if bases else kind.__name__
    if isinstance(kind, EnumType):
        yield from (f"  .{name} = {member.value!r}" for name, member in kind.__members__.items())
        return
    if dataclasses.is_dataclass(kind):
        yield from (f"  .{field_line(field)}" for field in dataclasses.fields(kind) if field.name[0] != "_")
    elif "__init__" in vars(kind) and issubclass(kind, Exception):
        yield f"  {signature_text(kind.__init__)}"
    for name, member in sorted(inspect.getmembers_static(kind)):
        if name.startswith("_") or "mergeplan" not in getattr(inspect.unwrap(raw(member)), "__module__", ""):
            continue
        if isinstance(member, (property, cached_property)):
            yield f"  .{name}: {inspect.signature(raw(member)).return_annotation}"
        elif inspect.isfunction(raw(member)):
            yield f"  .{name}{signature_text(raw(member))}"


def raw(member: typing.Any) -> typing.Any:
    """The function in a property, a static or a class method."""
    for attribute in ("fget", "func", "__func__"):
        if hasattr(member, attribute):
            return getattr(member, attribute)
    return member


def signature_text(call: typing.Any) -> str:
    """A call's parameters and what it returns, as they are written."""
    text = re.sub(r"<function (\w+) at \w+>", r"\1", str(inspect.signature(call)))
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)


def field_line(field: dataclasses.Field[object]) -> str:
    has_default = field.default is not dataclasses.MISSING
    made = "" if field.default_factory is dataclasses.MISSING else " = ..."
    return f"{field.name}: {field.type}" + (f" = {field.default!r}" if has_default else made)


def cli_lines() -> Iterator[str]:
    for verb, (target, _) in sorted({**VERBS, **BOT_VERBS}.items()):
        module, _, attribute = target.partition(":")
        yield from command_lines(verb, getattr(importlib.import_module(module), attribute))


def command_lines(name: str, command: click.Command) -> Iterator[str]:
    """A command with its arguments and options, and the commands below it."""
    yield name
    yield from (f"  {param_line(param)}" for param in command.params)
    for below, child in sorted(getattr(command, "commands", {}).items()):
        yield from command_lines(f"{name} {below}", child)


def param_line(param: click.Parameter) -> str:
    if isinstance(param, click.Argument):
        return f"{param.make_metavar(click.Context(click.Command('x')))}"
    kind = "|".join(map(str, param.type.choices)) if isinstance(param.type, click.Choice) else param.type.name
    flag = isinstance(param, click.Option) and (param.is_flag or param.count)
    facts = ["" if flag else kind, "several" if param.multiple else "", "required" if param.required else ""]
    return " ".join([", ".join([*param.opts, *param.secondary_opts]), *filter(None, facts)])


def action_lines() -> Iterator[str]:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    for name, entry in action["inputs"].items():
        yield f"input {name} = {entry.get('default', '')!r}"
    yield from (f"output {name}" for name in action["outputs"])


def setting_lines() -> Iterator[str]:
    for name, field in Settings.model_fields.items():
        default = str(field.default) if isinstance(field.default, Path) else repr(field.default)
        yield f"MERGEPLAN_{name.upper()} = {default}"


if __name__ == "__main__":
    SNAPSHOT.write_text(render_api(), encoding="utf-8")
