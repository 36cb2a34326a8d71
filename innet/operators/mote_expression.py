"""Expressions that a mote can evaluate: integers and nulls, computed by instructions of the same names.

A truth value is 1, 0, or null for unknown (semantics 5.1). Predicates and values are one kind of expression here.
"""

from collections.abc import Iterator
from dataclasses import dataclass

UNARY = ("NEG", "ABS", "NOT", "ISNULL")
BINARY = (
    "ADD", "SUB", "MUL", "DIV", "MOD", "LEAST", "GREATEST", "ELSE", "EQ", "NE", "LT", "LE", "GT", "GE", "AND", "OR",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MoteExpression:
    """The base of the expressions."""

    @property
    def parts(self) -> tuple["MoteExpression", ...]:
        """The operands."""
        return ()


@dataclass(frozen=True, slots=True)
class MoteConstant(MoteExpression):
    """A constant; None is null, which is unknown as a truth value."""

    value: int | None

    def __str__(self) -> str:
        return "null" if self.value is None else str(self.value)


@dataclass(frozen=True, slots=True)
class SensorValue(MoteExpression):
    """The sampled value of an attribute of an extent; a scaled attribute is a whole number of its steps."""

    extent: str
    attribute: str

    def __str__(self) -> str:
        return f"{self.extent}.{self.attribute}"


@dataclass(frozen=True, slots=True)
class SiteNumber(MoteExpression):
    """The number of the mote that evaluates the expression."""

    def __str__(self) -> str:
        return "site"


_SIGN = {
    "ADD": "+", "SUB": "-", "MUL": "*", "DIV": "/", "MOD": "%", "EQ": "=", "NE": "<>", "LT": "<", "LE": "<=",
    "GT": ">", "GE": ">=", "AND": "AND", "OR": "OR",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Instruction(MoteExpression):
    """An instruction applied to its operands."""

    name: str
    operands: tuple[MoteExpression, ...]

    @property
    def parts(self) -> tuple[MoteExpression, ...]:
        return self.operands

    def __str__(self) -> str:
        parts = [
            f"({part})" if isinstance(part, Instruction) and part.name in _SIGN else str(part) for part in self.operands
        ]
        if self.name in _SIGN:
            return f" {_SIGN[self.name]} ".join(parts)
        return f"{self.name}({', '.join(parts)})"


TRUE, FALSE = MoteConstant(1), MoteConstant(0)


def make_instruction(name: str, *operands: MoteExpression) -> MoteExpression:
    """Return the instruction `name` applied to the operands."""
    return Instruction(name, operands)


def all_of(terms: list[MoteExpression]) -> MoteExpression:
    """Return the conjunction of the terms; TRUE without terms."""
    return _joined("AND", terms, TRUE)


def any_of(terms: list[MoteExpression]) -> MoteExpression:
    """Return the disjunction of the terms; FALSE without terms."""
    return _joined("OR", terms, FALSE)


def _joined(name: str, terms: list[MoteExpression], none: MoteExpression) -> MoteExpression:
    whole = terms[0] if terms else none
    for term in terms[1:]:
        whole = make_instruction(name, whole, term)
    return whole


def split_conjuncts(predicate: MoteExpression) -> tuple[MoteExpression, ...]:
    """Return the terms of a conjunction, in order; none for TRUE."""
    if isinstance(predicate, Instruction) and predicate.name == "AND":
        return tuple(term for part in predicate.operands for term in split_conjuncts(part))
    return () if predicate == TRUE else (predicate,)


def walk(expression: MoteExpression) -> Iterator[MoteExpression]:
    """Yield the expression and all its parts."""
    yield expression
    for part in expression.parts:
        yield from walk(part)


def stack_depth(expression: MoteExpression) -> int:
    """Return the number of stack entries that the computation needs."""
    return max([1, *(depth + stack_depth(part) for depth, part in enumerate(expression.parts))])
