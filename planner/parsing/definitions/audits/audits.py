"""AUDIT blocks as Audits: those that models call, and standalone ones."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.intervals import Cron
from mergeplan.planner.model.checks import AuditCall
from mergeplan.planner.model.model import Audit
from mergeplan.planner.parsing.definitions import properties as values
from mergeplan.planner.parsing.definitions.audits.audit_calls import parameters
from mergeplan.planner.parsing.definitions.body import is_jinja
from mergeplan.planner.parsing.definitions.common_blocks import block_statements, is_block, property_date, table_names
from mergeplan.planner.parsing.definitions.project_defaults import Defaults
from mergeplan.planner.parsing.definitions.properties import Property
from mergeplan.planner.parsing.definitions.schedules import cron
from mergeplan.planner.parsing.macros.expand import check_places, expand, expand_block
from mergeplan.planner.parsing.macros.splicing import is_placed, reads_as
from mergeplan.planner.parsing.sql import tokens as sql_tokens
from mergeplan.planner.parsing.sql.misreading import misreading_digest
from mergeplan.planner.parsing.sql.names import name_tables, name_tokens
from mergeplan.planner.parsing.sql.tokens import SourceText, Tokens
from mergeplan.planner.parsing.sql.verbatim import query_text, without_trailing_commas
from mergeplan.planner.semantics.reading.short_queries import write_out_queries

_AUDIT_KEYS = """name dialect blocking defaults standalone skip depends_on cron cron_tz start owner description tags
    formatting stamp""".split()
_AUDIT_ALONE = ("depends_on", "cron", "start")  # only of standalone audits
_AUDIT_LATER = ("model", "interval_unit", "end", "gateway", "project")


def property_names() -> tuple[str, ...]:
    return tuple(sorted(_AUDIT_KEYS))


def parse_audits(text: str, path: str, defaults: Defaults) -> tuple[Audit, ...]:
    source = sql_tokens.create_source(path, text, defaults.dialect, defaults.catalog, defaults.functions)
    return read_audits(source, block_statements(source, sql_tokens.tokenize(source), "AUDIT"), defaults)


def audit_call(text: str, place: Place) -> AuditCall:
    """Return an audit call written in config.yaml, like `not_null(columns := id)`; raise ProjectError at `place`."""
    source = SourceText(place.path, text, "spark")
    try:
        tokens = sql_tokens.tokenize(source)
        return values.audit_calls(Property(source, tokens[0], tuple(tokens)))[0]
    except (ProjectError, IndexError):
        raise ProjectError(f"`{text}` is not an audit's name or call.", place=place) from None


def read_audits(source: SourceText, statement_list: list[list[Token]], defaults: Defaults) -> tuple[Audit, ...]:
    audits: list[Audit] = []
    for header, query in zip(statement_list[::2], [*statement_list[1::2], []], strict=False):
        if not is_block(header, "AUDIT"):
            raise source.error(header[0], "An audit begins with `AUDIT (...);` and has exactly one query.")
        if not query or is_block(query, "AUDIT"):
            raise source.error(header[0], "The audit has no query.", "Write a SELECT of the failing rows.")
        audits.append(_read_audit(source, header, query, defaults))
    return tuple(audits)


def _read_audit(source: SourceText, header: Tokens, query: Tokens, defaults: Defaults) -> Audit:
    header = expand_block(source, header, defaults.scope)
    properties = values.read_settings(values.block(source, header), _AUDIT_KEYS, _AUDIT_LATER, "AUDIT")
    if "name" not in properties:
        raise source.error(header[0], "The audit has no name.", "Add `name ...` to AUDIT.")
    query_source = source
    if "dialect" in properties:
        query_source = replace(
            source, dialect=sql_tokens.parse_dialect(values.word(properties["dialect"]), properties["dialect"].place)
        )
    parameters = values.read_pairs(properties["defaults"]) if "defaults" in properties else ()
    scope = replace(defaults.scope, any_name=True)
    if is_jinja(query):
        raise query_source.error(query[0], "Jinja in an audit is not supported.", "Write `@name` macros instead.")
    words = write_out_queries(expand(query_source, query, scope), query_source.dialect)
    tree = sql_tokens.parse_tokens(query_source, words, "The audit's query")
    if not isinstance(tree, exp.Query):
        raise query_source.error(query[0], "The audit's query must be a SELECT of the failing rows.")
    alone = "standalone" in properties and values.read_boolean(properties["standalone"])
    check_places(tree, query_source, query, names=not alone)
    placed, called = is_placed(tree), name_tokens(tree, query_source, words)
    tables = name_tables(tree, query_source, query)
    blocking = values.read_boolean(properties["blocking"]) if "blocking" in properties else not alone
    sql = sql_tokens.spark_query(tree, query_source, query)
    audit = Audit(values.name(properties["name"]), sql, blocking, parameters, source.path, source.place(header[0]).line)
    audit = replace(audit, skip="skip" in properties and values.read_boolean(properties["skip"]))
    audit = _as_written(audit, query_source, called, tree, as_is=list(called) == list(words)) if placed else audit
    if alone:
        return _read_standalone(audit, query_source, query, properties, tables, defaults)
    for key in _AUDIT_ALONE:
        if key in properties:
            raise properties[key].error(f"`{key}` is for standalone audits.", "Add `standalone true`, or remove it.")
    return audit


def _as_written(audit: Audit, source: SourceText, tokens: Tokens, tree: exp.Expr, *, as_is: bool) -> Audit:
    """Return the audit with the text of its query, if Spark can run that text."""
    words = without_trailing_commas(tokens)
    text = query_text(source, words, tree)
    as_is = as_is and len(words) == len(tokens)
    if not text or not (as_is or reads_as(text, audit.sql, frozenset(), source.catalog)):
        return audit
    return replace(audit, text=text, misread=misreading_digest(words, tree, audit.sql))


def _read_standalone(
    audit: Audit, source: SourceText, query: Tokens, props: Mapping[str, Property], tables: set[str], defaults: Defaults
) -> Audit:
    for token, next_token in pairwise(query):
        if token.text == "@" and next_token.text.lower() == "this_model":
            raise source.error(
                token, "A standalone audit has no `@this_model`.", "Use the names of the tables that it reads."
            )
    for missing in sorted(parameters(audit) - {*dict(audit.defaults)}):
        raise source.error(query[0], f"`@{missing}` has no value here.", "Add it to `defaults (...)`.")
    zone = props.get("cron_tz")
    if zone is not None and zone.text.lower() not in ("utc", "etc/utc"):
        raise zone.error(f"`{zone.key} {zone.text}` is not supported yet.")
    return replace(
        audit,
        standalone=True,
        depends_on=tuple(sorted(tables | set(table_names(props["depends_on"]) if "depends_on" in props else ()))),
        cron=cron(props["cron"]) if "cron" in props else Cron(defaults.cron),
        start=property_date(props["start"], defaults) if "start" in props else None,
        owner=values.word(props["owner"]) if "owner" in props else defaults.owner,
        description=props["description"].text if "description" in props else "",
    )
