"""What a change does: old model and new model -> a category, the rule that gave it, and the columns it touches.

Every rule here errs on one side: where it cannot prove that rows stay what they are, it says that they change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from planner.fingerprint import Fingerprint, digest
from planner.model.model import Model, PythonCode, Statement
from planner.plan.change import Category, Columns
from planner.semantics.columns import Shape
from planner.semantics.digests import SORTED, Seen
from planner.semantics.spark_settings import default_of

UNTOUCHED = Columns()
EVERY = Columns(every=True)


@dataclass(frozen=True)
class Verdict:
    """A category, the rule's name, one sentence that says why, and which columns a reader must take as changed."""

    category: Category
    rule: str
    reason: str
    columns: Columns = UNTOUCHED


@dataclass(frozen=True)
class Side:
    """A model before or after a change: itself, the shape of its query (None: it has none), what its rows mean."""

    model: Model
    shape: Shape | None
    seen: Seen

    @property
    def is_known(self) -> bool:
        return self.shape is None or self.shape.known


def fingerprint_of(
    model: Model, shape: Shape | None, parents: Mapping[str, Fingerprint], began: str = ""
) -> Fingerprint:
    """The canonical query and what else shapes rows; what is only said of the model; what it reads."""
    under = [part for pair in model.settings for part in pair]
    # a table's rows have no order; that of a view is part of what its readers get
    order = shape.order if shape and not model.kind.is_stored else ""
    said = (*row_settings(model).values(), *layout(model).values(), began, *under, *([order] if order else []))
    data = digest(shape.text if shape else "", *said)
    metadata = digest(model.sql, *_described(model).values())
    read = digest(*(f"{name}={digest(p.data, p.parents)}" for name, p in sorted(parents.items())))
    return Fingerprint(data, metadata, read)


def is_edited(old: Model, new: Model) -> bool:
    """True when a person changed this model itself, not only something it reads."""
    if body(old) != body(new) or old.settings != new.settings:
        return True
    return any(said(old) != said(new) for said in (row_settings, layout, _described))


def difference(old: Seen, new: Seen) -> Columns:
    """What of the old rows a reader cannot take from the new ones."""
    # column digests are about the same rows: over other rows equal ones prove nothing
    if old.rows != new.rows:
        return EVERY
    return Columns(
        added=frozenset(new.columns.keys() - old.columns.keys()),
        removed=frozenset(old.columns.keys() - new.columns.keys()),
        altered=frozenset(
            name for name in new.columns.keys() & old.columns.keys() if new.columns[name] != old.columns[name]
        ),
        order=new.order != old.order,
    )


def is_reordered(old: Seen, new: Seen) -> bool:
    """True when the columns that stay stand in another order, which matters to the table, not to who reads by name."""
    return [c for c in old.columns if c in new.columns] != [c for c in new.columns if c in old.columns]


def verdict(old: Side, new: Side, effects: Mapping[str, Columns]) -> Verdict:
    """What becomes of a model, by its own edit and by what its parents' changes (`effects`) do to it.

    The rows decide, not the texts: of two queries that mean the same over the same tables neither is a change.
    """
    told, reordered = difference(old.seen, new.seen), is_reordered(old.seen, new.seen)
    touched = replace(told, order=False)
    same = touched == UNTOUCHED and not reordered
    # the order of a view's rows concerns only readers that take rows by it, so it is judged apart from the rows
    own = _own_change(old, new) if is_edited(old.model, new.model) else None
    if same and told.order and _is_sorted(old, new) and (own is None or own.rule in ("same-query", "query")):
        return _in_another_order(told, effects, edited=own is not None)
    if own is None:
        return _unaffected(new, effects) if same else _carried(old, new, effects, touched)
    if own.category in (Category.METADATA, Category.EQUIVALENT) or own.rule == "layout-changed":
        # such an edit changes no row, so what does differ comes from above
        return own if same else _carried(old, new, effects, touched)
    if own.rule in ("kind-changed", "settings-changed", "seed-content"):
        return _by_settings(own, touched, reordered)
    if same:
        return Verdict(Category.EQUIVALENT, "same-query", "The new text means the same query.")
    return _query_changed(old, new, effects, touched)


def _is_sorted(old: Side, new: Side) -> bool:
    """True when the rows of a model without a table are sorted, by its text or that of one below it, then or now."""
    return not new.model.kind.is_stored and any(side.seen.order.startswith(SORTED) for side in (old, new))


