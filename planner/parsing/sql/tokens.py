"""A SQL file of the project as tokens: its statements, each with its place in the file."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import pairwise

from sqlglot import exp
from sqlglot.dialects import DIALECTS
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, ParseError, TokenError, UnsupportedError
from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.naming import SESSION_CATALOG
from mergeplan.planner.parsing.sql.databricks_words import find_words
from mergeplan.planner.parsing.sql.forbidden_sql import find_forbidden
from mergeplan.planner.parsing.sql.function_calls import find_refused_call
from mergeplan.planner.parsing.sql.spark_text import join_quotes, preserve_calls, spark_text
from mergeplan.planner.semantics.spark.spark_sql import FAILURES, SPARK, find_unquoted_name, parse_statements
from mergeplan.planner.wording import first_names

NAMES = frozenset(name.lower() for name in DIALECTS) | {""}
QUERY_BEGINS = ("SELECT", "WITH", "(", "FROM", "VALUES", "TABLE")  # words that may begin a query
ARGUMENTS = {"UUID": 0}  # how many of them the parser keeps
OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
_PIECES = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"[^\"]*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|[()]|[^()'\"`/-]+|.", re.DOTALL)
_NEWLINE = re.compile(r"\n")
MOST_TOKENS = 300_000  # of one statement: words, numbers, operators and brackets
DEEPEST = 20_000  # operators, joins or branches of UNION that build on each other
MOST_BARE_QUERIES = 100  # `FROM SELECT`: sqlglot reads it, and ends the process where thousands are nested
UNEXPECTED = "Unexpected token"  # the end of sqlglot's description of a word that nothing can follow
_DIALECT = re.compile(r"[(,]\s*dialect\s+(?:'([^']*)'|\"([^\"]*)\"|(\w+))", re.IGNORECASE)
# how SQLMesh folds the case of names; Spark ignores case: names that differ by it alone are refused
_QUERY_WORDS = (TokenType.FROM, TokenType.SELECT, TokenType.WITH)
_FOLDS = ("lowercase", "uppercase", "case_insensitive", "case_insensitive_uppercase", "case_sensitive")

Tokens = Sequence[Token]


@dataclass(frozen=True)
class SourceText:
    """The text of one file, its place, its SQL dialect, and the default catalog of its names."""

    path: str
    text: str
    dialect: str
    at: Place | None = None  # of the whole text, if no file contains it as it is
    catalog: str = SESSION_CATALOG
    # functions that it may call besides Spark's own: names, and beginnings with a `*`; None for text that was judged
    functions: frozenset[str] | None = frozenset()

    def place(self, token: Token) -> Place:
        return self.place_at(token.start)

    def place_at(self, offset: int) -> Place:
        if self.at is not None:
            return self.at
        line, column = self.position(offset)
        return Place(self.path, line, column)

    def position(self, offset: int) -> tuple[int, int]:
        """Return line and column of a character in the text itself, both from 1."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    @cached_property
    def _line_starts(self) -> tuple[int, ...]:
        return (0, *(match.end() for match in _NEWLINE.finditer(self.text)))

    def error(self, token: Token, message: str, hint: str = "") -> ProjectError:
        return ProjectError(message, place=self.place(token), hint=hint)

    def slice(self, tokens: Tokens) -> str:
        return self.text[tokens[0].start : tokens[-1].end + 1] if tokens else ""


def did_you_mean(word: str, choices: Iterable[str], most: int = 30) -> str:
    """Return a hint with the nearest known word, and all known words if there are at most `most`.

    If no word is near, the hint has the first of them.

    >>> did_you_mean("orders", ["shop.orders", "shop.items", "raw.borders"], most=2)
    'Did you mean `shop.orders`?'
    >>> did_you_mean("x", ["shop.orders", "shop.items", "raw.borders"], most=2)
    'Known: raw.borders, shop.items and 1 more.'
    >>> did_you_mean("x", ["shop.orders"], most=0)
    ''
    """
    options, last_part = {name.lower(): name for name in sorted(choices)}, word.lower().rpartition(".")[2]
    near = [name for name in options if name.rpartition(".")[2] == last_part]
    near = near or get_close_matches(word.lower(), options, n=1, cutoff=0.6)
    hints = [f"Did you mean `{options[near[0]]}`?"] if near else []
    if options and most and (len(options) <= most or not near):
        hints.append(f"Known: {first_names([*options.values()], most)}.")
    return " ".join(hints)


