"""Expressions: names, types and values in one walk. A bound expression is its type and a function of an `Env`.

Predicates (5.1) and values are different things (1.8), so there are two walks that call each other.
"""

from dataclasses import dataclass

from basestation.language import syntax
from tests.oracles import aggregates, values
from tests.oracles.errors import RejectedError


@dataclass(frozen=True)
class Column:
    """A column of a stream, table or window. Computed columns have no name (2.3)."""

    qualifier: str | None
    name: str | None
    type: str
    scale: int | None = None


@dataclass(frozen=True)
class Env:
    """The input of an expression: a tuple (with its tags, in a stream query), or a group of them."""

    row: tuple = ()
    tick: int | None = None
    index: int | None = None
    group: tuple = ()  # Members; the row is then that of the first


@dataclass(frozen=True)
class Member:
    """A tuple inside a window. `key` is what FIRST and LAST go by, where the window is over one stream."""

    row: tuple
    key: tuple | None = None


@dataclass(frozen=True)
class Scope:
    columns: tuple
    tags: bool = False  # a stream query, where tick and index are attributes (1.7)
    names: tuple = ()  # the names in FROM
    keyed: bool = False  # over one stream: FIRST and LAST have a meaning (10.5)

    def find(self, qualifier, name):
        """The position of a column, or 'tick' or 'index' (2.3, 1.7)."""
        hits = [i for i, c in enumerate(self.columns) if c.name == name and qualifier in (None, c.qualifier)]
        if len(hits) > 1:
            raise RejectedError("name", f"{name} is ambiguous")
        if hits:
            return hits[0]  # 1.7: a column that has the name already is meant
        if self.tags and name in ("tick", "index") and (qualifier is None or qualifier in self.names):
            return name
        raise RejectedError("name", f"unknown {qualifier + '.' if qualifier else ''}{name}")


NUMERIC = ("integer", "time", "float", "null")
PREDICATES = (
    syntax.IsNull, syntax.Between, syntax.InList, syntax.InQuery, syntax.Like, syntax.Exists,
)  # fmt: skip
FUNCTIONS = {  # name -> (function, how many arguments, result type or None where the argument's type is kept)
    "ABS": (values.absolute, 1, None), "ROUND": (values.round_half_away, 1, None),
    "FLOOR": (values.floor, 1, None), "CEIL": (values.ceil, 1, None),
    "SQRT": (values.sqrt, 1, "float"), "POWER": (values.power, 2, "float"), "LN": (values.ln, 1, "float"),
    "EXP": (values.exp, 1, "float"), "DIST": (values.dist, 4, "float"),
    "LOWER": (values.lower, 1, "string"), "UPPER": (values.upper, 1, "string"), "LENGTH": (values.length, 1, "integer"),
    "NULLIF": (values.nullif, 2, None),
}  # fmt: skip
VARIADIC = {"COALESCE": values.coalesce, "LEAST": values.least, "GREATEST": values.greatest}


def is_predicate(expr):
    if isinstance(expr, syntax.Binary):
        return expr.op in ("AND", "OR") or expr.op in values.COMPARISONS
    return isinstance(expr, PREDICATES) or (isinstance(expr, syntax.Unary) and expr.op == "NOT")


def has_aggregate(expr):
    """Does an aggregate stand anywhere in the expression? Subqueries are their own affair."""
    if isinstance(expr, syntax.Call) and expr.function in aggregates.NAMES:
        return True
    return any(has_aggregate(child) for child in children(expr))


def children(expr):
    """The expressions directly inside an expression."""
    for field in expr.__dataclass_fields__:
        found = getattr(expr, field)
        for item in found if isinstance(found, tuple) else (found,):
            for leaf in item if isinstance(item, tuple) else (item,):
                if isinstance(leaf, syntax.Expr):
                    yield leaf


def unify(types):
    """The type of a value that comes from one of several branches: float if one is (14, on 10.4)."""
    found = {t for t in types if t != "null"}
    if "string" in found:
        if len(found) > 1:
            raise RejectedError("type", "a string and a number")
        return "string"
    if "float" in found:
        return "float"
    return "null" if not found else "time" if found == {"time"} else "integer"


def branch(function, type_):
    """A function that hands on one of its arguments: without a scale, as a float if one branch is."""

    def applied(env, parts):
        found = values.plain(function(*(p(env) for p in parts)))
        return float(found) if type_ == "float" and found is not None else found

    return applied


