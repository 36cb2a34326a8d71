"""Expressions that a mote can evaluate: over integers and nulls, by instructions of the same names.

A truth is 1, 0, or null for unknown (SEMANTICS 5.1); predicates and values are one kind of expression here.
"""

from collections.abc import Iterator
from dataclasses import dataclass

UNARY = ("NEG", "ABS", "NOT", "ISNULL")
BINARY = (
    "ADD", "SUB", "MUL", "DIV", "MOD", "LEAST", "GREATEST", "ELSE", "EQ", "NE", "LT", "LE", "GT", "GE", "AND", "OR",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MoteExpression:
    """The base of what follows."""

    @property
    def parts(self) -> tuple["MoteExpression", ...]:
        return ()


@dataclass(frozen=True, slots=True)
class MoteConstant(MoteExpression):
    """A constant; None is null, or unknown."""

    value: int | None

    def __str__(self) -> str:
        return "null" if self.value is None else str(self.value)


@dataclass(frozen=True, slots=True)
class SensorValue(MoteExpression):
    """What was sampled for an attribute of an extent; where it has a scale, the whole multiple."""

    extent: str
    attribute: str

    def __str__(self) -> str:
        return f"{self.extent}.{self.attribute}"


@dataclass(frozen=True, slots=True)
class SiteNumber(MoteExpression):
    """The number of the mote."""

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
        said = [
            f"({part})" if isinstance(part, Instruction) and part.name in _SIGN else str(part) for part in self.operands
        ]
        if self.name in _SIGN:
            return f" {_SIGN[self.name]} ".join(said)
        return f"{self.name}({', '.join(said)})"


TRUE, FALSE = MoteConstant(1), MoteConstant(0)


def make_instruction(name: str, *operands: MoteExpression) -> MoteExpression:
    return Instruction(name, operands)


def all_of(terms: list[MoteExpression]) -> MoteExpression:
    """Their conjunction; of none, true."""
    return _joined("AND", terms, TRUE)


def any_of(terms: list[MoteExpression]) -> MoteExpression:
    return _joined("OR", terms, FALSE)


def _joined(name: str, terms: list[MoteExpression], none: MoteExpression) -> MoteExpression:
    whole = terms[0] if terms else none
    for term in terms[1:]:
        whole = make_instruction(name, whole, term)
    return whole


def split_conjuncts(predicate: MoteExpression) -> tuple[MoteExpression, ...]:
    """The terms all of which must hold, in their order."""
    if isinstance(predicate, Instruction) and predicate.name == "AND":
        return tuple(term for part in predicate.operands for term in split_conjuncts(part))
    return () if predicate == TRUE else (predicate,)


def walk(expression: MoteExpression) -> Iterator[MoteExpression]:
    """The expression and everything below it."""
    yield expression
    for part in expression.parts:
        yield from walk(part)


def stack_depth(expression: MoteExpression) -> int:
    """How many places on the stack it takes to compute it."""
    return max([1, *(depth + stack_depth(part) for depth, part in enumerate(expression.parts))])