def parse_dialect(name: str, place: Place) -> str:
    """Return the dialect's name in lower case, without its settings; raise ProjectError for an unknown one."""
    name, *settings = (part.strip() for part in name.split(","))
    for setting in settings:
        key, _, value = (part.strip().lower() for part in setting.partition("="))
        if key != "normalization_strategy" or value not in _FOLDS:
            hint = f"Known: normalization_strategy = {', '.join(_FOLDS)}."
            raise ProjectError(f"`{setting}` of a dialect is not supported.", place=place, hint=hint)
    if name.lower() in NAMES:
        return name.lower()
    raise ProjectError(f"`{name}` is not a SQL dialect.", place=place, hint=did_you_mean(name, NAMES - {""}))


def create_source(
    path: str, text: str, dialect: str, catalog: str = SESSION_CATALOG, functions: frozenset[str] | None = frozenset()
) -> SourceText:
    """Return the file as a SourceText; its first MODEL or AUDIT block may name another dialect."""
    header, depth = "", 0
    for match in _PIECES.finditer(text):
        piece = match[0]
        header += " " if piece.startswith(("--", "/*")) else piece
        depth += (piece == "(") - (piece == ")")
        if piece == ")" and depth <= 0:
            break
    named = _DIALECT.search(header)
    if named is None:
        return SourceText(path, text, dialect, catalog=catalog, functions=functions)
    name = next(filter(None, named.groups()), "")
    own_dialect = parse_dialect(name, SourceText(path, text, dialect).place_at(text.find(name)))
    return SourceText(path, text, own_dialect, catalog=catalog, functions=functions)


def tokenize(source: SourceText) -> list[Token]:
    """Return the file's tokens; raise ProjectError at the line of a quote or comment that never ends."""
    try:
        tokens = Dialect.get_or_raise(source.dialect).tokenize(source.text)
        for token, name in find_words(tokens) if source.dialect == "databricks" else ():
            token.text = name
        return join_quotes(tokens, source.text) if source.dialect in SPARK else list(tokens)
    except TokenError as error:
        # line of the end : offset of the start
        match = re.search(r"Missing (\S+) from \d+:(\d+)", str(error.__cause__ or error.__context__))
        if match is None:
            place = source.place_at(max(source.text.rfind("/*"), 0))
            raise ProjectError("The file ends inside a comment or a quoted string.", place=place) from None
        place = source.place_at(int(match[2]))
        raise ProjectError(f"A quoted string is never closed: {match[1]} is missing.", place=place) from None


def statements(tokens: Tokens) -> list[list[Token]]:
    """Return the tokens split at semicolons, without empty statements."""
    groups: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            groups.append([])
        else:
            groups[-1].append(token)
    return [statement for statement in groups if statement]


def split_commas(tokens: Tokens, angles: bool = False) -> list[list[Token]]:
    """Return the tokens split at commas outside of brackets; `angles` counts `<` and `>` of types as brackets too."""
    opening = (*OPEN, TokenType.LT) if angles else OPEN
    closing = (*CLOSE, TokenType.GT) if angles else CLOSE
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.token_type in opening) - (token.token_type in closing)
        if depth == 0 and token.token_type is TokenType.COMMA:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts if parts[-1] else parts[:-1]  # a trailing comma is allowed


def closing(tokens: Tokens, start: int) -> int | None:
    """Return the index of the bracket that closes the one at `start`, or None."""
    depth = 0
    for index in range(start, len(tokens)):
        depth += (tokens[index].token_type in OPEN) - (tokens[index].token_type in CLOSE)
        if depth == 0:
            return index
    return None


