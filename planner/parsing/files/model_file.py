"""Read the text of a file as Models and the audits below them; every error has the file, the line and the column.

Accepted in MODEL because they have no effect here: `enabled`, `formatting`, `optimize_query`, `references`,
`validate_query`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from mergeplan.planner.errors import Place, ProjectError, ProjectErrors
from mergeplan.planner.intervals import Cron
from mergeplan.planner.model.checks import Checks
from mergeplan.planner.model.incremental import ChangePolicy
from mergeplan.planner.model.kind import Fill, Kind
from mergeplan.planner.model.metadata import Metadata
from mergeplan.planner.model.model import PROPERTIES, Audit, Model
from mergeplan.planner.model.property import replace_settings
from mergeplan.planner.model.schedule import Schedule
from mergeplan.planner.model.statement import Statement, Statements
from mergeplan.planner.model.table_format import FILE_FORMATS, FORMATS, TABLE_FORMATS
from mergeplan.planner.parsing.definitions import body as query_body
from mergeplan.planner.parsing.definitions import properties as values
from mergeplan.planner.parsing.definitions.audits.audits import read_audits
from mergeplan.planner.parsing.definitions.audits.freshness import check_freshness_kind, read_freshness
from mergeplan.planner.parsing.definitions.blueprints import read_blueprints, split_header
from mergeplan.planner.parsing.definitions.body import Around, Body, StatementTokens
from mergeplan.planner.parsing.definitions.common_blocks import block_statements, is_block, property_date, table_names
from mergeplan.planner.parsing.definitions.custom_kind import check_interval
from mergeplan.planner.parsing.definitions.incremental import reading_itself
from mergeplan.planner.parsing.definitions.kinds import apply_kind
from mergeplan.planner.parsing.definitions.model_defaults import MERGED, merge_properties, select_defaults
from mergeplan.planner.parsing.definitions.project_defaults import Defaults as Defaults
from mergeplan.planner.parsing.definitions.properties import Property, signal_calls
from mergeplan.planner.parsing.definitions.schedules import cron, read_unit, read_zone, unit_error
from mergeplan.planner.parsing.definitions.sessions import session_statements
from mergeplan.planner.parsing.macros.expand import check_places, expand_block, spark_tree
from mergeplan.planner.parsing.macros.splicing import is_placed, reads_as
from mergeplan.planner.parsing.sql import tokens as sql_tokens
from mergeplan.planner.parsing.sql.dates import is_relative
from mergeplan.planner.parsing.sql.macro_scope import MacroScope
from mergeplan.planner.parsing.sql.misreading import misreading_digest
from mergeplan.planner.parsing.sql.names import model_name, name_itself, name_outputs, name_tables, name_tokens
from mergeplan.planner.parsing.sql.tokens import SourceText, Tokens
from mergeplan.planner.parsing.sql.verbatim import add_output_names, query_text, without_trailing_commas
from mergeplan.planner.semantics.reading.short_queries import write_out_queries
from mergeplan.planner.semantics.spark.spark_sql import FAILURES, drop_positions

LATER = """physical_version default_catalog
    table_properties project""".split()
_INTERVAL = re.compile(r"@(start|end)_", re.IGNORECASE)


def property_names() -> tuple[str, ...]:
    return tuple(sorted({*_READERS, "kind", "session_properties", "blueprints"}))


def parse_model(text: str, path: str, defaults: Defaults) -> tuple[Model | None, tuple[Audit, ...]]:
    """Return the one model of a file, None with `enabled false`, and the audits below it; raise ProjectError(s)."""
    models, audits = parse_models(text, path, defaults)
    return (models[0] if models else None), audits


def parse_models(text: str, path: str, defaults: Defaults) -> tuple[tuple[Model, ...], tuple[Audit, ...]]:
    """Return the enabled models of a file, one per blueprint, and the audits below; raise ProjectError(s)."""
    source = sql_tokens.create_source(path, text, defaults.dialect, defaults.catalog)
    tokens = sql_tokens.tokenize(query_body.outside_jinja(source))
    first, *tail = block_statements(source, tokens, "MODEL")
    defaults = _apply_gateway(first, defaults)
    source = replace(source, functions=defaults.functions)
    audit_at = next((index for index, statement in enumerate(tail) if is_block(statement, "AUDIT")), len(tail))
    audits = read_audits(source, tail[audit_at:], defaults)
    next_token = tail[audit_at][0] if audit_at < len(tail) else None
    behind = (t for t in tokens if t.start > first[-1].end)
    below = [t for t in behind if next_token is None or t.end < next_token.start][1:]
    header, options = split_header(source, first)
    models = []
    for blueprint in read_blueprints(source, options.get("blueprints"), defaults.scope):
        scope = replace(defaults.scope, blueprint=blueprint)
        model = _read_model(source, header, defaults, scope)
        if model is not None:
            scope = replace(scope, model=model.name, kind=str(model.kind))
            if model.kind.is_external and below:
                raise source.error(below[0], f"A {model.kind} model has no query.")
            around = _collect_around(model.kind, source, options, defaults.around)
            body = query_body.read_body(source, below, scope, defaults.jinja, around, first[0])
            models.append(_apply_body(model, body, source, first[0]))
            statements = models[-1].statements.around
            texts = [text for statement in statements for text in (statement.head, statement.query)]
            check_interval(models[-1], any(map(_INTERVAL.search, (models[-1].sql, *texts))))
    return tuple(models), audits


def _apply_body(model: Model, body: Body, source: SourceText, first_token: Token) -> Model:
    if body.query is not None and not model.kind.has_query:
        raise source.error(body.query.tokens[0], f"A {model.kind} model has no query.")
    statements = Statements(body.pre_statements, body.post_statements, body.on_virtual_update)
    model = replace(model, statements=statements, depends_on=tuple(sorted({*model.depends_on, *body.reads})))
    if model.name in body.reads:
        message = f"A statement of `{model.name}` reads `{model.name}`: only its query can."
        raise ProjectError(message, place=model.locate(model.name))
    if model.kind.is_embedded and (body.pre_statements or body.post_statements or body.on_virtual_update):
        raise source.error(
            first_token, "An EMBEDDED model has no statements: its query is inlined into the models that read it."
        )
    if body.query is None:
        return model
    try:
        return _without_kept(_read_query(model, body.query, body))
    except FAILURES as error:
        raise sql_tokens.unreadable_error(body.query.source, body.query.tokens, error) from None


def _collect_around(kind: Kind, source: SourceText, props: Mapping[str, Property], general: Around) -> Around:
    if kind.is_external or kind.is_embedded:
        return Around()

    def parts(key: str) -> tuple[StatementTokens, ...]:
        if key not in props:
            return ()
        sources = (replace(source, text=text, at=props[key].place) for text in values.words(props[key]))
        return tuple(
            StatementTokens(statement_source, sql_tokens.tokenize(statement_source)) for statement_source in sources
        )

    session = session_statements(props["session_properties"]) if "session_properties" in props else ()
    return Around(
        (*general.before, *session, *parts("pre_statements")),
        (*general.after, *parts("post_statements")),
        (*general.views, *parts("on_virtual_update")),
    )


def parse_block(text: str, path: str, defaults: Defaults) -> Model | None:
    """Return the model of a MODEL block, None with `enabled false`, and its statements; raise ProjectError(s)."""
    source = sql_tokens.create_source(path, text, defaults.dialect, defaults.catalog, defaults.functions)
    first = block_statements(source, sql_tokens.tokenize(source), "MODEL")[0]
    header, options = split_header(source, first)
    model = _read_model(source, header, defaults, defaults.scope)
    if model is None:
        return None
    if "session_properties" in options:
        _refuse_session(model, options["session_properties"], defaults)
    scope = replace(defaults.scope, model=model.name, kind=str(model.kind))
    own_body = query_body.read_around(source, scope, _collect_around(model.kind, source, options, Around()))
    if own_body.query is not None:
        raise source.error(first[0], "No statement of a Python model is a query: its rows come from its code.")
    for statement in (*own_body.pre_statements, *own_body.post_statements):
        if not _is_of_tables(statement):
            message = f"`{statement.head}` has no effect on a Python model: its code has a session of its own."
            raise source.error(first[0], message, "Write it in the code: `context.spark.sql(...)`.")
    body = query_body.read_around(source, scope, _collect_around(model.kind, source, options, defaults.around))
    pre, post = (tuple(filter(_is_of_tables, statements)) for statements in (body.pre_statements, body.post_statements))
    return _apply_body(model, replace(body, pre_statements=pre, post_statements=post), source, first[0])


def _is_of_tables(statement: Statement) -> bool:
    """Return False for a setting or a temporary object: they belong to a session, and code has its own."""
    return statement.head.split()[0].upper() in ("ALTER", "ANALYZE", "REFRESH")


def _apply_gateway(header: Tokens, defaults: Defaults) -> Defaults:
    """Return the defaults with the variables of the gateway that the block names, which the block itself may use."""
    words = [token.text.lower() for token in header]
    at = next((n for n in range(1, len(words) - 1) if words[n] == "gateway" and words[n - 1] in ("(", ",")), None)
    general = next((prop.text for prop in defaults.properties if prop.key == "gateway"), "")
    named = general if at is None else header[at + 1].text
    if named not in defaults.gateways or named == defaults.gateway:
        return defaults
    return replace(defaults, gateway=named, variables={**defaults.gateways[named], **defaults.overrides})


def _read_gateway(model: Model, prop: Property, defaults: Defaults) -> Model:
    name = values.word(prop)
    if name not in defaults.gateways:
        raise prop.error(f"`{name}` is not one of the gateways.", sql_tokens.did_you_mean(name, defaults.gateways))
    if name in defaults.apart:
        raise prop.error(f"The gateway `{name}` is not supported here: {defaults.apart[name]}.")
    return replace(model, gateway=name)


def _read_model(source: SourceText, header: Tokens, defaults: Defaults, scope: MacroScope) -> Model | None:
    place = source.place(header[0])
    model = Model(
        name="",
        kind=defaults.kind,
        path=source.path,
        line=place.line,
        source=source.text,
        dialect=source.dialect,
        cron=Cron(defaults.cron),
        schedule=Schedule(start=defaults.start, start_moves=defaults.start_moves, start_text=defaults.start_text),
        checks=Checks(audits=defaults.audits),
        metadata=Metadata(owner=defaults.owner, description="\n".join(line.strip() for line in header[0].comments)),
        policy=ChangePolicy(
            on_destructive_change=defaults.on_destructive_change or ChangePolicy.on_destructive_change,
            on_additive_change=defaults.on_additive_change or ChangePolicy.on_additive_change,
        ),
    )
    own_properties = values.block(source, expand_block(source, header, scope))
    properties = [*select_defaults(defaults.properties, (prop.key for prop in own_properties)), *own_properties]
    errors: list[ProjectError] = []
    for prop in properties:
        try:
            model = _READERS[values.check_key(prop, _READERS, LATER, "MODEL").key](model, prop, defaults)
        except ProjectError as error:
            errors.append(error)
    keys = {prop.key: prop for prop in properties}
    if "name" not in keys:
        try:
            model = replace(model, name=_infer_name(source.path, defaults, place))
        except ProjectError as error:
            errors.append(error)
    if errors:
        raise errors[0] if len(errors) == 1 else ProjectErrors(tuple(errors))
    for prop in defaults.properties:
        if prop.key in MERGED and keys[prop.key] is not prop:
            model = merge_properties(model, _READERS[prop.key](Model("", model.kind, "", 0, ""), prop, defaults))
    _check_together(model, keys)
    batches = model.batches
    if model.kind is Kind.INCREMENTAL_BY_TIME_RANGE and batches.batch_concurrency is None and not model.reads_itself:
        model = replace(model, batches=replace(batches, batch_concurrency=defaults.batch_concurrency))
    return model if "enabled" not in keys or values.read_boolean(keys["enabled"]) else None


def _infer_name(path: str, defaults: Defaults, place: Place) -> str:
    """Return `shop.orders` for `models/shop/orders.sql`; raise ProjectError unless config.yaml sets `infer_names`."""
    if not defaults.infer_names:
        raise ProjectError("The model has no name.", place=place, hint="Add `name schema.table` to MODEL.")
    folders = PurePosixPath(path).with_suffix("").parts[1:]
    return model_name(".".join(folders[-3:]), place, defaults.catalog)


def _check_together(model: Model, keys: Mapping[str, Property]) -> None:
    if model.kind.fill is Fill.PARTITION and not model.storage.partitioned_by:
        raise keys["kind"].error(f"{model.kind} needs `partitioned_by`.", "Write `partitioned_by (region)` in MODEL.")
    form = FORMATS.get(model.storage.table_format)
    if form is not None and form.has_log and model.storage.storage_format not in form.files:
        at = keys.get("storage_format", keys["table_format"])
        files = " or ".join(form.files)
        raise at.error(f"A table of {form.title} consists of {files} files.", "Remove `storage_format`.")
    for key in ("partitioned_by", "clustered_by"):
        if key in keys and not model.kind.is_stored:
            raise keys[key].error(f"A {model.kind} cannot have `{key}`: it has no table of its own.", "Remove it.")
    if "freshness" in keys:
        check_freshness_kind(model, keys["freshness"])
    if "interval_unit" in keys and (reason := unit_error(model.cron)):
        raise keys["interval_unit"].error(reason, "Use a shorter unit, or a less frequent cron.")
    if model.schedule.start and model.schedule.end and model.schedule.start >= model.schedule.end:
        raise (keys.get("end") or keys["start"]).error(f"`{model.name}` ends before it starts.")


def _read_query(model: Model, part: StatementTokens, body: Body) -> Model:
    source, tokens = part.source, write_out_queries(name_itself(part.tokens, model.name), part.source.dialect)
    tree = sql_tokens.parse_tokens(source, tokens)
    if not isinstance(tree, exp.Query):
        raise source.error(tokens[0], f"`{tokens[0].text}` does not begin a query. A model is a SELECT.")
    check_places(tree, source, tokens)
    placed, called = is_placed(tree), name_tokens(tree, source, tokens)
    tables = name_tables(tree, source, tokens, body.temporary)
    read = {table.name.lower() for table in tree.find_all(exp.Table) if not table.db} & body.temporary
    if read and not model.kind.is_stored:  # the temporary view no longer exists when the model is read
        at = next((token for token in tokens if token.text.lower() in read), tokens[0])
        raise source.error(at, f"A {model.kind} model cannot read the temporary view `{min(read)}`.", "Use kind FULL.")
    if model.name in tables | set(model.depends_on):
        model = reading_itself(model, model.locate(model.name))
    names = name_outputs(tree)
    drop_positions(tree)
    sql = sql_tokens.spark_query(tree, source, tokens)
    text, differences = "", ""
    words = add_output_names(without_trailing_commas(called), names)
    as_is = words == list(tokens)
    is_same = partial(reads_as, sql=sql, temporary=body.temporary, catalog=source.catalog)
    if placed and (text := query_text(source, words, tree)) and (as_is or is_same(text)):
        differences = misreading_digest(words, tree, sql)
        model = replace(model, written=replace(model.written, text=text, text_line=source.place(tokens[0]).line))
    misread = differences + "".join(statement.misread for statement in model.statements.pre_statements)
    # like SQLMesh
    comments = model.metadata.column_descriptions or tuple(
        (output.alias_or_name.lower(), "\n".join(comment.strip() for comment in output.comments))
        for output in tree.selects
        if output.comments and output.alias_or_name and not output.is_star
    )
    return replace(
        model,
        sql=sql,
        written=replace(model.written, misread=misread),
        depends_on=tuple(sorted((tables | set(model.depends_on)) - {model.name})),
        metadata=replace(model.metadata, column_descriptions=comments),
    )


def _without_kept(model: Model) -> Model:
    """Return the model without declared columns that its kind adds; raise ProjectError if its query returns one."""
    history_names = {column.name for column in model.history_columns}
    if not history_names:
        return model
    tree = spark_tree(model.sql)
    returned = {output_name.lower() for output_name in tree.named_selects} if isinstance(tree, exp.Query) else set()
    for column in sorted(history_names & returned):
        message = f"`{model.name}` returns `{column}`, a column that {model.kind} adds."
        hint = "Remove it from the query, or rename the added column with `valid_from_name` or `valid_to_name`."
        raise ProjectError(message, place=model.locate(column), hint=hint)
    return replace(model, columns=tuple(column for column in model.columns if column.name not in history_names))


def _apply_start(model: Model, prop: Property, defaults: Defaults) -> Model:
    text = prop.text if is_relative(prop.text) else ""
    return replace_settings(
        model, {"start": property_date(prop, defaults), "start_moves": bool(text), "start_text": text}
    )


def _read_field(model: Model, prop: Property, _: Defaults) -> Model:
    read = _FIELDS.get(prop.key)
    return replace_settings(
        model, {prop.key: read(prop) if read else values.read_value(prop, PROPERTIES[prop.key].default)}
    )


def _refuse_session(model: Model, prop: Property, _: Defaults) -> Model:
    """Raise ProjectError for session properties of a Python model: its code sets those of its own session."""
    if session_statements(prop):
        message = "`session_properties` has no effect on a Python model: its code has a session of its own."
        raise prop.error(message, "Set it in the code: `context.spark.conf.set(...)`.")
    return model


def _read_file_format(prop: Property) -> str:
    text = values.word(prop).lower()
    if text not in FILE_FORMATS:
        hint = f"Write `table_format {text}`." if text in TABLE_FORMATS else f"Known: {', '.join(FILE_FORMATS)}."
        raise prop.error(f"`{prop.key} {prop.text}` is not supported.", hint)
    return text


def _table_format(prop: Property) -> str:
    text = values.word(prop).lower()
    if text not in ("hive", "none", *FORMATS):
        raise prop.error(f"`{prop.key} {prop.text}` is not supported.", f"Known: {', '.join(TABLE_FORMATS)}, hive.")
    return "" if text == "none" else text


_Reader = Callable[[Model, Property, Defaults], Model]

# The properties that are a field of the model as they are read, besides those that their rows say how to read.
_FIELDS: Mapping[str, Callable[[Property], Any]] = {
    "name": lambda prop: model_name(values.name(prop), prop.source.place(prop.value[0]), prop.source.catalog),
    "columns": values.read_columns, "grain": values.read_grains, "description": lambda prop: prop.text,
    "column_descriptions": values.read_descriptions, "signals": signal_calls, "depends_on": table_names,
    "storage_format": _read_file_format, "table_format": _table_format, "physical_properties": values.table_properties,
    "partitioned_by": values.read_expressions, "clustered_by": values.column_names,
    "virtual_properties": values.view_properties, "freshness": read_freshness,
    "ignored_rules": lambda prop: tuple(map(values.rule_name, values.words(prop))),
}  # fmt: skip
_READERS: dict[str, _Reader] = {
    **dict.fromkeys((*_FIELDS, *(key for key, row in PROPERTIES.items() if not row.kinds)), _read_field),
    **dict.fromkeys(
        ("dialect", "references", "formatting", "optimize_query", "validate_query", "enabled"),
        lambda model, prop, _: model,
    ),
    "kind": lambda model, prop, defaults: apply_kind(model, prop, defaults.custom),
    "cron": lambda model, prop, _: replace(model, cron=replace(model.cron, text=cron(prop).text)),
    "cron_tz": lambda model, prop, _: replace(model, cron=replace(model.cron, tz=read_zone(prop))),
    "start": _apply_start,
    "end": lambda model, prop, defaults: replace_settings(model, {"end": property_date(prop, defaults, end=True)}),
    "interval_unit": lambda model, prop, _: replace(model, cron=replace(model.cron, given_unit=read_unit(prop))),
    "grains": lambda model, prop, _: replace_settings(model, {"grain": values.read_grains(prop)}),
    "audits": lambda model, prop, _: replace_settings(
        model, {"audits": (*model.checks.audits, *values.audit_calls(prop))}
    ),
    "session_properties": _refuse_session,  # of SQL models they are statements: see `_collect_around`
    "gateway": _read_gateway,
}
