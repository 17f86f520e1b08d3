"""Categories: the category of a change, its rule and its columns; without a proof, rows count as changed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mergeplan.planner.fingerprint import Fingerprint, digest, encode_text
from mergeplan.planner.model.kind import Fill
from mergeplan.planner.model.model import Model, PythonCode, Seed
from mergeplan.planner.model.property import Facet
from mergeplan.planner.naming import partition_text
from mergeplan.planner.plan.category import reasons
from mergeplan.planner.plan.category.reasons import SAME_QUERY, Causes
from mergeplan.planner.plan.change import Category, Columns
from mergeplan.planner.semantics.digests import SORTED, TableDigest
from mergeplan.planner.semantics.result_types import may_differ_in
from mergeplan.planner.semantics.shape import Shape
from mergeplan.planner.semantics.spark.spark_settings import default_of
from mergeplan.planner.semantics.types import normalize_type
from mergeplan.planner.snapshot.schedule_rows import Decides, batch_decides, decides

UNTOUCHED = Columns()
EVERY = Columns(every=True)


@dataclass(frozen=True)
class Verdict:
    """A category, the rule's name, a sentence with the reason, and the columns that readers must take as changed."""

    category: Category
    rule: str
    reason: str
    columns: Columns = UNTOUCHED


@dataclass(frozen=True)
class Side:
    """A model before or after a change.

    `shape` is the shape of its query, None without one. `seen` says what its rows mean. `is_copied` is true if a table
    with another layout is filled by copying its rows. `time` is the time of its table (`new_table.table_time`).
    """

    model: Model
    shape: Shape | None
    seen: TableDigest
    is_copied: bool = True
    time: str = ""

    @property
    def is_known(self) -> bool:
        return self.shape is None or self.shape.known


def fingerprint_of(
    model: Model, text: str, order: str, parents: Mapping[str, Fingerprint], began: str = ""
) -> Fingerprint:
    """Return the fingerprint: data (query and row settings), metadata (what changes no row), and parents.

    `text` and `order` are those of the query's shape.
    """
    under = [part for pair in model.settings for part in pair]
    later = (text for facet in (Facet.ROWS, Facet.LAYOUT) for text in model.encode_properties(facet).values())
    row_texts = (*_first_rows(model).values(), *_first_layout(model).values(), began, *under, *later)
    # a table's rows have no order; that of a view is part of what its readers get
    ordered = [order] if order and not model.kind.is_stored else []
    metadata = digest(model.sql, *_metadata_settings(model).values())
    return Fingerprint(digest(text, *row_texts, *ordered), metadata, digest_parents(parents))


def digest_parents(parents: Mapping[str, Fingerprint]) -> str:
    return digest(*(f"{name}={digest(p.data, p.parents)}" for name, p in sorted(parents.items())))


def is_edited(old: Model, new: Model) -> bool:
    """Return True if a person changed this model itself, not only something it reads."""
    if old is new or old == new:
        return False
    if row_source(old) != row_source(new) or old.settings != new.settings:
        return True
    readers = (row_settings, layout_settings, _metadata_settings)
    return any(read_settings(old) != read_settings(new) for read_settings in readers)


def digest_edits(model: Model) -> str:
    """Return a digest of what a person can edit of a model, without its metadata."""
    settings = (*row_settings(model).values(), *layout_settings(model).values())
    return digest(row_source(model), encode_text(model.settings), *settings)[:24]


def compare_digests(old: TableDigest, new: TableDigest) -> Columns:
    """Return the changes by which the new rows differ from the old ones for a reader."""
    # column digests compare only over the same rows: over other rows equal ones prove nothing
    if old.rows != new.rows:
        return EVERY
    if old is new:
        return UNTOUCHED
    return Columns(
        added=frozenset(new.columns.keys() - old.columns.keys()),
        removed=frozenset(old.columns.keys() - new.columns.keys()),
        altered=frozenset(
            name for name in new.columns.keys() & old.columns.keys() if new.columns[name] != old.columns[name]
        ),
        order=new.order != old.order,
    )


def is_reordered(old: TableDigest, new: TableDigest) -> bool:
    """Return True if the common columns have another order, which matters to the table but not to readers by name."""
    return [c for c in old.names if c in new.columns] != [c for c in new.names if c in old.columns]


