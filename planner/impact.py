"""What a change does: old model and new model -> a category, the rule that gave it, and the columns it touches.

Every rule here errs on one side: where it cannot prove that rows stay what they are, it says that they change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from planner.change import Category, Columns
from planner.columns import Shape
from planner.fingerprint import Fingerprint, digest
from planner.model import Kind, Model

UNTOUCHED = Columns()
EVERY = Columns(every=True)
CLAUSES = {"from_": "FROM", "joins": "JOIN", "where": "WHERE", "group": "GROUP BY", "having": "HAVING",
           "qualify": "QUALIFY", "with_": "WITH", "laterals": "LATERAL VIEW", "windows": "WINDOW",
           "aggregation": "the aggregation", "sample": "TABLESAMPLE", "pivots": "PIVOT"}  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """A category, the rule's name, one sentence that says why, and which columns a reader must take as changed."""

    category: Category
    rule: str
    reason: str
    columns: Columns = UNTOUCHED


def fingerprint_of(model: Model, shape: Shape | None, parents: Mapping[str, Fingerprint]) -> Fingerprint:
    """The canonical query and what else shapes rows; what is only said of the model; what it reads."""
    data = digest(shape.text if shape else "", *_row_settings(model).values())
    metadata = digest(model.sql, *_words_about(model).values())
    read = digest(*(f"{name}={digest(p.data, p.parents)}" for name, p in sorted(parents.items())))
    return Fingerprint(data, metadata, read)


def is_edited(old: Model, new: Model) -> bool:
    """True when a person changed this model itself, not only something it reads."""
    return old.sql != new.sql or _row_settings(old) != _row_settings(new) or _words_about(old) != _words_about(new)


def direct(old: Model, new: Model, before: Shape | None, after: Shape | None) -> Verdict:
    """The verdict on an edited model; `before` and `after` are its query's shapes, None where it has no query."""
    settings = [name for name, value in _row_settings(new).items() if _row_settings(old)[name] != value]
    if settings:
        return _settings_changed(old, new, settings)
    if old.sql == new.sql:
        about = [name for name, value in _words_about(new).items() if _words_about(old)[name] != value]
        return Verdict(
            Category.METADATA, "metadata-only", f"Only {_listed(about)} changed; the rows come from the same query."
        )
    assert before is not None
    assert after is not None
    if before.known and after.known and before.text == after.text:
        return Verdict(Category.EQUIVALENT, "same-query", "The new text means the same query.")
    return _query_changed(new, before, after)


def _settings_changed(old: Model, new: Model, settings: list[str]) -> Verdict:
    if "kind" in settings:
        return Verdict(Category.BREAKING, "kind-changed", f"The kind changed from {old.kind} to {new.kind}.", EVERY)
    if settings == ["seed"]:
        path = new.seed.path if new.seed else "the file"
        return Verdict(Category.BREAKING, "seed-content", f"The rows of `{path}` changed.", EVERY)
    return Verdict(Category.BREAKING, "settings-changed", f"{_listed(settings, capital=True)} changed.", EVERY)


def _query_changed(new: Model, before: Shape, after: Shape) -> Verdict:
    if not (before.known and after.known):
        reason = "The query's columns cannot be told for certain, so it counts as breaking."
        return Verdict(Category.UNDECIDED, "undecidable", reason, EVERY)
    if before.outputs is None or after.outputs is None:
        reason = "Rows and columns cannot be told apart here (DISTINCT, a set operation, LIMIT or the like)."
        return Verdict(Category.BREAKING, "rows-changed", reason, EVERY)
    if clauses := [
        clause
        for clause in sorted(before.frame.keys() | after.frame.keys())
        if before.frame.get(clause) != after.frame.get(clause)
    ]:
        named = _listed([CLAUSES.get(clause, clause.upper()) for clause in clauses], capital=True, ticked=False)
        return Verdict(Category.BREAKING, "rows-changed", f"{named} changed, and with it the rows.", EVERY)
    return _outputs_changed(new, before, after)


