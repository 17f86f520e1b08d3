"""Statements before and after a model's query: which are allowed, and what they contain.

They come from pull requests. A statement may prepare the session of the query, and set properties of the model's own
table. Any statement that writes another table is rejected.
"""

import re
from dataclasses import dataclass, replace
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.statement import Statement
from mergeplan.planner.parsing.macros.splicing import is_placed, reads_as
from mergeplan.planner.parsing.sql import tokens as sql_tokens
from mergeplan.planner.parsing.sql.function_calls import find_refused_call
from mergeplan.planner.parsing.sql.misreading import misreading_digest
from mergeplan.planner.parsing.sql.names import name_tables, name_tokens, without_default
from mergeplan.planner.parsing.sql.spark_registry import is_closed
from mergeplan.planner.parsing.sql.token_lists import text_of
from mergeplan.planner.parsing.sql.tokens import OPEN, QUERY_BEGINS, SourceText, Tokens
from mergeplan.planner.parsing.sql.verbatim import query_text, without_trailing_commas
from mergeplan.planner.semantics.reading.short_queries import write_out_queries
from mergeplan.planner.semantics.spark.spark_settings import UNREADABLE
from mergeplan.planner.semantics.spark.spark_sql import SPARK

THIS = "@this_model"
_NAME = r"`?(?P<name>\w+)`?"
_TABLE = r"(?P<table>[`@\w.]+)"


@dataclass(frozen=True)
class _Form:
    """A kind of statement, by the beginning of its text."""

    pattern: re.Pattern[str]
    harmless: bool = False  # it cannot change rows
    makes: bool = False  # a temporary view of the name
    query: bool = False  # a query follows


def _create_form(pattern: str, *, harmless: bool = False, makes: bool = False, query: bool = False) -> _Form:
    text = pattern.replace(" ", r"\s+").replace("~", r"\s*")
    return _Form(re.compile(text, re.IGNORECASE | re.DOTALL), harmless, makes, query)


_SET = r"SET (?P<setting>spark\.sql\.[\w.]+)~=.*"
_BESIDE = (
    _create_form(_SET),
    _create_form(r"SET TIME ZONE .*"),
    _create_form(r"RESET (?P<setting>spark\.sql\.[\w.]+)"),
    _create_form(r"DECLARE (?:OR REPLACE )?(?:VARIABLE )?\w+ .*"),
    _create_form(r"SET (?:VARIABLE|VAR) .*"),
    _create_form(rf"CREATE (?:OR REPLACE )?(?:TEMPORARY|TEMP) VIEW {_NAME}~AS", makes=True, query=True),
    _create_form(rf"CACHE (?:LAZY )?TABLE {_NAME}~(?:OPTIONS~\([^)]*\)~)?(?:AS )?", makes=True, query=True),
    _create_form(rf"CACHE (?:LAZY )?TABLE {_TABLE}(?: OPTIONS~\([^)]*\))?", harmless=True),
    _create_form(r"UNCACHE TABLE (?:IF EXISTS )?[`@\w.]+", harmless=True),
    _create_form(r"REFRESH (?:TABLE )?[`@\w.]+", harmless=True),
    _create_form(r"CREATE (?:OR REPLACE )?(?:TEMPORARY|TEMP) FUNCTION \w+~\(.*"),
    _create_form(r"DROP (?:TEMPORARY|TEMP) FUNCTION (?:IF EXISTS )?\w+"),
    _create_form(rf"ANALYZE TABLE {_TABLE} .*", harmless=True),
    _create_form(rf"ALTER TABLE {_TABLE} (?:SET|UNSET) TBLPROPERTIES~.*", harmless=True),
    _create_form(rf"COMMENT ON TABLE {_TABLE} IS .*", harmless=True),
)
# mergeplan creates the schemas of its own tables and views, and nothing else of a project can write to another one
_NEEDLESS = re.compile(r"CREATE\s+(?:SCHEMA|DATABASE|NAMESPACE)\s+IF\s+NOT\s+EXISTS\s+[`'\w.]+", re.IGNORECASE)
_AT_VIEWS = (
    _create_form(rf"ALTER VIEW {_TABLE} (?:SET|UNSET) TBLPROPERTIES~.*", harmless=True),
    _create_form(rf"COMMENT ON (?:TABLE|VIEW) {_TABLE} IS .*", harmless=True),
    _create_form(rf"GRANT (?:[\w,]+ )+ON (?:TABLE |VIEW )?{_TABLE} TO .*", harmless=True),
    _create_form(rf"REVOKE (?:[\w,]+ )+ON (?:TABLE |VIEW )?{_TABLE} FROM .*", harmless=True),
)
# settings that change performance, not results
_FAST = re.compile(
    r"spark\.sql\.(shuffle\.partitions|adaptive\..*|autoBroadcastJoinThreshold|broadcastTimeout|"
    r"files\.(maxPartitionBytes|openCostInBytes|minPartitionNum|maxPartitionNum|maxRecordsPerFile))",
    re.IGNORECASE,
)
# settings of what can be accessed, and of what is hidden
_FIXED = (
    "spark.sql.catalog", "spark.sql.defaultcatalog", "spark.sql.extensions", "spark.sql.hive", "spark.sql.warehouse",
    "spark.sql.streaming", "spark.sql.redaction",
    "spark.sql.artifact", "spark.sql.queryexecutionlisteners", *(key.lower() for key in UNREADABLE),
)  # fmt: skip
_QUERY = frozenset(QUERY_BEGINS) - {"("}
_HINT = (
    "Allowed before and after a query: SET spark.sql..., temporary views and functions, CACHE, REFRESH, and "
    "ANALYZE, ALTER TABLE ... SET TBLPROPERTIES or COMMENT of @this_model."
)
_READS_FUNCTION = (
    "A temporary function may not read tables or files: `CREATE TEMPORARY FUNCTION f(x INT) RETURN x + 1`."
)
_READS_VARIABLE = "A variable may not read tables: write `CREATE TEMPORARY VIEW ... AS SELECT` instead."
_VIEW_HINT = "Allowed for a view: GRANT, REVOKE, COMMENT ON and ALTER VIEW @this_model SET TBLPROPERTIES."