def _in_another_order(told: Columns, effects: Mapping[str, Columns], *, edited: bool) -> Verdict:
    """A view, or an embedded query, that returns the same rows in another order."""
    if not edited:
        above = _listed(parent for parent in sorted(effects) if effects[parent].order)
        reason = f"{above} returns its rows in another order, and so does it."
        return Verdict(Category.INDIRECT_BREAKING, "reads-changed-order", reason, told)
    reason = "It returns the same rows in another order, which matters to what takes rows by their order."
    return Verdict(Category.BREAKING, "order-changed", reason, told)


def _own_change(old: Side, new: Side) -> Verdict:
    """The edit itself; `BREAKING` stands for whatever the rows will say."""
    settings = [name for name, value in row_settings(new.model).items() if row_settings(old.model)[name] != value]
    if "kind" in settings:
        reason = f"The kind changed from {old.model.kind} to {new.model.kind}"
        return Verdict(Category.BREAKING, "kind-changed", reason)
    # columns that nobody declared are read off the file, so an edit of the file may change both
    if "seed" in settings and set(settings) <= {"seed", "columns"}:
        path = new.model.seed.path if new.model.seed else "the file"
        return Verdict(Category.BREAKING, "seed-content", f"`{path}` changed")
    said = [f"{_listed(settings, capital=True)} changed"] if settings else []
    if said := said + _of_spark(old.model, new.model):
        return Verdict(Category.BREAKING, "settings-changed", "; ".join(said))
    if body(old.model) == body(new.model) and layout(old.model) != layout(new.model):
        changed = [name for name, value in layout(new.model).items() if layout(old.model)[name] != value]
        reason = f"{_listed(changed, capital=True)} changed: the rows are copied from the table that holds them."
        return Verdict(Category.NON_BREAKING, "layout-changed", reason)
    if body(old.model) == body(new.model):
        about = [name for name, value in _described(new.model).items() if _described(old.model)[name] != value]
        reason = f"Only {_listed(about)} changed; the rows come from the same query."
        return Verdict(Category.METADATA, "metadata-only", reason)
    # equal texts over parents whose columns are known: no digest is needed to see that they are the same query
    before, after = old.shape, new.shape
    if before and after and before.known and after.known and before.text == after.text:
        return Verdict(Category.EQUIVALENT, "same-query", "The new text means the same query.")
    return Verdict(Category.BREAKING, "query", "")


def _of_spark(old: Model, new: Model) -> list[str]:
    """What changed of the settings of the Spark that computes a model."""
    before, after = dict(old.settings), dict(new.settings)
    changed = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    return [
        f"The setting `{key}` changed from {before.get(key, default_of(key))} to {after.get(key, default_of(key))}"
        for key in changed
    ]


def _by_settings(own: Verdict, touched: Columns, reordered: bool) -> Verdict:
    if touched.every:
        return replace(own, reason=f"{own.reason}, and with it the rows.", columns=EVERY)
    # a table of another kind is another table, though its rows are the same: it is built, and its readers are not
    if touched == UNTOUCHED and own.rule == "kind-changed":
        return Verdict(Category.NON_BREAKING, own.rule, f"{own.reason}; the rows stay the same ones.")
    if touched == UNTOUCHED and not reordered:
        return Verdict(Category.EQUIVALENT, own.rule, f"{own.reason}; the rows stay the same ones.")
    only_added = not (touched.altered or touched.removed or reordered)
    category = Category.NON_BREAKING if only_added else Category.BREAKING
    what = _verbs(touched) or "puts the columns in another order"
    return replace(own, category=category, reason=f"{own.reason}; it {what}.", columns=touched)


def _query_changed(old: Side, new: Side, effects: Mapping[str, Columns], touched: Columns) -> Verdict:
    # Undecided is built like breaking, but a person who knows better may say so, and the plan asks for it.
    if new.model.python:
        return Verdict(Category.UNDECIDED, "undecidable", _python_reason(old.model.python, new.model.python), EVERY)
    if not (old.is_known and new.is_known):
        reason = "The query's columns are not known for certain, so it counts as breaking."
        return Verdict(Category.UNDECIDED, "undecidable", reason, EVERY)
    also = f" {_cause(new, effects)[1]}" if _felt(_without_order(effects)) else ""
    if touched.every:
        return Verdict(Category.BREAKING, "rows-changed", _rows_sentence(old, new, also), EVERY)
    if touched == UNTOUCHED:
        return Verdict(Category.BREAKING, "columns-reordered", "The columns stand in another order.")
    if not (touched.altered or touched.removed) and not is_reordered(old.seen, new.seen):
        reason = f"Only adds {_listed(sorted(touched.added))}; the rows and the other columns stay as they are."
        return Verdict(Category.NON_BREAKING, "column-added", reason, touched)
    rule = "column-removed" if touched.removed else "column-altered" if touched.altered else "columns-reordered"
    return Verdict(
        Category.BREAKING, rule, _sentence(f"{_verbs(touched)}; the rows stay the same ones") + also, touched
    )


