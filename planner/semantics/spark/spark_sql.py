"""Parse Spark SQL so that functions which are different in Spark stay different.

sqlglot rewrites some functions: `LOG10(x)` to `LOG(10, x)`, `ARRAY_SIZE` to `SIZE`, `TO_DATE(s, 'yyyy-MM-dd')` to one
without the format. Their results differ in Spark, so such a call is preserved as a name and its arguments. Lambdas and
brackets around subqueries, which Spark also reads differently, are corrected in the tree.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError
from sqlglot.expressions.core import POSITION_META_KEYS
from sqlglot.generator import Generator
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.semantics.keywords import bare_as_columns
from mergeplan.planner.semantics.reading.keyword_names import quote_keywords
from mergeplan.planner.semantics.reading.other_dialects import add_translations, mark_dialect
from mergeplan.planner.semantics.reading.readable_tokens import NESTED, readable, restore_written_form
from mergeplan.planner.semantics.syntax import clause_keys

DEEPEST = 1000  # brackets and CASEs in each other
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END)
_CONDITIONS = (TokenType.ON, TokenType.USING)
_NESTING = frozenset({*_OPENING, *_CLOSING, *_CONDITIONS, TokenType.LT, TokenType.JOIN})
# What sqlglot raises, deliberately or by a bug: one query must not stop a project from planning.
FAILURES = (SqlglotError, RecursionError, ValueError, LookupError, TypeError, AttributeError, AssertionError, NameError)
# functions that sqlglot rewrites, at least for some arguments, to ones with other results
REWRITTEN = ("LOG10", "LOG2", "ARRAY_SIZE", "UNIX_DATE", "GET_JSON_OBJECT", "TO_DATE", "DATE_FORMAT")
SPARK = ("spark", "databricks")
NAMED = "named"  # marks a statement with names that are not read as Spark reads them: it is judged by its words


def _write_with_brackets(generator: Generator, call: exp.Expr) -> str:
    assert isinstance(call, exp.Func)
    return f"{generator.normalize_func(call.sql_name())}()"


def _write_select(generator: Generator, node: exp.Expr) -> str:
    """Return the text of a SELECT, with `|> SET` for `SELECT * REPLACE (...)`, which is no Spark SQL."""
    assert isinstance(node, exp.Select)
    star = node.expressions[0] if len(node.expressions) == 1 else None
    if not isinstance(star, exp.Star) or not star.args.get("replace"):
        return WRITERS[exp.Select](generator, node)
    inner_query, from_ = node.copy(), node.args.get("from_")
    inner_query.set("expressions", [exp.Star()])
    plain = {key for key, value in node.args.items() if value} == {"expressions", "from_"} and from_ is not None
    source = generator.sql(from_) if plain else f" FROM ({generator.sql(inner_query)})"
    pairs = (f"{generator.sql(part, 'alias')} = {generator.sql(part, 'this')}" for part in star.args["replace"])
    return f"{source.lstrip()} |> SET {', '.join(pairs)}"


def _write_struct(generator: Generator, node: exp.Expr) -> str:
    """Return the text of a struct, whose fields sqlglot writes as `1 AS name`: some words it reads as no name then."""
    for field in node.expressions:
        if isinstance(field, exp.PropertyEQ) and field.name.lower() in NO_FIELDS:
            field.set("this", exp.to_identifier(field.name, quoted=True))
    return WRITERS[exp.Struct](generator, node)


_POSITIONS = frozenset(POSITION_META_KEYS)
WRITERS = SparkGenerator(dialect="spark")._dispatch
NO_FIELDS = ("not", "select")
# sqlglot writes these without brackets, which Spark would read as a column
CALLS: Mapping[type[exp.Expr], Callable[..., str]] = dict.fromkeys(
    (exp.CurrentDate, exp.SessionUser, exp.Localtimestamp, exp.CurrentCatalog), _write_with_brackets
)


def spark_text_of(tree: exp.Expr, unsupported: ErrorLevel = ErrorLevel.IGNORE) -> str:
    """Return the tree as Spark SQL, with each WITH in its place; raise UnsupportedError as the level says."""
    generator = SparkGenerator(dialect="spark", comments=False, unsupported_level=unsupported)
    generator._dispatch = add_translations(
        {**generator._dispatch, **CALLS, exp.Select: _write_select, exp.Struct: _write_struct}
    )
    return generate_in_place(generator, tree)


def generate_in_place(generator: Generator, tree: exp.Expr) -> str:
    """Return the generator's text of a copy of the tree, with each WITH in its place.

    sqlglot moves every WITH of a whole statement to its top, where two of one name would clash. It does not move those
    of a part, so the copy is made a part. (A subclass with other behavior could not inherit from a compiled sqlglot
    class.)
    """
    return str(generator.generate(exp.Paren(this=tree.copy()).this, copy=False))


def parse_statements(tokens: Sequence[Token], text: str, dialect: str = "spark") -> list[exp.Expr | None]:
    """Return these tokens as trees; raise sqlglot's errors, and RecursionError for nesting that would end a process."""
    depth = types = joins = 0
    for previous, token in pairwise((None, *tokens)):
        assert token is not None
        if token.token_type not in _NESTING:
            continue
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        types += token.token_type is TokenType.LT and previous is not None and previous.text.upper() in NESTED
        joins += (token.token_type is TokenType.JOIN) - (joins > 0 and token.token_type in _CONDITIONS)
        if max(depth, types, joins) > DEEPEST:
            raise RecursionError
    if dialect != "spark":
        read = bare_as_columns(tokens) if dialect in SPARK else list(tokens)
        statements = Dialect.get_or_raise(dialect).parser().parse(read, text)
        if dialect in SPARK:
            return [tree and as_spark_reads(tree) for tree in statements]
        return [tree and mark_dialect(without_double_brackets(tree), dialect) for tree in statements]
    try:
        return _parse_spark(tokens, text)
    except ParseError:
        if statements := _parse_with_names(tokens, text):
            return statements
        raise


