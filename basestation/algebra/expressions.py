"""Expressions: typed trees in which every name is resolved to a column.

`is_predicate` separates predicates (three-valued, semantics 5.1) from values. `basestation.algebra.evaluation` computes them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from acquisition.schema import Type
from basestation.algebra.expression import Column, Expression
from basestation.algebra.vector import Vector

if TYPE_CHECKING:
    from basestation.algebra.node import PlanNode

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Expression):
    """A constant. `literal_type` is None for NULL."""

    value: int | float | str | None
    literal_type: Type | None

    @property
    def identity(self) -> tuple[Any, ...]:
        """1, 1.0 and -0.0 are three constants."""
        return self.literal_type, type(self.value), repr(self.value)

    @property
    def type(self) -> Type | None:
        return self.literal_type


@dataclass(frozen=True, slots=True, eq=False)
class Truth(Expression):
    """A predicate with a known outcome; None is unknown. Only rewrites create it: the language has no such literal."""

    is_predicate = True
    outcome: bool | None


@dataclass(frozen=True, slots=True, eq=False)
class Attr(Expression):
    """The value of a column; the name is the paper's."""

    column: Column

    @property
    def type(self) -> Type | None:
        return self.column.type


@dataclass(frozen=True, slots=True, eq=False)
class Negative(Expression):
    operand: Expression

    @property
    def type(self) -> Type | None:
        return arithmetic_type(self.operand.type)

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def with_parts(self, parts: Sequence[Expression]) -> Expression:
        return Negative(*parts)


@dataclass(frozen=True, slots=True, eq=False)
class Arithmetic(Expression):
    """op is one of `+ - * / %`; integer division truncates toward zero, by zero gives null (semantics 5.2, 5.3)."""

    op: str
    left: Expression
    right: Expression
    result: Type = field(init=False, compare=False, repr=False)  # computed once: a long sum reads it at every term

    def __post_init__(self) -> None:
        object.__setattr__(self, "result", arithmetic_type(self.left.type, self.right.type))

    @property
    def type(self) -> Type | None:
        return self.result

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.left, self.right

    def with_parts(self, parts: Sequence[Expression]) -> Expression:
        return Arithmetic(self.op, *parts)


@dataclass(frozen=True, slots=True, eq=False)
class Compare(Expression):
    """op is one of `= <> < <= > >=`."""

    is_predicate = True
    op: str
    left: Expression
    right: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.left, self.right

    def with_parts(self, parts: Sequence[Expression]) -> Expression:
        return Compare(self.op, *parts)


@dataclass(frozen=True, slots=True, eq=False)
class And(Expression):
    """All terms hold. Flat: no term is itself an And; `conjunction` ensures it."""

    is_predicate = True
    terms: tuple[Expression, ...]

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.terms

    def with_parts(self, parts: Sequence[Expression]) -> Expression:
        return conjunction(parts)


@dataclass(frozen=True, slots=True, eq=False)
class Or(Expression):
    """At least one term holds. Flat, as And."""

    is_predicate = True
    terms: tuple[Expression, ...]

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.terms

    def with_parts(self, parts: Sequence[Expression]) -> Expression:
        return disjunction(parts)


@dataclass(frozen=True, slots=True, eq=False)
class Not(Expression):
    is_predicate = True
    term: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.term,)

    def with_parts(self, parts: Sequence[Expression]) -> Expression:
        return Not(*parts)


@dataclass(frozen=True, slots=True, eq=False)
class IsNull(Expression):
    is_predicate = True
    operand: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def with_parts(self, parts: Sequence[Expression]) -> Expression:
        return IsNull(*parts)


@dataclass(frozen=True, slots=True, eq=False)
class InItems(Expression):
    """`operand IN (items)`: the disjunction of the equalities, nulls included."""

    is_predicate = True
    operand: Expression
    items: tuple[Expression, ...]

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.operand, *self.items

    def with_parts(self, parts: Sequence[Expression]) -> Expression:
        return InItems(parts[0], tuple(parts[1:]))


@dataclass(frozen=True, slots=True, eq=False)
class Between(Expression):
    """`low <= operand AND operand <= high`, with the operand computed once."""

    is_predicate = True
    operand: Expression
    low: Expression
    high: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.operand, self.low, self.high

    def with_parts(self, parts: Sequence[Expression]) -> Expression:
        return Between(*parts)


@dataclass(frozen=True, slots=True, eq=False)
class Like(Expression):
    """`%` any characters, `_` one, a backslash before either (or itself) takes it literally."""

    is_predicate = True
    operand: Expression
    pattern: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.operand, self.pattern

    def with_parts(self, parts: Sequence[Expression]) -> Expression:
        return Like(*parts)


