"""`signals (name(argument := value))` of a MODEL block: the signals that a model's intervals wait for."""

import json

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from mergeplan.planner.model.schedule import SignalCall
from mergeplan.planner.parsing.definitions.properties import Property, list_items, read_properties
from mergeplan.planner.parsing.sql.tokens import Tokens, closing, parse_tokens


def signal_calls(prop: Property) -> tuple[SignalCall, ...]:
    """Return `(a, b(x := 1))` as calls with arguments as JSON; raise ProjectError for a value that is no literal."""
    return tuple(_read_signal(prop, part) for part in list_items(prop) if part)


def _read_signal(prop: Property, part: Tokens) -> SignalCall:
    if len(part) == 1:
        return SignalCall(part[0].text.lower())
    if part[1].token_type is not TokenType.L_PAREN or closing(part, 1) != len(part) - 1:
        raise prop.error("A signal is written `name` or `name(argument := value)`.", token=part[1])
    arguments = (
        (argument.key, json.dumps(_literal_value(argument, parse_tokens(argument.source, argument.value, "The value"))))
        for argument in read_properties(prop.source, part[2:-1])
    )
    return SignalCall(part[0].text.lower(), tuple(arguments))


def _literal_value(prop: Property, tree: exp.Expr) -> object:
    match tree:
        case exp.Null():
            return None
        case exp.Boolean():
            return bool(tree.this)
        case exp.Literal():
            return tree.this if tree.is_string else _parse_number(tree.this)
        case exp.Neg(this=exp.Literal(is_string=False)):
            return -_parse_number(tree.this.this)
        case exp.Array() | exp.Tuple():
            return [_literal_value(prop, element) for element in tree.expressions]
        case exp.Paren():
            return _literal_value(prop, tree.this)
    raise prop.error(f"`{prop.text}` is not a string, a number, true, false, NULL or a list of these.")


def _parse_number(text: str) -> int | float:
    return int(text) if text.isdecimal() else float(text)
