"""A check for each sentence of a reason: what it claims, against the plan's data and the text of the queries."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from mergeplan.planner.plan.change import Category, Columns
from tests.planner.plan.reason_claims import (
    CLAUSES,
    NAMES,
    PAST,
    VERBS,
    Check,
    clause,
    earliest,
    has_star,
    is_as_before,
    is_changed,
    is_setting,
    is_unfollowed,
    mentions,
    names_in_list,
    parent_touches,
    reads_only,
    rows_stay,
    same_fields,
    setting_effect,
    touches,
    tree,
    upstream_sorted,
    volatile,
    words,
)

FACTS: Mapping[str, tuple[str, Check]] = {
    "same query": (
        r"The new text means the same query\.",
        lambda c, m: c.old.sql != c.new.sql or c.old.written.misread != c.new.written.misread,
    ),
    "same over parents": (
        r"The new text over its inputs of today means the same as the old one over its own\.",
        lambda c, m: (
            c.columns == Columns()
            and c.old.sql != c.new.sql
            and bool({*c.new.depends_on, *c.old.depends_on} & c.plan.keys())
        ),
    ),
    "clauses": (
        rf"{CLAUSES} changed, and with it the rows\.",
        lambda c, m: all(clause(c.old, word) != clause(c.new, word) for word in words(m[1])),
    ),
    "select": (
        rf"The SELECT list changed, and (?:{CLAUSES} depends on it|with it the rows)\.",
        lambda c, m: c.old.sql != c.new.sql and (m[1] is None or bool(clause(c.new, m[1]))),
    ),
    "limited": (
        r"The query that LIMIT takes rows of changed, and with it the rows\.",
        lambda c, m: bool(clause(c.new, "LIMIT") or clause(c.new, "OFFSET")) and c.old.sql != c.new.sql,
    ),
    "time column": (
        r"`([^`]+)` changed, and it decides the interval of a row\.",
        lambda c, m: m[1] == c.new.by_time.time_column and c.old.sql != c.new.sql,
    ),
    "reads itself": (
        r"It reads itself: .*, and its query changed\.",
        lambda c, m: c.new.reads_itself and c.old.sql != c.new.sql,
    ),
    "later form": (
        r"Only its query of later runs changed: existing rows stay\."
        r"|A rebuild would run that of a first run, which means the same as before\.",
        lambda c, m: c.old.sql.split("first_run")[0] == c.new.sql.split("first_run")[0] and c.old.sql != c.new.sql,
    ),
    "forms": (
        r"Its query of (?:a first run|a first run and that of later runs|later runs) changed\.",
        lambda c, m: all(
            (c.old.sql.split("first_run")[part] != c.new.sql.split("first_run")[part]) == (form in m[0])
            for part, form in enumerate(("a first run", "later runs"))
        ),
    ),
    "unfollowed": (
        r"Rows and columns cannot be distinguished here, so every row counts as changed\.",
        lambda c, m: is_unfollowed(c),
    ),
    "obstacle": (
        r"mergeplan cannot follow (.+), so every row counts as changed\.",
        lambda c, m: is_unfollowed(c) and c.old.sql != c.new.sql,
    ),
    "only adds": (
        rf"Only adds {NAMES}; the rows and the other columns stay as they are\.",
        lambda c, m: c.columns == Columns(added=frozenset(names_in_list(m[1]))) and not volatile(c),
    ),
    "verbs": (
        rf"(?i:({VERBS[1:-1]})); the rows stay the same ones\.",
        lambda c, m: touches(c.columns, m[1].lower()) and not c.columns.every and not volatile(c),
    ),
    "edit": (
        rf"The edit ({VERBS[1:-1]})\.",
        lambda c, m: (
            c.old.sql != c.new.sql
            and (
                c.columns.every
                or all(
                    set(names_in_list(names)) <= getattr(c.columns, PAST[verb])
                    for verb, names in re.findall(rf"(alters|removes|adds) {NAMES}", m[1])
                )
            )
        ),
    ),
    "order of columns": (
        r"The columns have another order\.",
        lambda c, m: (
            c.change.old is not None and c.change.new is not None and c.change.old.columns != c.change.new.columns
        ),
    ),
    "python": (
        r"The effect of an edit of Python code on the rows is not known, so it counts as breaking\.",
        lambda c, m: c.new.python is not None and c.old.python != c.new.python,
    ),
    "file of python": (
        r"A file that its Python code may read changed, so it counts as breaking\.",
        lambda c, m: c.old.python is not None and c.new.python is not None and c.old.python.code == c.new.python.code,
    ),
    "any file": (
        r"It may read every file of the project because of .*\.",
        lambda c, m: c.new.python is not None and c.new.python.any_file in m[0],
    ),
    "unknown columns": (
        r"The query's columns are not known for certain, so it counts as breaking\.",
        lambda c, m: c.columns.every and c.change.category is Category.UNDECIDED and c.new.python is None,
    ),
    "unknown reads": (
        rf"The columns that it reads of {NAMES} are not known, so it counts as changed\.",
        lambda c, m: c.columns.every and all(p in c.plan and p in c.new.depends_on for p in names_in_list(m[1])),
    ),
    "all count": (
        r"The columns that it reads of `([^`]+)` are not known(?:: mergeplan cannot follow .+)?, so all of them "
        rf"count; `[^`]+` {VERBS}\.",
        lambda c, m: m[1] in c.new.depends_on and parent_touches(c, m[1], m[2]),
    ),
    "rows of parents": (
        rf"The rows of {NAMES} change\.",
        lambda c, m: all(
            c.parent(p).every or c.plan[p].new.forced or c.plan[p].change == "indirect" for p in names_in_list(m[1])
        ),  # type: ignore[union-attr]
    ),
    "added parents": (
        rf"{NAMES} (?:is|are) added as (?:a model|models)\.",
        lambda c, m: all(c.plan[p].change == "added" for p in names_in_list(m[1])),
    ),
    "rows depend": (
        rf"{NAMES} changed, and its rows depend on that\.",
        lambda c, m: (
            all(is_changed(c, name) for name in names_in_list(m[1]))
            and (c.columns.every or c.change.rule == "settings-changed")
        ),
    ),
    "reads changed": (
        rf"Reads {NAMES}, which changed\.",
        lambda c, m: all(is_changed(c, name) for name in names_in_list(m[1])),
    ),
    "star gains": (
        rf"Its `\*` now includes {NAMES}, which (?:is|are) added\.",
        lambda c, m: (
            has_star(c.new)
            and all(e.rpartition(".")[2] in c.parent(e.rpartition(".")[0]).added for e in names_in_list(m[1]))
        ),
    ),
    "star loses": (
        rf"Its `\*` no longer includes {NAMES}, which (?:is|are) removed\.",
        lambda c, m: (
            has_star(c.old)
            and all(e.rpartition(".")[2] in c.parent(e.rpartition(".")[0]).removed for e in names_in_list(m[1]))
        ),
    ),
    "names gain": (
        rf"By its names it now reads {NAMES}, which (?:is|are) added\.",
        lambda c, m: all(
            e.rpartition(".")[2] in c.parent(e.rpartition(".")[0]).added and mentions(c.new, e.rpartition(".")[2])
            for e in names_in_list(m[1])
        ),
    ),
    "names lose": (
        rf"By its names it read {NAMES}, which (?:is|are) removed\.",
        lambda c, m: all(
            e.rpartition(".")[2] in c.parent(e.rpartition(".")[0]).removed and mentions(c.old, e.rpartition(".")[2])
            for e in names_in_list(m[1])
        ),
    ),
    "star reordered": (
        rf"The columns of {NAMES} have another order, and its `\*` takes them in that order\.",
        lambda c, m: (
            has_star(c.new) and all(c.plan[p].old.columns != c.plan[p].new.columns for p in names_in_list(m[1]))
        ),  # type: ignore[union-attr]
    ),
    "other meaning": (
        rf"(?:`([^`]+)` {VERBS}(?: and )?)+, and the same query means something else now\.",
        lambda c, m: parent_touches(c, m[1], m[2]) and c.old.sql == c.new.sql,
    ),
    "keys": (
        rf"The keys of {NAMES} changed, and which rows it takes may depend on them\.",
        lambda c, m: (
            bool(tree(c.new).find(exp.Window, exp.ArgMax, exp.ArgMin))
            and all(c.plan[p].old.as_parent != c.plan[p].new.as_parent for p in names_in_list(m[1]))
        ),  # type: ignore[union-attr]
    ),
    "start": (r"Its first day, which it takes from what it reads, is another one now\.", lambda c, m: earliest(c)),
    "order of parents": (
        rf"{NAMES} may return (?:its|their) rows in another order, and what is taken of them depends on that\.",
        lambda c, m: (
            all(p in c.plan and not c.plan[p].kind.is_stored for p in names_in_list(m[1])) and upstream_sorted(c)
        ),
    ),
    "passes order on": (
        rf"{NAMES} returns its rows in another order, and so does it\.",
        lambda c, m: c.columns.order and not c.change.kind.is_stored and upstream_sorted(c),
    ),
    "own order": (
        r"It returns the same rows in another order, which matters to models that take rows by their order\.",
        lambda c, m: c.columns.order and not c.columns.every and not c.change.kind.is_stored and upstream_sorted(c),
    ),
    "kept rows": (
        r"The rows that a forward-only change kept in its table are computed again too\.",
        lambda c, m: c.change.old is not None and c.change.old.is_mixed and c.change.recomputed,
    ),
    "chance rows": (
        r"Its rows may differ when they are computed again\.",
        lambda c, m: (
            c.change.recomputed
            and c.change.new is not None
            and bool(c.change.new.meaning and c.change.new.meaning.volatile_rows)
        ),
    ),
    "chance": (
        rf"{NAMES} may differ when computed again\.",
        lambda c, m: (
            c.change.recomputed
            and set(names_in_list(m[1])) <= volatile(c)
            and set(names_in_list(m[1])) <= set(c.change.old.columns or ())
        ),  # type: ignore[union-attr]
    ),
    "reads only": (
        rf"(?:Reads|(Its rows depend on)) (?:only {NAMES}|no column|) ?of `([^`]+)`, which {VERBS}"
        r"(?: and (?:reads|its rows) .*)?\.",
        lambda c, m: reads_only(c, names_in_list(m[2] or ""), m[3], bool(m[1])) and parent_touches(c, m[3], m[4]),
    ),
    "same rows": (
        r"Its inputs hold the same rows as before\.",
        lambda c, m: all(is_as_before(c, p) for p in c.new.depends_on if p in c.plan),
    ),
    "override above": (
        rf"{NAMES} (?:is|are) categorized as non-breaking, so it keeps its table\.",
        lambda c, m: (
            all(c.plan[p].override.category is Category.NON_BREAKING for p in names_in_list(m[1]))
            and not c.change.recomputed
        ),  # type: ignore[union-attr]
    ),
    "compared": (
        r"Computed again, `.*` holds the same rows as before.*\.",
        lambda c, m: (
            not c.change.recomputed
            and c.change.old is not None
            and c.change.new is not None
            and c.change.old.table == c.change.new.table
        ),
    ),
    "metadata": (
        rf"Only {NAMES} changed; the rows come from the same query\.",
        lambda c, m: same_fields(c, set(names_in_list(m[1])) | {"column_descriptions"}) and c.old.sql == c.new.sql,
    ),
    "kind": (
        r"The kind changed from (\w+) to (\w+)(, and with it the rows|; the rows stay the same ones|; it .*|)\.",
        lambda c, m: (str(c.old.kind), str(c.new.kind)) == (m[1], m[2]) and setting_effect(c, m[3]),
    ),
    "seed": (
        r"`([^`]+)` changed(, and with it the rows|; the rows stay the same ones|; it .*|)\.",
        lambda c, m: (
            ((c.new.seed is not None and c.new.seed.path == m[1] and c.old.seed != c.new.seed) or is_setting(c, m[1]))
            and setting_effect(c, m[2])
        ),
    ),
    "settings": (
        rf"{NAMES} changed(?: and the query changed)?(, and with it the rows|; the rows stay the same ones|; it .*|)\.",
        lambda c, m: all(is_setting(c, setting) for setting in names_in_list(m[1])) and setting_effect(c, m[2]),
    ),
    "spark settings": (
        r"The setting `([^`]+)` changed from .* to .*(, and with it the rows|; the rows stay the same ones|; it .*|)\.",
        lambda c, m: dict(c.old.settings).get(m[1]) != dict(c.new.settings).get(m[1]) and setting_effect(c, m[2]),
    ),
    "layout": (
        rf"{NAMES} changed: (?:the rows are copied from the table that holds them|the file is loaded again"
        r"|the table is computed again)\.",
        lambda c, m: (
            all(is_setting(c, setting) for setting in names_in_list(m[1]))
            and bool(c.change.copies) == ("copied" in m[0])
        ),
    ),
    "added": (r"`([^`]+)` is not in `[^`]+` yet\.", lambda c, m: c.change.old is None and c.change.name == m[1]),
    "removed": (
        r"`([^`]+)` is no longer in the project\.",
        lambda c, m: c.change.new is None and c.change.name == m[1],
    ),
    "adopted": (
        r"`([^`]+)` holds its rows\.",
        lambda c, m: c.change.adopts is not None and c.change.adopts.table == m[1],
    ),
    "restated": (
        r"Its rows are computed again\.",
        lambda c, m: bool(c.change.missing) and c.change.change == "restated",
    ),
    "restated above": (
        r"It reads rows that are computed again\.",
        lambda c, m: any(p in c.plan or not c.snapshots[p].kind.is_stored for p in c.new.depends_on),
    ),
    "selected above": (
        r"It reads `([^`]+)`, which is selected\.",
        lambda c, m: c.snapshots.get(m[1]) is None or not c.snapshots[m[1]].kind.has_query,
    ),
    "due": (r"Its table lacks time that is due\.", lambda c, m: bool(c.change.missing)),
    "again": (
        r"Its latest time is computed again\.",
        lambda c, m: c.new.batches.lookback > 0 or c.new.schedule.allow_partials,
    ),
    "by override": (
        r"(@\w+|Somebody) categorized it as ([a-z-]+); the rule `([a-z-]+)` had said: .*",
        lambda c, m: c.change.override is not None and str(c.change.override.category).replace("_", "-") == m[2],
    ),
    "no longer ignored": (
        r"An earlier change of columns is no longer ignored: existing rows stay\.",
        lambda c, m: c.old.policy != c.new.policy and bool(c.columns.added | c.columns.removed),
    ),
    "forward-only kind": (
        r"(?:Its kind is `forward_only`|It is incremental in dbt): .*",
        lambda c, m: c.new.policy.forward_only and rows_stay(c, m[0]),
    ),
    "forward-only plan": (
        r"The plan is forward-only: .*",
        lambda c, m: c.change.category is Category.FORWARD_ONLY and rows_stay(c, m[0]),
    ),
    "forward-only above": (
        rf"Only forward-only changes touch it \(of {NAMES}\): .*",
        lambda c, m: (
            all(c.plan[p].category is Category.FORWARD_ONLY for p in names_in_list(m[1])) and c.old.sql == c.new.sql
        ),
    ),
}
