"""Control flow macros: names, lists, conditions, SQL from strings."""

from collections.abc import Callable
from decimal import Decimal

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from mergeplan.planner.parsing.macros.expander import BuiltIn, Expander, Invocation, function_of
from mergeplan.planner.parsing.macros.signature import arguments_of, check_argument_count
from mergeplan.planner.parsing.sql.token_lists import Piece, value_tokens


def define_name(room: Expander, call: Invocation) -> list[Piece]:
    """`@DEF(name, expression)` and `@DEF(name, x -> ...)`: a name for the rest of the file."""
    check_argument_count(room, call, 2, 2, "@DEF(name, value)")
    name = call.arguments[0]
    if len(name) != 1 or not name[0].text.isidentifier():
        raise room.source.error(call.at, "`@DEF` takes a name and its value.")
    function = function_of(call.arguments[1])
    room.names[name[0].text.lower()] = function or room.run(call.arguments[1])
    return []


def read_variable(room: Expander, call: Invocation) -> list[Piece]:
    """`@VAR('name')` and `@VAR('name', default)`: NULL without variable and default."""
    values = {**room.scope.variables, "gateway": room.scope.gateway}
    at, dialect = (call.at, call.last), room.source.dialect
    return _lookup_variable(room, call, lambda key: value_tokens(values[key], dialect, *at) if key in values else None)


def blueprint_variable(room: Expander, call: Invocation) -> list[Piece]:
    """`@BLUEPRINT_VAR('name')` and `@BLUEPRINT_VAR('name', default)`."""
    blueprint = room.scope.blueprint
    return _lookup_variable(room, call, lambda key: list(blueprint[key]) if key in blueprint else None)


def _lookup_variable(room: Expander, call: Invocation, value: Callable[[str], Piece | None]) -> list[Piece]:
    name = room.run(call.arguments[0]) if call.arguments else []
    if not 1 <= len(call.arguments) <= 2 or len(name) != 1 or name[0].token_type is not TokenType.STRING:
        message = f"`@{call.name.upper()}` takes the variable's name in quotes and, optionally, a default."
        raise room.source.error(call.at, message)
    tokens = value(name[0].text.lower())
    if tokens is not None:
        return [tokens]
    if len(call.arguments) == 2:
        return [room.run(call.arguments[1])]
    return [value_tokens(None, room.source.dialect, call.at, call.last)]


def gateway_name(room: Expander, call: Invocation) -> list[Piece]:
    """`@GATEWAY()`: the gateway's name."""
    check_argument_count(room, call, 0, 0, "@GATEWAY()")
    return [value_tokens(room.scope.gateway, room.source.dialect, call.at, call.last)]


def _items_and_function(room: Expander, call: Invocation) -> tuple[list[Piece], Piece]:
    """Return the items and the function of `@EACH([a, b], x -> ...)` or `@EACH(a, b, x -> ...)`."""
    if len(call.arguments) < 2:
        raise room.source.error(call.at, f"`@{call.name}` takes a list and a function, `@{call.name}([a, b], x -> x)`.")
    *arguments, function = call.arguments
    items = room.items(arguments[0]) if len(arguments) == 1 else [room.run(argument) for argument in arguments]
    return [item for item in items if item], function


def map_items(room: Expander, call: Invocation) -> list[Piece]:
    """`@EACH([a, b], x -> ...)`: the function's result for each item, joined by commas."""
    items, argument = _items_and_function(room, call)
    function = room.function(call, argument, 1)
    return [piece for item in items if (piece := room.apply_lambda(function, call, [item]))]


def reduce_items(room: Expander, call: Invocation) -> list[Piece]:
    """`@REDUCE([a, b, c], (x, y) -> x + y)`: the items combined pairwise, from the left."""
    items, argument = _items_and_function(room, call)
    function = room.function(call, argument, 2)
    while len(items) > 1:
        items = [room.apply_lambda(function, call, items[:2]), *items[2:]]
    return items


def filter_items(room: Expander, call: Invocation) -> list[Piece]:
    """`@FILTER([1, 2, 3], x -> x > 1)`: the items for which the condition is true."""
    items, argument = _items_and_function(room, call)
    function = room.function(call, argument, 1)
    return [item for item in items if room.value(room.apply_lambda(function, call, [item]), call)]


def choose_value(room: Expander, call: Invocation) -> list[Piece]:
    """`@IF(condition, value, otherwise)`: nothing when the condition is not true and there is no otherwise."""
    check_argument_count(room, call, 2, 3, "@IF(condition, value, otherwise)")
    if room.value(call.arguments[0], call):
        return [room.run(call.arguments[1])]
    return [room.run(call.arguments[2])] if len(call.arguments) == 3 else []


def evaluate_value(room: Expander, call: Invocation) -> list[Piece]:
    """`@EVAL(5 + 1)`: the value of the expression."""
    check_argument_count(room, call, 1, 1, "@EVAL(expression)")
    value = room.value(call.arguments[0], call)
    if isinstance(value, Decimal):
        return room.pieces(call, str(value))
    return [value_tokens(value, room.source.dialect, call.at, call.last)]


def insert_sql(room: Expander, call: Invocation) -> list[Piece]:
    """`@SQL('text')`: the SQL in a string."""
    check_argument_count(room, call, 1, 2, "@SQL('text')")
    tokens = room.run(call.arguments[0])
    if len(tokens) != 1 or tokens[0].token_type is not TokenType.STRING:
        raise room.source.error(call.at, "`@SQL` takes a quoted string.")
    return room.pieces(call, room.fill_template(tokens[0].text, call.at))


def join_by_and(room: Expander, call: Invocation) -> list[Piece]:
    """`@AND(a, b, ...)`: those that are not NULL, joined; TRUE when there is none."""
    return _connect_conditions(room, call, exp.and_)


def join_by_or(room: Expander, call: Invocation) -> list[Piece]:
    """`@OR(a, b, ...)`: those that are not NULL, joined; TRUE when there is none."""
    return _connect_conditions(room, call, exp.or_)


def _connect_conditions(room: Expander, call: Invocation, connect: type[exp.And] | object) -> list[Piece]:
    trees = [
        room.tree(element, call) for argument in call.arguments for element in room.items(argument) if room.run(element)
    ]
    conditions = [tree for tree in trees if not isinstance(tree, exp.Null)]
    if not conditions:
        return room.pieces(call, exp.true())
    return room.pieces(call, connect(*conditions, dialect=room.source.dialect))  # type: ignore[operator]


def negate_condition(room: Expander, call: Invocation) -> list[Piece]:
    """`@NOT(a)`."""
    (tree,) = arguments_of(room, call, "condition")
    return room.pieces(call, exp.not_(tree))


def make_array(room: Expander, call: Invocation) -> list[Piece]:
    """`@ARRAY(a, b)`: a list for other macros."""
    return [item for argument in call.arguments for item in room.items(argument) if item]


CONTROL: dict[str, BuiltIn] = {
    "def": define_name,
    "var": read_variable,
    "blueprint_var": blueprint_variable,
    "gateway": gateway_name,
    "each": map_items,
    "reduce": reduce_items,
    "filter": filter_items,
    "if": choose_value,
    "eval": evaluate_value,
    "sql": insert_sql,
    "and": join_by_and,
    "or": join_by_or,
    "not": negate_condition,
    "array": make_array,
}
