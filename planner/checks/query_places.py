"""The places of a query's outputs in the model's file, as far as its tokens show them."""

from collections.abc import Iterator

from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.sql.tokens import CLOSE, OPEN, QUERY_BEGINS, SourceText, Tokens, statements, tokenize

ENDS = ("FROM", "UNION", "INTERSECT", "EXCEPT", "MINUS", "WHERE", "GROUP", "ORDER", "LIMIT", "HAVING", "LATERAL")
QUANTIFIERS = ("DISTINCT", "ALL")


def output_places(model: Model) -> tuple[Place, ...]:
    """Return the place where each output of the outermost SELECT begins; () if it is unknown."""
    source = SourceText(model.path, model.source, model.dialect)
    tokens = _query_tokens(source)
    start = next((i for i, depth in _bracket_depths(tokens) if depth == 0 and tokens[i].text.upper() == "SELECT"), None)
    if start is None:
        return ()
    outputs: list[Token] = []
    begins = True
    for index, depth in _bracket_depths(tokens[start + 1 :]):
        token = tokens[start + 1 + index]
        if depth == 0 and token.text.upper() in ENDS and token.token_type is not TokenType.STRING:
            break
        if depth == 0 and token.token_type is TokenType.COMMA:
            begins = True
        elif begins and token.text.upper() not in QUANTIFIERS and token.token_type is not TokenType.HINT:
            outputs.append(token)
            begins = False
    return tuple(source.place(token) for token in outputs)


def _query_tokens(source: SourceText) -> Tokens:
    try:
        all_statements = statements(tokenize(source))
    except ProjectError:
        return ()
    return next((statement for statement in all_statements[1:] if statement[0].text.upper() in QUERY_BEGINS), ())


def _bracket_depths(tokens: Tokens) -> Iterator[tuple[int, int]]:
    """Yield each token's index and its depth in brackets; a bracket itself has the depth outside of it."""
    depth = 0
    for index, token in enumerate(tokens):
        depth -= token.token_type in CLOSE
        yield index, depth
        depth += token.token_type in OPEN
