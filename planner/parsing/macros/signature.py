"""The arguments of a built-in macro, bound to the names of its parameters."""

from collections.abc import Sequence

from sqlglot import exp

from mergeplan.planner.parsing.macros.expander import Expander, Invocation
from mergeplan.planner.parsing.sql.token_lists import Piece
from mergeplan.planner.parsing.sql.tokens import did_you_mean


def check_argument_count(room: Expander, call: Invocation, least: int, most: int, form: str) -> None:
    """Raise ProjectError unless the call has as many arguments as it takes, and none by name."""
    if call.keywords or not least <= len(call.arguments) <= most:
        raise room.source.error(call.at, f"`@{call.name}` is called as `{form}`.")


def bind_arguments(room: Expander, call: Invocation, names: Sequence[str], required_count: int) -> dict[str, Piece]:
    """Return the arguments by parameter, of which the first `required_count` must be given; raise ProjectError."""
    form = f"@{call.name}({', '.join(names)})"
    if len(call.arguments) > len(names):
        raise room.source.error(call.at, f"`@{call.name}` takes at most {len(names)} arguments: `{form}`.")
    arguments = dict(zip(names, call.arguments, strict=False))
    for key, value in call.keywords.items():
        if key not in names:
            raise room.source.error(call.at, f"`@{call.name}` has no argument `{key}`.", did_you_mean(key, names))
        if key in arguments:
            raise room.source.error(call.at, f"`@{call.name}` has the argument `{key}` twice.")
        arguments[key] = value
    for name in names[:required_count]:
        if name not in arguments:
            raise room.source.error(call.at, f"`@{call.name}` needs the argument `{name}`: `{form}`.")
    return arguments


def arguments_of(room: Expander, call: Invocation, *names: str) -> list[exp.Expr]:
    arguments = bind_arguments(room, call, names, len(names))
    return [room.tree(arguments[name], call) for name in names]


def text_argument(room: Expander, call: Invocation, arguments: dict[str, Piece], name: str, default: str) -> str:
    if name not in arguments:
        return default
    tree = room.tree(arguments[name], call)
    if isinstance(tree, exp.Literal) and tree.is_string:
        return str(tree.this)
    raise room.source.error(arguments[name][0], f"`{name}` of `@{call.name}` must be a quoted string.")


def flag_argument(room: Expander, call: Invocation, arguments: dict[str, Piece], name: str, default: bool) -> bool:
    if name not in arguments:
        return default
    value = room.value(arguments[name], call)
    if isinstance(value, bool):
        return value
    raise room.source.error(arguments[name][0], f"`{name}` of `@{call.name}` must be true or false.")