def reach_verdict(old: Side, new: Side, causes: Causes, middle_side: Side | None = None) -> Verdict:
    """Return the verdict on a model by its own edit and by its parents' changes.

    The rows decide, not the texts: two queries that mean the same over the same tables are no change. `middle_side` is
    the old text over the new parents, so that the reason can tell the edit from the effect of the parents.
    """
    difference_now, reordered = compare_digests(old.seen, new.seen), is_reordered(old.seen, new.seen)
    touched = replace(difference_now, order=False)
    is_unchanged = touched == UNTOUCHED and not reordered
    # the order of a view's rows concerns only readers that take rows by it, so it is judged apart from the rows
    own_verdict = _own_change(old, new) if is_edited(old.model, new.model) else None
    # its own query or an embedded one may sort the rows of a model without a table
    is_sorted = not new.model.kind.is_stored and any(side.seen.order.startswith(SORTED) for side in (old, new))
    if (
        is_unchanged
        and difference_now.order
        and is_sorted
        and (own_verdict is None or own_verdict.rule in ("same-query", "query"))
    ):
        return _order_verdict(difference_now, causes, was_edited=own_verdict is not None)
    if own_verdict is None and is_unchanged:
        return Verdict(Category.INDIRECT_NON_BREAKING, *reasons.no_change_reason(new.shape, causes))
    if own_verdict is None:
        return _parents_verdict(old, new, causes, touched)
    if own_verdict.category in (Category.METADATA, Category.EQUIVALENT) or own_verdict.rule == "layout-changed":
        # such an edit changes no row, so any difference comes from the parents
        edit_text = own_verdict.reason if own_verdict.rule != "layout-changed" else f"{_layout_words(old, new)}."
        return own_verdict if is_unchanged else _parents_verdict(old, new, causes, touched, edit_text)
    edit = _build_edit(old, new, causes, middle_side)
    if own_verdict.rule in ("kind-changed", "settings-changed", "seed-content"):
        verdict = _settings_verdict(own_verdict, touched, reordered, edit)
        is_moved = layout_settings(old.model) != layout_settings(new.model)
        return _layout_changed(old, new) if verdict.category is Category.EQUIVALENT and is_moved else verdict
    if is_unchanged:
        return _same_query(old, new, edit)
    return _query_changed(old, new, touched, reordered, edit)


@dataclass(frozen=True)
class _Edit:
    """The effect of a person's edit alone on the rows.

    `columns` are those that it touches, `reordered` says whether it reorders them, and `clauses` is a sentence with the
    changed clauses. `above` is a sentence with the effect of the parents, '' without one. `chance` is a sentence with
    what changes whenever the table is computed, '' without any.
    """

    columns: Columns
    reordered: bool
    clauses: str
    above: str
    chance: str

    @property
    def besides(self) -> str:
        return " ".join(filter(None, (self.above, self.chance)))


def _build_edit(old: Side, new: Side, causes: Causes, middle_side: Side | None) -> _Edit:
    middle, old_digest, new_digest, above = middle_side or old, (middle_side or old).seen, new.seen, ""
    if middle_side and not (
        middle_side.is_known and (middle_side.shape is None or middle_side.shape.unresolved is None)
    ):
        # the old text reads columns that are gone, and the new one was edited to fit: compare them by names
        middle, old_digest, new_digest = old, _digest_by_names(old), _digest_by_names(new)
    elif replace(compare_digests(old.seen, middle.seen), order=False) != UNTOUCHED or is_reordered(
        old.seen, middle.seen
    ):
        above = reasons.parents_reason(old.model.sql, old.shape, middle.shape, causes)[1]
    columns = replace(compare_digests(old_digest, new_digest), order=False)
    clauses = reasons.edit_reason(old.model, middle.shape, new.model, new.shape)
    return _Edit(columns, is_reordered(old_digest, new_digest), clauses, above, reasons.chance_reason(causes, columns))


def _digest_by_names(side: Side) -> TableDigest:
    """Return the meaning of a query independent of its tables' contents, or its own text where that is unknown."""
    return (side.shape.own if side.shape else None) or TableDigest(side.model.sql, {})


def _same_query(old: Side, new: Side, edit: _Edit) -> Verdict:
    if layout_settings(old.model) != layout_settings(new.model):
        return _layout_changed(old, new)
    anew = "The new text over its inputs of today means the same as the old one over its own."
    return Verdict(Category.EQUIVALENT, "same-query", anew if edit.above else SAME_QUERY)


def _order_verdict(touched_columns: Columns, causes: Causes, *, was_edited: bool) -> Verdict:
    if not was_edited:
        above = reasons.format_names(parent for parent in causes.parents_with_effect if causes.effects[parent].order)
        reason = f"{above} returns its rows in another order, and so does it."
        return Verdict(Category.INDIRECT_BREAKING, "reads-changed-order", reason, touched_columns)
    reason = "It returns the same rows in another order, which matters to models that take rows by their order."
    return Verdict(Category.BREAKING, "order-changed", reason, touched_columns)


