"""The statements of a pipeline's SQL file, each as the text of a model, or with the reason why it is none."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.parsing.files.foreign_text import find_macro
from mergeplan.planner.parsing.sql.names import is_cte

KINDS = {"MATERIALIZED VIEW": "FULL", "VIEW": "VIEW", "TEMPORARY VIEW": "EMBEDDED", "TEMP VIEW": "EMBEDDED"}
STREAMS = "mergeplan does not plan streams: tables that stream, and what reads them, stay with `spark-pipelines`"
REFUSED = {"STREAMING TABLE": ("is a streaming table", STREAMS), "FLOW": ("is a flow", STREAMS)}
NOT_FOLLOWED = {
    "(": ("states its columns", "Let the query name and cast them"),
    "CLUSTER": ("is clustered", "Use PARTITIONED BY"),
}
FILES, FORMATS = ("parquet", "orc"), ("delta", "iceberg")
_PLAIN = re.compile(r"\w+")


@dataclass(frozen=True)
class PipelineTable:
    """A table or view that a statement defines, with the text of its model, or an `error` if there is none."""

    path: str
    line: int
    name: str  # `schema.table` in lower case; '' for a statement that defines none
    text: str = ""
    error: ProjectError | None = None


@dataclass(frozen=True)
class _Statement:
    path: str
    text: str
    tokens: tuple[Token, ...]

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.tokens[0].start) + 1

    def refuse(self, message: str, hint: str = "") -> ProjectError:
        return ProjectError(message, place=Place(self.path, self.line), hint=f"{hint}." if hint else "")


def read_statements(path: str, text: str, schema: str) -> Iterator[PipelineTable]:
    """Yield the tables of a pipeline's SQL file; names without a schema belong to `schema`."""
    tainted: ProjectError | None = None  # by a statement that those after it depend on
    for statement in _split_statements(path, text):
        table = _read_table(statement, schema)
        if not table.name and table.error:
            tainted = tainted or table.error
        yield PipelineTable(path, table.line, table.name, error=tainted) if tainted else table


def _split_statements(path: str, text: str) -> Iterator[_Statement]:
    try:
        tokens = Dialect.get_or_raise("spark").tokenize(text)
    except (SqlglotError, RecursionError):
        raise ProjectError("The file cannot be read as SQL.", place=Place(path, 1)) from None
    group: list[Token] = []
    for token in tokens:
        if token.token_type is not TokenType.SEMICOLON:
            group.append(token)
        elif group:
            yield _Statement(path, text, tuple(group))
            group = []
    if group:
        yield _Statement(path, text, tuple(group))


def _read_table(statement: _Statement, schema: str) -> PipelineTable:
    words = [word for token in statement.tokens[:8] for word in _keyword_text(token).split()]
    form = next((kind for kind in (*KINDS, *REFUSED) if words[: 1 + kind.count(" ") + 1] == ["CREATE", *kind.split()]),
                "")  # fmt: skip
    if not form:
        start = " ".join(words[:3])
        message = f"`{start}` is no statement of a pipeline that mergeplan reads."
        return PipelineTable(
            statement.path, statement.line, "", error=statement.refuse(message, f"Use one of CREATE {', '.join(KINDS)}")
        )
    at = _skip_words(statement.tokens, 1 + form.count(" ") + 1)
    if [_keyword_text(token) for token in statement.tokens[at : at + 3]] == ["IF", "NOT", "EXISTS"]:
        at += 3
    parts, at = _read_name(statement.tokens, at)
    name = ".".join(parts if len(parts) > 1 else (*schema.split("."), *parts)).lower()
    try:
        if form in REFUSED:
            reason, hint = REFUSED[form]
            raise statement.refuse(f"`{name}` {reason}.", hint)
        text = _model_text(statement, name, form, at, schema)
    except ProjectError as error:
        return PipelineTable(statement.path, statement.line, name, error=error)
    return PipelineTable(statement.path, statement.line, name, text)


def _model_text(statement: _Statement, name: str, what: str, at: int, schema: str) -> str:
    """Return the text of a model whose lines are those of the file."""
    header = [f"name {name}", f"kind {KINDS[what]}"]
    tokens = statement.tokens
    while at < len(tokens) and _keyword_text(tokens[at]) != "AS":
        clause, at = _read_clause(statement, name, at)
        header.append(clause)
    if at >= len(tokens):
        raise statement.refuse(f"`{name}` has no query.")
    start, end = tokens[at].end + 1, tokens[-1].end + 1
    query = _qualify_query(statement, name, statement.text[start:end], schema)
    above = "\n" * (statement.line - 1)
    between = "\n" * statement.text.count("\n", tokens[0].start, start)
    return f"{above}MODEL ({', '.join(header)});{between}{query.rstrip()}\n"