class Binder:
    """Binds expressions in a scope. `group` is the set of grouping columns in an aggregating query, else None.

    `subquery` binds the query of a subquery outside FROM (10.6), where that is allowed.
    """

    def __init__(self, scope, group=None, subquery=None):
        self.scope, self.group, self.subquery = scope, group, subquery
        self.used = set()  # what was referred to

    # --- values ------------------------------------------------------------------------------------------------------

    def value(self, expr):
        """(type, function of Env) of an expression that is a value."""
        if is_predicate(expr):
            raise RejectedError("type", "a predicate where a value is needed")  # 2.2
        match expr:
            case syntax.Number(value=number):
                if isinstance(number, int) and number >= 2**63:
                    raise RejectedError("type", "an integer has 64 bits")  # 1.8
                return ("float" if isinstance(number, float) else "integer"), lambda env: number
            case syntax.String(value=text):
                return "string", lambda env: text
            case syntax.Null():
                return "null", lambda env: None
            case syntax.ColumnRef():
                return self._column(expr)
            case syntax.Unary(op="-", operand=syntax.Number(value=number)) if number == 2**63:
                return "integer", lambda env: -number  # the least integer
            case syntax.Unary(op="-"):
                type_, operand = self.number(expr.operand)
                return type_, lambda env: values.negate(operand(env))
            case syntax.Binary():
                return self._arithmetic(expr)
            case syntax.Case():
                return self._case(expr)
            case syntax.Cast():
                return self._cast(expr)
            case syntax.Call():
                return self._aggregate(expr) if expr.function in aggregates.NAMES else self._function(expr)
            case syntax.ScalarSubquery():
                columns, rows = self._subquery(expr.query)
                return columns[0].type, lambda env: _only_value(rows())
        raise RejectedError("syntax", f"not an expression: {type(expr).__name__}")

    def number(self, expr):
        type_, function = self.value(expr)
        if type_ not in NUMERIC:
            raise RejectedError("type", "arithmetic on strings")  # 2.2
        return type_, function

    def text(self, expr):
        type_, function = self.value(expr)
        if type_ not in ("string", "null"):
            raise RejectedError("type", "a string is needed")
        return type_, function

    def _column(self, expr):
        place = self.scope.find(expr.qualifier.text if expr.qualifier else None, expr.name.text)
        self.used.add(place)
        if place in ("tick", "index"):
            return "integer", lambda env: getattr(env, place)  # 1.7
        if self.group is not None and place not in self.group:
            # 2.2: neither inside an aggregate nor a grouping column.
            raise RejectedError("static", f"{expr.name.text} is neither aggregated nor a grouping column")
        return self.scope.columns[place].type, lambda env: env.row[place]

    def _arithmetic(self, expr):
        left_type, left = self.number(expr.left)
        right_type, right = self.number(expr.right)
        type_ = unify([left_type, right_type])  # 5.2: with a float the result is a float
        type_ = "integer" if type_ in ("time", "null") else type_
        if type_ == "float":  # an integer beside a float is a float, also where the other one is null
            return type_, lambda env: values.arithmetic(expr.op, _float(left(env)), _float(right(env)))
        return type_, lambda env: values.arithmetic(expr.op, left(env), right(env))

    def _case(self, expr):
        conditions = [self.predicate(condition) for condition, _ in expr.branches]
        bound = [self.value(value) for _, value in expr.branches]
        bound.append(self.value(expr.otherwise) if expr.otherwise is not None else ("null", lambda env: None))
        type_ = unify([t for t, _ in bound])

        def chosen(env):
            for condition, (_, value) in zip(conditions, bound[:-1], strict=True):
                if condition(env) is True:
                    return value(env)
            return bound[-1][1](env)

        hand_on = branch(lambda v: v, type_)
        return type_, lambda env: hand_on(env, [chosen])

    def _cast(self, expr):
        _, operand = self.value(expr.operand)
        to = expr.type.text.lower()
        if to not in ("integer", "float", "string", "time"):
            raise RejectedError("name", f"no type is called {to}")
        return to, lambda env: values.cast(operand(env), to)

    def _function(self, expr):
        name = expr.function
        if name in VARIADIC and expr.arguments:
            bound = [self.value(a) for a in expr.arguments]
            type_ = unify([t for t, _ in bound])
            applied = branch(VARIADIC[name], type_)
            return type_, lambda env: applied(env, [f for _, f in bound])
        if name not in FUNCTIONS:
            raise RejectedError("name", f"no function is called {name}")
        function, arity, result = FUNCTIONS[name]
        if len(expr.arguments) != arity or expr.star or expr.distinct:
            raise RejectedError("type", f"{name} takes {arity} arguments")
        if name == "NULLIF":
            bound = [self.value(a) for a in expr.arguments]
            unify([t for t, _ in bound])
        elif name in ("LOWER", "UPPER", "LENGTH"):
            bound = [self.text(a) for a in expr.arguments]
        else:
            bound = [self.number(a) for a in expr.arguments]
        parts = [f for _, f in bound]
        return result or bound[0][0], lambda env: values.plain(function(*(p(env) for p in parts)))

    # --- aggregates (5.5, 5.6, 10.5) ---------------------------------------------------------------------------------

    def _aggregate(self, expr):
        name = expr.function
        if self.group is None:
            # 2.2: an aggregate inside an aggregate, in WHERE, or in a stream query
            raise RejectedError("static", f"{name} cannot stand here")
        if expr.star:
            if name != "COUNT":
                raise RejectedError("type", f"{name}(*) does not exist")
            return "integer", lambda env: len(env.group)  # 5.5: COUNT(*) counts tuples
        if len(expr.arguments) != (2 if name == "QUANTILE" else 1) or (expr.distinct and name != "COUNT"):
            raise RejectedError("type", f"{name} does not take these arguments")
        inner = Binder(self.scope, None, self.subquery)
        type_, argument = inner.value(expr.arguments[0])
        self.used |= inner.used
        if name not in ("COUNT", "MIN", "MAX", "FIRST", "LAST") and type_ not in NUMERIC:
            raise RejectedError("type", f"{name} on strings")  # 2.2

        def present(env):  # 5.5 and 14: nulls are left out
            found = [(m.key, argument(Env(row=m.row))) for m in env.group]
            return [(key, value) for key, value in found if value is not None]

        if name in ("FIRST", "LAST"):
            if not self.scope.keyed:
                raise RejectedError("static", f"{name} is over one stream only")  # 10.5
            return type_, lambda env: (aggregates.first if name == "FIRST" else aggregates.last)(present(env))
        if name == "QUANTILE":
            q = Binder(Scope(())).number(expr.arguments[1])[1](Env())
            if q is None or not 0 <= q <= 1:
                raise RejectedError("static", "a quantile lies between 0 and 1")
            return "float", lambda env: aggregates.quantile([v for _, v in present(env)], q)
        function = aggregates.count_distinct if expr.distinct else aggregates.PLAIN[name]
        result = {"COUNT": "integer", "MIN": type_, "MAX": type_}.get(name, "float")
        if name == "SUM":
            result = "float" if type_ == "float" else "integer"
        return result, lambda env: function([v for _, v in present(env)])

    # --- predicates (5.1) --------------------------------------------------------------------------------------------

    def predicate(self, expr):
        """A function of Env that gives True, False or None."""
        match expr:
            case syntax.Unary(op="NOT"):
                operand = self.predicate(expr.operand)
                return lambda env: values.not_(operand(env))
            case syntax.Binary(op="AND" | "OR"):
                left, right = self.predicate(expr.left), self.predicate(expr.right)
                join = values.and_ if expr.op == "AND" else values.or_
                return lambda env: join(left(env), right(env))
            case syntax.Binary() if expr.op in values.COMPARISONS:
                left, right = self._comparable(expr.left, expr.right)
                return lambda env: values.compare(expr.op, left(env), right(env))
            case syntax.IsNull():
                _, operand = self.value(expr.operand)
                return lambda env: (operand(env) is None) != expr.negated
            case syntax.Between():
                low, high = self._comparable(expr.operand, expr.low), self._comparable(expr.operand, expr.high)
                return _negated(expr, lambda env: values.and_(
                    values.compare(">=", low[0](env), low[1](env)), values.compare("<=", high[0](env), high[1](env))
                ))  # fmt: skip
            case syntax.InList():
                pairs = [self._comparable(expr.operand, item) for item in expr.items]
                return _negated(expr, lambda env: values.in_list(pairs[0][0](env), [p[1](env) for p in pairs]))
            case syntax.Like():
                (_, operand), (_, pattern) = self.text(expr.operand), self.text(expr.pattern)
                return _negated(expr, lambda env: values.like(operand(env), pattern(env)))
            case syntax.InQuery():
                type_, operand = self.value(expr.operand)
                columns, rows = self._subquery(expr.query)
                unify([type_, columns[0].type])
                return _negated(expr, lambda env: values.in_list(operand(env), [r[0] for r in rows()]))
            case syntax.Exists():
                _, rows = self._subquery(expr.query, one_column=False)
                return lambda env: bool(rows())
        raise RejectedError("type", "a value where a predicate is needed")  # 2.2; WHERE NULL too (14, on 10.4)

    def _comparable(self, left, right):
        (left_type, left_value), (right_type, right_value) = self.value(left), self.value(right)
        unify([left_type, right_type])  # 2.2: comparing a string with a number is refused
        return left_value, right_value

    def _subquery(self, query, one_column=True):
        if self.subquery is None:
            raise RejectedError("static", "subqueries outside FROM exist in one-off queries only")  # part II
        columns, rows = self.subquery(query)
        if one_column and len(columns) != 1:
            raise RejectedError("type", "a subquery with one column is needed")
        return columns, rows


def _float(value):
    return float(value) if value is not None else None


def _negated(expr, predicate):
    return (lambda env: values.not_(predicate(env))) if expr.negated else predicate


def _only_value(rows):
    if len(rows) > 1:
        raise RejectedError("input", "a scalar subquery with more than one row")
    return rows[0][0] if rows else None


def conjuncts(expr):
    """p AND q AND … as a list."""
    if expr is None:
        return []
    if isinstance(expr, syntax.Binary) and expr.op == "AND":
        return conjuncts(expr.left) + conjuncts(expr.right)
    return [expr]