def _own_change(old: Side, new: Side) -> Verdict:
    """Return the verdict on the edit itself; `BREAKING` is a placeholder until the rows are compared."""
    settings = changed_settings(row_settings(old.model), row_settings(new.model))
    settings += [name for name in _schedule_changes(old, new) if name not in settings]
    settings += _find_format(old, new)
    if "kind" in settings:
        reason = f"The kind changed from {old.model.kind} to {new.model.kind}"
        return Verdict(Category.BREAKING, "kind-changed", reason)
    # undeclared columns are read from the file, so an edit of the file may change both
    if "seed" in settings and set(settings) <= {"seed", "columns"}:
        return Verdict(Category.BREAKING, "seed-content", _seed_reason(old.model.seed, new.model.seed))
    changed = [f"{reasons.format_names(settings)} changed"] if settings else []
    changed += _spark_setting_changes(old.model, new.model)
    # one query without comparing digests: equal texts over parents with known columns
    old_shape, new_shape = old.shape, new.shape
    is_same_text = old_shape and new_shape and old_shape.known and new_shape.known and old_shape.text == new_shape.text
    same_query = row_source(old.model) == row_source(new.model) or bool(is_same_text)
    if changed:
        changed += [] if same_query else ["the query changed"]
        return Verdict(Category.BREAKING, "settings-changed", " and ".join(changed))
    if layout_settings(old.model) != layout_settings(new.model) and same_query:
        return _layout_changed(old, new)
    if row_source(old.model) == row_source(new.model):
        about = reasons.format_names(changed_settings(_metadata_settings(old.model), _metadata_settings(new.model)))
        return Verdict(Category.METADATA, "metadata-only", f"Only {about} changed; the rows come from the same query.")
    if same_query:
        return Verdict(Category.EQUIVALENT, "same-query", SAME_QUERY)
    return Verdict(Category.BREAKING, "query", "")


def _schedule_changes(old: Side, new: Side) -> list[str]:
    changed = []
    if old.model.batches.batch_size != new.model.batches.batch_size and any(
        batch_decides(side.model, side.shape) for side in (old, new)
    ):
        changed.append("batch_size")
    if new.model.kind.is_incremental or old.time == new.time or not (old.time and new.time):
        return changed
    if (old.model.cron.text, old.model.cron.tz) != (new.model.cron.text, new.model.cron.tz):
        changed.append("cron")
    return [*changed, *(["interval_unit"] if old.model.cron.given_unit != new.model.cron.given_unit else [])]


def _find_format(old: Side, new: Side) -> list[str]:
    """Return the setting by which the table gets another format, if it may hold values that one of them changes."""
    before, after = old.model.storage, new.model.storage
    if before.form == after.form or not (old.model.kind.is_stored and new.model.kind.is_stored):
        return []
    types = dict(new.shape.types) if new.shape else {}
    types |= {column.name: normalize_type(column.type) for column in new.model.columns}
    names = (new.shape.columns if new.shape else ()) or ("",)
    is_copied = new.model.kind.is_seed or new.model.kind.keeps_history
    forms = () if is_copied else (before.form, after.form)
    may_differ = any(may_differ_in(form, types.get(name)) for form in forms for name in names)
    setting = "storage_format" if before.table_format == after.table_format else "table_format"
    return [setting] if may_differ else []


def _seed_reason(old: Seed | None, new: Seed | None) -> str:
    path = f"`{new.path}`" if new else "The file"
    same_reading = old and new and (old.na_values, old.is_dbt) == (new.na_values, new.is_dbt)
    return f"{path} changed" if same_reading else f"{path} changed, or what is NULL in it"


def _layout_changed(old: Side, new: Side) -> Verdict:
    method = "the rows are copied from the table that holds them"
    if new.model.kind.is_seed:
        method = "the file is loaded again"
    elif not old.is_copied:
        method = "the table is computed again"
    return Verdict(Category.NON_BREAKING, "layout-changed", f"{_layout_words(old, new)}: {method}.")


def _layout_words(old: Side, new: Side) -> str:
    return f"{reasons.format_names(changed_settings(layout_settings(old.model), layout_settings(new.model)))} changed"


def _spark_setting_changes(old: Model, new: Model) -> list[str]:
    old_conf, new_conf = dict(old.settings), dict(new.settings)
    changed = sorted(key for key in old_conf.keys() | new_conf.keys() if old_conf.get(key) != new_conf.get(key))
    return [
        f"The setting `{key}` changed from {old_conf.get(key, default_of(key))} to {new_conf.get(key, default_of(key))}"
        for key in changed
    ]


