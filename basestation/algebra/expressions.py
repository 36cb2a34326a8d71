"""Expressions: typed, with every name resolved to a column.

Predicates (three-valued, SEMANTICS 5.1) and values are told apart by
`predicate`. How expressions are computed is `basestation.algebra.evaluation`'s affair.
"""

from dataclasses import dataclass, field, replace

from acquisition.schema import Type
from basestation.algebra.expression import Column, Expression


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Expression):
    """A constant. `literal_type` is None for NULL."""

    value: int | float | str | None
    literal_type: Type | None

    @property
    def identity(self):
        """1, 1.0 and -0.0 are three constants."""
        return self.literal_type, type(self.value), repr(self.value)

    @property
    def type(self):
        return self.literal_type


@dataclass(frozen=True, slots=True, eq=False)
class Truth(Expression):
    """A predicate with a known outcome; None is unknown. Only rewrites make it: the language has no such literal."""

    predicate = True
    outcome: bool | None


@dataclass(frozen=True, slots=True, eq=False)
class Attr(Expression):
    """The value of a column, in the paper's word."""

    column: Column

    @property
    def type(self):
        return self.column.type


@dataclass(frozen=True, slots=True, eq=False)
class Negative(Expression):
    operand: Expression

    @property
    def type(self):
        return arithmetic_type(self.operand.type)

    @property
    def parts(self):
        return (self.operand,)

    def with_parts(self, parts):
        return Negative(*parts)


@dataclass(frozen=True, slots=True, eq=False)
class Arithmetic(Expression):
    """op is one of `+ - * / %`; integer division truncates toward zero, by zero gives null (5.2, 5.3)."""

    op: str
    left: Expression
    right: Expression
    result: Type = field(init=False, compare=False, repr=False)  # found once: a long sum is asked for it at every term

    def __post_init__(self):
        object.__setattr__(self, "result", arithmetic_type(self.left.type, self.right.type))

    @property
    def type(self):
        return self.result

    @property
    def parts(self):
        return self.left, self.right

    def with_parts(self, parts):
        return Arithmetic(self.op, *parts)


@dataclass(frozen=True, slots=True, eq=False)
class Compare(Expression):
    """op is one of `= <> < <= > >=`."""

    predicate = True
    op: str
    left: Expression
    right: Expression

    @property
    def parts(self):
        return self.left, self.right

    def with_parts(self, parts):
        return Compare(self.op, *parts)


@dataclass(frozen=True, slots=True, eq=False)
class And(Expression):
    """All terms hold. Flat: no term is an And itself (`conjunction` sees to it)."""

    predicate = True
    terms: tuple[Expression, ...]

    @property
    def parts(self):
        return self.terms

    def with_parts(self, parts):
        return conjunction(parts)


@dataclass(frozen=True, slots=True, eq=False)
class Or(Expression):
    """Some term holds. Flat."""

    predicate = True
    terms: tuple[Expression, ...]

    @property
    def parts(self):
        return self.terms

    def with_parts(self, parts):
        return disjunction(parts)


@dataclass(frozen=True, slots=True, eq=False)
class Not(Expression):
    predicate = True
    term: Expression

    @property
    def parts(self):
        return (self.term,)

    def with_parts(self, parts):
        return Not(*parts)


@dataclass(frozen=True, slots=True, eq=False)
class IsNull(Expression):
    predicate = True
    operand: Expression

    @property
    def parts(self):
        return (self.operand,)

    def with_parts(self, parts):
        return IsNull(*parts)


@dataclass(frozen=True, slots=True, eq=False)
class InItems(Expression):
    """`operand IN (items)`: the disjunction of the equalities, nulls included."""

    predicate = True
    operand: Expression
    items: tuple[Expression, ...]

    @property
    def parts(self):
        return self.operand, *self.items

    def with_parts(self, parts):
        return InItems(parts[0], tuple(parts[1:]))


@dataclass(frozen=True, slots=True, eq=False)
class Between(Expression):
    """`low <= operand AND operand <= high`, for an operand that is not to be computed twice."""

    predicate = True
    operand: Expression
    low: Expression
    high: Expression

    @property
    def parts(self):
        return self.operand, self.low, self.high

    def with_parts(self, parts):
        return Between(*parts)


@dataclass(frozen=True, slots=True, eq=False)
class Like(Expression):
    """`%` any characters, `_` one, a backslash before either (or itself) takes it literally."""

    predicate = True
    operand: Expression
    pattern: Expression

    @property
    def parts(self):
        return self.operand, self.pattern

    def with_parts(self, parts):
        return Like(*parts)


