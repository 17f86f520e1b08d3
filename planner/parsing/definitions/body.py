"""The body of a model's file: `@DEF`s, the query, the statements before and after it, and those for views."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.errors import Place
from mergeplan.planner.model.statement import Statement
from mergeplan.planner.parsing.definitions.statements import (
    is_needless,
    read_statement,
    read_view_statement,
    temporary_function,
)
from mergeplan.planner.parsing.macros.expand import expander
from mergeplan.planner.parsing.macros.expander import Expander
from mergeplan.planner.parsing.macros.jinja import Template, render_template, replace_date_marks
from mergeplan.planner.parsing.sql.macro_scope import CREATING, EVALUATING, MacroScope
from mergeplan.planner.parsing.sql.token_lists import fuse_macros, text_of
from mergeplan.planner.parsing.sql.tokens import QUERY_BEGINS, SourceText, Tokens, statements, tokenize

VIEWS_BEGIN, VIEWS_END = "ON_VIRTUAL_UPDATE_BEGIN", "ON_VIRTUAL_UPDATE_END"
JINJA = ("JINJA_QUERY_BEGIN", "JINJA_STATEMENT_BEGIN")
JINJA_END = "JINJA_END"
SEED_ROWS = "@INSERT_SEED"  # takes the place of the query in a seed's file
_BLOCK = re.compile(r"(\bJINJA_(?:QUERY|STATEMENT)_BEGIN\s*;)(.*?)(\bJINJA_END\b)", re.IGNORECASE | re.DOTALL)
Macros = tuple[tuple[str, str], ...]  # the files of the project's Jinja macros: path, text


@dataclass(frozen=True)
class StatementTokens:
    """One statement: its tokens and the text that they belong to."""

    source: SourceText
    tokens: Tokens


@dataclass(frozen=True)
class Body:
    """The query with its macros replaced, and the statements around it; `reads` are the tables that these read."""

    query: StatementTokens | None
    pre_statements: tuple[Statement, ...]
    post_statements: tuple[Statement, ...]
    on_virtual_update: tuple[Statement, ...]
    reads: frozenset[str]

    @property
    def temporary(self) -> frozenset[str]:
        """The temporary views that the query may read."""
        return frozenset(statement.makes for statement in self.pre_statements if statement.makes)


@dataclass(frozen=True)
class Around:
    """Statements from outside the body: in MODEL, or for all models in config.yaml."""

    before: tuple[StatementTokens, ...] = ()
    after: tuple[StatementTokens, ...] = ()
    views: tuple[StatementTokens, ...] = ()


def read_body(
    source: SourceText, tokens: Tokens, scope: MacroScope, macros: Macros, around: Around, first_token: Token
) -> Body:
    """Return the body of a model; raise ProjectError for two queries or a statement that is not allowed."""
    reader = _Reader(source, scope, macros)
    for part in around.before:
        reader.add_statement(part, views=False)
    for part, views in _split_statements(source, tokens, scope, macros):
        reader.add_statement(part, views=views)
    if reader.query is None and scope.kind not in ("SEED", "EXTERNAL"):
        raise source.error(first_token, "The model has no query.", "Write a SELECT below `MODEL (...);`.")
    return reader.finish_body(around)


def read_around(source: SourceText, scope: MacroScope, around: Around) -> Body:
    """Return the statements around a model's code, which has no query; raise ProjectError for a forbidden one."""
    reader = _Reader(source, scope, ())
    for part in around.before:
        reader.add_statement(part, views=False)
    return reader.finish_body(around)


class _Reader:
    """The state of reading a body."""

    def __init__(self, source: SourceText, scope: MacroScope, macros: Macros) -> None:
        stays = replace(scope, stays=scope.stays | {"this_model"})
        self.rooms = {
            EVALUATING: expander(source, replace(stays, stage=EVALUATING)),
            CREATING: expander(source, replace(stays, stage=CREATING)),
        }
        self.source, self.scope = source, scope
        self.query: StatementTokens | None = None
        self.after_query = False
        self.before: list[Statement] = []
        self.after: list[Statement] = []
        self.views: list[Statement] = []
        self.reads: set[str] = set()
        self.functions: frozenset[str] = frozenset()  # temporary ones, made so far

    def add_statement(self, part: StatementTokens, *, views: bool) -> None:
        if self.scope.kind == "SEED" and "".join(token.text for token in part.tokens[:2]).upper() == SEED_ROWS:
            self.after_query = True
            return
        evaluated = _expand_part(self.rooms[EVALUATING], part)
        if not views and evaluated and evaluated[0][0].text.upper() in QUERY_BEGINS:
            if self.query is not None or len(evaluated) > 1:
                hint = "Leave this one out, or put it into a model of its own."
                raise part.source.error(part.tokens[0], "A model has exactly one query.", hint)
            self.query, self.after_query = StatementTokens(self._allow_functions(part.source), evaluated[0]), True
            return
        created = (
            _expand_part(self.rooms[CREATING], part) if any("@" in token.text for token in part.tokens) else evaluated
        )
        texts = [[(t.token_type, t.text) for tokens in pieces for t in tokens] for pieces in (evaluated, created)]
        stages = [(created, (CREATING,)), (evaluated, (EVALUATING,))] if texts[0] != texts[1] else [(evaluated, ())]
        for pieces, when in stages:
            for piece in pieces:
                self._append_statement(StatementTokens(part.source, piece), views, when)

    def finish_body(self, around: Around) -> Body:
        self.after_query = True
        for part in around.after:
            self.add_statement(part, views=False)
        for part in around.views:
            self.add_statement(part, views=True)
        return Body(self.query, tuple(self.before), tuple(self.after), tuple(self.views), frozenset(self.reads))

    def _append_statement(self, part: StatementTokens, views: bool, stages: tuple[str, ...]) -> None:
        if is_needless(part.source, part.tokens):
            return
        if views:
            self.views.append(read_view_statement(part.source, part.tokens, self.scope.model))
            return
        temporary = frozenset(earlier.makes for earlier in (*self.before, *self.after) if earlier.makes)
        statement, reads = read_statement(self._allow_functions(part.source), part.tokens, self.scope.model, temporary)
        if function := temporary_function(part.tokens):
            name, makes = function
            # a function made in one stage only may be a different one in the other stage
            self.functions = self.functions | {name} if makes and not stages else self.functions - {name}
        statement = replace(statement, stages=stages or statement.stages)
        (self.after if self.after_query else self.before).append(statement)
        self.reads |= reads

    def _allow_functions(self, source: SourceText) -> SourceText:
        return replace(source, functions=(self.source.functions or frozenset()) | self.functions)


