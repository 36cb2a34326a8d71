"""Lanes: what each instruction makes of its operands (`innet.operators.scalar_evaluation`), for many readings at once, in columns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from innet.operators.mote_expression import Apply, Expression, Number, SiteNumber

Mask = np.ndarray
"""Of bool."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A value of each reading: int64, and which are there; what is not there is 0."""

    values: np.ndarray
    there: Mask

    @classmethod
    def of(cls, values: np.ndarray, there: Mask) -> "Lane":
        return cls(np.where(there, values, 0), there)

    @classmethod
    def constant(cls, value: int | None, length: int) -> "Lane":
        return cls(np.full(length, value or 0, np.int64), np.full(length, value is not None))

    @classmethod
    def truth(cls, mask: Mask) -> "Lane":
        return cls(mask.astype(np.int64), np.ones(len(mask), bool))

    @property
    def holds(self) -> Mask:
        """Where it is true, neither false nor unknown."""
        return self.there & (self.values == 1)


def lane_of(expression: Expression, site: np.ndarray, measured: Mapping[Expression, Lane]) -> Lane:
    """What an expression is of readings of these sites. KeyError for what was not measured."""
    match expression:
        case Number(value):
            return Lane.constant(value, len(site))
        case SiteNumber():
            return Lane(site, np.ones(len(site), bool))
        case Apply(name, operands):
            lanes = [lane_of(operand, site, measured) for operand in operands]
            if name == "PICK":
                return chosen(lanes[0].holds, *lanes[1:])
            return (UNARY.get(name) or BINARY[name])(*lanes)
    return measured[expression]


def chosen(mask: Mask, yes: Lane, no: Lane) -> Lane:
    return Lane(np.where(mask, yes.values, no.values), np.where(mask, yes.there, no.there))


def _cut(values: np.ndarray) -> np.ndarray:
    """The lowest 32 bits, with sign."""
    return values.astype(np.int32).astype(np.int64)


def _known(function: Callable) -> Callable:
    """Null where an operand is null; else the result, cut."""

    def computed(a: Lane, b: Lane | None = None) -> Lane:
        there = a.there if b is None else a.there & b.there
        return Lane.of(_cut(function(a.values) if b is None else function(a.values, b.values)), there)

    return computed


def _divided(function: Callable) -> Callable[[Lane, Lane], Lane]:
    """Null where it is by zero, too. fmod has the sign of the dividend, so what is left divides without a rest."""

    def computed(a: Lane, b: Lane) -> Lane:
        there = a.there & b.there & (b.values != 0)
        divisor = np.where(there, b.values, 1)
        return Lane.of(_cut(function(a.values, divisor)), there)

    return computed


def _either(function: Callable) -> Callable[[Lane, Lane], Lane]:
    """The other operand where one is null."""

    def computed(a: Lane, b: Lane) -> Lane:
        both = Lane(function(a.values, b.values), a.there & b.there)
        return chosen(both.there, both, chosen(a.there, a, b))

    return computed


def _and(a: Lane, b: Lane) -> Lane:
    false = (a.there & (a.values == 0)) | (b.there & (b.values == 0))
    there = false | (a.there & b.there)
    return Lane.of((~false).astype(np.int64), there)


def _not(a: Lane) -> Lane:
    return Lane.of((a.values == 0).astype(np.int64), a.there)


UNARY: dict[str, Callable[[Lane], Lane]] = {
    "NEG": _known(np.negative),
    "ABS": _known(np.abs),
    "NOT": _not,
    "ISNULL": lambda a: Lane.truth(~a.there),
}
BINARY: dict[str, Callable[[Lane, Lane], Lane]] = {
    "ADD": _known(np.add),
    "SUB": _known(np.subtract),
    "MUL": _known(np.multiply),
    "DIV": _divided(lambda a, b: (a - np.fmod(a, b)) // b),
    "MOD": _divided(np.fmod),
    "LEAST": _either(np.minimum),
    "GREATEST": _either(np.maximum),
    "ELSE": lambda a, b: chosen(a.there, a, b),
    "EQ": _known(np.equal),
    "NE": _known(np.not_equal),
    "LT": _known(np.less),
    "LE": _known(np.less_equal),
    "GT": _known(np.greater),
    "GE": _known(np.greater_equal),
    "AND": _and,
    "OR": lambda a, b: _not(_and(_not(a), _not(b))),
}
