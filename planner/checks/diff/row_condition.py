"""The row condition that a user typed for a comparison: it may read rows and do nothing else.

Its allowed parts are listed, because any other function could read another table, a file or a secret.
"""

from collections.abc import Collection

from sqlglot import exp

from mergeplan.planner.errors import MergeplanError, RequestError
from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.parsing.sql.spark_text import spark_text
from mergeplan.planner.parsing.sql.tokens import did_you_mean
from mergeplan.planner.semantics.keywords import is_keyword

LONGEST = 2_000  # characters
FORM = "Write one condition over the table's columns, for example `day >= '2026-01-01' AND amount > 0`."
LOGIC = (exp.And, exp.Or, exp.Not, exp.Paren, exp.Boolean)
COMPARING = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.In, exp.Between,
    exp.Like, exp.ILike, exp.StartsWith, exp.EndsWith,
)  # fmt: skip
VALUES = (
    exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod,
    exp.Cast, exp.TryCast, exp.DataType, exp.DataTypeParam, exp.Interval, exp.Var,
    exp.Lower, exp.Upper, exp.Trim, exp.Length, exp.Substring, exp.Abs, exp.Round, exp.Coalesce,
    exp.Year, exp.Month, exp.TsOrDsToDate, exp.CurrentDate,
)  # fmt: skip


def row_condition(text: str, columns: Collection[str]) -> str:
    """Return the condition in Spark SQL; raise RequestError unless it is a single condition over these columns."""
    if len(text) > LONGEST:
        raise RequestError(f"The condition has {len(text):,} characters; {LONGEST:,} are the most.", hint=FORM)
    if ";" in text or "--" in text or "/*" in text:
        raise RequestError("A condition holds no `;` and no comment.", hint=FORM)
    try:
        tree = spark_tree(text).copy()
    except MergeplanError as error:
        raise RequestError(f"The condition cannot be read: {error.message}", hint=FORM) from None
    if not isinstance(tree.unnest(), (*LOGIC, *COMPARING)):
        raise RequestError("It is not a condition: it is neither true nor false for a row.", hint=FORM)
    for node in tree.walk():
        if not isinstance(node, (*LOGIC, *COMPARING, *VALUES)):
            raise RequestError(f"A condition may not hold `{node.sql('spark')[:80]}`.", hint=FORM)
        if isinstance(node, exp.Column) and not (is_keyword(node) and node.name.lower() == "current_date"):
            if node.table or node.name.startswith("@"):
                raise RequestError(f"`{node.sql('spark')}` is not the plain name of a column.", hint=FORM)
            if node.name.lower() not in columns:
                hint = did_you_mean(node.name, columns)
                raise RequestError(f"The tables have no column `{node.name}` in common.", hint=hint)
    return spark_text(tree)