def _check_arguments(source: SourceText, tokens: Tokens) -> None:
    for index, (token, following) in enumerate(pairwise(tokens)):
        limit = ARGUMENTS.get(token.text.upper())
        end = closing(tokens, index + 1) if limit is not None and following.token_type is TokenType.L_PAREN else None
        if end is not None and limit is not None and len(split_commas(tokens[index + 2 : end])) > limit:
            name = token.text.upper()
            excess = f"more than {limit} arguments" if limit else "an argument"
            raise source.error(token, f"`{name}` with {excess} is not supported.")


def _close_gaps(source: SourceText, tokens: Tokens, what: str) -> Tokens:
    """Return the tokens without the second of two commas, as SQLMesh reads other dialects; Spark reads no such text."""
    doubled = [first.token_type is second.token_type is TokenType.COMMA for first, second in pairwise(tokens)]
    if True not in doubled:
        return tokens
    if source.dialect in SPARK:
        raise source.error(tokens[doubled.index(True) + 1], f"{what} has two commas in a row.")
    return [tokens[0], *(token for token, is_second in zip(tokens[1:], doubled, strict=True) if not is_second)]


def parse_tokens(source: SourceText, tokens: Tokens, what: str = "The query") -> exp.Expr:
    """Return one statement's tokens as a tree; raise ProjectError at a syntax error or at forbidden access."""
    _check_size(source, tokens, what)
    tokens = _close_gaps(source, tokens, what)
    _check_arguments(source, tokens)
    try:
        results = parse_statements(tokens, source.text, source.dialect)
    except ParseError as error:
        raise _syntax_error(source, tokens, error, what) from None
    except FAILURES as error:
        raise unreadable_error(source, tokens, error, what) from None
    tree = results[0] if results else None
    if tree is None:
        raise source.error(tokens[0], f"{what} is empty.")
    if _is_deeper(tree, DEEPEST):
        hint = "Put the values into a table or a seed, or make several models of it."
        raise source.error(tokens[0], f"{what} has more than {DEEPEST:,} operators or branches in a row.", hint)
    if source.dialect in SPARK:
        _refuse_nonsense(source, tokens, tree)
    if source.dialect != "spark":
        # the parser drops the last argument
        for index, token in enumerate(tokens[:-1]):
            if token.text.lower() == "percentile" and tokens[index + 1].token_type is TokenType.L_PAREN:
                end = closing(tokens, index + 1)
                if end is not None and len(split_commas(tokens[index + 2 : end])) > 2:
                    raise source.error(token, "`percentile` with a frequency is not supported yet.")
    if reaches := find_forbidden(tree):
        word, message = reaches
        raise source.error(next((token for token in tokens if token.text.lower() == word), tokens[0]), message)
    tree = preserve_calls(tree, source.dialect)
    _check_functions(source, tokens, tree, what)
    return tree


def _syntax_error(source: SourceText, tokens: Tokens, error: ParseError, what: str) -> ProjectError:
    details = error.errors[0] if error.errors else {}
    dialect = "Spark" if source.dialect == "spark" else source.dialect or "standard"
    message = f"{what} is not valid {dialect} SQL{_describe_problem(details)}"
    word = find_unquoted_name(tokens, source.text) if source.dialect == "spark" else ""
    hint = f"If `{word.lower()}` is a name here, quote it with back-ticks." if word else ""
    if source.at is not None:
        return ProjectError(message, place=source.at, hint=hint)
    # `col` is the token's end
    column = int(details.get("col") or 0) - len(str(details.get("highlight") or " ")) + 1
    place = Place(source.path, int(details.get("line") or tokens[0].line), max(column, 0))
    return ProjectError(message, place=place, hint=hint)


def spark_query(tree: exp.Expr, source: SourceText, tokens: Tokens) -> str:
    """Return the tree as Spark SQL; raise ProjectError if another dialect's construct has no counterpart in Spark."""
    level = ErrorLevel.IGNORE if source.dialect in SPARK else ErrorLevel.RAISE
    try:
        return spark_text(tree, level)
    except UnsupportedError as error:
        raise source.error(tokens[0], f"The query cannot be translated to Spark SQL: {error}") from None


