"""`kind CUSTOM (materialization 'name', ...)`: the kind that does what the materialization's `insert` does.

The code is never run. Rows that other code writes are not recorded: after a crash, a rollback or a promotion, the
content of the table would be unknown.
"""

from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.kind import Fill, Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.naming import quote_column
from mergeplan.planner.parsing.definitions.incremental import BOTH, ORDER_KEYS
from mergeplan.planner.parsing.definitions.materializations.calls import Write
from mergeplan.planner.parsing.definitions.materializations.classes import Materializations
from mergeplan.planner.parsing.definitions.materializations.values import (
    Column,
    Listed,
    NotUnderstood,
    Quoted,
    Unclear,
    Value,
)
from mergeplan.planner.parsing.definitions.properties import (
    Property,
    bracket_tokens,
    list_items,
    read_properties,
    read_settings,
    word,
)
from mergeplan.planner.parsing.sql.tokens import SourceText, Tokens, tokenize

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
    try:
        write = used.write(_property_values(own_settings.pop("materialization_properties", None)))
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


def _property_values(parent: Property | None) -> dict[str, Value]:
    if parent is None:
        return {}
    return {
        prop.at.text: _property_value(prop)
        for prop in read_properties(parent.source, bracket_tokens(parent), allow_quotes=True)
    }


def _property_value(prop: Property) -> Value:
    unclear = Unclear(f"the property `{prop.at.text}` of the model is no plain value")
    parts = list_items(prop)
    if len(parts) == 1 and len(prop.value) == len(parts[0]):
        return _token_value(parts[0], unclear)
    listed = [_token_value(part, unclear) for part in parts]
    if any(isinstance(element, Unclear) for element in listed):
        return unclear
    return Listed(tuple(Quoted(element) if isinstance(element, str) else element for element in listed))


def _token_value(part: list[Token], unclear: Unclear) -> Value:
    if len(part) != 1:
        return unclear
    match part[0]:
        case Token(token_type=TokenType.STRING, text=text):
            return text
        case Token(token_type=TokenType.NUMBER, text=text):
            return int(text) if text.isdecimal() else float(text)
        case Token(token_type=TokenType.TRUE | TokenType.FALSE, text=text):
            return text.lower() == "true"
        case Token(token_type=TokenType.VAR | TokenType.IDENTIFIER, text=text):
            return Column(text)
    return unclear
