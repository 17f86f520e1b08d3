"""Unedited models that mean the same as before, decided without reading or analysing their queries.

So an edit of a model with many readers costs what the readers of the changed columns cost, and not what all models
downstream cost. Either no query could tell the model's parents from the old ones, or an earlier plan remembered what
the model means, and this query cannot tell. The rules decide any model that is unusual in some way.
"""

from collections.abc import Mapping
from dataclasses import replace

from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.category.categorize import digest_parents, fingerprint_of, is_edited
from mergeplan.planner.plan.category.decision import Analysis, Candidate, Decision, Inputs
from mergeplan.planner.plan.new_table import has_own_start, name_version, table_time
from mergeplan.planner.semantics.shape import Shape
from mergeplan.planner.snapshot.known_meaning import is_alike, recall_meaning
from mergeplan.planner.snapshot.schedule_rows import embeds_otherwise
from mergeplan.planner.snapshot.snapshot import Snapshot


def settle(inputs: Inputs, model: Model, old: Snapshot, parents: Mapping[str, Decision]) -> Candidate | None:
    """Return the model over its decided parents if it is known to mean the same as its table in the base, else None."""
    if old.forced or old.is_mixed or old.meaning is None:
        return None
    reported = [parent for parent in parents.values() if parent.reported is not None]
    if any(parent.reported != parent.snapshot.visible_digest for parent in reported):
        return None
    if is_edited(old.model, model):
        return None
    began = table_time(inputs.graph, model)
    above = {name: parent.snapshot for name, parent in parents.items()}
    analysis = _settled_by_parents(inputs, model, old, began, above) or _recall_analysis(
        inputs, model, old, began, above
    )
    if analysis is None:
        return None
    fresh = name_version(inputs, Snapshot(model, analysis.fingerprint, "", old.columns, meaning=old.meaning), parents)
    return Candidate(inputs, old, fresh, analysis, parents, False)


def _settled_by_parents(
    inputs: Inputs, model: Model, old: Snapshot, began: str, parents: Mapping[str, Snapshot]
) -> Analysis | None:
    base = inputs.base
    is_begun_alike = has_own_start(model) or model.name not in inputs.below_moved_starts
    if not (_reads_the_same(inputs, old, parents) and is_begun_alike):
        return None
    if not all(is_alike(base[name], parent) for name, parent in parents.items()):
        return None
    if embeds_otherwise(inputs.graph, model) != embeds_otherwise(inputs.base_graph, old.model):
        return None
    read = {name: parent.fingerprint for name, parent in parents.items()}
    return Analysis(None, began, replace(old.fingerprint, parents=digest_parents(read)))


def _recall_analysis(
    inputs: Inputs, model: Model, old: Snapshot, began: str, parents: Mapping[str, Snapshot]
) -> Analysis | None:
    if not _reads_the_same(inputs, old, parents):
        return None
    meaning = recall_meaning(model, {name: inputs.base[name] for name in parents}, parents, began, inputs.shapes)
    if meaning is None or not meaning.is_of(old):
        return None
    read = {name: parent.fingerprint for name, parent in parents.items()}
    # what the reason names: the columns that it reads of a parent that changed
    shape = Shape(True, meaning.text, old.columns, reads=meaning.reads, named=meaning.named)
    return Analysis(shape, began, fingerprint_of(model, meaning.text, meaning.order, read, began))


def _reads_the_same(inputs: Inputs, old: Snapshot, parents: Mapping[str, Snapshot]) -> bool:
    return {name for name in old.model.depends_on if name in inputs.base} == parents.keys()