def _outputs_changed(new: Model, before: Shape, after: Shape) -> Verdict:
    assert before.outputs is not None
    assert after.outputs is not None
    assert before.columns is not None
    assert after.columns is not None
    old, now = before.outputs, after.outputs
    touched = Columns(
        added=frozenset(now.keys() - old.keys()),
        removed=frozenset(old.keys() - now.keys()),
        altered=frozenset(name for name in now.keys() & old.keys() if now[name] != old[name]),
    )
    if strange := (touched.added | touched.altered) - after.plain | (touched.removed | touched.altered) - before.plain:
        reason = f"{_listed(sorted(strange), capital=True)} may change how many rows there are."
        return Verdict(Category.BREAKING, "rows-changed", reason, EVERY)
    if [c for c in before.columns if c in now] != [c for c in after.columns if c in old]:
        return Verdict(Category.BREAKING, "columns-reordered", "The columns stand in another order.", EVERY)
    if new.time_column in touched.altered | touched.removed:
        reason = f"`{new.time_column}` changed, and it says in which interval a row lies."
        return Verdict(Category.BREAKING, "rows-changed", reason, EVERY)
    if not (touched.altered or touched.removed):
        reason = f"Only adds {_listed(sorted(touched.added))}; the rows and the other columns stay as they are."
        return Verdict(Category.NON_BREAKING, "column-added", reason, touched)
    rule = "column-removed" if touched.removed else "column-altered"
    return Verdict(Category.BREAKING, rule, _columns_sentence(touched), touched)


def _columns_sentence(touched: Columns) -> str:
    return _sentence(f"{_verbs(touched)}; the rows stay the same ones")


def _verbs(touched: Columns) -> str:
    """alters `a`, removes `b`, adds `c`"""
    verbs = (("alters", touched.altered), ("removes", touched.removed), ("adds", touched.added))
    return ", ".join(f"{verb} {_listed(sorted(names))}" for verb, names in verbs if names)


def carried(name: str, before: Shape, after: Shape, effects: Mapping[str, Columns]) -> Verdict:
    """What its parents' changes do to a model that reads them: nothing, some of its columns, or every row.

    `before` and `after` are the shapes of its query over the old and the new parents: a column that came can change
    what a `*`, a NATURAL JOIN or a bare name means, and then the two differ.
    """
    felt = {parent: effect for parent, effect in effects.items() if effect != UNTOUCHED}
    if not felt:
        return Verdict(
            Category.INDIRECT_NON_BREAKING, "parents-unchanged", "What it reads holds the same rows as before."
        )
    if parent := next((p for p in felt if felt[p].every), None):
        return Verdict(Category.INDIRECT_BREAKING, "reads-changed-rows", f"The rows of `{parent}` change.", EVERY)
    if not (before.known and after.known):
        reason = f"Which columns of {_listed(sorted(felt))} it reads cannot be told, so it counts as changed."
        return Verdict(Category.INDIRECT_BREAKING, "undecidable", reason, EVERY)
    return _columns_carried(before, after, felt)


def _columns_carried(before: Shape, after: Shape, felt: Mapping[str, Columns]) -> Verdict:
    altered: set[str] = set()
    causes: set[str] = set()
    for parent, effect in felt.items():
        changed, reads = effect.altered | effect.removed, after.reads.get(parent)
        if reads is None or (reads.every and (changed or effect.added)):
            return Verdict(
                Category.INDIRECT_BREAKING, "reads-every-column", f"It reads every column of `{parent}`.", EVERY
            )
        if hit := changed & reads.rows:
            reason = f"{_listed(sorted(hit), of=parent)} changed, and its rows depend on that."
            return Verdict(Category.INDIRECT_BREAKING, "reads-changed-column", reason, EVERY)
        for output, read in reads.outputs.items():
            if hit := changed & read:
                if output not in after.plain:
                    reason = f"{_listed(sorted(hit), of=parent)} changed, and `{output}` makes rows of it."
                    return Verdict(Category.INDIRECT_BREAKING, "reads-changed-column", reason, EVERY)
                altered.add(output)
                causes |= {f"{parent}.{column}" for column in hit}
    touched = _shape_difference(before, after)
    touched = replace(touched, altered=touched.altered | altered)
    if touched == UNTOUCHED:
        return Verdict(Category.INDIRECT_NON_BREAKING, "reads-nothing-changed", _unaffected(after, felt))
    reason = (
        f"Reads {_listed(sorted(causes))}, which changed."
        if causes
        else "Its `*` or a bare name now means other columns."
    )
    return Verdict(Category.INDIRECT_BREAKING, "reads-changed-column", reason, touched)


