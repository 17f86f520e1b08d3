"""Digests of meaning: two blocks with equal digests have the same rows, whatever rows their tables have.

Equal digests of values mean equal values in each row. They are comparable only under equal rows. In the canonical form,
a source is named after its content, not its position, and commutative operands are sorted.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, permutations, product

from mergeplan.planner.semantics.query.algebra import ROW, Block, LateralJoin, Names, Part, Ref, Relation, Source, Term

UNORDERED = frozenset(("and", "or", "EQ", "NEQ", "NullSafeEQ", "Add", "Mul", "any of", "all of"))
REPEATABLE = frozenset(("and", "or", "any of", "all of"))  # `a AND a` is `a`, but `a + a` is not `a`
# Raise it when equal digests come to mean something else. Digests in the state database then equal no new one, so that
# every model is rebuilt once, in place of a table being kept that no longer fits.
FORM = b"1"
SORTED = "sorted "  # prefix of a view's order where the view, or one below it, has an ORDER BY
_ORDERS = 24  # of equal tables in one FROM; more would cost time, and only miss an equivalence


@dataclass(frozen=True)
class TableDigest:
    """A table as its readers depend on it: a digest of its rows, and one of each column."""

    rows: str
    columns: Mapping[str, str]
    order: str = ""  # of a view's rows, as far as its query defines it; the rows of a table have none
    placed: tuple[str, ...] = ()  # the columns in the table's order, where that is not the one of `columns`

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns in the order in which `*` has them."""
        return self.placed or tuple(self.columns)


