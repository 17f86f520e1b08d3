"""The names in a query: tables, CTEs and columns, each with what it means, by the scopes of the query."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from mergeplan.planner.lsp.sql_file import SqlFile
from mergeplan.planner.lsp.texts import Span
from mergeplan.planner.parsing.sql.names import without_default

Columns = Callable[[str], tuple[str, ...] | None]  # of a table, None where they are not known


class NameKind(Enum):
    TABLE = auto()
    CTE = auto()
    COLUMN = auto()


@dataclass(frozen=True)
class Owner:
    """The owner of a column: a table by its name, or a CTE or subquery by the offset at which it is named."""

    table: str = ""
    at: int = -1


@dataclass(frozen=True)
class Name:
    """A name in the text.

    `owners` have the column: several if the text does not tell which of them. `defines` is the owner whose column the
    name defines; with `implicit` it is both that definition and a reference.
    """

    kind: NameKind
    name: str
    span: Span
    owners: tuple[Owner, ...] = ()
    defines: Owner | None = None
    implicit: bool = False
    is_definition: bool = False


@dataclass(frozen=True)
class ScopeColumns:
    """The sources after FROM at a place: alias -> the owner, and its columns if they are known."""

    span: Span
    sources: Mapping[str, tuple[Owner, tuple[str, ...] | None]]


@dataclass(frozen=True)
class QueryNames:
    """All names of a query, the scopes, and the stars with the owners that each means."""

    names: tuple[Name, ...] = ()
    scopes: tuple[ScopeColumns, ...] = ()
    stars: tuple[tuple[Span, tuple[tuple[str, Owner, tuple[str, ...] | None], ...]], ...] = ()
    outputs: tuple[str, ...] | None = None

    def find(self, offset: int) -> Name | None:
        """Return the name at an offset; the shortest if several cover it."""
        covering = [name for name in self.names if name.span.holds(offset)]
        return min(covering, key=lambda name: name.span.end - name.span.start, default=None)


def names_of(file: SqlFile, own: str, columns: Columns, catalog: str, schema: str = "") -> QueryNames:
    """Return the names of a file's query, whose outputs are the columns of the table `own`.

    Return none if the query cannot be read. `schema` is that of tables without one; '' if each has its own.
    """
    if file.query is None:
        return QueryNames()
    try:
        reader = _Reader(file, own, columns, (catalog, schema), tuple(traverse_scope(file.query)))
        return reader.read()
    except (SqlglotError, RecursionError, ValueError, KeyError, AttributeError):
        return QueryNames()


class _Reader:
    """A reader of one query's scopes, from the inside out."""

    def __init__(
        self, file: SqlFile, own: str, columns: Columns, defaults: tuple[str, str], scopes: tuple[Scope, ...]
    ) -> None:
        self._file, self._own, self._columns, self._scopes = file, own, columns, scopes
        self._catalog, self._schema = defaults
        self._outputs: dict[int, tuple[str, ...] | None] = {}

    def read(self) -> QueryNames:
        names: list[Name] = []
        stars: list[tuple[Span, tuple[tuple[str, Owner, tuple[str, ...] | None], ...]]] = []
        spans: list[ScopeColumns] = []
        for scope in self._scopes:
            if not isinstance(scope.expression, exp.Select):
                continue
            names += self._table_names(scope)
            names += self._reference_names(scope)
            names += self._definition_names(scope)
            stars += self._find_stars(scope)
            if (span := _span_of(scope.expression)) is not None:
                spans.append(ScopeColumns(span, self._scope_sources(scope)))
        names += self._cte_names()
        root = self._scopes[-1]
        return QueryNames(tuple(_merge_names(names)), tuple(spans), tuple(stars), self._output_names(root))

    def _table_names(self, scope: Scope) -> Iterator[Name]:
        for table in scope.tables:
            identifier = table.this
            if not isinstance(identifier, exp.Identifier) or "start" not in identifier.meta:
                continue
            parts = (table.args.get("catalog"), table.args.get("db"), table.this)
            whole = Span(
                min(int(part.meta["start"]) for part in parts if part is not None and "start" in part.meta),
                identifier.meta["end"] + 1,
            )
            source = next(
                (scope.sources[key] for key in (table.alias_or_name, table.name) if key in scope.sources), None
            )
            if not table.db and isinstance(source, Scope):
                yield Name(NameKind.CTE, table.name.lower(), whole, (self._source_owner(source),))
            elif table.db or self._schema:
                yield Name(NameKind.TABLE, self._table_name(table), whole)

    def _cte_names(self) -> Iterator[Name]:
        assert self._file.query is not None
        for cte in self._file.query.find_all(exp.CTE):
            alias = cte.args["alias"].this
            if "start" in alias.meta:
                owner = Owner(at=alias.meta["start"])
                yield Name(NameKind.CTE, alias.name.lower(), _identifier_span(alias), (owner,), is_definition=True)

    def _reference_names(self, scope: Scope) -> Iterator[Name]:
        sources = self._scope_sources(scope)
        for column in scope.find_all(exp.Column):
            identifier = column.this
            if not isinstance(identifier, exp.Identifier) or "start" not in identifier.meta:
                continue
            owners = self._find_owners(scope, column, sources)
            yield Name(NameKind.COLUMN, column.name.lower(), _identifier_span(identifier), owners)
        for join in scope.expression.args.get("joins") or ():
            for shared in join.args.get("using") or ():
                inner = shared.this if isinstance(shared, exp.Column) else shared
                if isinstance(inner, exp.Identifier) and "start" in inner.meta:
                    name = inner.name.lower()
                    owners_of_name = tuple(
                        owner for owner, having in sources.values() if having is None or name in having
                    )
                    yield Name(NameKind.COLUMN, name, _identifier_span(inner), owners_of_name)

    def _find_owners(
        self, scope: Scope, column: exp.Column, sources: Mapping[str, tuple[Owner, tuple[str, ...] | None]]
    ) -> tuple[Owner, ...]:
        """Return the possible owners of a column that is named in a scope; () for an output's alias, or if unknown."""
        name, qualifier = column.name.lower(), column.table.lower()
        ordered = column.find_ancestor(exp.Order, exp.Select, exp.Window)
        if isinstance(ordered, exp.Order) and not qualifier and ordered.parent is scope.expression:
            aliases = {item.alias.lower() for item in _select_items(scope) if isinstance(item, exp.Alias)}
            if name in aliases:
                return (owner,) if (owner := self._scope_owner(scope)) else ()
        if qualifier:
            around: Scope | None = scope
            while around is not None:
                local = sources if around is scope else self._scope_sources(around)
                if qualifier in local:
                    return (local[qualifier][0],)
                around = around.parent
            return ()
        having = tuple(owner for owner, columns in sources.values() if columns is not None and name in columns)
        unknown = tuple(owner for owner, columns in sources.values() if columns is None)
        if having or unknown:
            return having + unknown if len(having) != 1 else having
        if scope.parent is not None and scope.is_subquery:
            return self._find_owners(scope.parent, column, self._scope_sources(scope.parent))
        return ()

    def _definition_names(self, scope: Scope) -> Iterator[Name]:
        owner = self._scope_owner(scope)
        if owner is None:
            return
        for item in _select_items(scope):
            identifier = item.args.get("alias") if isinstance(item, exp.Alias) else None
            implicit = isinstance(item, exp.Column) and isinstance(item.this, exp.Identifier)
            named = identifier if isinstance(identifier, exp.Identifier) else item.this if implicit else None
            if named is not None and "start" in named.meta:
                yield Name(
                    NameKind.COLUMN,
                    named.name.lower(),
                    _identifier_span(named),
                    (owner,),
                    defines=owner,
                    implicit=implicit,
                    is_definition=True,
                )

    def _find_stars(self, scope: Scope) -> Iterator[tuple[Span, tuple[tuple[str, Owner, tuple[str, ...] | None], ...]]]:
        sources = self._scope_sources(scope)
        for item in _select_items(scope):
            if not item.is_star or not isinstance(item, exp.Star | exp.Column):
                continue
            alias = item.table.lower() if isinstance(item, exp.Column) else ""
            meant = {name: source for name, source in sources.items() if not alias or name == alias}
            span = _star_span(self._file, scope.expression, item)
            if span is not None:
                yield span, tuple((name, owner, columns) for name, (owner, columns) in meant.items())

    def _scope_sources(self, scope: Scope) -> dict[str, tuple[Owner, tuple[str, ...] | None]]:
        sources: dict[str, tuple[Owner, tuple[str, ...] | None]] = {}
        for alias, (_, source) in scope.selected_sources.items():
            if isinstance(source, exp.Table):
                name = self._table_name(source)
                sources[alias.lower()] = Owner(name), self._columns(name)
            elif isinstance(source, Scope):
                sources[alias.lower()] = self._source_owner(source), self._output_names(source)
        return sources

    def _output_names(self, scope: Scope) -> tuple[str, ...] | None:
        """Return the columns of a scope; None if a star hides them."""
        key = id(scope)
        if key not in self._outputs:
            self._outputs[key] = None  # of one that reads itself
            self._outputs[key] = self._find_outputs(scope)
        return self._outputs[key]

    def _find_outputs(self, scope: Scope) -> tuple[str, ...] | None:
        if _union_branches(scope):
            return self._output_names(_union_branches(scope)[0])
        alias = scope.expression.parent.args.get("alias") if scope.expression.parent is not None else None
        if isinstance(alias, exp.TableAlias) and alias.columns:
            return tuple(column.name.lower() for column in alias.columns)
        if not isinstance(scope.expression, exp.Select):
            return None
        outputs: list[str] = []
        for item in _select_items(scope):
            if item.is_star:
                qualifier = item.table.lower() if isinstance(item, exp.Column) else ""
                star = item.this if isinstance(item, exp.Column) else item
                if any(star.args.get(key) for key in ("except_", "except", "replace", "rename")):
                    return None
                for name, (_, columns) in self._scope_sources(scope).items():
                    if qualifier in ("", name):
                        if columns is None:
                            return None
                        outputs += [column for column in columns if column not in outputs]
            elif item.alias_or_name and not isinstance(item, exp.Null):
                outputs.append(item.alias_or_name.lower())
        return tuple(outputs)

    def _scope_owner(self, scope: Scope) -> Owner | None:
        """Return the owner of a scope's outputs; None for a later branch of a UNION, and if names are listed."""
        select = scope.expression
        while isinstance(select.parent, exp.SetOperation):
            if select.parent.this is not select:
                return None
            select = select.parent
        if select is self._file.query:
            return Owner(self._own)
        parent = select.parent
        alias = parent.args.get("alias") if isinstance(parent, exp.CTE | exp.Subquery) else None
        if isinstance(alias, exp.TableAlias) and not alias.columns and "start" in alias.this.meta:
            return Owner(at=alias.this.meta["start"])
        return None

    def _source_owner(self, scope: Scope) -> Owner:
        while _union_branches(scope):
            scope = _union_branches(scope)[0]
        return self._scope_owner(scope) or Owner(at=-2 - id(scope) % 1_000_000_007)

    def _table_name(self, table: exp.Table) -> str:
        parts = (table.catalog, table.db or self._schema, table.name)
        return without_default(".".join(part for part in parts if part).lower(), self._catalog)