def _settings_verdict(own: Verdict, touched_columns: Columns, changed_order: bool, edit: _Edit) -> Verdict:
    is_kept = touched_columns == UNTOUCHED and not changed_order and own.rule != "kind-changed"
    besides = edit.above if is_kept else edit.besides
    reason = f"{own.reason}{_effect_of(edit, besides)}{f' {besides}' if besides else ''}"
    if touched_columns.every:
        return replace(own, reason=reason, columns=EVERY)
    # a table of another kind is a new table, though its rows are the same: it is built, and its readers are not
    if touched_columns == UNTOUCHED and own.rule == "kind-changed":
        return Verdict(Category.NON_BREAKING, own.rule, reason)
    if is_kept:
        return Verdict(Category.EQUIVALENT, own.rule, reason)
    only_added = not (touched_columns.altered or touched_columns.removed or changed_order)
    category = Category.NON_BREAKING if only_added else Category.BREAKING
    return replace(own, category=category, reason=reason, columns=touched_columns)


def _effect_of(edit: _Edit, besides: str) -> str:
    if edit.columns.every:
        return ", and with it the rows."
    if does := reasons.effect_verbs(edit.columns):
        return f"; it {does}."
    if edit.reordered:
        return "; it puts the columns in another order."
    return "." if besides else "; the rows stay the same ones."


def _query_changed(old: Side, new: Side, touched_columns: Columns, changed_order: bool, edit: _Edit) -> Verdict:
    besides = f" {edit.besides}" if edit.besides else ""
    # Undecided is built like breaking, but a person who knows better may say so, and the plan asks for it.
    if new.model.python:
        reason = _python_reason(old.model.python, new.model.python)
        return Verdict(Category.UNDECIDED, "undecidable", reason + besides, EVERY)
    if not (old.is_known and new.is_known):
        reason = "The query's columns are not known for certain, so it counts as breaking."
        return Verdict(Category.UNDECIDED, "undecidable", reason + besides, EVERY)
    reason = _edit_words(edit) + besides
    if touched_columns.every:
        return Verdict(Category.BREAKING, "rows-changed", reason, EVERY)
    if touched_columns.removed or touched_columns.altered:
        rule = "column-removed" if touched_columns.removed else "column-altered"
        return Verdict(Category.BREAKING, rule, reason, touched_columns)
    if changed_order:
        return Verdict(Category.BREAKING, "columns-reordered", reason, touched_columns)
    return Verdict(Category.NON_BREAKING, "column-added", reason, touched_columns)


def _python_reason(old: PythonCode | None, new: PythonCode) -> str:
    if old is None or not old.code or old.code != new.code:
        return "The effect of an edit of Python code on the rows is not known, so it counts as breaking."
    reason = "A file that its Python code may read changed, so it counts as breaking."
    return f"{reason} It may read every file of the project because of {new.any_file}." if new.any_file else reason


def _edit_words(edit: _Edit) -> str:
    columns = edit.columns
    if columns.every:
        return edit.clauses
    if columns == UNTOUCHED:
        return "The columns have another order." if edit.reordered else SAME_QUERY
    if edit.besides:  # the sentence must not claim that rows stay the same
        return reasons.sentence(f"the edit {reasons.effect_verbs(columns)}")
    if not (columns.altered or columns.removed or edit.reordered):
        return (
            f"Only adds {reasons.format_names(sorted(columns.added))}; the rows and the other columns stay as they are."
        )
    return reasons.sentence(f"{reasons.effect_verbs(columns)}; the rows stay the same ones")


def _parents_verdict(old: Side, new: Side, causes: Causes, touched_columns: Columns, own: str = "") -> Verdict:
    """Return the verdict on a model that only its parents' changes affect; the reason starts with the `own` edit."""
    if not (old.is_known and new.is_known) and causes.parents_with_effect:
        parents = reasons.format_names(causes.parents_with_effect)
        reason = f"The columns that it reads of {parents} are not known, so it counts as changed."
        return Verdict(Category.INDIRECT_BREAKING, "undecidable", f"{own} {reason}".strip(), EVERY)
    rule, reason = reasons.parents_reason(new.model.sql, old.shape, new.shape, causes)
    touched_columns = touched_columns if old.is_known and new.is_known else EVERY
    besides = reasons.chance_reason(causes, touched_columns)
    return Verdict(Category.INDIRECT_BREAKING, rule, " ".join(filter(None, (own, reason, besides))), touched_columns)