def _parse_with_names(tokens: Sequence[Token], text: str) -> list[exp.Expr | None]:
    """Return the statements with some keywords as names, marked as NAMED, or [] if they still cannot be parsed."""
    for _, quoted in quote_keywords(tokens):
        try:
            statements = _parse_spark(quoted, text)
        except ParseError:
            continue
        for tree in filter(None, statements):
            tree.meta[NAMED] = True
        return statements
    return []


def find_unquoted_name(tokens: Sequence[Token], text: str) -> str:
    """Return the keyword that would make an unparsable text valid if it were in back-ticks, or ''."""
    for word, quoted in quote_keywords(tokens, clauses=True):
        try:
            _parse_spark(quoted, text)
        except FAILURES:
            continue
        return word
    return ""


def _parse_spark(tokens: Sequence[Token], text: str) -> list[exp.Expr | None]:
    parser = SparkParser(dialect=Dialect.get_or_raise("spark"))
    prepared = readable(tokens)
    marked, calls = _as_written(bare_as_columns(prepared.tokens))
    statements = [tree and as_spark_reads(tree) for tree in parser.parse(marked, text)]
    statements = restore_written_form(statements, prepared)
    return [tree and _restore_known_calls(parser, tree) for tree in statements] if calls else statements


def tree_of(sql: str) -> exp.Expr:
    """Return a Spark query as a tree without positions; raise sqlglot's errors."""
    statements = parse_statements(Dialect.get_or_raise("spark").tokenize(sql), sql)
    assert statements[0] is not None
    drop_positions(statements[0])
    return statements[0]


def drop_positions(tree: exp.Expr) -> None:
    """Remove the places in the text from a tree's nodes: they take most of the time of a copy."""
    for node in tree.walk():
        node.comments = node.comments or None
        if node._meta is not None and _POSITIONS.issuperset(node._meta):
            node._meta = None


def _as_written(tokens: Sequence[Token]) -> tuple[list[Token], int]:
    """Return the tokens with calls of REWRITTEN functions marked by a comment as sqlglot does, and their number."""
    out, opened, marked = list(tokens), list[bool](), 0
    for index, token in enumerate(out):
        if token.token_type is TokenType.L_PAREN:
            opened.append(index > 0 and out[index - 1].text.upper() in REWRITTEN)
        elif token.token_type is TokenType.R_PAREN and opened and opened.pop():
            place = (token.line, token.col, token.start, token.end)
            out[index] = Token(token.token_type, token.text, *place, [exp.SQLGLOT_ANONYMOUS, *token.comments])
            marked += 1
    return out, marked


