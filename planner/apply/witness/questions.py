"""A plan's claims checked by Spark, in rounds, because a new table's columns are known only after its own query."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from mergeplan.planner.apply.witness.stand_ins import ColumnsUnknown, StandIns
from mergeplan.planner.apply.witness.stored_columns import find_planned_columns, list_declared_columns
from mergeplan.planner.engine.analysis import NEW, OLD, Analysis, PairResult, QueryPair
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.naming import quote_column
from mergeplan.planner.plan.category.later_form import RULE as LATER_FORM
from mergeplan.planner.plan.category.later_form import first_form
from mergeplan.planner.plan.category.reasons import format_names
from mergeplan.planner.plan.change import Change
from mergeplan.planner.plan.witness.check import Check, CheckState
from mergeplan.planner.plan.witness.claims import Claim, find_renamed

Ask = Callable[[Analysis], Sequence[PairResult]]
CODE = "a Python model has no query"
AGREES = Check(CheckState.AGREES)
UNKNOWN = Check(CheckState.DISAGREES, "The columns of its inputs are not known, so Spark could not check it.")
format_few = partial(format_names, most=5)


@dataclass
class Questions:
    stand_ins: StandIns
    ask: Ask
    checks: dict[str, Check] = field(default_factory=dict)  # by model

    def check_claims(self, claims: Sequence[Claim], also: Collection[str] = ()) -> Mapping[str, Check]:
        """Return the check of each claim, by model; find the columns of new tables of models in `also` too."""
        waiting = {claim.model: claim for claim in claims}
        needed = dict.fromkeys(self._needs_columns([*waiting, *also], also))
        while waiting or needed:
            pairs = dict(self._list_pairs(waiting.values(), needed))
            for name in waiting.keys() - pairs.keys():
                if name in self.checks:
                    del waiting[name]
            if not pairs:
                break
            for name, result in zip(pairs, self._compare_pairs(pairs), strict=True):
                self._learn_columns(name, result)
                needed.pop(name, None)
                if claim := waiting.pop(name, None):
                    self.checks[name] = _judge_result(claim, pairs[name], result)
        return {**dict.fromkeys(waiting, UNKNOWN), **self.checks}

    def _needs_columns(self, claims: Collection[str], also: Collection[str]) -> Iterator[str]:
        above, waiting = set(also), list(claims)
        while waiting:
            for parent in self.stand_ins.plan.parents.get(waiting.pop(), ()):
                if parent in self.stand_ins.changes and parent not in above:
                    above.add(parent)
                    waiting.append(parent)
        return (change.name for change in self.stand_ins.plan.changes if change.name in above and self._is_new(change))

    def _is_new(self, change: Change) -> bool:
        new = change.new
        if new is None or not (new.kind.is_stored or new.kind.is_view) or self.stand_ins.stored_columns(new):
            return False
        if new.model.sql and not new.model.python:
            return True
        self.stand_ins.planned[change.name] = list_declared_columns(new)
        return False

    def _list_pairs(self, claims: Collection[Claim], needed: Collection[str]) -> Iterator[tuple[str, QueryPair]]:
        """Yield the pairs that can be checked by now: each claim, and other queries whose columns are needed."""
        named = {claim.model: claim for claim in claims}
        for change in self.stand_ins.plan.changes:
            claim = named.get(change.name)
            if claim is None and change.name not in needed:
                continue
            try:
                if pair := self._build_pair(change, claim):
                    yield change.name, pair
            except ColumnsUnknown:
                continue

    def _build_pair(self, change: Change, claim: Claim | None) -> QueryPair | None:
        old, new = change.old, change.new
        assert new is not None
        if claim and any(side is not None and side.model.python for side in (old, new)):
            self.checks[change.name] = Check(CheckState.UNCHECKED, CODE)
            return None
        unchanged_columns = dict(change.unchanged)
        if claim and old and change.rule == LATER_FORM:
            old, new = (replace(side, model=first_form(side.model) or side.model) for side in (old, new))
        second = self.stand_ins.query(new, 1, unchanged_columns)
        if claim is None or old is None:
            return QueryPair("", second)
        ordered = not (new.kind.is_stored or change.effect.order)
        reads_decide = self.stand_ins.do_reads_decide(old, new, unchanged_columns)
        first = self.stand_ins.query(old, 0, unchanged_columns)
        if new.kind.is_embedded and claim.columns is None:  # the case of its column names shows in its readers' rows
            first, second = (f"SELECT struct(*) AS columns FROM (\n{text}\n)" for text in (first, second))
        if claim.columns is not None and (renamed := find_renamed(change).items()):
            columns = ", ".join(f"{quote_column(new_name)} AS {quote_column(name)}" for name, new_name in renamed)
            second = f"SELECT *, {columns} FROM (\n{second}\n)"
        return QueryPair(first, second, claim.columns, ordered, reads_decide)

    def _compare_pairs(self, pairs: Mapping[str, QueryPair]) -> Sequence[PairResult]:
        """Return the result of each pair; one text over the same tables is not checked."""
        open_pairs = [pair for name, pair in pairs.items() if not self._is_settled(name, pair)]
        answers = iter(self.ask(self.stand_ins.analysis(open_pairs)) if open_pairs else ())
        return [PairResult(same=True) if self._is_settled(n, pair) else next(answers) for n, pair in pairs.items()]

    def _is_settled(self, name: str, pair: QueryPair) -> bool:
        new = self.stand_ins.changes[name].new
        lacks_columns = new is not None and new.kind.is_stored and not self.stand_ins.stored_columns(new)
        return pair.first == pair.second and not lacks_columns

    def _learn_columns(self, name: str, result: PairResult) -> None:
        change = self.stand_ins.changes[name]
        new = change.new
        if new and new.kind.is_view and change.old and change.old.kind.is_view and result.same and not result.second:
            self.stand_ins.planned[name] = self.stand_ins.stored_columns(change.old) or ()  # it has the same text
        if new is None or new.kind.is_embedded or not result.second:
            return
        if change.rule == LATER_FORM and change.old and (columns := self.stand_ins.stored_columns(change.old)):
            self.stand_ins.planned[name] = columns
            return
        columns = tuple(column for column in result.second if column.name not in find_renamed(change))
        try:
            self.stand_ins.planned[name] = find_planned_columns(new, columns)
        except ProjectError:  # declared columns are not the query's: the dry run reports it
            self.stand_ins.planned[name] = columns


def _judge_result(claim: Claim, pair: QueryPair, result: PairResult) -> Check:
    if result.unknown:
        return Check(CheckState.UNCHECKED, result.unknown)
    if result.gave_up:
        return Check(CheckState.DISAGREES, f"Not checked by Spark: {result.gave_up}.")
    if result.error:
        return Check(CheckState.DISAGREES, f"Spark's analyzer refuses it over its own tables: {result.error}")
    if result.rules:
        return Check(CheckState.EXPLAINED, ", ".join(result.rules))
    if result.same:
        return AGREES
    return Check(CheckState.DISAGREES, _describe_difference(claim, pair, result))


def _describe_difference(claim: Claim, pair: QueryPair, result: PairResult) -> str:
    old, new = ({c.name: c.type for c in columns} for columns in (result.first, result.second))
    if pair.columns is None and list(old.items()) != list(new.items()):
        if [*old] != [*new]:
            return f"By Spark's analyzer its columns are {format_few(new)} now, and were {format_few(old)}."
        retyped_columns = [name for name in new if old[name] != new[name]]
        types = f"{old[retyped_columns[0]]} to {new[retyped_columns[0]]}"
        return f"By Spark's analyzer the type of {format_few(retyped_columns)} changes from {types}."
    if gone := [name for name in pair.columns or () if old.get(name) != new.get(name)]:
        return f"The rules keep {format_few(gone)}, and Spark's analyzer finds another column of that name."
    read = sorted({name.removesuffix(OLD).removesuffix(NEW) for name in (*result.first_reads, *result.second_reads)})
    if read:
        return f"By Spark's analyzer it reads {format_few(read)}, which changed above it."
    return "Spark's analyzer does not find the old and the new text to be one query."
