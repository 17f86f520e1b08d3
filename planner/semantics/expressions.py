"""Translate SQL expressions to values: names are resolved, and spellings become the normal form of `rewrites`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import shorten

from sqlglot import ErrorLevel, exp

from mergeplan.planner.semantics.query import rewrites as rules
from mergeplan.planner.semantics.query.algebra import ROW, TERMS_MAX, Block, Opaque, Part, Ref, Relation, Term, Value
from mergeplan.planner.semantics.query.scope import Scope
from mergeplan.planner.semantics.query.unique import mark_deterministic_window
from mergeplan.planner.semantics.result_types import is_of_alike
from mergeplan.planner.semantics.spark import spark_functions
from mergeplan.planner.semantics.syntax import is_star_of_count
from mergeplan.planner.semantics.types import is_collated, is_exact, type_of

_LONGEST_QUOTE = 60  # characters
_CASTS = frozenset(("bigint", "smallint", "tinyint", "binary"))
_DATE_PARTS = {"YEAR": "Year", "MONTH": "Month", "DAY": "Day"}
_SAME: Mapping[str, Callable[..., exp.Expr]] = {
    "mean": lambda value: exp.Avg(this=value),
    "std": lambda value: exp.Stddev(this=value),
    "isnull": lambda value: exp.Is(this=value, expression=exp.Null()),
    "isnotnull": lambda value: exp.Not(this=exp.Is(this=value, expression=exp.Null())),
}
# Nodes with a translation of their own. Subclasses are not among them: sqlglot derives CONCAT_WS from CONCAT, for
# example.
_SPELLED = frozenset((
    exp.Paren, exp.Alias, exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Parameter, exp.Window,
    exp.Lambda, exp.Subquery, exp.Exists, exp.In, exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT,
    exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.Is, exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Case,
    exp.If, exp.Nullif, exp.Nvl2, exp.Cast, exp.TryCast, exp.Anonymous, exp.Extract, exp.Dot, exp.Bracket, exp.DPipe,
    exp.Concat, exp.Filter, exp.WithinGroup, exp.Count, exp.Like, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor,
    exp.BitwiseLeftShift, exp.BitwiseRightShift,
))  # fmt: skip
_BITS = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift)
_LOOSE = (exp.DPipe, *_BITS)
_PREDICATES = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.Between, exp.In, exp.Is, exp.Like)
_OPERATORS = (exp.Neg, exp.Add, exp.Sub, *_LOOSE, *_PREDICATES)
RANDOM_CALL, NAMES, USING = "chance", "names", "using"  # keys of what `normalize` notes on a node
ROWS = "the rows of this query"  # placeholder in a window until the query's block is known
_OF_CONDITIONS: Mapping[str, type[exp.Func]] = {"every": exp.LogicalAnd, "some": exp.LogicalOr}
COUNTING = (exp.Count, exp.CountIf, exp.ApproxDistinct, exp.LogicalAnd, exp.LogicalOr)
_INT = range(-(2**31) + 1, 2**31)


@dataclass
class Reader:
    """A translator of the expressions of one model."""

    relation: Callable[[exp.Expr, Scope], Relation]  # translates a subquery
    lower: bool = False  # no name in the query contains a capital letter
    random_calls: int = 0  # how many random functions were translated so far

    def value(self, node: exp.Expr, scope: Scope, windows: Mapping[str, exp.Expr] | None = None) -> Value:
        """Return the value of an expression; raise Opaque if it cannot be translated."""
        return _Expression(self, scope, windows or {}).value(node)

    def random_call(self, node: exp.Expr) -> str:
        """Return the name of one call of a random function; a copy of it, through an alias, is the same call."""
        self.random_calls += 1
        return f"chance {node.meta.get(RANDOM_CALL)}"


@dataclass(frozen=True)
class _Expression:
    reader: Reader
    scope: Scope
    windows: Mapping[str, exp.Expr]  # of the WINDOW clause
    variables: tuple[str, ...] = ()  # of the enclosing lambdas, innermost last

    def value(self, node: exp.Expr) -> Value:
        try:
            # Inside an expression Spark would first generate the rows; only a whole output can be translated.
            if spark_functions.multiplies_rows(node):
                raise Opaque("a function that returns rows inside an expression")
            value = self._translate_by_kind(node)
            if isinstance(value, Term) and value.size > TERMS_MAX:
                raise Opaque("expressions that expand to that many")
            if (spark_functions.is_volatile(node) and not self._is_sorted_away(node)) or self._picks_one_of_equals(
                node, value
            ):
                parts = value.parts if isinstance(value, Term) else (value,)
                # Marked here and not in `_translate_by_kind`: every spelling of a non-deterministic function is marked.
                op = value.op if isinstance(value, Term) else "unsure"
                return Term(op, (*parts, *self._non_determinism(node)), own_volatile=True)
            if spark_functions.folds_rows(node) and isinstance(value, Term) and value.op == "aggregate":
                return replace(value, parts=(*value.parts, *self._rounding_parts(node, value.parts)))
            return value
        except Opaque as opaque:
            opaque.construct = opaque.construct or _quote_expression(node)
            raise

    def _non_determinism(self, node: exp.Expr) -> tuple[Part, ...]:
        call = (self.reader.random_call(node),) if spark_functions.is_random(node) else ()
        provenance = None if spark_functions.depends_on_session(node) else self.scope.provenance
        return (*call, *((provenance.values_trace,) if provenance else ()))

    def _is_sorted_away(self, node: exp.Expr) -> bool:
        """Return True for a list that is sorted or counted at once, of a type whose equal values are identical."""
        if not isinstance(node, (exp.ArrayAgg, exp.ArrayUniqueAgg)):
            return False
        whole = node.parent if isinstance(node.parent, exp.Filter) and node.parent.this is node else node
        over = whole.parent
        if not isinstance(over, (exp.ArraySort, exp.ArraySize)) or over.this is not whole or over.expression:
            return False
        listed = node.this.expressions if isinstance(node.this, exp.Distinct) else [node.this]
        fields = [
            part
            for argument in listed
            for part in (argument.expressions if isinstance(argument, exp.Struct) else [argument])
        ]
        values = [argument.expression if isinstance(argument, exp.PropertyEQ) else argument for argument in fields]
        return all(is_of_alike(type_of(self.value(value))) for value in values)

    def _picks_one_of_equals(self, node: exp.Expr, value: Part) -> bool:
        """Return True for an aggregate that returns one of several equal strings that may look different."""
        return spark_functions.folds_rows(node) and not isinstance(node, COUNTING) and is_collated(value)

    def _rounding_parts(self, node: exp.Expr, parts: Sequence[Part]) -> tuple[Part, ...]:
        """Return the explicit order, of the query or a view, that decides how a floating point aggregate rounds."""
        exact = isinstance(node, (exp.Sum, exp.Avg)) and any(is_exact(type_of(part)) for part in parts)
        a_list = isinstance(node, (exp.ArrayAgg, exp.ArrayUniqueAgg))  # sorted at once, or non-deterministic anyway
        if exact or a_list or spark_functions.is_orderless(node) or self.scope.provenance is None:
            return ()
        return (self.scope.provenance.if_sorted,)

    def _translate_by_kind(self, node: exp.Expr) -> Value:
        node = _canonical_function(node)
        if type(node) not in _SPELLED:  # CONCAT_WS is a kind of CONCAT to the parser, and not to Spark
            if isinstance(node, (exp.Query, exp.Star)):
                raise Opaque("a subquery or star inside an expression")
            return self._build_term(node)
        if has_other_precedence(node):
            raise Opaque("operators whose precedence differs in Spark")
        match node:
            case exp.Paren() | exp.Alias():
                return self.value(node.this)
            case exp.Column():
                return self._translate_column(node)
            case exp.Identifier():
                name = node.name.lower()
                return self._variable_term(name) if name in self.variables else Term("name", (name,))
            case exp.Literal():
                return Term("text", (node.name,)) if node.is_string else _number_term(node.name)
            case exp.Boolean():
                return rules.TRUE if node.this else rules.FALSE
            case exp.Null():
                return rules.NULL
            case exp.Parameter():
                return Term("date", (node.name.lower(),))
            case exp.Window():
                return self._translate_window(node)
            case exp.Lambda():
                names = tuple(variable.name.lower() for variable in node.expressions)
                inside = replace(self, variables=(*self.variables, *names))
                return Term("lambda", (str(len(names)), inside.value(node.this), *node.meta.get(NAMES, ())))
            case exp.Exists() if not isinstance(node.this, exp.Query):
                return self._build_term(node)  # of an array
            case exp.Subquery() | exp.Exists() | exp.In():
                return self._translate_subquery(node)
        return self._translate_logic(node) or self._translate_function(node)

    def _translate_logic(self, node: exp.Expr) -> Value | None:
        match node:
            case exp.And():
                return rules.build_conjunction([self.value(operand) for operand in node.flatten()])
            case exp.Or():
                return rules.build_disjunction([self.value(operand) for operand in node.flatten()])
            case exp.Not():
                return rules.build_negation(self.value(node.this))
            case exp.EQ() | exp.NEQ() | exp.GT() | exp.GTE() | exp.LT() | exp.LTE() | exp.NullSafeEQ():
                return rules.build_comparison(type(node).__name__, self.value(node.this), self.value(node.expression))
            case exp.NullSafeNEQ():
                equality = rules.build_comparison("NullSafeEQ", self.value(node.this), self.value(node.expression))
                return rules.build_negation(equality)
            case exp.Between() if not node.args.get("symmetric"):
                low, high = self.value(node.args["low"]), self.value(node.args["high"])
                return rules.build_range(self.value(node.this), low, high)
            case exp.Is() if isinstance(node.expression, exp.Null):
                return Term("is null", (self.value(node.this),))
            case exp.Add() | exp.Sub() | exp.Mul():
                return rules.build_arithmetic(type(node).__name__, self.value(node.this), self.value(node.expression))
            case exp.Neg() if isinstance(node.this, exp.Literal) and not node.this.is_string:
                return _number_term(f"-{node.this.this}")
            case exp.Case() | exp.If() | exp.Nullif() | exp.Nvl2():
                return self._translate_case(node)
        return None

    def _translate_function(self, node: exp.Expr) -> Value:
        match node:
            case exp.Cast() | exp.TryCast() if not node.args.get("format"):
                safe = bool(node.args.get("safe"))
                return rules.build_cast(self.value(node.this), node.to.sql("spark"), safe=safe)
            case exp.Anonymous() if node.name.lower() in _CASTS and len(node.expressions) == 1:
                return rules.build_cast(self.value(node.expressions[0]), node.name.upper(), safe=False)
            case exp.Anonymous() if node.name.lower() in _SAME:
                return self.value(_SAME[node.name.lower()](*node.expressions))
            case exp.Extract() if node.name.upper() in _DATE_PARTS and not isinstance(node.expression, exp.Interval):
                date = Term("TsOrDsToDate", ("this", self.value(node.expression), "end"))
                return Term(_DATE_PARTS[node.name.upper()], ("this", date, "end"))
            case exp.Dot() if isinstance(node.expression, exp.Identifier):
                return Term("field", (self.value(node.this), node.expression.name))
            case exp.Bracket(expressions=[exp.Literal() as key]) if key.is_string:
                return Term("field", (self.value(node.this), encode_case(key.name)))
            case exp.DPipe():
                return rules.build_concatenation([self.value(node.this), self.value(node.expression)])
            case exp.Concat():
                return rules.build_concatenation([self.value(operand) for operand in node.expressions])
            case exp.Filter() | exp.WithinGroup() if spark_functions.folds_rows(node.this):
                return self._aggregate_with_clause(node)
            case exp.Count() if _counts_rows(node):
                return Term("aggregate", ("Count", "rows"))
        return self._build_term(node)

    def _build_term(self, node: exp.Expr) -> Value:
        parts = (*self._argument_parts(node), *node.meta.get(NAMES, ()))
        if spark_functions.folds_rows(node):
            return Term("aggregate", (_operation_name(node), *parts))
        return Term(_operation_name(node), parts)

    def _aggregate_with_clause(self, node: exp.Expr) -> Value:
        """Return an aggregate with FILTER or WITHIN GROUP, which refer to the ungrouped rows."""
        whole = self.value(node.this)
        clause = self.value(node.expression.this if isinstance(node, exp.Filter) else node.expression)
        if not isinstance(whole, Term) or whole.op != "aggregate":
            raise Opaque("an aggregate's clause without an aggregate")
        # FILTER stays part of the aggregate: as a predicate of the block it would filter the other aggregates too.
        if isinstance(node, exp.Filter) and clause is rules.TRUE:
            return whole
        return replace(whole, parts=(*whole.parts, type(node).__name__, clause))

    def _translate_case(self, node: exp.Expr) -> Value:
        match node:
            case exp.Case():
                of = self.value(node.this) if node.this else None
                cases = [(self.value(branch.this), self.value(branch.args["true"])) for branch in node.args["ifs"]]
                if of is not None:
                    cases = [(rules.build_comparison("EQ", of, condition), answer) for condition, answer in cases]
                default = node.args.get("default")
                return rules.build_case(cases, self.value(default) if default else rules.NULL)
            case exp.Nullif():
                return rules.build_nullif(self.value(node.this), self.value(node.expression))
            case exp.Nvl2():
                is_present = rules.build_negation(Term("is null", (self.value(node.this),)))
                return rules.build_case([(is_present, self.value(node.args["true"]))], self.value(node.args["false"]))
        otherwise = node.args.get("false")
        case = (self.value(node.this), self.value(node.args["true"]))
        return rules.build_case([case], self.value(otherwise) if otherwise else rules.NULL)

    def _argument_parts(self, node: exp.Expr) -> tuple[Part, ...]:
        parts: list[Part] = []
        for key, argument in sorted(node.args.items()):
            if argument is None or argument is False or argument == []:
                continue
            if key == "this" and isinstance(argument, str) and isinstance(node, exp.Func):
                continue  # an anonymous function's name, which `_operation_name` returns
            parts.append(key)
            if key == "this" and isinstance(node, exp.PropertyEQ) and isinstance(argument, exp.Identifier):
                parts += [argument.name.lower(), "end"]  # a field's name, also where a variable has it
                continue
            for element in argument if isinstance(argument, list) else [argument]:
                parts += self._translate_argument(element, node)
            parts.append("end")
        return tuple(parts)

    def _translate_argument(self, argument: object, of: exp.Expr) -> list[Part]:
        if not isinstance(argument, exp.Expr):
            return [f"{type(argument).__name__} {argument}"]
        if isinstance(argument, exp.Identifier):
            name = argument.name.lower()
            return [self._variable_term(name)] if name in self.variables else [name]
        if isinstance(argument, (exp.DataType, exp.Var)):
            return [argument.sql("spark").upper()]
        if isinstance(argument, exp.Star) or (isinstance(argument, exp.Column) and isinstance(argument.this, exp.Star)):
            if argument.args.get("except_") or argument.args.get("replace") or argument.args.get("except"):
                raise Opaque("a star with exceptions inside a function")
            has_alias = isinstance(argument, exp.Column) and argument.args.get("table")
            alias_of_star = argument.args["table"].name.lower() if has_alias else None
            tables = [columns for alias, columns in self.scope.tables.items() if alias_of_star in (None, alias)]
            select = argument.find_ancestor(exp.Select)
            if not tables or (alias_of_star is None and len(tables) > 1) or (select and USING in select.meta):
                raise Opaque("a star over joined columns")  # USING and NATURAL merge some of them
            if isinstance(of, exp.Struct) and not self.reader.lower:  # its fields keep the case of the query's names
                raise Opaque("a star inside a function")
            return [part for columns in tables for name, value in columns.items() for part in (name, value)]
        return [self.value(argument)]

    def _translate_column(self, node: exp.Column) -> Value:
        name, table = node.name.lower(), node.table.lower()
        if not table and name in self.variables:
            return self._variable_term(name)
        if table in self.variables:
            return Term("field", (self._variable_term(table), name))
        if node.args.get("db") or not table or isinstance(node.this, exp.Star):
            raise Opaque("a name whose table is not certain")
        value = self.scope.column(table, name)
        # next to a decimal, a literal 3 is DECIMAL(1, 0), but 3 from a column is INT
        return rules.as_constant(value)

    def _variable_term(self, name: str) -> Value:
        # By depth, not by name: the name of a lambda's variable does not matter.
        depth = len(self.variables) - 1 - self.variables[::-1].index(name)
        return Term("variable", (str(depth),))

    def _translate_window(self, node: exp.Window) -> Value:
        if name := node.args.get("alias"):
            named = self.windows.get(name.name.lower())
            if named is None or any(node.args.get(key) for key in ("partition_by", "order", "spec")):
                raise Opaque("a window that is based on another one")
            if named.args.get("alias"):
                raise Opaque("a window that is based on another one")
            window = exp.Window(this=node.this)
            for key in ("partition_by", "order", "spec"):
                window.args[key] = named.args.get(key)  # not `set`, which would move the nodes out of the WINDOW clause
            node = window
        if node.args.get("first") is not None or isinstance(node.args.get("over"), exp.Expr):
            raise Opaque("a window with clauses of its own")
        # The keys of a partition have no order, and repeating one changes nothing.
        partition = Term("all of", tuple(self.value(key) for key in node.args.get("partition_by") or ()))
        order = node.args.get("order")
        ordered = Term("order", tuple(self.value(sort_key) for sort_key in order.expressions) if order else ())
        spec = node.args.get("spec")
        frame = self.value(spec) if spec and not (order and _is_default(spec)) else Term("frame")
        return Term("window", (self._window_function(node.this), partition, ordered, frame, ROWS))

    def _window_function(self, node: exp.Expr) -> Value:
        if isinstance(node, (exp.IgnoreNulls, exp.RespectNulls)):
            return Term(type(node).__name__, (self._window_function(node.this),))
        if isinstance(node, exp.Filter):
            return Term("filter", (self._window_function(node.this), self.value(node.expression.this)))
        if isinstance(node, exp.Count) and _counts_rows(node):
            return Term("window function", ("Count", "rows"))
        node = _canonical_function(node)
        parts = self._argument_parts(node)
        doubtful = spark_functions.is_volatile(node) or self._picks_one_of_equals(node, Term("window function", parts))
        rests = self._non_determinism(node) if doubtful else self._rounding_parts(node, parts)
        return Term("window function", (_operation_name(node), *parts, *rests), own_volatile=doubtful)

    def _translate_subquery(self, node: exp.Expr) -> Value:
        if isinstance(node, exp.Subquery):
            return Term("scalar", (self._subquery_relation(node),))
        if isinstance(node, exp.Exists):
            return rules.build_exists(self._subquery_relation(node.this).block)
        this = self.value(node.this)
        if query := node.args.get("query"):
            return Term("in query", (this, self._subquery_relation(query)))
        if not node.expressions or node.args.get("unnest") or node.args.get("field"):
            raise Opaque("this form of IN")
        return rules.build_membership(this, [self.value(element) for element in node.expressions])

    def _subquery_relation(self, node: exp.Expr) -> Relation:
        # Its names could be the lambda's variables, which no scope knows.
        if self.variables:
            raise Opaque("a subquery inside a lambda")
        return self.reader.relation(node, self.scope)


def encode_case(field: str) -> str:
    """Return a field's name in lower case with a suffix for its capitals: keys of maps are case-sensitive."""
    if field == field.lower():
        return field
    return f"{field.lower()}${''.join('1' if letter.isupper() else '0' for letter in field)}"