def _merge_names(names: list[Name]) -> list[Name]:
    """Return one name for each place: a bare column that is an output is also a reference to what it reads."""
    by_span: dict[Span, Name] = {}
    for name in names:
        earlier_name = by_span.get(name.span)
        if earlier_name is None or (name.kind is earlier_name.kind and not earlier_name.owners):
            by_span[name.span] = name
        elif name.implicit:
            by_span[name.span] = Name(
                name.kind, name.name, name.span, earlier_name.owners, defines=name.defines, implicit=True
            )
    return sorted(by_span.values(), key=lambda name: name.span.start)


def _identifier_span(identifier: exp.Identifier) -> Span:
    return Span(identifier.meta["start"], identifier.meta["end"] + 1)


def _select_items(scope: Scope) -> list[exp.Expr]:
    return list(scope.expression.selects) if isinstance(scope.expression, exp.Query) else []


def _span_of(select: exp.Expr) -> Span | None:
    places = [node.meta for node in select.find_all(exp.Identifier) if "start" in node.meta]
    if not places:
        return None
    return Span(min(place["start"] for place in places), max(place["end"] for place in places) + 1)


def _star_span(file: SqlFile, select: exp.Expr, item: exp.Expr) -> Span | None:
    """Return the span of a star: sqlglot records none, so that it is searched for among the tokens."""
    if isinstance(item, exp.Column):
        table = item.args.get("table")
        if table is None or "start" not in table.meta:
            return None
        start = table.meta["start"]
        end = next((token.end + 1 for token in file.tokens if token.start > start and token.text == "*"), None)
        return Span(start, end) if end is not None else None
    origin = select.args.get("from_") or select.args.get("from")
    origin_span = _span_of(origin) if origin is not None else None
    stars = [
        token
        for preceding_token, token in pairwise(file.tokens)
        if token.text == "*" and preceding_token.text.upper() in ("SELECT", "DISTINCT", ",", "ALL")
    ]
    before_from = [token for token in stars if origin_span is not None and token.start < origin_span.start]
    return Span(before_from[-1].start, before_from[-1].end + 1) if before_from else None


def _union_branches(scope: Scope) -> list[Scope]:
    return list(scope.set_operation_scopes)
