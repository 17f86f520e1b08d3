"""`kind CUSTOM (materialization 'name', ...)`: the kind that does what the materialization's `insert` does.

The code is never run. Rows that other code writes are not recorded: after a crash, a rollback or a promotion, the
content of the table would be unknown.
"""

from dataclasses import dataclass

from sqlglot import exp

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.kind import Fill, Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.naming import quote_column
from mergeplan.planner.parsing.definitions.incremental import BOTH, ORDER_KEYS
from mergeplan.planner.parsing.definitions.materializations.calls import Write
from mergeplan.planner.parsing.definitions.materializations.classes import Materializations
from mergeplan.planner.parsing.definitions.materializations.values import NotUnderstood, Value
from mergeplan.planner.parsing.definitions.properties import (
    Property,
    bracket_tokens,
    read_properties,
    read_settings,
    word,
)
from mergeplan.planner.parsing.sql.tokens import SourceText, Tokens, parse_tokens, tokenize

CUSTOM = "CUSTOM"
KEYS = ("materialization", "materialization_properties", *BOTH, *ORDER_KEYS, "lookback", "auto_restatement_cron",
        "auto_restatement_intervals")  # fmt: skip
HELP = (
    "Only what mergeplan writes itself can be planned, promoted and rolled back: docs/tutorials/moving.md says what it "
    "reads of a materialization, and which kind to use instead."
)


@dataclass(frozen=True)
class Custom:
    """A model of kind CUSTOM as read: its materialization, the kind that does the same, and its settings."""

    materialization: str
    kind: Kind
    stated: tuple[Property, ...]  # as the model has them
    derived: tuple[Property, ...]  # as the materialization has them


def read_custom(kind_prop: Property, rest: Tokens, materializations: Materializations) -> Custom:
    """Return `kind CUSTOM (settings)` as read; raise ProjectError for a materialization that is not understood."""
    own_settings = read_settings(read_properties(kind_prop.source, rest), KEYS, (), "the kind CUSTOM")
    if "materialization" not in own_settings:
        raise kind_prop.error("CUSTOM needs a `materialization`.", "Write `kind CUSTOM (materialization 'name')`.")
    named = own_settings.pop("materialization")
    used = materializations.find(word(named), named.source.place(named.value[0]))
    parent = own_settings.pop("materialization_properties", None)
    pairs = read_properties(parent.source, bracket_tokens(parent), allow_quotes=True) if parent else ()
    try:
        write = used.write({prop.at.text: _plain_value(prop) for prop in pairs})
    except NotUnderstood as error:
        message = f"The materialization `{used.name}` is not supported: at {used.path}:{error.line}, {error.why}."
        raise kind_prop.error(message, HELP) from None
    return Custom(used.name, write.kind, tuple(own_settings.values()), _settings_for_write(kind_prop, write))


def check_interval(model: Model, reads: bool) -> None:
    """Raise ProjectError for a model whose materialization replaces all rows by those of one interval."""
    if model.materialization and model.kind.fill is Fill.WHOLE and reads:
        message = (
            f"The materialization `{model.materialization}` of `{model.name}` replaces the table by the rows of the "
            "last interval: the model reads its start or its end."
        )
        hint = "Leave them out and use kind FULL, or use INCREMENTAL_BY_TIME_RANGE to keep the rows of other intervals."
        raise ProjectError(message, place=model.place, hint=hint)


def _settings_for_write(kind_prop: Property, write: Write) -> tuple[Property, ...]:
    if not write.columns:
        return ()
    columns = ", ".join(map(quote_column, write.columns))
    text = f"time_column {columns}" if write.kind.is_by_time else f"unique_key ({columns})"
    source = SourceText(kind_prop.source.path, text, "spark", kind_prop.source.place(kind_prop.value[0]))
    first, *value_tokens = tokenize(source)
    return (Property(source, first, tuple(value_tokens)),)


def _plain_value(prop: Property) -> Value:
    """Return a literal as the value that SQLMesh makes of it, and any other expression itself."""
    tree = parse_tokens(prop.source, prop.value, "The property")
    if tree.is_number and isinstance(tree, exp.Literal):
        return int(tree.name) if tree.is_int else float(tree.name)
    return tree.this if isinstance(tree, exp.Literal | exp.Boolean) else tree
