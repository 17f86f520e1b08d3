"""Texts that mergeplan calls one query, held against Spark's plans of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from mergeplan.planner.semantics.parent import Parent

from .plans import Parsed, Plans, Sameness
from .readings import Reading, Trust, reading_of
from .rules import rule


@dataclass(frozen=True)
class Pair:
    """Two texts that mergeplan calls one query, and how Spark sees them."""

    heading: str
    one: str
    other: str
    sameness: Sameness
    rule: str = ""

    def __str__(self) -> str:
        return f"{self.heading}: {self.sameness}\n  {self.one}\n  {self.other}"


@dataclass
class Score:
    """How many texts were read in each way, and how Spark sees those that are called one query."""

    readings: Counter[Trust] = field(default_factory=Counter)
    pairs: Counter[Sameness] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    doubtful: list[Pair] = field(default_factory=list)  # other rows, or no rule that says why they are the same

    def __str__(self) -> str:
        rules = ((f"  by the rule: {name}", count) for name, count in self.rules.items())
        counts = (*self.readings.items(), *self.pairs.items(), *rules)
        return "\n".join((*(f"{count:6} {name}" for name, count in counts), *map(str, self.doubtful[:40])))

    @property
    def pairs_accepted(self) -> int:
        """The pairs of which Spark accepts both texts, and returns the same rows each time."""
        return self.pairs.total() - self.pairs[Sameness.REFUSED] - self.pairs[Sameness.UNSETTLED]

    def row(self, name: str) -> str:
        """The score as a row of the table of docs/explanation/equivalence.md."""
        ways = (self.pairs[way] for way in (Sameness.PARSED, Sameness.ANALYSED, Sameness.OPTIMISED))
        excused = self.pairs[Sameness.ROWS] + self.pairs[Sameness.OTHER] - len(self.doubtful)
        return f"| {' | '.join(map(str, (name, self.pairs_accepted, *ways, excused, len(self.doubtful))))} |"

    def __iadd__(self, other: Score) -> Score:
        self.readings += other.readings
        self.pairs += other.pairs
        self.rules += other.rules
        self.doubtful += other.doubtful
        return self

    def add(self, pair: Pair) -> None:
        self.pairs[pair.sameness] += 1
        if pair.rule:
            self.rules[pair.rule] += 1
        elif pair.sameness in (Sameness.ROWS, Sameness.OTHER):
            self.doubtful.append(pair)


def score(texts: Iterable[tuple[str, str]], parents: Mapping[str, Parent], plans: Plans) -> Score:
    """The score of (heading, text): every two texts with one identity are compared."""
    result = Score()
    groups: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for heading, text in texts:
        reading = reading_of(text, parents)
        result.readings[reading.trust] += 1
        if reading.trust is not Trust.REFUSED:
            groups[reading.identity].setdefault(reading.runs, heading)
    for group in groups.values():
        for pair in compare(group, plans):
            result.add(pair)
    return result


def compare(group: Mapping[str, str], plans: Plans) -> Iterator[Pair]:
    """Each text of a group beside the first one that Spark accepts."""
    reference, parsed = "", set[Parsed]()
    for text, heading in group.items():
        tree = plans.parse(text)
        if tree and tree.is_complete and tree in parsed:
            yield Pair(heading, reference or text, text, Sameness.PARSED)
            continue
        if tree:
            parsed.add(tree)
        if not tree or plans.plan(text) is None:
            yield Pair(heading, reference, text, Sameness.REFUSED)
        elif not reference:
            reference = text
        elif plans.is_settled(reference):
            yield _compare_texts(heading, reference, text, plans)
        else:
            yield Pair(heading, reference, text, Sameness.UNSETTLED)


def _compare_texts(heading: str, one: str, other: str, plans: Plans) -> Pair:
    sameness = plans.compare(one, other)
    first, second = plans.parse(one), plans.parse(other)
    if sameness is not Sameness.ROWS or not first or not second or first.details != second.details:
        return Pair(heading, one, other, sameness)
    return Pair(heading, one, other, sameness, rule(first.json, second.json))


def structure(texts: Iterable[tuple[str, str]], parents: Mapping[str, Parent], plans: Plans) -> Score:
    """The score of the parser's trees, each written out again and held against the text that it was read from."""
    result = Score()
    for heading, text in texts:
        reading = reading_of(text, parents)
        result.readings[reading.trust] += 1
        if reading.trust in (Trust.REFUSED, Trust.WORDS):
            continue
        result.add(_write_out(heading, reading, plans))
    return result


def _write_out(heading: str, reading: Reading, plans: Plans) -> Pair:
    one, other = reading.runs, reading.written
    tree = plans.parse(one)
    if tree and tree.is_complete and tree == plans.parse(other):
        return Pair(heading, one, other, Sameness.PARSED)
    if plans.plan(one) is None:
        return Pair(heading, one, other, Sameness.REFUSED)
    if not plans.is_settled(one):
        return Pair(heading, one, other, Sameness.UNSETTLED)
    return _compare_texts(heading, one, other, plans)