@dataclass(frozen=True, slots=True, eq=False)
class Case(Expression):
    """The value of the first branch (condition, value) whose condition is true, else `otherwise`."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression

    @property
    def type(self):
        return common_type(*(value.type for _, value in self.branches), self.otherwise.type)

    @property
    def parts(self):
        return *(part for branch in self.branches for part in branch), self.otherwise

    def with_parts(self, parts):
        pairs = tuple(zip(parts[0:-1:2], parts[1:-1:2], strict=True))
        return Case(pairs, parts[-1])


@dataclass(frozen=True, slots=True, eq=False)
class Cast(Expression):
    operand: Expression
    to: Type

    @property
    def type(self):
        return self.to

    @property
    def parts(self):
        return (self.operand,)

    def with_parts(self, parts):
        return replace(self, operand=parts[0])


@dataclass(frozen=True, slots=True, eq=False)
class Function(Expression):
    """A call of a function of 10.4, by its name in capitals; its type was found when it was bound."""

    name: str
    arguments: tuple[Expression, ...]
    result: Type | None

    @property
    def type(self):
        return self.result

    @property
    def parts(self):
        return self.arguments

    def with_parts(self, parts):
        return replace(self, arguments=tuple(parts))


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate(Expression):
    """One value of a bag of tuples; argument is None for COUNT(*). `share` is the q of QUANTILE."""

    name: str
    argument: Expression | None
    result: Type
    distinct: bool = False
    share: float | None = None

    @property
    def type(self):
        return self.result

    @property
    def parts(self):
        return () if self.argument is None else (self.argument,)

    def with_parts(self, parts):
        return replace(self, argument=parts[0]) if parts else self

    @property
    def is_mergeable(self):
        """Whether partial states can be put together, so that readings need not be kept (10.5)."""
        return not self.distinct and self.name not in ("MEDIAN", "QUANTILE")


@dataclass(frozen=True, slots=True, eq=False)
class SubqueryExpression(Expression):
    """The outcome of a subquery of a one-off query: `SCALAR` its one value, `EXISTS` and `IN` predicates.

    The plan is evaluated once, since nothing correlates (7). For IN, operand is what is looked for.
    """

    how: str
    plan: object  # a basestation.algebra.node.PlanNode; expressions lie below nodes
    result: Type | None = None
    operand: Expression | None = None

    @property
    def predicate(self):
        return self.how != "SCALAR"

    @property
    def type(self):
        return self.result

    @property
    def parts(self):
        return () if self.operand is None else (self.operand,)

    def with_parts(self, parts):
        return replace(self, operand=parts[0]) if parts else self


@dataclass(frozen=True, slots=True, eq=False)
class InValues(Expression):
    """`operand IN (subquery)` when the subquery was evaluated: `members` is the Vector that it gave."""

    predicate = True
    operand: Expression
    members: object

    @property
    def parts(self):
        return (self.operand,)

    def with_parts(self, parts):
        return replace(self, operand=parts[0])


# --- types -----------------------------------------------------------------------------------------------------------


def arithmetic_type(*types):
    """Of numbers: float where one is, else integer. A NULL among them takes the side of the others."""
    return Type.FLOAT if Type.FLOAT in types else Type.INTEGER


def common_type(*types):
    """The type of a value that is one of several: float where one is, a type of its own where all agree."""
    known = {t for t in types if t is not None}
    if not known:
        return None
    return known.pop() if len(known) == 1 else arithmetic_type(*known)


# --- building and taking apart ---------------------------------------------------------------------------------------


def conjunction(terms):
    """The terms as one predicate; flat; one term alone is itself."""
    flat = tuple(inner for term in terms for inner in (term.terms if isinstance(term, And) else (term,)))
    return flat[0] if len(flat) == 1 else And(flat)


def disjunction(terms):
    flat = tuple(inner for term in terms for inner in (term.terms if isinstance(term, Or) else (term,)))
    return flat[0] if len(flat) == 1 else Or(flat)


def conjuncts(predicate):
    """The terms all of which must hold."""
    return predicate.terms if isinstance(predicate, And) else (predicate,)


def walk(expression):
    """The expression and everything below it, each before its parts."""
    pending = [expression]
    while pending:
        found = pending.pop()
        yield found
        pending.extend(reversed(found.parts))


def columns_of(expression):
    """The columns an expression needs."""
    return frozenset(e.column for e in walk(expression) if isinstance(e, Attr))


def transform(expression, change, whole=()):
    """The expression with `change` applied to every part, from below; the same object where nothing changed.

    What is of a type in `whole` is changed as it is, not part by part.

    Without recursion: `a + b + c + …` is as deep as it is long, and queries are written by machines too.
    """
    done, pending = [], [(expression, False)]
    while pending:
        found, parts_done = pending.pop()
        if not parts_done:
            pending.append((found, True))
            if not isinstance(found, whole):
                pending.extend((part, False) for part in reversed(found.parts))
            continue
        parts = () if isinstance(found, whole) else found.parts
        changed = tuple(done[len(done) - len(parts) :])
        del done[len(done) - len(parts) :]
        if any(new is not old for new, old in zip(changed, parts, strict=True)):
            found = found.with_parts(changed)
        done.append(change(found))
    return done[0]


def fold_expression(expression, combine):
    """What `combine` makes of the expression and of what it made of its parts, from below; without recursion."""
    done, pending = [], [(expression, False)]
    while pending:
        found, parts_done = pending.pop()
        if not parts_done:
            pending.append((found, True))
            pending.extend((part, False) for part in reversed(found.parts))
            continue
        below = len(done) - len(found.parts)
        done[below:] = [combine(found, done[below:])]
    return done[0]


def is_computed_once(expressions, values):
    """Whether `substitute` would compute nothing more than once: else expressions grow with every level of nesting."""
    read = [e.column for expression in expressions for e in walk(expression) if isinstance(e, Attr)]
    computed = [c for c in read if not isinstance(values.get(c), Attr | Literal | None)]
    return len(set(computed)) == len(computed)


def substitute(expression, values):
    """The expression with columns replaced: `values` maps a Column to an Expression."""
    return transform(expression, lambda e: values.get(e.column, e) if isinstance(e, Attr) else e)
