"""Settings of a model's schedule and batches that decide its rows, by the way in which its table is filled.

An edit of a setting that decides rows makes another table; an edit of any other is metadata.
`tests/planner/test_schedule_rows.py` shows each cell by execution.
"""

from collections.abc import Mapping
from enum import Enum, auto

from mergeplan.planner.fingerprint import digest
from mergeplan.planner.model.graph import Graph
from mergeplan.planner.model.kind import Fill
from mergeplan.planner.model.model import Model
from mergeplan.planner.semantics.shape import Shape


class Decides(Enum):
    """The cases in which a setting decides rows."""

    NEVER = auto()
    BATCH = auto()  # where what one batch covers shows in the rows: `batch_decides`
    END = auto()  # where the query reads the end of the run, up to which a table is computed: `reads_end`
    ALWAYS = auto()


RANGED = (Fill.TIME, Fill.KEY, Fill.PARTITION, Fill.APPEND, Fill.HISTORY)

# Views are computed when they are read: the dates in them are those of 1970, whatever their schedule is.
DECIDES: Mapping[str, Mapping[Fill, Decides]] = {
    "start": dict.fromkeys(RANGED, Decides.ALWAYS),
    "end": dict.fromkeys(Fill, Decides.ALWAYS),
    "interval_unit": {**dict.fromkeys(RANGED, Decides.ALWAYS), Fill.WHOLE: Decides.END},
    "cron": {Fill.WHOLE: Decides.END},
    "batch_size": dict.fromkeys((Fill.TIME, Fill.KEY, Fill.HISTORY), Decides.BATCH),  # other kinds have none
    "batch_concurrency": {},  # no batch that runs beside another one reads what that wrote
    "lookback": {},  # it adds to what later runs compute, and nothing to a new table
    "allow_partials": {},  # as `lookback`
    "signals": {},  # they say when a batch runs
    "forward_only": {},
    "disable_restatement": {},
    "auto_restatement_cron": {},
    "auto_restatement_intervals": {},
}


def decides(setting: str, model: Model) -> Decides:
    return DECIDES[setting].get(model.kind.fill, Decides.NEVER)


def batch_decides(model: Model, shape: Shape | None) -> bool:
    """Return True if batches of another size may leave other rows in the table."""
    if decides("batch_size", model) is not Decides.BATCH or model.reads_itself:
        return False  # of a model that reads itself, each batch shows in the rows: that is in its settings
    if shape is None or shape.by_batch:
        return True
    if model.kind.fill is Fill.KEY:
        key = model.by_key
        if shape.reads_batch:
            return key.delete_insert or "@" in key.when_matched + key.merge_filter
        # each batch merges all rows: NULL keys are inserted again, and WHEN MATCHED counts
        return not (key.delete_insert or (key.null_safe_key and not (key.when_matched or key.merge_filter)))
    return model.kind.fill is Fill.HISTORY and shape.reads_batch  # what a batch does not return counts as deleted


def as_of(graph: Graph, model: Model) -> str:
    """Return how the end of a table's time is determined if the model is computed whole and reads that end; else ''.

    A Python model gets the end as an argument, and may read it. An embedded query has the dates of its readers, so that
    its rows are not those of the same query in a table or a view.
    """
    if model.kind.is_embedded:
        return "as of its readers" if _names_date(graph, model, ("@start_", "@end_", "@execution_")) else ""
    if decides("cron", model) is not Decides.END or not reads_end(graph, model):
        return ""
    return " ".join(filter(None, ("as of", model.cron.text, model.cron.tz, model.cron.unit)))


def reads_end(graph: Graph, model: Model) -> bool:
    """Return True for a query with `@end_ds` or the like, also in an embedded parent, and for code."""
    return bool(model.python) or _names_date(graph, model, ("@end_",))


def embeds_dates(graph: Graph, model: Model) -> bool:
    return any(_names_date(graph, parent, ("@start_", "@end_")) for parent in _find_embedded_parents(graph, model))


def embeds_otherwise(graph: Graph, model: Model) -> list[str]:
    """Return the embedded queries that run in this one under other settings, or functions, than they are judged by.

    A view of one keeps the settings of the session that created it. Other spellings of one are other queries here.
    """
    waiting, inlined = [model], dict[str, Model]()
    while waiting:
        parents = {parent.name: parent for parent in _find_embedded_parents(graph, waiting.pop())}
        waiting += [parent for name, parent in parents.items() if name not in inlined]
        inlined |= parents
    settings = model.settings if not model.statements.shaping else None
    queries = sorted(inlined.items())
    return [f"{name} {digest(parent.sql)[:12]}" for name, parent in queries if parent.settings != settings]


def _find_embedded_parents(graph: Graph, model: Model) -> list[Model]:
    parents = (graph.models[name] for name in model.depends_on if name in graph.models)
    return [parent for parent in parents if parent.kind.is_embedded]


def _names_date(graph: Graph, model: Model, dates: tuple[str, ...]) -> bool:
    texts = [model.sql, *(part for statement in model.statements.shaping for part in (statement.head, statement.query))]
    named = any(date in text.lower() for text in texts for date in dates)
    return named or any(_names_date(graph, parent, dates) for parent in _find_embedded_parents(graph, model))
