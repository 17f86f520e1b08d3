"""The order in which models are filled if their audits read other models: these first, so that audits find rows."""

from collections.abc import Collection, Mapping

from mergeplan.planner.model.graph import reach_names

Parents = Mapping[str, tuple[str, ...]]


def add_audit_parents(parents: Parents, read: Mapping[str, Collection[str]]) -> dict[str, tuple[str, ...]]:
    """Return the parents of each model, and after them the models that its audits read.

    A model that comes after the audited model itself is left out: its rows are made of that model's.
    """
    all_parents = dict(parents)
    for name in sorted(read.keys() & parents.keys()):
        for audit_parent in sorted(read[name]):
            if (
                audit_parent in parents
                and audit_parent not in all_parents[name]
                and name not in reach_names([audit_parent], all_parents)
            ):
                all_parents[name] = (*all_parents[name], audit_parent)
    return all_parents