@dataclass
class Digests:
    """Digests over tables with these digests; a table without one is represented by its name."""

    seen: Mapping[str, TableDigest] = field(default_factory=dict)
    _memo: dict[object, str] = field(default_factory=dict)
    _numbered: dict[object, tuple[Names, str]] = field(default_factory=dict)

    def hash_texts(self, *texts: str) -> str:
        """Return one digest of texts, each with its length, so that no two lists run together."""
        encoded = [text.encode() for text in texts]
        return hashlib.sha256(FORM + b"".join([b"%d:%b" % (len(data), data) for data in encoded])).hexdigest()[:24]

    def relation(self, relation: Relation) -> TableDigest:
        inside = self.inside(relation.block, {})
        columns = {name: self.part(value, inside) for name, value in relation.columns.items()}
        return TableDigest(self.block(relation.block, {}), columns)

    def table_rows(self, name: str) -> str:
        return self.seen[name].rows if name in self.seen else self.hash_texts("table", name)

    def table_order(self, name: str) -> str:
        return self.seen[name].order if name in self.seen else ""

    def table_column(self, name: str, column: str) -> str:
        if name not in self.seen:
            return self.hash_texts("column of", column)
        column_digest = self.seen[name].columns.get(column)  # None for an undeclared column of an open table
        return column_digest or self.hash_texts("undeclared column of", self.seen[name].rows, column)

    def part(self, part: Part, names: Names) -> str:
        if isinstance(part, str):
            return f"'{part}"
        # The same subtree has another digest under other names around it, so these names are part of the key.
        key = (part, *_names_key(part, names))
        if key not in self._memo:
            self._memo[key] = self._hash_part(part, names)
        return self._memo[key]

    def _hash_part(self, part: Term | Ref | Block | Relation, names: Names) -> str:
        if isinstance(part, Block):
            return self.block(part, names)
        if isinstance(part, Relation):
            inside = self.inside(part.block, names)
            values = (self.part(value, inside) for value in part.columns.values())
            return self.hash_texts("relation", self.block(part.block, names), *values)
        if isinstance(part, Ref):
            inner = "row" if part.inner is ROW else part.source.column(self, names, part.inner)
            return self.hash_texts("of", names[part.source], inner) if names[part.source] else inner
        if part.op in ("way", "way if sorted"):
            # Spark inlines a view, so the text of the view decides the order too; the rows of a table have no order.
            text, *tables = map(str, part.parts)
            return self.hash_texts("way", text, *(f"{name} {self.table_order(name)}" for name in tables))
        digests = [self.part(operand, names) for operand in part.parts if not self._is_irrelevant_order(operand)]
        if part.op in UNORDERED:
            digests = sorted(set(digests) if part.op in REPEATABLE else digests)
        return self.hash_texts(part.op, *digests)

    def _is_irrelevant_order(self, part: Part) -> bool:
        """Return True for a written form that matters only to rounding, if no view below has an ORDER BY."""
        if not isinstance(part, Term) or part.op != "way if sorted":
            return False
        return not any(self.table_order(str(name)).startswith(SORTED) for name in part.parts[1:])

    def block(self, block: Block, names: Names) -> str:
        return self._number_sources(block, names)[1]

    def inside(self, block: Block, names: Names) -> Names:
        return self.around(names) | self._number_sources(block, names)[0]

    def around(self, names: Names) -> Names:
        return {source: f"^{name}" for source, name in names.items()}

    def _number_sources(self, block: Block, names: Names) -> tuple[Names, str]:
        key = (block, *_names_key(block, names))
        if key not in self._numbered:
            around = self.around(names)
            # A block that only passes on one source has that source's digest: a subquery around it changes nothing.
            if len(block.sources) == 1 and not block.where and all(step.is_lookup for step in block.steps):
                own_names: Names = {block.sources[0]: ""}
                self._number_steps(block.steps, around, own_names)
                self._numbered[key] = own_names, block.sources[0].rows(self, around)
            else:
                # Equal tables can be numbered in several ways; the smallest digest does not depend on how it was
                # written.
                self._numbered[key] = min(self._list_numberings(block, around), key=lambda numbering: numbering[1])
        return self._numbered[key]

    def _list_numberings(self, block: Block, names: Names) -> Iterator[tuple[Names, str]]:
        """Yield one numbering for each order of equal tables: the rows do not depend on that order."""
        by_rows: dict[str, list[Source]] = {}
        single: Names = {}
        for source in block.sources:
            rows = source.rows(self, names)
            if source.is_single:  # multiplying by one row changes no count, so it is named and not counted
                single[source] = f"one row of {rows}"
            else:
                by_rows.setdefault(rows, []).append(source)
        # Cut before `product`, which lists all that it is given: twelve equal tables have 479 million orders.
        orders = product(*(islice(permutations(by_rows[rows]), _ORDERS) for rows in sorted(by_rows)))
        for order in islice(orders, _ORDERS):
            own_names = dict(single)
            for rows, sources in zip(sorted(by_rows), order, strict=True):
                own_names |= {source: f"{rows}#{index}" for index, source in enumerate(sources)}
            steps = self._number_steps(block.steps, names, own_names)
            # a set: a predicate that is repeated, or is in ON and in WHERE, filters once
            where = sorted({self.part(value, names | own_names) for value in block.where})
            tables = [f"{rows}*{len(by_rows[rows])}" for rows in sorted(by_rows)]
            yield own_names, self.hash_texts("block", *tables, "steps", *steps, "where", *where)

    def _number_steps(self, steps: tuple[LateralJoin, ...], names: Names, own: Names) -> list[str]:
        """Name the sources of lateral joins, and return the digests of the counted joins.

        Of the joins whose inputs are already named, the one with the smallest digest comes first. A join that leaves
        each row one row is named and not counted. Joins that do not refer to one another commute: each appends the rows
        that it finds to every row.
        """
        waiting, order, counts = list(steps), list[str](), Counter[str]()
        step_sources = {step.source for step in steps}
        while waiting:
            ready = [s for s in waiting if not (s.source.free & step_sources) - own.keys()] or waiting[:1]  # never none
            digests = {step: self.hash_texts(str(step.outer), step.source.rows(self, names | own)) for step in ready}
            step = min(ready, key=lambda candidate: digests[candidate])
            waiting.remove(step)
            if step.is_lookup:
                own[step.source] = f"lookup {digests[step]}"
                continue
            own[step.source] = f"step {digests[step]}#{counts[digests[step]]}"
            counts[digests[step]] += 1
            order.append(digests[step])
        return order


def _names_key(part: Term | Ref | Block | Relation, names: Names) -> tuple[tuple[int, str], ...]:
    free = part.free
    return tuple(sorted((id(source), names[source]) for source in free if source in names)) if free and names else ()
