"""Check if the parser's tree represents a query's text completely; it parses `TIME '10:00'` as TIMESTAMP, for example.

A model is judged by the tree, but the text runs. The words of the text (functions, operators, literals) must therefore
be those of the tree written out again. If they are not, the model is judged by all of its words, so that two texts of
one tree are never treated as the same query.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.fingerprint import digest
from mergeplan.planner.naming import SESSION_CATALOG
from mergeplan.planner.parsing.sql.token_lists import fuse_macros
from mergeplan.planner.parsing.sql.tokens import CLOSE, OPEN, SourceText, Tokens, closing, split_commas, tokenize
from mergeplan.planner.semantics.expressions import has_other_precedence
from mergeplan.planner.semantics.reading.readable_tokens import with_calls_for_paths
from mergeplan.planner.semantics.spark.spark_sql import NAMED

_TEXTS = (TokenType.STRING, TokenType.RAW_STRING)
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_SILENT = (
    TokenType.L_PAREN, TokenType.R_PAREN, TokenType.COMMA, TokenType.DOT, TokenType.DCOLON, TokenType.ALIAS,
    TokenType.HINT, TokenType.INNER, TokenType.OUTER, TokenType.ASC,
)  # fmt: skip
_BEHIND_NAMES = (TokenType.COMMA, TokenType.R_PAREN, TokenType.FROM)
# `x::INT` and `DATE '2026-01-01'` are casts too; the catalog is the only one
_UNSAID = ("CAST", SESSION_CATALOG.upper())
_SETS = (TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT)
_ORDERS = frozenset({("NULLS", "FIRST"), ("NULLS", "LAST")})  # the tree has them, and omits the defaults
_UNITS = frozenset("YEAR QUARTER MONTH WEEK DAY HOUR MINUTE SECOND".split())
_BEFORE_VALUES = frozenset("SELECT WHERE AND OR NOT WHEN THEN ELSE HAVING ON BETWEEN IS FROM LIKE CASE".split())
_SIZED = (TokenType.VARCHAR, TokenType.CHAR)  # to cast to VARCHAR(20) is to cast to STRING
_AMOUNT = re.compile(r"(-?\d+) ((?:year|month|week|day|hour|minute|second)s?)", re.IGNORECASE)
_CROSS_JOIN = (TokenType.CROSS.name, TokenType.JOIN.name)
_BEHIND_FROM = frozenset({
    TokenType.SELECT, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.QUALIFY, TokenType.WINDOW,
    TokenType.ORDER_BY, TokenType.SORT_BY, TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY, TokenType.LIMIT,
    TokenType.OFFSET, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.PIPE_GT,
})  # fmt: skip
_UNTIL_NOW = ("BETWEEN", "AND", "CURRENT", "ROW")  # of a frame that is written out
# names of one function in Spark 4.1, and rewritten calls: each with the words of the other
_SAME: dict[str, tuple[str, ...]] = {
    **{one: (other,) for one, other in (pair.split("=") for pair in """
        APPROX_PERCENTILE=PERCENTILE_APPROX ARRAY_AGG=COLLECT_LIST BIT_GET=GETBIT CEILING=CEIL CHAR=CHR
        CHARACTER_LENGTH=LENGTH CHAR_LENGTH=LENGTH LEN=LENGTH CURDATE=CURRENT_DATE DATEADD=DATE_ADD DATE_DIFF=DATEDIFF
        IFNULL=COALESCE NVL=COALESCE POSITION=LOCATE INSTR=LOCATE LCASE=LOWER UCASE=UPPER POW=POWER RANDOM=RAND
        REDUCE=AGGREGATE REGEXP_LIKE=RLIKE SHA1=SHA SIGNUM=SIGN STRING_AGG=LISTAGG SUBSTR=SUBSTRING VAR_SAMP=VARIANCE
        TIMESTAMPADD=DATE_ADD TO_UNIX_TIMESTAMP=UNIX_TIMESTAMP TO_TIMESTAMP=TIMESTAMPTZ
        NAMED_STRUCT=STRUCT""".split())},
    "DATE_SUB": ("DATE_ADD", "STAR", "DASH", "1"),
    "SPACE": ("REPEAT", "' '"),
    "NULLSAFE_EQ": ("IS", "NOT", "DISTINCT", "FROM"),
}  # fmt: skip
# a last argument that is Spark's default
_DEFAULTS = {"REGEXP_EXTRACT": (3, "1"), "SORT_ARRAY": (2, "TRUE"), "FROM_UNIXTIME": (2, "yyyy-MM-dd HH:mm:ss")}
_ADDED = {"LISTAGG": ("''",), "STR_TO_MAP": ("','", "':'"), "FROM_UTC_TIMESTAMP": ("TIMESTAMPTZ",),
          "TO_UTC_TIMESTAMP": ("TIMESTAMPTZ",)}  # fmt: skip


def misreading_digest(tokens: Tokens, tree: exp.Expr, sql: str) -> str:
    """Return '' if the tree, generated as `sql`, represents all tokens, or a digest of the tokens."""
    new_tokens = fuse_macros(tokenize(SourceText("", sql, "spark")))
    unsaid = any(has_other_precedence(node) or _filters_by_field(node) for node in tree.walk())
    unsaid = unsaid or bool(tree.meta.get(NAMED))
    if not unsaid and not _has_difference(tokens, new_tokens, tree):
        return ""
    return digest(*(_word_text(token, None) for token in tokens))[:24]


def _filters_by_field(node: exp.Expr) -> bool:
    """Return True if HAVING or ORDER BY names a field of an output, because such a tree is ambiguous.

    Spark finds the field of `NAMED_STRUCT('a', 1) AS s`. If the output is `STRUCT(1 AS a) AS s`, which is the same
    tree, Spark reads `s.a` as a field of a column.
    """
    if not isinstance(node, exp.Select):
        return False
    structs = {
        output.alias.lower() for output in node.selects if isinstance(output, exp.Alias) and output.find(exp.Struct)
    }
    clauses = [clause for clause in (node.args.get("having"), node.args.get("order")) if structs and clause]
    return any(column.table.lower() in structs for clause in clauses for column in clause.find_all(exp.Column))


def tokens_differ(tokens: Tokens, again: Tokens) -> bool:
    return _has_difference(tokens, again, None)


def _has_difference(tokens: Tokens, again: Tokens, tree: exp.Expr | None) -> bool:
    text_words, read = (Counter(_list_words(with_calls_for_paths(part))) for part in (tokens, again))
    added = text_words - read, read - text_words
    if tree is not None:
        _forget_conditions(added[1], tree)
    for name, words in _ADDED.items():
        added[1].subtract(word for word in words for _ in range(text_words[name]))
    return bool(+added[0]) or any(n > 0 and not _names_field(word) for word, n in added[1].items())


def _forget_conditions(added: Counter[str], tree: exp.Expr) -> None:
    """Remove `ON TRUE` from the added words, because Spark reads a join without a condition in the same way."""
    conditions = [join.args.get("on") for join in tree.find_all(exp.Join)]
    limit = sum(isinstance(condition, exp.Boolean) and bool(condition.this) for condition in conditions)
    if added["ON"] == added["TRUE"] <= limit:
        added["ON"] = added["TRUE"] = 0


def _names_field(word: str) -> bool:
    """Return True for the default name of a field: `struct(1, 2)` is `struct(1 AS col1, 2 AS col2)`."""
    return word.startswith("COL") and word[3:].isdigit()


def _list_words(tokens: Tokens) -> Iterator[str]:
    sized, crosses = _find_types_of_length(tokens), _find_joining_commas(tokens)
    left_out = _default_arguments(tokens) | _redundant_aliases(tokens) | {index + 2 for index in sized}
    fields = _field_names(tokens)
    for index, (last, token) in enumerate(pairwise([None, *tokens])):
        assert token is not None
        if token.token_type is TokenType.DCOLON and last and last.end == token.end and _is_suffix(tokens, index + 1):
            yield "suffix"  # next to a decimal `1L` is another number than `CAST(1 AS BIGINT)`
        if index in crosses:
            yield from _CROSS_JOIN
        if token.token_type is TokenType.L_PAREN and index - 1 not in crosses and _is_grouping(last):
            yield "("  # the parser puts brackets where it takes one operator to bind closer than another
        if token.token_type is TokenType.ALIAS and _is_a_name(tokens, index):
            yield "AS"
        if _starts_short_frame(tokens, index):
            yield from _UNTIL_NOW
        if token.token_type in _SILENT or index in left_out or _goes_without(tokens, index):
            continue
        if index in fields:
            yield token.text.upper()
            continue
        if index in sized or _lacks_length(tokens, index):
            yield TokenType.TEXT.name
            continue
        if _is_amount(tokens, index) and (amount := _AMOUNT.fullmatch(token.text)):
            yield from (amount[1], amount[2].upper())
            continue
        word = _word_text(token, last)
        if word not in _UNSAID:
            yield from _SAME.get(word, (word,))


def _find_joining_commas(tokens: Tokens) -> set[int]:
    """Return the commas between tables of FROM, each a CROSS JOIN: to Spark it binds as any other JOIN does."""
    commas, is_from = set[int](), [False]  # by brackets that are open
    for index, token in enumerate(tokens):
        kind, previous = token.token_type, tokens[index - 1].token_type if index else None
        following = tokens[index + 1].token_type if index + 1 < len(tokens) else None
        if kind in OPEN:
            is_from.append(False)
        elif kind in CLOSE:
            is_from = is_from[:-1] or [False]
        elif kind is TokenType.FROM:
            is_from[-1] = is_from[-1] or previous not in (TokenType.DISTINCT, TokenType.DOT)
        elif kind in _BEHIND_FROM or (kind is TokenType.LATERAL and following is TokenType.VIEW):
            is_from[-1] = False
        elif kind is TokenType.COMMA and is_from[-1]:
            commas.add(index)
    return commas


def _find_types_of_length(tokens: Tokens) -> set[int]:
    """Return the positions of types like `VARCHAR(20)` in casts: such a value is a STRING that is not cut."""
    kinds = [token.token_type for token in tokens]
    return {
        index
        for index, kind in enumerate(kinds)
        if kind in _SIZED and index and kinds[index - 1] in (TokenType.ALIAS, TokenType.DCOLON)
        and kinds[index + 1 : index + 4] == [TokenType.L_PAREN, TokenType.NUMBER, TokenType.R_PAREN]
    }  # fmt: skip


def _lacks_length(tokens: Tokens, index: int) -> bool:
    """Return True for the type of `CAST(a AS VARCHAR)`: Spark requires a length, others read it as STRING."""
    kinds = [token.token_type for token in tokens[max(index - 1, 0) : index + 2]]
    return kinds == [TokenType.ALIAS, TokenType.VARCHAR, TokenType.R_PAREN]


def _is_amount(tokens: Tokens, index: int) -> bool:
    return bool(index) and tokens[index - 1].token_type is TokenType.INTERVAL


def _starts_short_frame(tokens: Tokens, index: int) -> bool:
    """Return True for `ROWS UNBOUNDED PRECEDING`, which ends at the current row."""
    kind, *bound = [token.text.upper() for token in tokens[index : index + 3]]
    return kind in ("ROWS", "RANGE") and bound == ["UNBOUNDED", "PRECEDING"]


def _is_a_name(tokens: Tokens, index: int) -> bool:
    """Return True for the `AS` of `SELECT a AS, b`, which to Spark is the alias; the parser drops it."""
    return index + 1 >= len(tokens) or tokens[index + 1].token_type in _BEHIND_NAMES


def _is_suffix(tokens: Tokens, index: int) -> bool:
    """Return True for a suffix of a number except `D`: `1e16D` is always `CAST(1e16 AS DOUBLE)`."""
    return index >= len(tokens) or tokens[index].text.upper() not in ("D", "DOUBLE")


def _is_grouping(before: Token | None) -> bool:
    """Return True if a bracket after this token only groups: it is no function's, list's or subquery's in FROM."""
    if before is None or before.text.upper() in _BEFORE_VALUES:
        return True
    named = before.token_type in (*_TEXTS, TokenType.IDENTIFIER, *CLOSE)
    return not named and not before.text.replace(" ", "").replace("_", "").isalnum()