def row_source(model: Model) -> str:
    """Return the source of the rows: the query's text, or the digest of the Python code."""
    return model.python.digest if model.python else model.sql + model.written.misread


def changed_settings(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return [name for name in {**before, **after} if before.get(name) != after.get(name)]


def row_settings(model: Model) -> dict[str, str]:
    """Return the settings besides the query that decide a model's rows and how its table is partitioned."""
    return _first_rows(model) | model.encode_properties(Facet.ROWS)


def _first_rows(model: Model) -> dict[str, str]:
    """Return the settings that are in every fingerprint, set or not, in their order there."""
    return {
        "kind": str(model.kind),
        "columns": encode_text([(column.name, column.type) for column in model.columns]),
        "time_column": f"{model.by_time.time_column} {model.by_time.time_format}".strip(),
        # when a cron ticks within its unit decides on no row; the unit is the size of what a batch computes
        "interval_unit": model.cron.unit if decides("interval_unit", model) is Decides.ALWAYS else "",
        "start": _start_text(model) if decides("start", model) is Decides.ALWAYS else "",
        "end": str(model.schedule.end or ""),
        "seed": encode_text((model.seed.digest, model.seed.header)) if model.seed else "",
        "stamp": model.stamp,
        # a batch that reads what its table held before sees other rows when batches are larger
        "batch_size": str(model.batches.batch_size) if model.reads_itself else "",
        "unique_key": encode_text(model.by_key.unique_key),
        "when_matched": model.by_key.when_matched,
        "merge_filter": model.by_key.merge_filter,
        "history": encode_text(model.history or ""),
        "insert_overwrite": str(model.batches.insert_overwrite),
        "partitioned_by": _partitions_text(model) if model.replaces_partitions else "",
        "pre_statements": encode_text(listed) if (listed := model.statements.shaping) else "",
    }


def _start_text(model: Model) -> str:
    return model.schedule.start_text if model.schedule.start_moves else str(model.schedule.start or "")


def _partitions_text(model: Model) -> str:
    return encode_text(tuple(map(partition_text, model.storage.partitioned_by)))


def layout_settings(model: Model) -> dict[str, str]:
    return _first_layout(model) | model.encode_properties(Facet.LAYOUT)


def _first_layout(model: Model) -> dict[str, str]:
    if not model.kind.is_stored:
        return {}  # a view has no files
    return {
        "storage_format": model.storage.storage_format,
        "table_format": model.storage.table_format,
        "physical_properties": encode_text(model.storage.physical_properties),
        "partitioned_by": "" if model.replaces_partitions else _partitions_text(model),
        "clustered_by": encode_text(model.storage.clustered_by),
        "partition_by_time_column": str(model.by_time.partition_by_time_column),
    }


def _metadata_settings(model: Model) -> dict[str, str]:
    policy, statements = model.policy, model.statements
    harmless = tuple(statement for statement in statements.pre_statements if statement.harmless)
    listed = harmless, statements.post_statements, statements.on_virtual_update
    first = {
        "description": model.metadata.description,
        "column_descriptions": encode_text(model.metadata.column_descriptions),
        "gateway": model.gateway,
        "virtual_properties": encode_text(model.virtual_properties) if model.virtual_properties else "",
        "owner": model.metadata.owner,
        "tags": encode_text(model.metadata.tags),
        "grain": encode_text(model.metadata.grain),
        "audits": encode_text(model.checks.audits),
        "cron": f"{model.cron.text} {model.cron.tz}".strip(),
        "allow_partials": str(model.schedule.allow_partials or ""),
        "signals": encode_text(model.schedule.signals) if model.schedule.signals else "",
        "start": _start_text(model),
        "lookback": str(model.batches.lookback),
        "batch_size": f"{model.batches.batch_size} {model.batches.batch_concurrency}",
        "forward_only": str(policy.forward_only),
        "disable_restatement": str(policy.disable_restatement),
        "on_destructive_change": policy.on_destructive_change,
        "on_additive_change": policy.on_additive_change,
        "auto_restatement": f"{encode_text(policy.auto_restatement_cron)} {policy.auto_restatement_intervals}",
        "statements": encode_text(listed) if any(listed) else "",
    }
    later = {
        "contract": encode_text(model.columns) if model.checks.contract else "",
        "interval_unit": model.cron.given_unit if model.kind.fill is Fill.WHOLE else "",
        **model.encode_properties(Facet.METADATA),
    }
    return first | {name: text for name, text in later.items() if text}