def _check_size(source: SourceText, tokens: Tokens, what: str) -> None:
    if len(tokens) > MOST_TOKENS:
        hint = "Put the values into a table or a seed, or make several models of it."
        raise source.error(tokens[MOST_TOKENS], f"{what} has more than {MOST_TOKENS:,} words and signs.", hint)
    bare = [b for a, b in pairwise(tokens) if a.token_type is TokenType.FROM and b.token_type in _QUERY_WORDS]
    if len(bare) > MOST_BARE_QUERIES:
        hint = "Put a query that is used as a table in brackets."
        raise source.error(bare[0], f"`{bare[0].text}` cannot stand here.", hint)


def _is_deeper(tree: exp.Expr, most: int) -> bool:
    level, depth = [tree], 0
    while level:
        depth += 1
        if depth > most:
            return True
        level = [child for node in level for child in node.iter_expressions()]
    return False


def _check_functions(source: SourceText, tokens: Tokens, tree: exp.Expr, what: str) -> None:
    """Raise ProjectError at a forbidden function; of another dialect, its name in the generated Spark SQL counts."""
    if source.functions is None:
        return
    words: Tokens = tokens
    if source.dialect not in SPARK:
        if tree.find(exp.Func) is None:
            return
        try:
            words = Dialect.get_or_raise("spark").tokenize(spark_text(tree))
        except FAILURES as error:
            raise unreadable_error(source, tokens, error, what) from None
    if refused := find_refused_call(words, tree, source.functions):
        name = refused.at.text.lower()
        at = refused.at if words is tokens else next((t for t in tokens if t.text.lower() == name), tokens[0])
        raise source.error(at, refused.message, refused.hint)


def unreadable_error(source: SourceText, tokens: Tokens, error: Exception, what: str = "The query") -> ProjectError:
    if isinstance(error, RecursionError):
        return source.error(tokens[0], f"{what} is nested too deeply to be parsed.")
    hint = "Write it differently, or as a Python model."
    return source.error(tokens[0], f"{what} cannot be parsed: the parser fails ({type(error).__name__}).", hint)


def _refuse_nonsense(source: SourceText, tokens: Tokens, tree: exp.Expr) -> None:
    """Raise ProjectError for SQL that the parser accepts and Spark does not: `FROM FROM t`, parameters, `js:field`."""
    if any(isinstance(clause.this, exp.Query) and not isinstance(clause.this, exp.Subquery | exp.Values)
           for clause in tree.find_all(exp.From, exp.Join)):  # fmt: skip
        words = (TokenType.FROM, TokenType.JOIN, TokenType.COMMA)
        doubled = (b for a, b in pairwise(tokens) if a.token_type in words and b.token_type in _QUERY_WORDS)
        at = next(doubled, tokens[0])
        raise source.error(at, f"`{at.text}` cannot stand here.", "Put a query that is used as a table in brackets.")
    for node in tree.find_all(exp.Placeholder):
        at = next(
            (token for token in tokens if token.token_type in (TokenType.COLON, TokenType.PLACEHOLDER)), tokens[0]
        )
        if isinstance(node.parent, exp.Alias):
            hint = "Write `variant_get(v, '$.field', 'string')`, or `get_json_object(text, '$.field')`."
            raise source.error(at, "A field after `:` is not supported.", hint)
        raise source.error(at, f"The parameter `{at.text}` has no value here.", "Write a macro: `@name`.")


def _describe_problem(details: dict[str, object]) -> str:
    description = str(details.get("description") or "").strip().rstrip(".")
    if description.startswith("Required keyword"):
        description = "something is missing after it"
    word = f"`{details['highlight']}`" if details.get("highlight") else ""
    if word and description.endswith(UNEXPECTED):
        return f": {word} cannot stand here."
    near = f" near {word}" if word else ""
    return f"{near}: {description[:1].lower()}{description[1:]}." if description else f"{near}."
