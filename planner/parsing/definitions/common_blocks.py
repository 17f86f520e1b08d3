"""The parts that MODEL and AUDIT files share: statements, dates, tables, and a query as Spark SQL."""

from datetime import datetime

from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.parsing.definitions.project_defaults import Defaults
from mergeplan.planner.parsing.definitions.properties import Property, read_name_list
from mergeplan.planner.parsing.sql.names import model_name
from mergeplan.planner.parsing.sql.tokens import SourceText, Tokens, statements


def block_statements(source: SourceText, tokens: Tokens, block_name: str) -> list[list[Token]]:
    all_statements = statements(tokens)
    if not all_statements:
        raise ProjectError(
            "The file is empty.", place=Place(source.path, 1), hint=f"Begin it with `{block_name} (...);`."
        )
    if not is_block(all_statements[0], block_name):
        raise source.error(all_statements[0][0], f"The file does not begin with `{block_name} (...);`.")
    return all_statements


def is_block(statement: Tokens, word: str) -> bool:
    return statement[0].text.upper() == word and len(statement) > 1 and statement[1].token_type is TokenType.L_PAREN


def property_date(prop: Property, defaults: Defaults, *, end: bool = False) -> datetime:
    try:
        return defaults.resolve_date(prop.text, end=end)
    except ValueError as error:
        raise prop.error(f"`{prop.key}`: {error}") from None


def table_names(prop: Property) -> tuple[str, ...]:
    return tuple(model_name(name, prop.place, prop.source.catalog) for name in read_name_list(prop))