def _expand_part(room: Expander, part: StatementTokens) -> list[list[Token]]:
    if not any("@" in token.text for token in part.tokens):
        return [list(part.tokens)]
    part_expander = replace(room, source=part.source) if part.source is not room.source else room
    return part_expander.statements(part.tokens)


def _split_statements(
    source: SourceText, tokens: Tokens, scope: MacroScope, macros: Macros
) -> Iterator[tuple[StatementTokens, bool]]:
    """Yield each statement and whether it is one for views; the statements of Jinja are rendered."""
    views: Token | None = None
    index = 0
    while index < len(tokens):
        token, word = tokens[index], tokens[index].text.upper()
        if token.token_type is TokenType.SEMICOLON:
            index += 1
        elif word in (VIEWS_BEGIN, VIEWS_END):
            views = token if word == VIEWS_BEGIN else None
            index += 1
        elif word in JINJA:
            end = next((i for i in range(index, len(tokens)) if tokens[i].text.upper() == JINJA_END), None)
            if end is None:
                raise source.error(token, f"`{token.text}` has no `{JINJA_END};`.")
            start = token.end + 1 + source.text[token.end + 1 :].find(";") + 1
            parts = _render_jinja(source, start, tokens[end].start, scope, macros)
            yield from ((part, views is not None) for part in parts)
            index = end + 1
        else:
            semicolons = (i for i in range(index, len(tokens)) if tokens[i].token_type is TokenType.SEMICOLON)
            end = next(semicolons, len(tokens))
            statement = tokens[index:end]
            if is_jinja(statement):
                parts = _render_jinja(source, statement[0].start, statement[-1].end + 1, scope, macros)
                yield from ((part, views is not None) for part in parts)
            else:
                yield StatementTokens(source, statement), views is not None
            index = end
    if views is not None:
        raise source.error(views, f"`{views.text}` has no `{VIEWS_END};`.")


def expand_text(source: SourceText, scope: MacroScope, macros: Macros) -> str:
    """Return a text of SQL with its macros and its Jinja replaced, statement by statement."""
    room = expander(source, scope)
    parts = _split_statements(source, tokenize(source), scope, macros)
    return "; ".join(text_of(part.source, tokens) for part, _ in parts for tokens in _expand_part(room, part) if tokens)


def outside_jinja(source: SourceText) -> SourceText:
    """Return the file with spaces between `JINJA_..._BEGIN;` and `JINJA_END;`, where quotes are not SQL's."""

    def blank(match: re.Match[str]) -> str:
        return match[1] + re.sub(r"[^\n]", " ", match[2]) + match[3]

    return replace(source, text=_BLOCK.sub(blank, source.text)) if JINJA_END in source.text.upper() else source


def is_jinja(tokens: Tokens) -> bool:
    for index, token in enumerate(tokens):
        doubled = token.text == "{" and index + 1 < len(tokens) and tokens[index + 1].text == "{"
        if token.token_type is TokenType.BLOCK_START or (doubled and tokens[index + 1].start == token.end + 1):
            return True
    return False


def _render_jinja(
    source: SourceText, start: int, end: int, scope: MacroScope, macros: Macros
) -> Iterator[StatementTokens]:
    text = source.text[start:end]
    begins = start + len(text) - len(text.lstrip())
    at = source.place_at(begins)
    template = Template(text.strip(), source.path, at.line)
    sql = render_template(template, macros, scope)
    sql_source = SourceText(source.path, sql, source.dialect, Place(source.path, at.line), source.catalog)
    for statement in statements(tokenize(sql_source)):
        yield StatementTokens(sql_source, replace_date_marks(fuse_macros(statement), sql_source))