def _shape_difference(before: Shape, after: Shape) -> Columns:
    """How an unedited query differs over its new parents."""
    if before.text == after.text:
        return UNTOUCHED
    if before.outputs is None or after.outputs is None or before.frame != after.frame:
        return EVERY
    old, now = before.outputs, after.outputs
    if not after.plain >= {name for name in now if now[name] != old.get(name)}:
        return EVERY
    return Columns(
        added=frozenset(now.keys() - old.keys()),
        removed=frozenset(old.keys() - now.keys()),
        altered=frozenset(name for name in now.keys() & old.keys() if now[name] != old[name]),
    )


def _unaffected(shape: Shape, felt: Mapping[str, Columns]) -> str:
    said = []
    for parent, effect in sorted(felt.items()):
        reads = shape.reads[parent]
        read = reads.rows | frozenset[str]().union(*reads.outputs.values())
        only = f"reads only {_listed(sorted(read))}" if read else "reads none of its columns"
        said.append(f"{only} of `{parent}`, which {_verbs(effect)}")
    return _sentence(" and ".join(said))


def recomputed_effect(effect: Columns, shape: Shape | None) -> Columns:
    """The effect of a model that is built again: whatever may come out differently each time counts as changed."""
    if shape is None or effect.every:
        return effect
    if not shape.known or shape.volatile_rows:
        return EVERY
    return replace(effect, altered=effect.altered | (shape.volatile - effect.added))


def united(effects: Iterable[Columns]) -> Columns:
    """All effects at once."""
    total = UNTOUCHED
    for effect in effects:
        total = Columns(
            total.added | effect.added,
            total.altered | effect.altered,
            total.removed | effect.removed,
            total.every or effect.every,
        )
    return total


def _row_settings(model: Model) -> dict[str, str]:
    """What besides the query decides a model's rows and how its table is cut."""
    ranged = model.kind is Kind.INCREMENTAL_BY_TIME_RANGE
    return {
        "kind": str(model.kind),
        "columns": repr([(column.name, column.type) for column in model.columns]),
        "time_column": f"{model.time_column} {model.time_format}".strip(),
        "interval_unit": model.cron.unit if ranged else "",
        # of any kind: what reads it and has no start of its own begins where it begins
        "start": model.start_text if model.start_moves else str(model.start or ""),
        "end": str(model.end or ""),
        "seed": repr((model.seed.digest, model.seed.header, model.seed.na_values)) if model.seed else "",
        "stamp": model.stamp,
    }


def _words_about(model: Model) -> dict[str, str]:
    """What is said of a model without changing a row."""
    return {
        "description": model.description,
        "column_descriptions": repr(model.column_descriptions),
        "owner": model.owner,
        "tags": repr(model.tags),
        "grain": repr(model.grain),
        "audits": repr(model.audits),
        "cron": model.cron.text,
        "lookback": str(model.lookback),
        "batch_size": f"{model.batch_size} {model.batch_concurrency}",
    }


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _listed(names: Iterable[str], *, capital: bool = False, ticked: bool = True, of: str = "") -> str:
    """`a`, `b` and `c`."""
    shown = [f"`{of}.{name}`" if of else f"`{name}`" if ticked else name for name in names]
    text = shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1] if shown else "nothing"
    return text[:1].upper() + text[1:] if capital else text