def _python_reason(old: PythonCode | None, new: PythonCode) -> str:
    """Why another digest of Python code counts: the code, or a file that it may read."""
    if old is None or not old.code or old.code != new.code:
        return "What an edit of Python code does to the rows is not known, so it counts as breaking."
    reason = "A file that its Python code may read changed, so it counts as breaking."
    return f"{reason} It may read every file of the project because of {new.any_file}." if new.any_file else reason


def _rows_sentence(old: Side, new: Side, also: str) -> str:
    """Which clauses changed, when it is they that did, and what else."""
    before, after = (side.shape.frame if side.shape else {} for side in (old, new))
    changed = [
        clause
        for clause in (*before, *(c for c in after if c not in before))
        if before.get(clause, "") != after.get(clause, "")
    ]
    # a query that gains or loses a join has its conditions under the other name: one of the two is enough
    if "ON or WHERE" in changed:
        changed = [clause for clause in changed if clause != "WHERE"]
    if keyed := _keyed_otherwise(old, new):
        return f"The keys of {_listed(keyed)} are other ones, and which rows it takes may rest on them.{also}"
    if new.model.reads_itself:
        return f"It reads itself: each row depends on those before it, and its query changed.{also}"
    if new.model.time_column and not changed:
        return f"`{new.model.time_column}` changed, and it says in which interval a row lies.{also}"
    if not changed or not before or not after:
        return also.strip() or "Rows and columns cannot be distinguished here, so every row counts as changed."
    return f"{_listed(changed, ticked=False)} changed, and with it the rows.{also}"


def _keyed_otherwise(old: Side, new: Side) -> list[str]:
    """What it reads of which other keys are known now than when its table was judged."""
    before, after = ({*side.shape.relies} if side.shape else set() for side in (old, new))
    return sorted({name for name, _ in before ^ after})


def _carried(old: Side, new: Side, effects: Mapping[str, Columns], touched: Columns) -> Verdict:
    """What its parents' changes do to a model whose own meaning is what it was."""
    if not (old.is_known and new.is_known):
        reason = f"Which columns of {_listed(_felt(effects))} it reads is not known, so it counts as changed."
        return Verdict(Category.INDIRECT_BREAKING, "undecidable", reason, EVERY)
    rule, reason = _cause(new, effects)
    return Verdict(Category.INDIRECT_BREAKING, rule, reason, touched)


def _cause(new: Side, effects: Mapping[str, Columns]) -> tuple[str, str]:
    """The rule and the sentence for a model that feels its parents' changes."""
    shape = new.shape
    hits: list[str] = []
    for parent in _felt(effects):
        effect, reads = effects[parent], shape.reads.get(parent) if shape else None
        changed = effect.altered | effect.removed
        if effect == Columns(order=True):
            continue  # named last, for it explains only what nothing else does
        if effect.every:
            return "reads-changed-rows", f"The rows of `{parent}` change."
        if reads is None or (reads.every and (changed or effect.added)):
            return "reads-every-column", f"It reads every column of `{parent}`."
        if hit := changed & reads.rows:
            return "reads-changed-column", f"{_listed(sorted(hit), of=parent)} changed, and its rows depend on that."
        read = frozenset[str]().union(*reads.outputs.values())
        hits += [f"{parent}.{column}" for column in sorted(changed & read)]
    if hits:
        return "reads-changed-column", f"Reads {_listed(hits)}, which changed."
    if not _felt(effects):
        return "starts-elsewhere", "Its first day, which it takes from what it reads, is another one now."
    if ordered := [parent for parent in _felt(effects) if effects[parent].order]:
        told = f"{_listed(ordered, capital=True)} may return its rows in another order"
        return "reads-changed-order", f"{told}, and what is taken of them rests on that."
    return "reads-changed-column", "Its `*` or a bare name now means other columns."


def _unaffected(new: Side, effects: Mapping[str, Columns]) -> Verdict:
    felt = _felt(_without_order(effects))
    if not felt or new.shape is None:
        reason = "What it reads holds the same rows as before."
        return Verdict(Category.INDIRECT_NON_BREAKING, "parents-unchanged", reason)
    said = []
    for parent in felt:
        reads = new.shape.reads[parent]
        read = reads.rows | frozenset[str]().union(*reads.outputs.values())
        only = f"reads only {_listed(sorted(read))}" if read else "reads no column"
        said.append(f"{only} of `{parent}`, which {_verbs(effects[parent]) or 'changes'}")
    return Verdict(Category.INDIRECT_NON_BREAKING, "reads-nothing-changed", _sentence(" and ".join(said)))


