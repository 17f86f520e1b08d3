"""Random edits of a project, in families: the same in other words, nearly the same, more columns, something else."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from sqlglot.errors import SqlglotError

from mergeplan.planner.errors import ProjectError, ProjectErrors
from mergeplan.planner.parsing.sql.spark_text import spark_text
from tests.planner.generating.data import Columns

from . import changing, equivalent, mistaking, nearly, ordering, rewording, spelling
from .trees import Edited, query_of

Edit = Callable[[Edited], bool]
FAMILIES: Mapping[str, tuple[Edit, ...]] = {
    "equivalent": equivalent.EDITS + rewording.EDITS,
    "nearly": nearly.EDITS + mistaking.EDITS,
    "adding": changing.ADDING,
    "changing": changing.EDITS,
    "ordering": ordering.EDITS,
    "spelling": spelling.EDITS,
}
WEIGHTS = (3, 3, 2, 2, 3, 3)
COMMON = frozenset(
    """table_as_cte rename_alias true_added swap_operands wrap_table add_unused_cte mirror_comparison order_rows
    other_column capture_name literal_changed distinct_or_not connect_otherwise column_recased output_recased""".split()
)  # they fit nearly every query, and would leave the others no room


def edit_query(rng: random.Random, sql: str, columns: Mapping[str, Columns]) -> tuple[str, tuple[str, ...]]:
    """A query after some edits, and their names."""
    (family,) = rng.choices(list(FAMILIES), WEIGHTS)
    text, names = sql, list[str]()
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        for edit in _shuffle_edits(rng, FAMILIES[family]):
            if (after := apply_edit(rng, edit, text, columns)) not in ("", text):
                text = after
                names.append(f"{family}.{edit.__name__}")
                break
    return text, tuple(names)


def _shuffle_edits(rng: random.Random, edits: tuple[Edit, ...]) -> list[Edit]:
    """The edits in the order in which they are tried; half the time those that seldom fit come first."""
    shuffled = rng.sample(edits, len(edits))
    return sorted(shuffled, key=lambda edit: edit.__name__ in COMMON) if rng.random() < 0.5 else shuffled


def apply_edit(rng: random.Random, edit: Edit, sql: str, columns: Mapping[str, Columns]) -> str:
    """The query after one edit; '' where it cannot be made."""
    tree = query_of(sql)
    try:
        if not edit(Edited(rng, tree, dict(columns))):
            return ""
        return spark_text(query_of(spark_text(tree)))
    except (SqlglotError, ProjectError, ProjectErrors, AttributeError):
        return ""  # the edit does not fit this query: its text is none that Spark could read
