"""lineage: what a model or a column is made from, or what is made from it."""

from mergeplan.planner.model.selection import strip_default_catalog
from mergeplan.planner.project.lineage import Lineage, lineage_of
from mergeplan.planner.session.workspace import Workspace


def find_lineage(work: Workspace, target: str, *, downstream: bool = False) -> Lineage:
    """Return the lineage of MODEL or MODEL.COLUMN; the analysis is cached for the next call."""
    target_name = strip_default_catalog(target, work.project.catalogs.default)
    lineage = lineage_of(work.project.models, target_name, downstream=downstream, memory=work.shapes)
    work.lookups.keep()
    return lineage