def _felt(effects: Mapping[str, Columns]) -> list[str]:
    return sorted(parent for parent, effect in effects.items() if effect != UNTOUCHED)


def _without_order(effects: Mapping[str, Columns]) -> dict[str, Columns]:
    return {parent: replace(effect, order=False) for parent, effect in effects.items()}


def _verbs(touched: Columns) -> str:
    """alters `a`, removes `b` and adds `c`"""
    verbs = (("alters", touched.altered), ("removes", touched.removed), ("adds", touched.added))
    said = [f"{verb} {_listed(sorted(names))}" for verb, names in verbs if names]
    return " and ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said)


def body(model: Model) -> str:
    """What returns the rows: a query, or code."""
    return model.python.digest if model.python else model.sql + model.misread


def row_settings(model: Model) -> dict[str, str]:
    """What besides the query decides a model's rows and how its table is cut."""
    ranged = model.kind.is_incremental
    return {
        "kind": str(model.kind),
        "columns": repr([(column.name, column.type) for column in model.columns]),
        "time_column": f"{model.time_column} {model.time_format}".strip(),
        # when a cron ticks within its unit decides on no row; the unit is the size of what a batch computes
        "interval_unit": model.cron.unit if ranged else "",
        "start": (model.start_text if model.start_moves else str(model.start or "")) if ranged else "",
        "end": str(model.end or ""),
        "seed": repr((model.seed.digest, model.seed.header)) if model.seed else "",
        "stamp": model.stamp,
        # a batch that reads what its table held before sees other rows when batches are larger
        "batch_size": str(model.batch_size) if model.reads_itself else "",
        "unique_key": repr(model.unique_key),
        "when_matched": model.when_matched,
        "merge_filter": model.merge_filter,
        "history": repr(model.history or ""),
        "insert_overwrite": str(model.insert_overwrite),
        "partitioned_by": repr(model.partitioned_by) if model.replaces_partitions else "",
        "pre_statements": repr(listed) if (listed := model.shaping) else "",
    }


def layout(model: Model) -> dict[str, str]:
    """How the rows are kept, whichever they are."""
    if not model.kind.is_stored:
        return {}  # a view has no files
    return {
        "storage_format": model.storage_format,
        "table_format": model.table_format,
        "physical_properties": repr(model.physical_properties),
        "partitioned_by": "" if model.replaces_partitions else repr(model.partitioned_by),
        "clustered_by": repr(model.clustered_by),
        "partition_by_time_column": str(model.partition_by_time_column),
    }


def _harmless(model: Model) -> tuple[tuple[Statement, ...], ...]:
    """The statements beside a model's query that change no row."""
    before = tuple(each for each in model.pre_statements if each.harmless)
    return before, model.post_statements, model.on_virtual_update


def _described(model: Model) -> dict[str, str]:
    """What is said of a model without changing a row."""
    return {
        "description": model.description,
        "column_descriptions": repr(model.column_descriptions),
        "gateway": model.gateway,
        "virtual_properties": repr(model.virtual_properties) if model.virtual_properties else "",
        "owner": model.owner,
        "tags": repr(model.tags),
        "grain": repr(model.grain),
        "audits": repr(model.audits),
        "cron": f"{model.cron.text} {model.cron.tz}".strip(),
        "allow_partials": str(model.allow_partials or ""),
        "signals": repr(model.signals) if model.signals else "",
        "start": model.start_text if model.start_moves else str(model.start or ""),
        "lookback": str(model.lookback),
        "batch_size": f"{model.batch_size} {model.batch_concurrency}",
        "forward_only": str(model.forward_only),
        "disable_restatement": str(model.disable_restatement),
        "on_destructive_change": model.on_destructive_change,
        "on_additive_change": model.on_additive_change,
        "auto_restatement": f"{model.auto_restatement_cron} {model.auto_restatement_intervals}",
        "statements": repr(listed) if any(listed := _harmless(model)) else "",
    }


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _listed(names: Iterable[str], *, capital: bool = False, ticked: bool = True, of: str = "") -> str:
    """`a`, `b` and `c`."""
    shown = [f"`{of}.{name}`" if of else f"`{name}`" if ticked else name for name in names]
    text = shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1] if shown else "nothing"
    return text[:1].upper() + text[1:] if capital else text
