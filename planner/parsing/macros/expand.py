"""The meaning of `@...` in SQL: macros, dates, variables, and the parameters of an audit.

A macro is recognised among the tokens, never inside a string or a comment. It is replaced before the SQL is parsed.
Dates and the names of an audit become one identifier, `@start_ds`, that any dialect reads and writes unchanged.
`render.py` fills them in when the dates are known.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.intervals import NAMED, Interval
from mergeplan.planner.parsing.macros.control import CONTROL
from mergeplan.planner.parsing.macros.expander import Expander
from mergeplan.planner.parsing.macros.relations import RELATIONS
from mergeplan.planner.parsing.macros.values import VALUES
from mergeplan.planner.parsing.sql.macro_scope import DATES, MacroScope
from mergeplan.planner.parsing.sql.tokens import SourceText, Tokens, parse_tokens, tokenize

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BUILT_IN = {**CONTROL, **VALUES, **RELATIONS}


def expander(source: SourceText, scope: MacroScope) -> Expander:
    """Return the expander of a file; names that `@DEF` defines in a statement are known in those that follow."""
    return Expander(source, scope, BUILT_IN)


def expand(source: SourceText, tokens: Tokens, scope: MacroScope) -> list[Token]:
    """Return the tokens with macros expanded and each date macro as one name; raise ProjectError at an unknown one."""
    return expander(source, scope).run(tokens) if "@" in source.text else list(tokens)


def expand_block(source: SourceText, tokens: Tokens, scope: MacroScope) -> list[Token]:
    """Return the tokens of a MODEL or AUDIT block as `expand` does, but with `@daily` and the like unchanged."""
    room = expander(source, replace(scope, any_name=True))
    expanded = room.run(tokens) if "@" in source.text else list(tokens)
    for token in expanded:
        macro = token.token_type is TokenType.VAR and token.text.startswith("@")
        if macro and token.text not in NAMED and token.text[1:] not in DATES | scope.stays:
            raise room.unknown(token, token.text[1:])
    return expanded


def is_a_name(node: exp.Identifier) -> bool:
    """Return True for an audit's `@parameter` in place of a table, or of a column after a table's name."""
    if not node.name.startswith("@") or node.quoted or node.name[1:] in DATES | {"this_model"}:
        return False
    of_column = isinstance(node.parent, exp.Column) and len(node.parent.parts) > 1 and node.parent.this is node
    return of_column or (isinstance(node.parent, exp.Table) and node.parent.this is node and not node.parent.db)


def check_places(tree: exp.Expr, source: SourceText, tokens: Tokens, *, names: bool = False) -> None:
    """Raise ProjectError for a macro where no value is allowed (or name, with `names`), and for `@@x` and `${x}`."""
    for node in tree.find_all(exp.Identifier, exp.Parameter, exp.SessionParameter):
        if isinstance(node, exp.Identifier):
            value = isinstance(node.parent, exp.Column) and len(node.parent.parts) == 1
            if not node.name.startswith("@") or node.quoted or value or node.name == "@this_model":
                continue
            if names and is_a_name(node):
                continue
        text = node.name if isinstance(node, exp.Identifier) else node.sql()
        at = next((token for token in tokens if token.text == node.name), tokens[0])
        raise source.error(at, f"`{text}` is not allowed here: a macro is a value.")


@lru_cache(maxsize=4096)
def spark_tree(sql: str) -> exp.Expr:
    """Return generated Spark SQL as a tree, with `@start_ds` and the like as plain names; copy it before a change."""
    source = SourceText("", sql, "spark", functions=None)
    tokens = tokenize(source)
    return parse_tokens(source, expand(source, tokens, MacroScope(any_name=True)))


def dates(interval: Interval | None, execution: datetime) -> dict[str, exp.Expr]:
    """Return each date macro's literal: ends are the last microsecond inside, and 1970-01-01 stands for no interval."""
    covered = interval or Interval(_EPOCH, _EPOCH + timedelta(days=1))
    moments = {"start": covered.start, "end": covered.end - timedelta(microseconds=1), "execution": execution}
    return {
        f"{prefix}_{suffix}": literal
        for prefix, moment in moments.items()
        for suffix, literal in _moment_literals(moment.astimezone(UTC)).items()
    }


def _moment_literals(moment: datetime) -> dict[str, exp.Expr]:
    text, day = moment.replace(tzinfo=None).isoformat(sep=" "), moment.date().isoformat()
    millis = (moment - _EPOCH) // timedelta(milliseconds=1)
    return {
        "dt": exp.cast(exp.Literal.string(f"{text}+00:00"), "timestamptz"),
        "dtntz": exp.cast(exp.Literal.string(text), "timestampntz"),
        "date": exp.cast(exp.Literal.string(day), "date"),
        "ds": exp.Literal.string(day),
        "ts": exp.Literal.string(text),
        "tstz": exp.Literal.string(f"{text}+00:00"),
        "epoch": exp.Literal.number(millis // 1000),
        "millis": exp.Literal.number(millis),
        "hour": exp.Literal.number(moment.hour),
    }
