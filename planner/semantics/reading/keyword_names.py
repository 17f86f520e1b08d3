"""Keywords in a position where only a name is possible: nearly all are names to Spark, and none to sqlglot."""

from collections.abc import Iterator, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.semantics.reading.token_runs import WORD

# Read as names without back-ticks, once a text cannot be parsed otherwise.
_NAMES = frozenset(
    """ALTER ANY COLLATE CREATE CUBE DESCRIBE DROP FETCH FOR GRANT IF ILIKE INSERT INTO LIKE LIMIT LOCK MINUS OFFSET
    OUTER OVERLAPS RECURSIVE REVOKE ROLLBACK ROLLUP SERDEPROPERTIES TABLESAMPLE UNCACHE USING VALUES WINDOW""".split()
)
# Names to Spark, too, but a text with one of them is more often one that is not finished: they need back-ticks.
_CLAUSES = frozenset(
    """ALL AND AS BETWEEN CASE CROSS DISTINCT ELSE EXCEPT FROM HAVING INNER INTERSECT JOIN LATERAL NOT ON OR SELECT
    THEN UNION WHEN WHERE WITH""".split()
)
_OPERATORS = frozenset({
    TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.DIV, TokenType.MOD, TokenType.DPIPE,
    TokenType.EQ, TokenType.NEQ, TokenType.GT, TokenType.GTE, TokenType.LT, TokenType.LTE, TokenType.NULLSAFE_EQ,
    TokenType.AMP, TokenType.PIPE, TokenType.CARET, TokenType.AND, TokenType.OR, TokenType.COMMA, TokenType.BETWEEN,
    TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE, TokenType.ARROW, TokenType.FARROW, TokenType.DOT,
})  # fmt: skip
# after these a value, a table or a name begins
_BEFORE = _OPERATORS | {
    TokenType.SELECT, TokenType.DISTINCT, TokenType.ALL, TokenType.WHERE, TokenType.HAVING, TokenType.ON,
    TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.PARTITION_BY, TokenType.SORT_BY, TokenType.CLUSTER_BY,
    TokenType.DISTRIBUTE_BY, TokenType.WHEN, TokenType.THEN, TokenType.ELSE, TokenType.CASE, TokenType.NOT,
    TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.FROM, TokenType.JOIN, TokenType.WITH, TokenType.ALIAS,
    TokenType.OVER, TokenType.WINDOW, TokenType.FOR, TokenType.TILDE,
}  # fmt: skip
# the end of a value or a table that has an alias
_VALUES = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.STRING,
           TokenType.NUMBER, TokenType.END, TokenType.NULL, TokenType.TRUE, TokenType.FALSE)  # fmt: skip
_AFTER = _OPERATORS | {
    TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.L_BRACKET, TokenType.FROM, TokenType.ALIAS,
    TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.SORT_BY, TokenType.LIMIT,
    TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT,
    TokenType.THEN, TokenType.ELSE, TokenType.END, TokenType.WHEN, TokenType.IS, TokenType.IN, TokenType.NOT,
    TokenType.ASC, TokenType.DESC, TokenType.DCOLON, TokenType.COLON, TokenType.PIPE_GT, TokenType.SEMICOLON,
    TokenType.ON, TokenType.USING, TokenType.JOIN, TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.INNER,
    TokenType.CROSS, TokenType.LATERAL, TokenType.WINDOW, TokenType.FOR,
}  # fmt: skip


def quote_keywords(tokens: Sequence[Token], *, clauses: bool = False) -> Iterator[tuple[str, list[Token]]]:
    """Yield each keyword that may be a name, and the tokens with it as a quoted name.

    In the end, yield the tokens with all of them quoted. With `clauses`, the keywords are those that Spark reads as
    names and mergeplan does not.
    """
    words = _CLAUSES if clauses else _NAMES
    places = [index for index in range(len(tokens)) if _can_be_name(tokens, index, words)]
    keywords = dict.fromkeys(tokens[index].text.upper() for index in places)
    choices = [frozenset((word,)) for word in keywords]
    for chosen in (*choices, *((frozenset(keywords),) if len(choices) > 1 and not clauses else ())):
        quoted = {index for index in places if tokens[index].text.upper() in chosen}
        yield min(chosen), [_quote_token(token) if at in quoted else token for at, token in enumerate(tokens)]


def _quote_token(token: Token) -> Token:
    place = (token.line, token.col, token.start, token.end)
    return Token(TokenType.IDENTIFIER, token.text, *place, token.comments)


def _can_be_name(tokens: Sequence[Token], index: int, words: frozenset[str]) -> bool:
    token = tokens[index]
    if token.token_type in (TokenType.IDENTIFIER, TokenType.STRING) or token.text.upper() not in words:
        return False
    previous_kind = tokens[index - 1].token_type if index else TokenType.SEMICOLON
    next_kind = tokens[index + 1].token_type if index + 1 < len(tokens) else TokenType.SEMICOLON
    if TokenType.DOT in (previous_kind, next_kind) or (
        previous_kind is TokenType.ALIAS and next_kind is not TokenType.L_PAREN
    ):
        return True
    if next_kind is TokenType.L_PAREN:  # `WITH values (a) AS`, `AS values (a)`
        return previous_kind in (TokenType.WITH, TokenType.ALIAS)
    if (
        previous_kind in (TokenType.FROM, TokenType.JOIN)
        and index + 1 < len(tokens)
        and tokens[index + 1].text.upper() in words
    ):
        return True  # and that is its alias
    is_word_before = previous_kind in (*_BEFORE, *_VALUES, TokenType.VIEW) or bool(
        WORD.fullmatch(tokens[index - 1].text)
    )
    return next_kind in _AFTER and is_word_before
