"""Check if the parser's tree represents a query's text completely; it parses `TIME '10:00'` as TIMESTAMP, for example.

A model is judged by the tree, but the text runs. The words of the text (functions, operators, literals) must therefore
be those of the tree written out again. If they are not, the model is judged by all of its words, so that two texts of
one tree are never treated as the same query.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
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

Kinds = Sequence[TokenType]
Calls = Sequence[tuple[str, list[list[Token]]]]  # names and arguments

_TEXTS = (TokenType.STRING, TokenType.RAW_STRING)
_BY_PLACE = (TokenType.DCOLON, TokenType.COLON)  # whose neighbours' places count: `1L`, a path `v:a`
_NAMES = frozenset({TokenType.VAR, TokenType.IDENTIFIER})
_VALUES = frozenset({*_TEXTS, TokenType.IDENTIFIER, *CLOSE})
_SILENT = frozenset({
    TokenType.L_PAREN, TokenType.R_PAREN, TokenType.COMMA, TokenType.DOT, TokenType.DCOLON, TokenType.ALIAS,
    TokenType.HINT, TokenType.INNER, TokenType.OUTER, TokenType.ASC,
})  # fmt: skip
_BEHIND_NAMES = (TokenType.COMMA, TokenType.R_PAREN, TokenType.FROM)
# `x::INT` and `DATE '2026-01-01'` are casts too; the catalog is the only one
_UNSAID = ("CAST", SESSION_CATALOG.upper())
_SETS = (TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT)
_ORDERS = (("NULLS", "FIRST"), ("NULLS", "LAST"))  # the tree has them, and omits the defaults
_ORDER_WORDS = frozenset(word for order in _ORDERS for word in order)
_UNITS = frozenset("YEAR QUARTER MONTH WEEK DAY HOUR MINUTE SECOND".split())
_BEFORE_VALUES = frozenset("SELECT WHERE AND OR NOT WHEN THEN ELSE HAVING ON BETWEEN IS FROM LIKE CASE".split())
_SIZED = (TokenType.VARCHAR, TokenType.CHAR)  # to cast to VARCHAR(20) is to cast to STRING
# the type of `CAST(a AS VARCHAR)`: Spark requires a length, others read it as STRING
_WITHOUT_LENGTH = [TokenType.ALIAS, TokenType.VARCHAR, TokenType.R_PAREN]
_AMOUNT = re.compile(r"(-?\d+) ((?:year|month|week|day|hour|minute|second)s?)", re.IGNORECASE)
_CROSS_JOIN = (TokenType.CROSS.name, TokenType.JOIN.name)
_BEHIND_FROM = frozenset({
    TokenType.SELECT, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.QUALIFY, TokenType.WINDOW,
    TokenType.ORDER_BY, TokenType.SORT_BY, TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY, TokenType.LIMIT,
    TokenType.OFFSET, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.PIPE_GT,
})  # fmt: skip
_FRAMES = ("ROWS", "RANGE")
_SHORT_BOUND = ["UNBOUNDED", "PRECEDING"]  # of a frame that ends at the current row
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
_CALLS = frozenset({*_DEFAULTS, "NAMED_STRUCT", "STRUCT"})  # calls whose arguments are read
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
    if _are_the_same(tokens, again):
        return False
    text_words, read = (Counter(_list_words(with_calls_for_paths(part))) for part in (tokens, again))
    added = text_words - read, read - text_words
    if tree is not None:
        _forget_conditions(added[1], tree)
    for name, words in _ADDED.items():
        added[1].subtract(word for word in words for _ in range(text_words[name]))
    # `struct(1, 2)` is `struct(1 AS col1, 2 AS col2)`
    return bool(+added[0]) or any(
        n > 0 and not (word.startswith("COL") and word[3:].isdigit()) for word, n in added[1].items()
    )


def _are_the_same(tokens: Tokens, again: Tokens) -> bool:
    """Return True for tokens in the same order: most generated queries are the written ones, which is seen at once."""
    return len(tokens) == len(again) and all(
        one.token_type is other.token_type
        and one.token_type not in _BY_PLACE
        and (one.text == other.text or (one.token_type not in _TEXTS and one.text.upper() == other.text.upper()))
        for one, other in zip(tokens, again, strict=True)
    )


def _forget_conditions(added: Counter[str], tree: exp.Expr) -> None:
    """Remove `ON TRUE` from the added words, because Spark reads a join without a condition in the same way.

    Except for LEFT JOIN LATERAL: without a condition, Spark 4.1 drops the rows for which it finds none.
    """
    joins = [*tree.find_all(exp.Join)]
    if any(join.side and isinstance(join.this, exp.Lateral) for join in joins):
        return
    conditions = [join.args.get("on") for join in joins]
    limit = sum(isinstance(condition, exp.Boolean) and bool(condition.this) for condition in conditions)
    if added["ON"] == added["TRUE"] <= limit:
        added["ON"] = added["TRUE"] = 0


def _list_words(tokens: Tokens) -> Iterator[str]:
    kinds, texts = [token.token_type for token in tokens], [token.text.upper() for token in tokens]
    called = [i for i, name in enumerate(texts[:-1]) if name in _CALLS and kinds[i + 1] is TokenType.L_PAREN]
    calls = [(texts[i], split_commas(tokens[i + 2 : closing(tokens, i + 1)])) for i in called]
    sized, crosses = _find_types_of_length(kinds), _find_joining_commas(kinds)
    index_by_id = {id(token): index for index, token in enumerate(tokens)} if calls else {}
    fields = {index_by_id[id(token)] for token in _field_names(calls)}
    left_out = {index_by_id[id(token)] for token in _list_dropped_arguments(calls)} | {index + 2 for index in sized}
    for index, (last, token) in enumerate(pairwise([None, *tokens])):
        assert token is not None
        kind, text = kinds[index], texts[index]
        if kind is TokenType.DCOLON and last and last.end == token.end and _is_suffix(texts, index + 1):
            yield "suffix"  # next to a decimal `1L` is another number than `CAST(1 AS BIGINT)`
        if index in crosses:
            yield from _CROSS_JOIN
        if kind is TokenType.L_PAREN and index - 1 not in crosses and _is_grouping(last):
            yield "("  # the parser puts brackets where it takes one operator to bind closer than another
        if kind is TokenType.ALIAS and (index + 1 >= len(kinds) or kinds[index + 1] in _BEHIND_NAMES):
            yield "AS"  # of `SELECT a AS, b`: to Spark the alias, which the parser drops
        if text in _FRAMES and texts[index + 1 : index + 3] == _SHORT_BOUND:
            yield from _UNTIL_NOW
        if kind in _SILENT or index in left_out or _goes_without(kinds, texts, index):
            continue
        if index in fields:
            yield text
            continue
        if index in sized or (kind is TokenType.VARCHAR and kinds[max(index - 1, 0) : index + 2] == _WITHOUT_LENGTH):
            yield TokenType.TEXT.name
            continue
        is_amount = last is not None and last.token_type is TokenType.INTERVAL
        if is_amount and (amount := _AMOUNT.fullmatch(token.text)):
            yield from (amount[1], amount[2].upper())
            continue
        word = _word_text(token, last)
        if word not in _UNSAID:
            yield from _SAME.get(word, (word,))


def _find_joining_commas(kinds: Kinds) -> set[int]:
    """Return the commas between tables of FROM, each a CROSS JOIN: to Spark it binds as any other JOIN does."""
    commas, is_from = set[int](), [False]  # by brackets that are open
    for index, kind in enumerate(kinds):
        if kind is TokenType.COMMA:
            if is_from[-1]:
                commas.add(index)
        elif kind in OPEN:
            is_from.append(False)
        elif kind in CLOSE:
            is_from = is_from[:-1] or [False]
        elif kind is TokenType.FROM:
            previous = kinds[index - 1] if index else None
            is_from[-1] = is_from[-1] or previous not in (TokenType.DISTINCT, TokenType.DOT)
        elif kind in _BEHIND_FROM or (kind is TokenType.LATERAL and kinds[index + 1 : index + 2] == [TokenType.VIEW]):
            is_from[-1] = False
    return commas


def _find_types_of_length(kinds: Kinds) -> set[int]:
    """Return the positions of types like `VARCHAR(20)` in casts: such a value is a STRING that is not cut."""
    return {
        index
        for index, kind in enumerate(kinds)
        if kind in _SIZED and index and kinds[index - 1] in (TokenType.ALIAS, TokenType.DCOLON)
        and kinds[index + 1 : index + 4] == [TokenType.L_PAREN, TokenType.NUMBER, TokenType.R_PAREN]
    }  # fmt: skip


def _is_suffix(texts: Sequence[str], index: int) -> bool:
    """Return True for a suffix of a number except `D`: `1e16D` is always `CAST(1e16 AS DOUBLE)`."""
    return index >= len(texts) or texts[index] not in ("D", "DOUBLE")


def _is_grouping(before: Token | None) -> bool:
    """Return True if a bracket after this token only groups: it is no function's, list's or subquery's in FROM."""
    if before is None or before.text.upper() in _BEFORE_VALUES:
        return True
    return before.token_type not in _VALUES and not before.text.replace(" ", "").replace("_", "").isalnum()


