"""What each sentence of a reason claims, checked against the plan's data and the text of the queries.

`FACTS` has a check for each sentence, and `OF_RULE` the sentences of each rule: a sentence or a rule that is in neither
is a failure. The checks read queries with sqlglot and on their own: they share no code with what writes the reasons.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

import sqlglot
from sqlglot import exp

from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.change import Category, Change, Columns
from mergeplan.planner.snapshot.snapshot import Snapshot

NAMES = r"(`[^`]+`(?:(?:, | and )`[^`]+`)*)"
CLAUSES = r"([A-Z ]+(?:(?:, | and )[A-Z ]+)*)"
PAST = {"adds": "added", "alters": "altered", "removes": "removed"}
VERBS = rf"((?:(?:, | and )?(?:alters|removes|adds) {NAMES[1:-1]})+|changes)"
SENTENCE_END = re.compile(r"(?<=\.) (?=[A-Z`@])")
KEYWORDS: Mapping[str, tuple[type[exp.Expr], ...]] = {
    "WHERE": (exp.Where,), "HAVING": (exp.Having,), "QUALIFY": (exp.Qualify,), "GROUP BY": (exp.Group,),
    "DISTINCT": (exp.Distinct,), "LIMIT": (exp.Limit,), "OFFSET": (exp.Offset,), "ORDER BY": (exp.Order,),
    "VALUES": (exp.Values,), "TABLESAMPLE": (exp.TableSample,), "JOIN": (exp.Join,), "FROM": (exp.Table,),
    "ON": (exp.Join,), "LATERAL VIEW": (exp.Lateral,), "PIVOT": (exp.Pivot,), "UNPIVOT": (exp.Pivot,),
    "UNION": (exp.Union,), "EXCEPT": (exp.Except,), "INTERSECT": (exp.Intersect,),
}  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """A change whose reason is checked, among all changes of its plan."""

    change: Change
    plan: Mapping[str, Change]
    snapshots: Mapping[str, Snapshot]  # of all models, as the plan leaves them

    @property
    def old(self) -> Model:
        assert self.change.old is not None
        return self.change.old.model

    @property
    def new(self) -> Model:
        assert self.change.new is not None
        return self.change.new.model

    @property
    def columns(self) -> Columns:
        return self.change.columns

    def parent(self, name: str) -> Columns:
        """The columns of a parent that its own change touches, and those that may come out otherwise."""
        assert name in self.old.depends_on
        change = self.plan[name]
        meaning = change.new.meaning if change.new and change.new.kind.is_stored else None
        chance = (meaning.volatile if meaning and change.recomputed else frozenset[str]()) - change.columns.added
        every = change.columns.every or bool(meaning and meaning.volatile_rows and change.recomputed)
        # what a view passes on of a parent that is computed anew is other than before too
        told = change.columns
        return Columns(told.added, told.altered | chance, told.removed, every, told.order)


Check = Callable[[Claim, re.Match[str]], bool]


def listed(text: str) -> list[str]:
    """The names of a list in backticks."""
    return re.findall(r"`([^`]+)`", text)


def tree(model: Model) -> exp.Expr:
    return sqlglot.parse_one(model.sql, dialect="spark")


def named(model: Model) -> set[str]:
    """The column names that stand in a query."""
    return {column.name.lower() for column in tree(model).find_all(exp.Column)}


def has_star(model: Model) -> bool:
    """True for a star that stands for columns, and not only for rows as in COUNT(*)."""
    return any(not isinstance(star.parent, exp.Count) for star in tree(model).find_all(exp.Star))


def clause(model: Model, keyword: str) -> list[str]:
    return sorted(_clause_text(keyword, node) for node in tree(model).find_all(*KEYWORDS[keyword]))


def _clause_text(keyword: str, node: exp.Expr) -> str:
    if keyword == "FROM":
        return str(node.this).lower() + str(node.args.get("db")).lower()
    if keyword == "ON":
        return str(node.args.get("on") or node.args.get("using") or "")
    return node.sql(dialect="spark")


def words(text: str) -> list[str]:
    return re.split(r", | and ", text)


def touches(columns: Columns, text: str) -> bool:
    """True when the verbs of a text say exactly which columns are touched."""
    if text == "changes":
        return columns.every
    found = {PAST[verb]: set(listed(names)) for verb, names in re.findall(rf"(alters|removes|adds) {NAMES}", text)}
    return all(found.get(word, set()) == set(getattr(columns, word)) for word in PAST.values())


def parent_touches(claim: Claim, parent: str, text: str) -> bool:
    """As `touches`, of a parent; a view shows what its own parents changed, and is checked by that."""
    columns = claim.parent(parent)
    return touches(columns, text) or (columns.every and claim.plan[parent].columns.every is False)


def reads_only(claim: Claim, names: list[str], parent: str, idle: bool) -> bool:
    """True when a query names these columns of a parent alone; with `idle` it names others to no effect."""
    columns = claim.parent(parent)
    changed = columns.altered | columns.removed
    has = set(claim.snapshots[parent].columns or ()) | set(columns.removed)
    others = {c for p in claim.new.depends_on if p != parent for c in claim.snapshots[p].columns or ()}
    stray = (named(claim.new) & has) - set(names) - others - aliases(claim.new)
    if not set(names) <= has or not changed.isdisjoint(names):
        return False
    return bool(stray) if idle else has_star(claim.new) or bool(inner(claim.new)) or not stray


def aliases(model: Model) -> set[str]:
    laterals = (name.name.lower() for each in tree(model).find_all(exp.TableAlias) for name in each.columns)
    return {alias.alias.lower() for alias in tree(model).find_all(exp.Alias)} | {*laterals}


def inner(model: Model) -> list[exp.Expr]:
    return [*tree(model).find_all(exp.CTE), *tree(model).find_all(exp.Subquery)]


def is_changed(claim: Claim, column: str) -> bool:
    parent, _, name = column.rpartition(".")
    columns = claim.parent(parent)
    return columns.every or name in columns.altered | columns.removed


def same_fields(claim: Claim, but: set[str]) -> bool:
    """True when old and new model differ in these fields alone, and in what says where they stand."""
    free = but | {"source", "line", "text", "text_line", "path"}
    return all(getattr(claim.old, f.name) == getattr(claim.new, f.name) for f in fields(Model) if f.name not in free)


def upstream_sorted(claim: Claim) -> bool:
    """True when it or a model below it is written with ORDER BY, before or after."""
    waiting, seen = [claim.change.name], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        change, now = claim.plan.get(name), claim.snapshots.get(name)
        for snapshot in (change.old if change else now, change.new if change else now):
            if snapshot and snapshot.model.sql:
                if tree(snapshot.model).find(exp.Order, exp.Sort):
                    return True
                waiting += snapshot.model.depends_on
    return False


def earliest(claim: Claim) -> bool:
    """True when a model above it has another start than before."""
    changed = (c for c in claim.plan.values() if c.old and c.new)
    return any(c.old.model.start != c.new.model.start for c in changed) and claim.new.start is None  # type: ignore[union-attr]


def unfollowed(claim: Claim) -> bool:
    """True where the analysis has no clauses to tell rows from columns by, or they are all as they were."""
    return claim.columns.every


FACTS: Mapping[str, tuple[str, Check]] = {
    "same query": (
        r"The new text means the same query\.",
        lambda c, m: c.old.sql != c.new.sql or c.old.misread != c.new.misread,
    ),
    "same over parents": (
        r"The new text over what it reads now means what the old one meant\.",
        lambda c, m: (
            c.columns == Columns()
            and c.old.sql != c.new.sql
            and bool({*c.new.depends_on, *c.old.depends_on} & c.plan.keys())
        ),
    ),
    "clauses": (
        rf"{CLAUSES} changed, and with it the rows\.",
        lambda c, m: all(clause(c.old, each) != clause(c.new, each) for each in words(m[1])),
    ),
    "select": (
        rf"What SELECT computes changed, and (?:{CLAUSES} depends on it|with it the rows)\.",
        lambda c, m: c.old.sql != c.new.sql and (m[1] is None or bool(clause(c.new, m[1]))),
    ),
    "limited": (
        r"The query that LIMIT takes rows of changed, and with it the rows\.",
        lambda c, m: bool(clause(c.new, "LIMIT") or clause(c.new, "OFFSET")) and c.old.sql != c.new.sql,
    ),
    "time column": (
        r"`([^`]+)` changed, and it says in which interval a row lies\.",
        lambda c, m: m[1] == c.new.time_column and c.old.sql != c.new.sql,
    ),
    "reads itself": (
        r"It reads itself: .*, and its query changed\.",
        lambda c, m: c.new.reads_itself and c.old.sql != c.new.sql,
    ),
    "unfollowed": (
        r"Rows and columns cannot be distinguished here, so every row counts as changed\.",
        lambda c, m: unfollowed(c),
    ),
    "only adds": (
        rf"Only adds {NAMES}; the rows and the other columns stay as they are\.",
        lambda c, m: c.columns == Columns(added=frozenset(listed(m[1]))) and not volatile(c),
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
                    set(listed(names)) <= getattr(c.columns, PAST[verb])
                    for verb, names in re.findall(rf"(alters|removes|adds) {NAMES}", m[1])
                )
            )
        ),
    ),
    "order of columns": (
        r"The columns stand in another order\.",
        lambda c, m: (
            c.change.old is not None and c.change.new is not None and c.change.old.columns != c.change.new.columns
        ),
    ),
    "python": (
        r"What an edit of Python code does to the rows is not known, so it counts as breaking\.",
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
        rf"Which columns of {NAMES} it reads is not known, so it counts as changed\.",
        lambda c, m: c.columns.every and all(p in c.plan and p in c.new.depends_on for p in listed(m[1])),
    ),
    "all count": (
        rf"Which columns of `([^`]+)` it reads is not known, so all of them count; `[^`]+` {VERBS}\.",
        lambda c, m: m[1] in c.new.depends_on and parent_touches(c, m[1], m[2]),
    ),
    "rows of parents": (
        rf"The rows of {NAMES} change\.",
        lambda c, m: all(
            c.parent(p).every or c.plan[p].new.forced or c.plan[p].change == "indirect" for p in listed(m[1])
        ),  # type: ignore[union-attr]
    ),
    "added parents": (
        rf"{NAMES} (?:is|are) added as (?:a model|models)\.",
        lambda c, m: all(c.plan[p].change == "added" for p in listed(m[1])),
    ),
    "rows depend": (
        rf"{NAMES} changed, and its rows depend on that\.",
        lambda c, m: (
            all(is_changed(c, each) for each in listed(m[1]))
            and (c.columns.every or c.change.rule == "settings-changed")
        ),
    ),
    "reads changed": (
        rf"Reads {NAMES}, which changed\.",
        lambda c, m: all(is_changed(c, each) for each in listed(m[1])),
    ),
    "star gains": (
        rf"Its `\*` now includes {NAMES}, which (?:is|are) added\.",
        lambda c, m: (
            has_star(c.new) and all(e.rpartition(".")[2] in c.parent(e.rpartition(".")[0]).added for e in listed(m[1]))
        ),
    ),
    "star loses": (
        rf"Its `\*` no longer includes {NAMES}, which (?:is|are) removed\.",
        lambda c, m: (
            has_star(c.old)
            and all(e.rpartition(".")[2] in c.parent(e.rpartition(".")[0]).removed for e in listed(m[1]))
        ),
    ),
    "names gain": (
        rf"By its names it now reads {NAMES}, which (?:is|are) added\.",
        lambda c, m: all(
            e.rpartition(".")[2] in c.parent(e.rpartition(".")[0]).added and mentions(c.new, e.rpartition(".")[2])
            for e in listed(m[1])
        ),
    ),
    "names lose": (
        rf"By its names it read {NAMES}, which (?:is|are) removed\.",
        lambda c, m: all(
            e.rpartition(".")[2] in c.parent(e.rpartition(".")[0]).removed and mentions(c.old, e.rpartition(".")[2])
            for e in listed(m[1])
        ),
    ),
    "star reordered": (
        rf"The columns of {NAMES} stand in another order, and its `\*` takes them in that order\.",
        lambda c, m: has_star(c.new) and all(c.plan[p].old.columns != c.plan[p].new.columns for p in listed(m[1])),  # type: ignore[union-attr]
    ),
    "other meaning": (
        rf"(?:`([^`]+)` {VERBS}(?: and )?)+, and the same query means something else now\.",
        lambda c, m: parent_touches(c, m[1], m[2]) and c.old.sql == c.new.sql,
    ),
    "keys": (
        rf"The keys of {NAMES} changed, and which rows it takes may depend on them\.",
        lambda c, m: (
            bool(tree(c.new).find(exp.Window, exp.ArgMax, exp.ArgMin))
            and all(c.plan[p].old.as_parent != c.plan[p].new.as_parent for p in listed(m[1]))
        ),  # type: ignore[union-attr]
    ),
    "start": (r"Its first day, which it takes from what it reads, is another one now\.", lambda c, m: earliest(c)),
    "order of parents": (
        rf"{NAMES} may return (?:its|their) rows in another order, and what is taken of them depends on that\.",
        lambda c, m: all(p in c.plan and not c.plan[p].kind.is_stored for p in listed(m[1])) and upstream_sorted(c),
    ),
    "passes order on": (
        rf"{NAMES} returns its rows in another order, and so does it\.",
        lambda c, m: c.columns.order and not c.change.kind.is_stored and upstream_sorted(c),
    ),
    "own order": (
        r"It returns the same rows in another order, which matters to what takes rows by their order\.",
        lambda c, m: c.columns.order and not c.columns.every and not c.change.kind.is_stored and upstream_sorted(c),
    ),
    "kept rows": (
        r"The rows that a forward-only change kept in its table are computed anew too\.",
        lambda c, m: c.change.old is not None and c.change.old.is_mixed and c.change.recomputed,
    ),
    "chance rows": (
        r"Its rows may come out otherwise when they are computed anew\.",
        lambda c, m: (
            c.change.recomputed
            and c.change.new is not None
            and bool(c.change.new.meaning and c.change.new.meaning.volatile_rows)
        ),
    ),
    "chance": (
        rf"{NAMES} may come out otherwise when computed anew\.",
        lambda c, m: (
            c.change.recomputed
            and set(listed(m[1])) <= volatile(c)
            and set(listed(m[1])) <= set(c.change.old.columns or ())
        ),  # type: ignore[union-attr]
    ),
    "reads only": (
        rf"(?:Reads|(Its rows depend on)) (?:only {NAMES}|no column|) ?of `([^`]+)`, which {VERBS}"
        r"(?: and (?:reads|its rows) .*)?\.",
        lambda c, m: reads_only(c, listed(m[2] or ""), m[3], bool(m[1])) and parent_touches(c, m[3], m[4]),
    ),
    "same rows": (
        r"What it reads holds the same rows as before\.",
        lambda c, m: all(is_as_before(c, p) for p in c.new.depends_on if p in c.plan),
    ),
    "override above": (
        rf"{NAMES} (?:is|are) categorized as non-breaking, so it keeps its table\.",
        lambda c, m: (
            all(c.plan[p].override.category is Category.NON_BREAKING for p in listed(m[1])) and not c.change.recomputed
        ),  # type: ignore[union-attr]
    ),
    "compared": (
        r"Computed anew, `.*` holds the same rows as before.*\.",
        lambda c, m: (
            not c.change.recomputed
            and c.change.old is not None
            and c.change.new is not None
            and c.change.old.table == c.change.new.table
        ),
    ),
    "metadata": (
        rf"Only {NAMES} changed; the rows come from the same query\.",
        lambda c, m: same_fields(c, set(listed(m[1])) | {"column_descriptions"}) and c.old.sql == c.new.sql,
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
        lambda c, m: all(is_setting(c, each) for each in listed(m[1])) and setting_effect(c, m[2]),
    ),
    "spark settings": (
        r"The setting `([^`]+)` changed from .* to .*(, and with it the rows|; the rows stay the same ones|; it .*|)\.",
        lambda c, m: dict(c.old.settings).get(m[1]) != dict(c.new.settings).get(m[1]) and setting_effect(c, m[2]),
    ),
    "layout": (
        rf"{NAMES} changed: (?:the rows are copied from the table that holds them|the file is loaded again"
        r"|the table is computed anew)\.",
        lambda c, m: all(is_setting(c, each) for each in listed(m[1])) and bool(c.change.copies) == ("copied" in m[0]),
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
        r"Its rows are computed anew\.",
        lambda c, m: bool(c.change.missing) and c.change.change == "restated",
    ),
    "restated above": (
        r"It reads what is computed anew\.",
        lambda c, m: any(p in c.plan or not c.snapshots[p].kind.is_stored for p in c.new.depends_on),
    ),
    "selected above": (
        r"It reads `([^`]+)`, which is selected\.",
        lambda c, m: c.snapshots.get(m[1]) is None or not c.snapshots[m[1]].kind.has_query,
    ),
    "due": (r"Its table lacks time that is due\.", lambda c, m: bool(c.change.missing)),
    "again": (r"Its latest time is computed again\.", lambda c, m: c.new.lookback > 0 or c.new.allow_partials),
    "by override": (
        r"(@\w+|Somebody) categorized it as ([a-z-]+); the rule `([a-z-]+)` had said: .*",
        lambda c, m: c.change.override is not None and str(c.change.override.category).replace("_", "-") == m[2],
    ),
    "forward-only kind": (r"Its kind says `forward_only`: .*", lambda c, m: c.new.forward_only and rows_stay(c, m[0])),
    "forward-only plan": (
        r"The plan is forward-only: .*",
        lambda c, m: c.change.category is Category.FORWARD_ONLY and rows_stay(c, m[0]),
    ),
    "forward-only above": (
        rf"Only forward-only changes touch it \(of {NAMES}\): .*",
        lambda c, m: all(c.plan[p].category is Category.FORWARD_ONLY for p in listed(m[1])) and c.old.sql == c.new.sql,
    ),
}


def rows_stay(claim: Claim, text: str) -> bool:
    """True when as many rows of the old table stay as a forward-only sentence says."""
    rows = claim.change.forward.rows if claim.change.forward else ()
    if "the rows that are there stay" in text:
        return bool(rows) or not claim.change.kind.is_stored
    if found := re.search(r"the rows before (\S+) stay", text):
        return bool(rows) and f"{rows[-1].end:%Y-%m-%d}" <= found[1]
    return not rows


def volatile(claim: Claim) -> set[str]:
    """The columns that come out otherwise when the table is computed; one stands for all rows."""
    new, old = claim.change.new, claim.change.old
    if not claim.change.recomputed or new is None or new.meaning is None or old is None:
        return set()
    found = set(new.meaning.volatile) & set(old.columns or ()) - claim.columns.added - claim.columns.altered
    return found | ({"*"} if new.meaning.volatile_rows else set())


def mentions(model: Model, name: str) -> bool:
    """True when a name stands in a query, or a NATURAL JOIN joins by whatever both sides have."""
    return bool(re.search(rf"\b{name}\b", model.sql, re.I)) or "NATURAL" in model.sql.upper()


def is_as_before(claim: Claim, parent: str) -> bool:
    change = claim.plan[parent]
    equal = change.category in (Category.METADATA, Category.EQUIVALENT, Category.INDIRECT_NON_BREAKING)
    return (
        equal
        or change.columns == Columns()
        or change.columns == Columns(order=True)
        or change.rule in ("kind-changed", "layout-changed")
    )


def is_setting(claim: Claim, name: str) -> bool:
    """True when a property of this name differs; a few have another name, or are worked out."""
    fields_of = {
        "start": ("start", "start_text"), "interval_unit": ("cron",), "when_matched": ("when_matched",),
        "pre_statements": ("pre_statements",), "seed": ("seed",),
    }  # fmt: skip
    return any(getattr(claim.old, f) != getattr(claim.new, f) for f in fields_of.get(name, (name,)))


def setting_effect(claim: Claim, text: str) -> bool:
    if text == ", and with it the rows":
        return claim.columns.every
    if text == "; the rows stay the same ones":
        return claim.columns == Columns() and not volatile(claim)
    if text.startswith("; it puts"):
        return claim.change.recomputed
    return not text or touches(claim.columns, text.removeprefix("; it ")) or claim.columns.every


_BELOW = ("rows of parents", "added parents", "rows depend", "reads changed", "all count", "unknown reads", "keys",
          "kept rows", "star gains", "star loses", "names gain", "names lose", "other meaning")  # fmt: skip
# rule -> the sentences of which one at least must stand in its reason
OF_RULE: Mapping[str, tuple[str, ...]] = {
    "kind-changed": ("kind",),
    "seed-content": ("seed",),
    "settings-changed": ("settings", "seed", "spark settings"),
    "layout-changed": ("layout",),
    "metadata-only": ("metadata",),
    "same-query": ("same query", "same over parents"),
    "undecidable": ("python", "file of python", "unknown columns", "unknown reads"),
    "rows-changed": ("clauses", "select", "limited", "time column", "reads itself", "unfollowed", *_BELOW),
    "columns-reordered": ("order of columns",),
    "order-changed": ("own order",),
    "column-added": ("only adds", "edit"),
    "column-removed": ("verbs", "edit"),
    "column-altered": ("verbs", "edit", "same query", *_BELOW),
    "added": ("added",),
    "adopted": ("adopted",),
    "removed": ("removed",),
    "restated": ("restated", "restated above", "selected above"),
    "due": ("due", "again"),
    "forward-only-model": ("forward-only kind",),
    "forward-only-plan": ("forward-only plan",),
    "reads-forward-only": ("forward-only above",),
    "parents-unchanged": ("same rows", "override above"),
    "reads-nothing-changed": ("reads only",),
    "same-data": ("compared",),
    "reads-changed-rows": ("rows of parents", "added parents", "keys", "kept rows"),
    "reads-every-column": ("all count",),
    "reads-changed-column": (
        "rows depend",
        "reads changed",
        "star gains",
        "star loses",
        "names gain",
        "names lose",
        "other meaning",
    ),
    "reads-changed-order": ("order of parents", "passes order on"),
    "reads-reordered-columns": ("star reordered",),
    "starts-elsewhere": ("start",),
    "categorized": ("by override",),
}


def false_claims(claim: Claim) -> list[str]:
    """What of a reason does not hold, or is checked by nobody."""
    problems, found = [], set[str]()
    for sentence in _sentences(claim.change.reason):
        matching = [
            (name, check, m) for name, (pattern, check) in FACTS.items() if (m := re.fullmatch(pattern, sentence))
        ]
        if not matching:
            problems.append(f"no fact check for: {sentence}")
        elif not any(check(claim, m) for _, check, m in matching):
            problems.append(f"does not hold: {sentence}")
        found.update(name for name, _, _ in matching)
    if not found & set(OF_RULE.get(claim.change.rule, ())):
        problems.append(f"says nothing of its rule {claim.change.rule}: {claim.change.reason}")
    return [f"{claim.change.name}: {problem}" for problem in problems]


def _sentences(reason: str) -> list[str]:
    """The sentences of a reason; what an override or a forward-only sentence quotes belongs to it."""
    if re.match(r"(?:@\w+|Somebody) categorized|Its kind says|The plan is forward-only|Only forward-only", reason):
        return [reason]
    return SENTENCE_END.split(reason)