def _read_clause(statement: _Statement, name: str, at: int) -> tuple[str, int]:
    tokens, word = statement.tokens, _keyword_text(statement.tokens[at])
    following = tokens[at + 1] if at + 1 < len(tokens) else tokens[at]
    if word == "USING":
        kind = following.text.lower()
        if kind not in (*FILES, *FORMATS):
            raise statement.refuse(f"`{name}` has the format `{kind}`.", f"Use one of {', '.join((*FILES, *FORMATS))}")
        return f"{'storage_format' if kind in FILES else 'table_format'} {kind}", at + 2
    if word == "COMMENT":
        return f"description {statement.text[following.start : following.end + 1]}", at + 2
    if word.startswith("PARTITIONED"):
        start = _skip_words(tokens[at:], 2) + at
        return f"partitioned_by {_read_parentheses(statement, start)}", _find_closing(tokens, start) + 1
    if word == "TBLPROPERTIES":
        return f"physical_properties ({', '.join(_list_properties(statement, at + 1))})", _find_closing(
            tokens, at + 1
        ) + 1
    reason, hint = next(
        (refused for key, refused in NOT_FOLLOWED.items() if word.startswith(key)), (f"has `{word}`", "")
    )
    raise statement.refuse(f"`{name}` {reason}, which mergeplan does not follow.", hint)


def _qualify_query(statement: _Statement, name: str, query: str, schema: str) -> str:
    try:
        (tree,) = Dialect.get_or_raise("spark").parse(query)
    except (SqlglotError, ValueError, RecursionError):
        raise statement.refuse(f"mergeplan cannot parse the query of `{name}`.") from None
    if macro := find_macro(query):
        raise statement.refuse(f"`{name}` has `{macro}` in its query, which mergeplan would take for a macro.")
    places: dict[int, int] = {}
    for table in tree.find_all(exp.Table) if tree is not None else ():
        if not isinstance(table.this, exp.Identifier):
            if isinstance(table.this, exp.Anonymous) and table.this.name.upper() == "STREAM":
                raise statement.refuse(f"`{name}` reads a stream.", STREAMS)
            continue
        if table.name.upper() == "STREAM":
            raise statement.refuse(f"`{name}` reads a stream.", STREAMS)
        if not table.db and not is_cte(table):
            places[int(table.this.meta["start"])] = 0
    for start in sorted(places, reverse=True):
        query = f"{query[:start]}{schema}.{query[start:]}"
    return query


def _read_name(tokens: Sequence[Token], at: int) -> tuple[list[str], int]:
    parts = [tokens[at].text] if at < len(tokens) else [""]
    at += 1
    while at + 1 < len(tokens) and tokens[at].token_type is TokenType.DOT:
        parts.append(tokens[at + 1].text)
        at += 2
    return parts, at


def _skip_words(tokens: Sequence[Token], words: int) -> int:
    at = 0
    while words > 0:
        words -= len(tokens[at].text.split())
        at += 1
    return at


def _list_properties(statement: _Statement, at: int) -> Iterator[str]:
    _read_parentheses(statement, at)
    tokens = statement.tokens[at + 1 : _find_closing(statement.tokens, at)]
    starts = [-1, *(index for index, token in enumerate(tokens) if token.token_type is TokenType.COMMA), len(tokens)]
    for start, end in pairwise(starts):
        item = tokens[start + 1 : end]
        equals = next((index for index, token in enumerate(item) if token.token_type is TokenType.EQ), 0)
        key = "".join(token.text for token in item[:equals])
        if not key or len(item) != equals + 2:
            raise statement.refuse("A property of TBLPROPERTIES is not of the form 'key' = 'value'.")
        value = statement.text[item[-1].start : item[-1].end + 1]
        yield f"{key if _PLAIN.fullmatch(key) else repr(key)} = {value}"


def _read_parentheses(statement: _Statement, at: int) -> str:
    tokens = statement.tokens
    if at >= len(tokens) or tokens[at].token_type is not TokenType.L_PAREN:
        raise statement.refuse("A list in parentheses is missing in it.")
    return statement.text[tokens[at].start : tokens[_find_closing(tokens, at)].end + 1]


def _find_closing(tokens: Sequence[Token], at: int) -> int:
    depth = 0
    for index in range(at, len(tokens)):
        kind = tokens[index].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if depth == 0:
            return index
    return len(tokens) - 1


def _keyword_text(token: Token) -> str:
    return "" if token.token_type is TokenType.STRING else " ".join(token.text.upper().split())