def place_windows(value: Part, block: Block) -> Part:
    if not isinstance(value, Term):
        return value
    if value.op == "window" and value.parts[-1] == ROWS:
        # COUNT(*) OVER () depends on the rows without naming a column
        row = Term("any of", tuple(Ref(source, ROW) for source in block.all_sources))
        whole = replace(value, parts=(*(place_windows(part, block) for part in value.parts[:-1]), row, block))
        return mark_deterministic_window(whole, block)
    parts = tuple(place_windows(part, block) for part in value.parts)
    return value if parts == value.parts else replace(value, parts=parts)


def has_op(value: Part, *ops: str) -> bool:
    """Return True if an operation occurs in the value outside of subqueries."""
    return isinstance(value, Term) and (value.op in ops or any(has_op(part, *ops) for part in value.parts))


def _canonical_function(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.StddevSamp):
        return exp.Stddev(this=node.this.copy())
    if isinstance(node, exp.Any) and not isinstance(node.this, exp.Query):
        return exp.LogicalOr(this=node.this.copy())
    if isinstance(node, exp.Anonymous) and len(node.expressions) == 1 and node.name.lower() in _OF_CONDITIONS:
        return _OF_CONDITIONS[node.name.lower()](this=node.expressions[0].copy())
    return node


def has_other_precedence(node: exp.Expr) -> bool:
    """Return True if Spark's operator precedence differs from the parser's.

    This is so without parentheses for `||` next to `+`, for different bit operators, and for a comparison of a
    comparison. It is also so for `-1::STRING`, where the sign belongs to the number.
    """
    if not isinstance(node, _OPERATORS):
        return False
    if isinstance(node, exp.Neg):
        inner, exact = node.this, True
        while isinstance(inner, exp.Cast):
            exact, inner = exact and inner.is_type(exp.DType.DOUBLE), inner.this
        if inner is node.this or not isinstance(inner, exp.Literal) or inner.is_string:
            return False
        return not exact or float(inner.name) == 0  # rounding is symmetric; only zero has two signs
    operands = (node.args.get("this"), node.args.get("expression"))
    if isinstance(node, _LOOSE):
        kinds = (*_LOOSE, exp.Add, exp.Sub)
        return any(isinstance(operand, kinds) and type(operand) is not type(node) for operand in operands)
    others = _LOOSE if isinstance(node, (exp.Add, exp.Sub)) else _PREDICATES
    return any(isinstance(operand, others) for operand in operands)


