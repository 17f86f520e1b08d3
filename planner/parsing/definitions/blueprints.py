"""Blueprints: one file that defines several models, each with its own names."""

from collections.abc import Mapping

from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.parsing.definitions.properties import Property, block
from mergeplan.planner.parsing.macros.expand import expander
from mergeplan.planner.parsing.sql.macro_scope import MacroScope
from mergeplan.planner.parsing.sql.token_lists import join_pieces
from mergeplan.planner.parsing.sql.tokens import SourceText, Tokens, closing, split_commas

Blueprint = Mapping[str, tuple[Token, ...]]  # name in lower case -> its tokens
MOST = 2_000  # models of one file: the file is read as a whole, in an editor after each change
HELD = ("blueprints", "session_properties", "pre_statements", "post_statements", "on_virtual_update")


def split_header(source: SourceText, header: Tokens) -> tuple[list[Token], dict[str, Property]]:
    """Return a MODEL block without the properties in which macros have another meaning, and these properties."""
    if not any(token.text.lower() in HELD for token in header):
        return list(header), {}
    properties = block(source, header)
    property_tokens = [[prop.at, *prop.value] for prop in properties if prop.key not in HELD]
    whole = [*header[:2], *join_pieces(property_tokens, header[0], header[0]), header[-1]]
    return whole, {prop.key: prop for prop in properties if prop.key in HELD}


def read_blueprints(source: SourceText, prop: Property | None, scope: MacroScope) -> tuple[Blueprint, ...]:
    """Return the blueprints of a file, or one without names if it lists none; raise ProjectError for a broken list."""
    if prop is None:
        return ({},)
    items = expander(source, scope).items(list(prop.value))
    if len(items) > MOST:
        message = f"`blueprints` lists {len(items):,} models, and a file may have {MOST:,}."
        raise prop.error(message, "Split the list among several files.")
    all_blueprints = tuple(_read_blueprint(prop, item) for item in items)
    if not all_blueprints:
        raise prop.error("`blueprints` lists none.", "Write `blueprints ((name := a), (name := b))`.")
    return all_blueprints


def _read_blueprint(prop: Property, item: list[Token]) -> Blueprint:
    enclosed = len(item) > 1 and item[0].token_type is TokenType.L_PAREN and closing(item, 0) == len(item) - 1
    parts = split_commas(item[1:-1]) if enclosed else [item]
    variables: dict[str, tuple[Token, ...]] = {}
    for part in parts:
        if len(part) < 3 or part[1].token_type not in (TokenType.COLON_EQ, TokenType.EQ):
            at = part[0] if part else prop.at
            raise prop.error("A blueprint is written `(name := value, other := value)`.", token=at)
        variables[part[0].text.lower()] = tuple(part[2:])
    return variables