def _word_text(token: Token, before: Token | None) -> str:
    kind = token.token_type
    if kind in _TEXTS:
        amount = before is not None and before.token_type is TokenType.INTERVAL
        return token.text if amount else repr(token.text.upper() if token.text.upper() in _UNITS else token.text)
    if kind in (TokenType.VAR, TokenType.IDENTIFIER):
        return token.text.upper()
    return token.text.lower() if kind is TokenType.NUMBER else kind.name


def _goes_without(tokens: Tokens, index: int) -> bool:
    """Return True for DISTINCT after UNION and the like, and for NULLS FIRST or NULLS LAST."""
    words = [token.text.upper() for token in tokens[max(index - 1, 0) : index + 2]]
    if index and tokens[index - 1].token_type in _SETS and tokens[index].token_type is TokenType.DISTINCT:
        return True
    pairs = set(pairwise(words)) & _ORDERS
    return any(tokens[index].text.upper() in pair for pair in pairs)


def _list_calls(tokens: Tokens) -> Iterator[tuple[str, list[list[Token]]]]:
    for index, (name, opening) in enumerate(pairwise(tokens)):
        if opening.token_type is TokenType.L_PAREN and name.text.upper() in (*_DEFAULTS, "NAMED_STRUCT", "STRUCT"):
            yield name.text.upper(), split_commas(tokens[index + 2 : closing(tokens, index + 1)])