def _restore_known_calls(parser: SparkParser, tree: exp.Expr) -> exp.Expr:
    """Return the tree with a marked call as the node that sqlglot knows, if its generated text is the same."""
    calls = []
    for node in tree.walk():
        if node.comments and exp.SQLGLOT_ANONYMOUS in node.comments:  # the parser passes comments on
            node.comments = [text for text in node.comments if text != exp.SQLGLOT_ANONYMOUS] or None
        if isinstance(node, exp.Anonymous) and isinstance(node.this, str) and node.this.upper() in REWRITTEN:
            calls.append(node)
    for call in reversed(calls):  # from the inside out
        call.set("this", call.name.upper())
        built = _build_call(call)
        if built is not None:
            built = parser.validate_expression(built, call.expressions)
            built.comments = call.comments
            built.update_positions(call)
            tree = built if call is tree else tree
            call.replace(built)
    return tree


def _build_call(call: exp.Anonymous) -> exp.Expr | None:
    build, arguments = SparkParser.FUNCTIONS[call.name], [argument.copy() for argument in call.expressions]
    try:
        try:
            built = build(arguments)
        except TypeError:
            built = build(arguments, dialect=Dialect.get_or_raise("spark"))
        return built if spark_text_of(built) == spark_text_of(call) else None
    except FAILURES:  # a path or a format that sqlglot cannot write
        return None


def as_spark_reads(tree: exp.Expr) -> exp.Expr:
    for node in reversed(list(tree.find_all(exp.Lambda))):  # inner lambdas first: their variables hide the outer ones
        names = {variable.name.lower() for variable in node.expressions}
        for column in list(node.this.find_all(exp.Column)):
            first, *fields = column.parts
            if first.name.lower() in names:
                value: exp.Expr = first.copy()
                for part in fields:
                    value = exp.Dot(this=value, expression=part.copy())
                column.replace(value)
    for membership in tree.find_all(exp.In):
        if inner := _inner_subquery(membership):
            membership.set("query", None)
            membership.set("expressions", [inner])
    for values in tree.find_all(exp.Values):
        last, alias = values.expressions[-1], values.args.get("alias") or exp.TableAlias()
        row = last.expressions if isinstance(last, exp.Tuple) else []
        if len(row) == 1 and isinstance(row[0], exp.Alias) and not alias.this:
            alias.set("this", row[0].args["alias"])
            values.set("alias", alias)
            last.set("expressions", [row[0].this])
    for struct in tree.find_all(exp.Struct):
        _name_fields(tree, struct)
    return tree


def _name_fields(tree: exp.Expr, struct: exp.Struct) -> None:
    # Spark names those of `STRUCT(a[0].b, m['k'])` after what they take out, `b` and `k`; sqlglot numbers them.
    for index, field in enumerate(struct.expressions):
        is_numbered = isinstance(field, exp.PropertyEQ) and field.name == f"col{index + 1}" and not field.this._meta
        value = field.expression.unnest() if is_numbered else None
        if isinstance(value, exp.Dot) and isinstance(value.expression, exp.Identifier):
            field.set("this", value.expression.copy())
        elif isinstance(value, exp.Bracket) and len(value.expressions) == 1 and value.expressions[0].is_string:
            name = value.expressions[0].name
            if name.isprintable():
                field.set("this", exp.to_identifier(name))
            else:  # a path `v:a`
                tree.meta[NAMED] = True


def without_double_brackets(tree: exp.Expr) -> exp.Expr:
    """Return a tree of another dialect with `IN ((SELECT ...))` as `IN (SELECT ...)`, which is different in Spark."""
    for node in tree.find_all(exp.In):
        while inner := _inner_subquery(node):
            node.set("query", inner)
    return tree


def _inner_subquery(node: exp.In) -> exp.Subquery | None:
    """Return the inner subquery of `IN ((SELECT ...))`, or None; to Spark it is one value, NULL without rows."""
    query = node.args.get("query")
    inner = query.this if isinstance(query, exp.Subquery) and clause_keys(query) == ["this"] else None
    return inner if isinstance(inner, exp.Subquery) and clause_keys(inner) == ["this"] else None
