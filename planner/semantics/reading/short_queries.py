"""Rewrite queries without SELECT, and those after `|> UNION`, in the form that sqlglot parses."""

from collections.abc import Iterator, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.semantics.reading.token_runs import WORD, build_token, operator_end

_SETS = (TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT)
_QUANTIFIERS = (TokenType.ALL, TokenType.DISTINCT)
_REWRITTEN = (TokenType.PIPE_GT, TokenType.VALUES, TokenType.TABLE)
# tokens that are no name in `TABLE name`
_NO_NAMES = (TokenType.ALIAS, TokenType.FROM, TokenType.WHERE, TokenType.AND, TokenType.OR, TokenType.IN)


def write_out_queries(tokens: Sequence[Token], dialect: str = "spark") -> list[Token]:
    """Return the tokens with `TABLE t` and `VALUES (1)` as `SELECT * FROM ...`.

    After a pipe's set operator they are in brackets. Spark reads them in this way, and only then can a physical table
    replace `t`.
    """
    if dialect != "spark" or all(token.token_type not in _REWRITTEN for token in tokens):
        return list(tokens)
    out, index = list[Token](), 0
    while index < len(tokens):
        behind = tokens[index + 1].token_type if index + 1 < len(tokens) else None
        if tokens[index].token_type is TokenType.PIPE_GT and behind in _SETS:
            start = index + 2
            start += start < len(tokens) and tokens[start].token_type in _QUANTIFIERS
            start += 2 * ([token.text.upper() for token in tokens[start : start + 2]] == ["BY", "NAME"])
            out += tokens[index:start]
            if start < len(tokens) and tokens[start].token_type is not TokenType.L_PAREN:
                end = operator_end(tokens, start)
                out += _enclose_query(write_out_queries(tokens[start:end]))
                start = end
            index = start
            continue
        if _begins_short_query(tokens, index):
            at = tokens[index]
            out += [build_token(TokenType.SELECT, "SELECT", at), build_token(TokenType.STAR, "*", at)]
            out.append(build_token(TokenType.FROM, "FROM", at))
            index += at.token_type is not TokenType.VALUES  # which stays
        out.append(tokens[index])
        index += 1
    return out


def _enclose_query(query: Sequence[Token]) -> Iterator[Token]:
    if query:
        yield build_token(TokenType.L_PAREN, "(", query[0])
        yield from query
        yield build_token(TokenType.R_PAREN, ")", query[-1])


def _begins_short_query(tokens: Sequence[Token], index: int) -> bool:
    token = tokens[index]
    if token.token_type is TokenType.VALUES:
        behind_ctes = index and tokens[0].token_type is TokenType.WITH and tokens[index - 1].text == ")"
        following = tokens[index + 1].token_type if index + 1 < len(tokens) else None
        begins_row = following in (TokenType.L_PAREN, TokenType.NUMBER, TokenType.STRING)
        return _begins_statement(tokens, index) or bool(behind_ctes and begins_row)
    if token.token_type is not TokenType.TABLE or index + 1 >= len(tokens):
        return False
    name, previous = tokens[index + 1], tokens[index - 1] if index else None
    if name.token_type in _NO_NAMES or not (name.token_type is TokenType.IDENTIFIER or WORD.fullmatch(name.text)):
        return False
    if previous is None or _begins_statement(tokens, index):
        return True
    if previous.token_type is TokenType.L_PAREN:  # `f(TABLE t)` is an argument, and no query
        return index < 2 or tokens[index - 2].token_type not in (TokenType.VAR, TokenType.IDENTIFIER)
    return previous.token_type in (*_SETS, *_QUANTIFIERS, TokenType.R_PAREN)


def _begins_statement(tokens: Sequence[Token], index: int) -> bool:
    return index == 0 or tokens[index - 1].token_type is TokenType.SEMICOLON