@dataclass(frozen=True, slots=True, eq=False)
class Case(Expression):
    """The value of the first branch (condition, value) whose condition is true, else `otherwise`."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression

    @property
    def type(self) -> Type | None:
        return common_type(*(value.type for _, value in self.branches), self.otherwise.type)

    @property
    def parts(self) -> tuple[Expression, ...]:
        return *(part for branch in self.branches for part in branch), self.otherwise

    def with_parts(self, parts: Sequence[Expression]) -> Expression:
        pairs = tuple(zip(parts[0:-1:2], parts[1:-1:2], strict=True))
        return Case(pairs, parts[-1])


@dataclass(frozen=True, slots=True, eq=False)
class Cast(Expression):
    operand: Expression
    to: Type

    @property
    def type(self) -> Type | None:
        return self.to

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def with_parts(self, parts: Sequence[Expression]) -> Expression:
        return replace(self, operand=parts[0])


@dataclass(frozen=True, slots=True, eq=False)
class Function(Expression):
    """A call of a function (semantics 10.4) by its name in capitals; the binder finds `result`, its type."""

    name: str
    arguments: tuple[Expression, ...]
    result: Type | None

    @property
    def type(self) -> Type | None:
        return self.result

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.arguments

    def with_parts(self, parts: Sequence[Expression]) -> Expression:
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
    def type(self) -> Type | None:
        return self.result

    @property
    def parts(self) -> tuple[Expression, ...]:
        return () if self.argument is None else (self.argument,)

    def with_parts(self, parts: Sequence[Expression]) -> Expression:
        return replace(self, argument=parts[0]) if parts else self

    @property
    def is_mergeable(self) -> bool:
        """Whether partial states can be merged, so that readings need not be kept (semantics 10.5)."""
        return not self.distinct and self.name not in ("MEDIAN", "QUANTILE")


@dataclass(frozen=True, slots=True, eq=False)
class SubqueryExpression(Expression):
    """The outcome of a subquery of a one-off query: `how` is `SCALAR` (its one value), `EXISTS` or `IN` (predicates).

    The plan is evaluated once, since subqueries do not correlate (semantics 7). Only IN has an operand.
    """

    how: str
    plan: "PlanNode"
    result: Type | None = None
    operand: Expression | None = None

    @property
    def is_predicate(self) -> bool:
        return self.how != "SCALAR"

    @property
    def type(self) -> Type | None:
        return self.result

    @property
    def parts(self) -> tuple[Expression, ...]:
        return () if self.operand is None else (self.operand,)

    def with_parts(self, parts: Sequence[Expression]) -> Expression:
        return replace(self, operand=parts[0]) if parts else self


@dataclass(frozen=True, slots=True, eq=False)
class InValues(Expression):
    """`operand IN (subquery)` after the evaluation of the subquery, whose values are `members`."""

    is_predicate = True
    operand: Expression
    members: Vector

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.operand,)

    def with_parts(self, parts: Sequence[Expression]) -> Expression:
        return replace(self, operand=parts[0])


# --- types -----------------------------------------------------------------------------------------------------------


def arithmetic_type(*types: Type | None) -> Type:
    """The type of arithmetic over these types: float if one is, else integer. NULL (None) takes the side of the others."""
    return Type.FLOAT if Type.FLOAT in types else Type.INTEGER


def common_type(*types: Type | None) -> Type | None:
    """The type of a value that is one of several: their type if they agree, float if one is; None if all are NULL."""
    known = {t for t in types if t is not None}
    if not known:
        return None
    return known.pop() if len(known) == 1 else arithmetic_type(*known)


# --- building and taking apart ---------------------------------------------------------------------------------------


def conjunction(terms: Iterable[Expression]) -> Expression:
    """The terms as one flat predicate; a single term stays as it is."""
    flat = tuple(inner for term in terms for inner in (term.terms if isinstance(term, And) else (term,)))
    return flat[0] if len(flat) == 1 else And(flat)


def disjunction(terms: Iterable[Expression]) -> Expression:
    """The terms as one flat predicate; a single term stays as it is."""
    flat = tuple(inner for term in terms for inner in (term.terms if isinstance(term, Or) else (term,)))
    return flat[0] if len(flat) == 1 else Or(flat)


def conjuncts(predicate: Expression) -> tuple[Expression, ...]:
    """The terms all of which must hold."""
    return predicate.terms if isinstance(predicate, And) else (predicate,)


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything below it, each before its parts."""
    pending = [expression]
    while pending:
        found = pending.pop()
        yield found
        pending.extend(reversed(found.parts))


def columns_of(expression: Expression) -> frozenset[Column]:
    """The columns that an expression reads."""
    return frozenset(e.column for e in walk(expression) if isinstance(e, Attr))


def transform(
    expression: Expression, change: Callable[[Expression], Expression], whole: tuple[type[Expression], ...] = ()
) -> Expression:
    """The expression with `change` applied to every part, bottom-up; the same object if nothing changed.

    An expression of a type in `whole` is changed as one, without its parts. No recursion: `a + b + c + …` is as deep as
    it is long, and machines write queries too.
    """
    done: list[Expression] = []
    pending = [(expression, False)]
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


def fold_expression(expression: Expression, combine: Callable[[Expression, list[_Result]], _Result]) -> _Result:
    """`combine(expression, results of its parts)`, computed bottom-up without recursion."""
    done: list[_Result] = []
    pending = [(expression, False)]
    while pending:
        found, parts_done = pending.pop()
        if not parts_done:
            pending.append((found, True))
            pending.extend((part, False) for part in reversed(found.parts))
            continue
        below = len(done) - len(found.parts)
        done[below:] = [combine(found, done[below:])]
    return done[0]


def is_computed_once(expressions: Iterable[Expression], values: Mapping[Column, Expression]) -> bool:
    """Whether `substitute` would compute no value twice; otherwise expressions would grow with every level of nesting."""
    read = [e.column for expression in expressions for e in walk(expression) if isinstance(e, Attr)]
    computed = [c for c in read if not isinstance(values.get(c), Attr | Literal | None)]
    return len(set(computed)) == len(computed)


def substitute(expression: Expression, values: Mapping[Column, Expression]) -> Expression:
    """The expression with each column in `values` replaced by its expression there."""
    return transform(expression, lambda e: values.get(e.column, e) if isinstance(e, Attr) else e)