def is_needless(source: SourceText, tokens: Tokens) -> bool:
    """Return True for `CREATE SCHEMA IF NOT EXISTS x`, which is accepted and not run."""
    return _NEEDLESS.fullmatch(text_of(source, tokens)) is not None


def read_statement(
    source: SourceText, tokens: Tokens, model: str, temporary: frozenset[str]
) -> tuple[Statement, set[str]]:
    """Return a statement beside a query and its tables, no `temporary` views; raise ProjectError if it is forbidden."""
    text = _spark_text(source, tokens)
    for form in _BESIDE:
        match = form.pattern.match(text) if form.query else form.pattern.fullmatch(text)
        if match is None or (form.query and not _query_tokens(tokens)):
            continue
        _check_statement(source, tokens, match, model, temporary)
        if not form.query:
            fast = _FAST.fullmatch(match.groupdict().get("setting") or "") is not None
            return Statement(_mark_own_table(text, match, model, source.catalog), harmless=form.harmless or fast), set()
        name = match["name"].lower()
        head = text[: match.end()].rstrip()
        read, tables = _read_query(source, _query_tokens(tokens), temporary)
        return replace(read, head=head if head.upper().endswith("AS") else f"{head} AS", makes=name), tables
    raise _refusal_error(source, tokens, _HINT)


def read_view_statement(source: SourceText, tokens: Tokens, model: str) -> Statement:
    """Return a statement for when the view of `model` is created or swapped; raise ProjectError for any other."""
    text = _spark_text(source, tokens)
    for form in _AT_VIEWS:
        if match := form.pattern.fullmatch(text):
            _check_statement(source, tokens, match, model, frozenset())
            return Statement(_mark_own_table(text, match, model, source.catalog), harmless=True)
    raise _refusal_error(source, tokens, _VIEW_HINT)


def _spark_text(source: SourceText, tokens: Tokens) -> str:
    tree = None if source.dialect in SPARK else sql_tokens.parse_tokens(source, tokens, "The statement")
    if tree is None or isinstance(tree, exp.Command):
        return text_of(source, tokens)
    return sql_tokens.spark_query(tree, source, tokens)