def _number_term(text: str) -> Term:
    plain = text.removeprefix("-").isdigit() and int(text) in _INT
    return rules.int_term(int(text)) if plain else Term("number", (text.lower(),))


def _operation_name(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return f"call {node.name.lower()}"
    if spark_functions.is_unknown(node):
        return f"stranger {type(node).__name__} {node.name.lower()}"
    return type(node).__name__


def _counts_rows(node: exp.Count) -> bool:
    if node.expressions:
        return False
    return isinstance(node.this, exp.Literal) or (isinstance(node.this, exp.Star) and is_star_of_count(node.this))


def _is_default(spec: exp.Expr) -> bool:
    """Return True for RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW, the default frame with ORDER BY."""
    bounds = (spec.args.get("kind"), spec.args.get("start"), spec.args.get("start_side"), spec.args.get("end"))
    return bounds == ("RANGE", "UNBOUNDED", "PRECEDING", "CURRENT ROW") and not spec.args.get("exclude")


def _quote_expression(node: exp.Expr) -> str:
    """Return the start of an expression's text for a message that puts it between backticks; never fail."""
    try:
        text = node.sql("spark", unsupported_level=ErrorLevel.IGNORE, comments=False)
    except ValueError:  # an expression that has no text of its own
        text = node.key.upper()
    return shorten(text.replace("`", ""), _LONGEST_QUOTE, placeholder=" ...")