def _default_arguments(tokens: Tokens) -> set[int]:
    index_by_id = {id(token): index for index, token in enumerate(tokens)}
    return {
        index_by_id[id(arguments[-1][0])]
        for name, arguments in _list_calls(tokens)
        if name in _DEFAULTS and len(arguments) == _DEFAULTS[name][0]
        and len(arguments[-1]) == 1 and arguments[-1][0].text.upper() == _DEFAULTS[name][1].upper()
    }  # fmt: skip


def _redundant_aliases(tokens: Tokens) -> set[int]:
    """Return the positions of aliases that repeat a column's name: `struct(a.id AS id)` is `struct(a.id)`."""
    index_by_id = {id(token): index for index, token in enumerate(tokens)}
    return {
        index_by_id[id(argument[-1])]
        for name, arguments in _list_calls(tokens)
        if name == "STRUCT"
        for argument in arguments
        if len(argument) > 2 and argument[-2].token_type is TokenType.ALIAS and argument[-1].text == argument[-3].text
        and argument[-1].token_type in _NAMES and argument[-3].token_type in _NAMES
    }  # fmt: skip


def _field_names(tokens: Tokens) -> set[int]:
    """Return the positions of texts that are names of fields: `named_struct('a', 1)` is `struct(1 AS a)`."""
    index_by_id = {id(token): index for index, token in enumerate(tokens)}
    return {
        index_by_id[id(argument[0])]
        for name, arguments in _list_calls(tokens)
        if name == "NAMED_STRUCT"
        for argument in arguments[::2]
        if len(argument) == 1 and argument[0].token_type is TokenType.STRING
    }