def _query_tokens(tokens: Tokens) -> Tokens:
    """Return the query inside a statement: all that follows the name of the object, OPTIONS (...) and AS."""
    words = [token.text.upper() for token in tokens]
    index = next((at for at, word in enumerate(words) if word in ("VIEW", "TABLE")), len(words)) + 2
    if words[index : index + 2] == ["OPTIONS", "("]:
        index = (sql_tokens.closing(tokens, index + 1) or len(words)) + 1
    if words[index : index + 1] == ["AS"]:
        index += 1
    return tokens[index:] if words[index : index + 1] and words[index] in QUERY_BEGINS else ()


def _read_query(source: SourceText, tokens: Tokens, temporary: frozenset[str]) -> tuple[Statement, set[str]]:
    tokens = write_out_queries(tokens, source.dialect)
    tree = sql_tokens.parse_tokens(source, tokens, "The statement's query")
    if not isinstance(tree, exp.Query):
        raise source.error(tokens[0], "The statement's query must be a SELECT.")
    if any(table.name.startswith("@") for table in tree.find_all(exp.Table)):
        raise source.error(tokens[0], "A statement cannot read `@this_model`.")
    placed, called = is_placed(tree), name_tokens(tree, source, tokens)
    tables = name_tables(tree, source, tokens, temporary)
    sql = sql_tokens.spark_query(tree, source, tokens)
    words = without_trailing_commas(called)
    as_is = words == list(tokens)
    if (
        placed
        and (text := query_text(source, words, tree))
        and (as_is or reads_as(text, sql, temporary, source.catalog))
    ):
        return Statement("", sql, text=text, misread=misreading_digest(words, tree, sql)), tables
    return Statement("", sql), tables


def _check_statement(
    source: SourceText, tokens: Tokens, match: re.Match[str], model: str, temporary: frozenset[str]
) -> None:
    groups = match.groupdict()
    setting = (groups.get("setting") or "").lower()
    if any(setting == prefix or setting.startswith(f"{prefix}.") for prefix in _FIXED):
        raise source.error(tokens[0], f"`{groups['setting']}` must not be set by a model.")
    if not match.re.groupindex:
        words = [token.text.upper() for token in tokens]
        for index, (previous, token) in enumerate(pairwise(tokens), 1):
            word = words[index]
            if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
                continue
            queries = word == "SELECT" or (
                word in _QUERY and (previous.token_type in OPEN or words[index - 1] == "RETURN")
            )
            if queries or word in ("IDENTIFIER", "USING", "JAR", "FILE", "ARCHIVE", "LANGUAGE"):
                raise source.error(tokens[0], _READS_FUNCTION if "FUNCTION" in words[:5] else _READS_VARIABLE)
        function = temporary_function(tokens)
        if function is not None and is_closed(function[0]):
            raise source.error(tokens[0], f"`{function[0]}` is the name of a function of Spark.", "Use another name.")
        body = tokens if function is None else tokens[words.index("FUNCTION") + 2 :]
        if refused := find_refused_call(body, None, source.functions or ()):
            raise source.error(refused.at, refused.message, refused.hint)
    table = without_default((groups.get("table") or "").replace("`", "").lower(), source.catalog)
    if table and table not in (THIS, model, *temporary):
        raise _refusal_error(source, tokens, f"It is allowed only for `@this_model`, not for `{table}`.")


def temporary_function(tokens: Tokens) -> tuple[str, bool] | None:
    """Return the lower-case name of a temporary function and whether it is made or dropped; None for others."""
    words = [token.text.lower() for token in tokens[:7]]
    if "function" not in words[:5] or words[0] not in ("create", "drop"):
        return None
    names = [word for word in words[words.index("function") + 1 :] if word not in ("if", "exists")]
    return (names[0], words[0] == "create") if names else None


def _mark_own_table(text: str, match: re.Match[str], model: str, catalog: str) -> str:
    table = match.groupdict().get("table")
    if table and without_default(table.replace("`", "").lower(), catalog) == model:
        return text[: match.start("table")] + THIS + text[match.end("table") :]
    return text


def _refusal_error(source: SourceText, tokens: Tokens, hint: str) -> ProjectError:
    words = " ".join(token.text.upper() for token in tokens[:2] if token.text.isalpha()) or tokens[0].text
    return source.error(tokens[0], f"`{words}` next to a model's query is not supported.", hint)
