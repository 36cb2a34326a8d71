"""Lanes: what each instruction makes of its operands (`innet.operators.scalar_evaluation`), for many readings at once, in columns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from innet.operators.mote_expression import Instruction, MoteConstant, MoteExpression, SiteNumber

Mask = np.ndarray
"""Of bool."""


@dataclass(frozen=True, slots=True)
class ValueColumn:
    """A value of each reading: int64, and which are there; what is not there is 0."""

    values: np.ndarray
    valid: Mask

    @classmethod
    def of(cls, values: np.ndarray, valid: Mask) -> "ValueColumn":
        return cls(np.where(valid, values, 0), valid)

    @classmethod
    def constant(cls, value: int | None, length: int) -> "ValueColumn":
        return cls(np.full(length, value or 0, np.int64), np.full(length, value is not None))

    @classmethod
    def truth(cls, mask: Mask) -> "ValueColumn":
        return cls(mask.astype(np.int64), np.ones(len(mask), bool))

    @property
    def holds(self) -> Mask:
        """Where it is true, neither false nor unknown."""
        return self.valid & (self.values == 1)


def evaluate_columns(
    expression: MoteExpression, site: np.ndarray, measured: Mapping[MoteExpression, ValueColumn]
) -> ValueColumn:
    """What an expression is of readings of these sites. KeyError for what was not measured."""
    match expression:
        case MoteConstant(value):
            return ValueColumn.constant(value, len(site))
        case SiteNumber():
            return ValueColumn(site, np.ones(len(site), bool))
        case Instruction(name, operands):
            lanes = [evaluate_columns(operand, site, measured) for operand in operands]
            if name == "PICK":
                return choose_values(lanes[0].holds, *lanes[1:])
            return (UNARY.get(name) or BINARY[name])(*lanes)
    return measured[expression]


def choose_values(mask: Mask, yes: ValueColumn, no: ValueColumn) -> ValueColumn:
    return ValueColumn(np.where(mask, yes.values, no.values), np.where(mask, yes.valid, no.valid))


def _cut(values: np.ndarray) -> np.ndarray:
    """The lowest 32 bits, with sign."""
    return values.astype(np.int32).astype(np.int64)


def _known(function: Callable) -> Callable:
    """Null where an operand is null; else the result, cut."""

    def computed(a: ValueColumn, b: ValueColumn | None = None) -> ValueColumn:
        valid = a.valid if b is None else a.valid & b.valid
        return ValueColumn.of(_cut(function(a.values) if b is None else function(a.values, b.values)), valid)

    return computed


def _divided(function: Callable) -> Callable[[ValueColumn, ValueColumn], ValueColumn]:
    """Null where it is by zero, too. fmod has the sign of the dividend, so what is left divides without a rest."""

    def computed(a: ValueColumn, b: ValueColumn) -> ValueColumn:
        valid = a.valid & b.valid & (b.values != 0)
        divisor = np.where(valid, b.values, 1)
        return ValueColumn.of(_cut(function(a.values, divisor)), valid)

    return computed


def _either(function: Callable) -> Callable[[ValueColumn, ValueColumn], ValueColumn]:
    """The other operand where one is null."""

    def computed(a: ValueColumn, b: ValueColumn) -> ValueColumn:
        both = ValueColumn(function(a.values, b.values), a.valid & b.valid)
        return choose_values(both.valid, both, choose_values(a.valid, a, b))

    return computed


def _and(a: ValueColumn, b: ValueColumn) -> ValueColumn:
    false = (a.valid & (a.values == 0)) | (b.valid & (b.values == 0))
    valid = false | (a.valid & b.valid)
    return ValueColumn.of((~false).astype(np.int64), valid)


def _not(a: ValueColumn) -> ValueColumn:
    return ValueColumn.of((a.values == 0).astype(np.int64), a.valid)


UNARY: dict[str, Callable[[ValueColumn], ValueColumn]] = {
    "NEG": _known(np.negative),
    "ABS": _known(np.abs),
    "NOT": _not,
    "ISNULL": lambda a: ValueColumn.truth(~a.valid),
}
BINARY: dict[str, Callable[[ValueColumn, ValueColumn], ValueColumn]] = {
    "ADD": _known(np.add),
    "SUB": _known(np.subtract),
    "MUL": _known(np.multiply),
    "DIV": _divided(lambda a, b: (a - np.fmod(a, b)) // b),
    "MOD": _divided(np.fmod),
    "LEAST": _either(np.minimum),
    "GREATEST": _either(np.maximum),
    "ELSE": lambda a, b: choose_values(a.valid, a, b),
    "EQ": _known(np.equal),
    "NE": _known(np.not_equal),
    "LT": _known(np.less),
    "LE": _known(np.less_equal),
    "GT": _known(np.greater),
    "GE": _known(np.greater_equal),
    "AND": _and,
    "OR": lambda a, b: _not(_and(_not(a), _not(b))),
}
