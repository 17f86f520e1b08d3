"""A failing case made small: models, clauses, outputs and parts of expressions go as long as it still fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.errors import SqlglotError

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.parsing.sql.spark_text import spark_text
from mergeplan.planner.plan.change import Change
from mergeplan.planner.semantics.columns import tables_of
from tests.planner.generating.edits.trees import conjuncts, set_where

from .answers import Broken
from .promises import Models, proof
from .running import Bench

Judge = Callable[[Models, Models], Mapping[str, Change] | None]
CLAUSES = ("where", "having", "qualify", "order", "limit", "distinct", "laterals", "with_", "group")
SIMPLER = (exp.Func, exp.Binary, exp.Unary, exp.Between, exp.In, exp.Subquery, exp.Window, exp.Filter, exp.Cast)
AT_ONCE = 12
MOST = 600


@dataclass(frozen=True)
class Failure:
    """Two projects between which a promise is broken."""

    before: Models
    after: Models
    broken: Broken

    def __str__(self) -> str:
        lines = []
        for name in sorted(self.before.keys() | self.after.keys()):
            old, new = self.before.get(name), self.after.get(name)
            if old and old.sql:
                lines.append(f"  {name} ({old.kind}): {old.sql}")
            if new and new.sql and (not old or old.sql != new.sql):
                lines.append(f"    becomes: {new.sql}")
        return "\n".join([*lines, str(self.broken)])


def shrunk(bench: Bench, failure: Failure, judge: Judge) -> Failure:
    """The smallest failure that was found by leaving things out."""
    failure = _without_models(failure)
    tried, again = 0, True
    while again and tried < MOST:
        again = False
        candidates = _smaller(failure)
        while part := [candidate for candidate, _ in zip(candidates, range(AT_ONCE), strict=False)]:
            tried += len(part)
            smaller = next(_failing(bench, part, judge), None)
            if smaller is not None:
                failure, again = smaller, True
                break
            if tried >= MOST:
                break
    return failure


def _failing(bench: Bench, pairs: list[tuple[Models, Models]], judge: Judge) -> Iterator[Failure]:
    judged = [(before, after, changes) for before, after in pairs if (changes := _judge_safely(judge, before, after))]
    answers = bench.together(proof(before, after, changes) for before, after, changes in judged)
    for (before, after, _), answer in zip(judged, answers, strict=True):
        if answer.broken:
            yield Failure(before, after, answer.broken[0])


def _judge_safely(judge: Judge, before: Models, after: Models) -> Mapping[str, Change] | None:
    try:
        return judge(before, after)
    except Exception:  # a piece of a query may be no query at all
        return None


def _without_models(failure: Failure) -> Failure:
    """Only the model that fails and what it reads."""
    needed, waiting = set[str](), [failure.broken.model]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += [*failure.before[name].depends_on, *failure.after[name].depends_on]
    kept = [{n: m for n, m in models.items() if n in needed} for models in (failure.before, failure.after)]
    return replace(failure, before=kept[0], after=kept[1])


def _smaller(failure: Failure) -> Iterator[tuple[Models, Models]]:
    """Pairs with one thing less: on both sides where both have it, on one side otherwise."""
    for name in reversed(list(failure.before)):
        old, new = failure.before[name], failure.after[name]
        if not old.sql:
            continue
        cuts, others = dict(_cuts(old.sql)), dict(_cuts(new.sql))
        for key in {**cuts, **others}:
            pair = replace_sql(old, cuts.get(key, old.sql)), replace_sql(new, others.get(key, new.sql))
            yield {**failure.before, name: pair[0]}, {**failure.after, name: pair[1]}


def replace_sql(model: Model, sql: str) -> Model:
    """The model with another query."""
    reads = tuple(sorted(tables_of(spark_tree(sql))))
    return replace(model, sql=sql, source=f"MODEL ();\n{sql}", depends_on=reads)


def _cuts(sql: str) -> Iterator[tuple[str, str]]:
    """(what goes, the query without it)."""
    for key, cut in _actions(spark_tree(sql)):
        tree = spark_tree(sql).copy()
        try:
            tree = cut(tree) or tree
            text = spark_text(spark_tree(spark_text(tree)))
        except (SqlglotError, ProjectError, AttributeError, IndexError):
            continue
        if text != sql:
            yield key, text


Cut = Callable[[exp.Expr], exp.Expr | None]


def _actions(tree: exp.Expr) -> Iterator[tuple[str, Cut]]:
    for number, _ in enumerate(tree.find_all(exp.SetOperation)):
        for side in ("this", "expression"):
            yield (
                f"set {number} {side}",
                _cut_nodes(exp.SetOperation, number, lambda n, side=side: n.replace(n.args[side])),
            )  # type: ignore[misc]
    for number, select in enumerate(tree.find_all(exp.Select)):
        yield from _clauses(number, select)
    for number, node in enumerate(tree.find_all(*SIMPLER)):
        for place, _ in enumerate(_parts(node)):
            yield f"part {number} {place}", _part(number, place)


def _clauses(number: int, select: exp.Select) -> Iterator[tuple[str, Cut]]:
    for clause in CLAUSES:
        if select.args.get(clause):
            yield f"{number} {clause}", _cut_nodes(exp.Select, number, lambda n, clause=clause: n.set(clause, None))  # type: ignore[misc]
    for place, _ in enumerate(select.args.get("joins") or []):
        yield (
            f"{number} join {place}",
            _cut_nodes(exp.Select, number, lambda n, place=place: n.args["joins"].pop(place)),
        )  # type: ignore[misc]
    where = select.args.get("where")
    for place, _ in enumerate(conjuncts(where.this) if where else []):
        yield f"{number} where {place}", _cut_nodes(exp.Select, number, lambda n, place=place: _drop_conjunct(n, place))  # type: ignore[misc]
    if len(select.expressions) > 1:
        for output in reversed(select.expressions):
            name = output.alias_or_name or output.sql()
            yield f"{number} output {name}", _cut_nodes(exp.Select, number, lambda n, name=name: _drop_output(n, name))  # type: ignore[misc]


def _cut_nodes(kind: type[exp.Expr], number: int, act: Callable[[exp.Expr], object]) -> Cut:
    """The action on one node of the kind."""

    def cut(tree: exp.Expr) -> exp.Expr | None:
        holder = exp.Paren(this=tree)
        act(list(tree.find_all(kind))[number])
        inner = holder.this
        return inner if isinstance(inner, exp.Expr) else None

    return cut


def _drop_conjunct(select: exp.Expr, place: int) -> None:
    parts = conjuncts(select.args["where"].this)
    set_where(select, parts[:place] + parts[place + 1 :])


def _drop_output(select: exp.Expr, name: str) -> None:
    select.set("expressions", [o for o in select.expressions if (o.alias_or_name or o.sql()) != name])


def _parts(node: exp.Expr) -> list[exp.Expr]:
    return [part for part in node.iter_expressions() if isinstance(part, exp.Condition)]


def _part(number: int, place: int) -> Cut:
    """A node gives way to one of its parts."""

    def act(tree: exp.Expr) -> exp.Expr | None:
        node = list(tree.find_all(*SIMPLER))[number]
        node.replace(_parts(node)[place].copy())
        return None

    return act