def _word_text(token: Token, before: Token | None) -> str:
    kind = token.token_type
    if kind in _TEXTS:
        amount = before is not None and before.token_type is TokenType.INTERVAL
        return token.text if amount else repr(token.text.upper() if token.text.upper() in _UNITS else token.text)
    if kind in _NAMES:
        return token.text.upper()
    return token.text.lower() if kind is TokenType.NUMBER else kind.name


def _goes_without(kinds: Kinds, texts: Sequence[str], index: int) -> bool:
    """Return True for DISTINCT after UNION and the like, and for NULLS FIRST or NULLS LAST."""
    if kinds[index] is TokenType.DISTINCT and index and kinds[index - 1] in _SETS:
        return True
    if texts[index] not in _ORDER_WORDS:
        return False
    return any(pair in _ORDERS for pair in pairwise(texts[max(index - 1, 0) : index + 2]))


def _list_dropped_arguments(calls: Calls) -> Iterator[Token]:
    """Yield last arguments that are defaults, and aliases that repeat a column: `struct(a.id AS id)`."""
    for name, arguments in calls:
        count, default = _DEFAULTS.get(name, (-1, ""))
        last = arguments[-1] if len(arguments) == count else []
        if len(last) == 1 and last[0].text.upper() == default.upper():
            yield last[0]
        for argument in arguments if name == "STRUCT" else ():
            kinds = [token.token_type for token in argument[-4:]]
            is_named = kinds[-2:-1] == [TokenType.ALIAS] and kinds[-1] in _NAMES
            by_key = kinds[:2] == [TokenType.STRING, TokenType.R_BRACKET]  # `struct(m['k'] AS k)`
            is_named = is_named and (by_key or (len(kinds) > 2 and kinds[-3] in _NAMES))
            if is_named and argument[-4 if by_key else -3].text == argument[-1].text:
                yield argument[-1]


def _field_names(calls: Calls) -> Iterator[Token]:
    """Yield texts that are names of fields: `named_struct('a', 1)` is `struct(1 AS a)`."""
    for argument in (argument for name, arguments in calls if name == "NAMED_STRUCT" for argument in arguments[::2]):
        if len(argument) == 1 and argument[0].token_type is TokenType.STRING:
            yield argument[0]
