"""Write trees as Spark SQL, without changes to calls that the parser reads correctly but would write differently.

A query runs as mergeplan writes it. Left alone, `PERCENTILE_CONT` would come out as `PERCENTILE_APPROX`, with other
rows.
"""

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.errors import ErrorLevel
from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.semantics.spark.spark_sql import SPARK, spark_text_of


def spark_text(tree: exp.Expr, error_level: ErrorLevel = ErrorLevel.IGNORE) -> str:
    return spark_text_of(tree, error_level)


def preserve_calls(tree: exp.Expr, dialect: str) -> exp.Expr:
    kinds = (exp.PercentileCont, exp.PercentileDisc, *((exp.ToChar, exp.ParseJSON) if dialect in SPARK else ()))
    for listed in tree.find_all(exp.GroupConcat) if dialect in SPARK else ():
        if not listed.args.get("separator"):
            listed.set("separator", exp.Literal.string(""))  # left out, a comma would be written
    for node in list(tree.find_all(*kinds)):
        arguments = [
            argument for argument in (node.this, node.args.get("expression"), node.args.get("format")) if argument
        ]
        call = exp.Anonymous(this=node.sql_name(), expressions=arguments)
        tree = call if node is tree else tree
        node.replace(call)
    return tree


def join_quotes(tokens: Sequence[Token], text: str) -> list[Token]:
    """Return the tokens of Spark SQL with `'it''s'` as one text, as Spark reads it; the parser would drop the quote."""
    joined: list[Token] = []
    for token in tokens:
        last = joined[-1] if joined else None
        if last is None or not last.token_type is token.token_type is TokenType.STRING or last.end + 1 != token.start:
            joined.append(token)
            continue
        quote = text[token.start]
        whole = f"{last.text}{quote}{token.text}" if text[last.end] == quote else last.text + token.text
        comments = [*last.comments, *token.comments]
        joined[-1] = Token(TokenType.STRING, whole, last.line, token.col, last.start, token.end, comments)
    return joined
