"""A config.py as the Document that a config.yaml of the same meaning would be, each key at its line."""

from __future__ import annotations

import ast

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.parsing.config_code.calls import WITHOUT_RUNNING
from mergeplan.planner.parsing.config_code.expressions import Imported
from mergeplan.planner.parsing.config_code.statements import names_of
from mergeplan.planner.parsing.config_code.values import Entries, Substitutions, Unreadable, Value, build_value, plain
from mergeplan.planner.parsing.sql.yaml_documents import Document

LONGEST = 100_000  # characters of a config.py
NAME = "config"  # SQLMesh's `--config` names another one; this is the one that it takes without


def read_code(path: str, text: str, substitutions: Substitutions, section: str | None = None) -> Document:
    """The configuration that a config.py makes, or one `section` of it alone; ProjectError at the line of what cannot
    be read without running it."""
    try:
        config = _configuration(_tree(text))
        assert isinstance(config.content, Entries)
        entries = Entries(
            {
                key: (line, _name_gateway(value) if key == "gateways" else value)
                for key, (line, value) in config.content.values.items()
                if section in (None, key)
            }
        )
        lines: dict[tuple[str | int, ...], int] = {}
        return Document(path, plain(Value(entries, config.line, 0, 0), (), lines, substitutions), lines)
    except Unreadable as error:
        raise ProjectError(error.message, place=Place(path, error.line), hint=error.hint or _instead(text)) from None
    except RecursionError:
        raise ProjectError("The file is nested too deeply.", place=Place(path), hint=_instead("")) from None


def _tree(text: str) -> ast.Module:
    if len(text) > LONGEST:
        raise Unreadable(1, f"The file has more than {LONGEST} characters.")
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise Unreadable(error.lineno or 1, f"This is not Python: {error.msg}.", "Mend the file.") from None
    except (ValueError, MemoryError):
        raise Unreadable(1, "This is not Python that can be read.", "Mend the file.") from None


def _configuration(tree: ast.Module) -> Value:
    configuration = names_of(tree).get(NAME)
    if isinstance(configuration, Unreadable):
        raise configuration
    if isinstance(configuration, Imported):
        raise Unreadable(1, f"`{NAME}` is imported from `{configuration.name.rpartition('.')[0]}`, {WITHOUT_RUNNING}")
    if configuration is None:
        raise Unreadable(1, f"config.py defines no `{NAME}`.", f"Write `{NAME} = Config(...)`, or a config.yaml.")
    if not isinstance(configuration.content, Entries) or configuration.content.made_by != "Config":
        raise Unreadable(configuration.line, f"`{NAME}` is not made by SQLMesh's `Config(...)`, {WITHOUT_RUNNING}")
    return configuration


def _name_gateway(gateways: Value) -> Value:
    """SQLMesh's `gateways=GatewayConfig(...)`, one without a name, is the gateway `default`."""
    content = gateways.content
    if not isinstance(content, Entries) or content.made_by != "GatewayConfig":
        return gateways
    return build_value(Entries({"default": (gateways.line, gateways)}), gateways.line)


def _instead(text: str) -> str:
    """What to write in place of the file, with the keys that its configuration has."""
    keys = _keys(text)
    named = f" with the keys that it gives: {', '.join(f'`{key}`' for key in keys)}" if keys else ""
    return (
        f"Write a config.yaml in its place{named}. A value that config.py computes is read from the environment there: "
        "`{{ env_var('NAME') }}`."
    )


def _keys(text: str) -> tuple[str, ...]:
    try:
        calls = [node for node in ast.walk(_tree(text)) if isinstance(node, ast.Call)]
    except (Unreadable, RecursionError):
        return ()
    named = [call for call in calls if getattr(call.func, "attr", getattr(call.func, "id", "")) == "Config"]
    return tuple(keyword.arg for call in named[:1] for keyword in call.keywords if keyword.arg)
