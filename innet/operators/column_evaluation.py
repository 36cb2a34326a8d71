"""Column evaluation: the instructions of `innet.operators.scalar_evaluation` for the operands of many readings at once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
from innet.operators.mote_expression import Instruction, MoteConstant, MoteExpression, SensorValue, SiteNumber

Mask: TypeAlias = BoolArray
"""A mask of readings, one entry per reading."""
UnaryInstruction: TypeAlias = Callable[["ValueColumn"], "ValueColumn"]
BinaryInstruction: TypeAlias = Callable[["ValueColumn", "ValueColumn"], "ValueColumn"]


@dataclass(frozen=True, slots=True)
class ValueColumn:
    """One value per reading; a value is null, and then 0 in `values`, where `valid` is False."""

    values: IntArray
    valid: Mask

    @classmethod
    def of(cls, values: IntArray, valid: Mask) -> "ValueColumn":
        """Return a column with null where `valid` is False."""
        return cls(np.where(valid, values, 0), valid)

    @classmethod
    def constant(cls, value: int | None, length: int) -> "ValueColumn":
        """Return `length` times the same value."""
        return cls(np.full(length, value or 0, np.int64), np.full(length, value is not None))

    @classmethod
    def truth(cls, mask: Mask) -> "ValueColumn":
        """Return a mask as truth values."""
        return cls(mask.astype(np.int64), np.ones(len(mask), bool))

    @property
    def is_true(self) -> Mask:
        """Where the value is true, neither false nor unknown."""
        is_true: Mask = self.valid & (self.values == 1)
        return is_true


def evaluate_columns(
    expression: MoteExpression, site: IntArray, measured: Mapping[SensorValue, ValueColumn]
) -> ValueColumn:
    """Evaluate an expression over readings, given the site of each and their sensor values.

    KeyError for a sensor that is not in `measured`.
    """
    match expression:
        case MoteConstant(value):
            return ValueColumn.constant(value, len(site))
        case SiteNumber():
            return ValueColumn(site, np.ones(len(site), bool))
        case Instruction(name, operands):
            columns = [evaluate_columns(operand, site, measured) for operand in operands]
            if name == "PICK":
                return choose_values(columns[0].is_true, columns[1], columns[2])
            return UNARY[name](*columns) if name in UNARY else BINARY[name](*columns)
        case SensorValue():
            return measured[expression]
    raise TypeError(f"expected an expression of a mote, found {expression!r}")


def choose_values(mask: Mask, yes: ValueColumn, no: ValueColumn) -> ValueColumn:
    """Return the values of `yes` where the mask is set, else those of `no`."""
    return ValueColumn(np.where(mask, yes.values, no.values), np.where(mask, yes.valid, no.valid))


def _cut(values: AnyArray) -> IntArray:
    """Return the lowest 32 bits, with sign."""
    return values.astype(np.int32).astype(np.int64)


def _strict_unary(function: Callable[[IntArray], AnyArray]) -> UnaryInstruction:
    """Return the instruction that is null for a null operand, and else the function, cut to 32 bits."""
    return lambda a: ValueColumn.of(_cut(function(a.values)), a.valid)


def _strict(function: Callable[[IntArray, IntArray], AnyArray]) -> BinaryInstruction:
    """Return the instruction that is null for a null operand, and else the function, cut to 32 bits."""
    return lambda a, b: ValueColumn.of(_cut(function(a.values, b.values)), a.valid & b.valid)


def _divided(function: Callable[[IntArray, IntArray], AnyArray]) -> BinaryInstruction:
    """Return the instruction that is also null for a divisor of zero."""

    def compute(a: ValueColumn, b: ValueColumn) -> ValueColumn:
        valid = a.valid & b.valid & (b.values != 0)
        divisor = np.where(valid, b.values, 1)
        return ValueColumn.of(_cut(function(a.values, divisor)), valid)

    return compute


def _either(function: Callable[[IntArray, IntArray], AnyArray]) -> BinaryInstruction:
    """Return the instruction with the other operand for a null one."""

    def compute(a: ValueColumn, b: ValueColumn) -> ValueColumn:
        both = ValueColumn(function(a.values, b.values), a.valid & b.valid)
        return choose_values(both.valid, both, choose_values(a.valid, a, b))

    return compute


def _and(a: ValueColumn, b: ValueColumn) -> ValueColumn:
    false = (a.valid & (a.values == 0)) | (b.valid & (b.values == 0))
    valid = false | (a.valid & b.valid)
    return ValueColumn.of((~false).astype(np.int64), valid)


def _not(a: ValueColumn) -> ValueColumn:
    return ValueColumn.of((a.values == 0).astype(np.int64), a.valid)


UNARY: dict[str, UnaryInstruction] = {
    "NEG": _strict_unary(np.negative),
    "ABS": _strict_unary(np.abs),
    "NOT": _not,
    "ISNULL": lambda a: ValueColumn.truth(~a.valid),
}
BINARY: dict[str, BinaryInstruction] = {
    "ADD": _strict(np.add),
    "SUB": _strict(np.subtract),
    "MUL": _strict(np.multiply),
    "DIV": _divided(lambda a, b: (a - np.fmod(a, b)) // b),  # fmod has the sign of the dividend, so no rest is left
    "MOD": _divided(np.fmod),
    "LEAST": _either(np.minimum),
    "GREATEST": _either(np.maximum),
    "ELSE": lambda a, b: choose_values(a.valid, a, b),
    "EQ": _strict(np.equal),
    "NE": _strict(np.not_equal),
    "LT": _strict(np.less),
    "LE": _strict(np.less_equal),
    "GT": _strict(np.greater),
    "GE": _strict(np.greater_equal),
    "AND": _and,
    "OR": lambda a, b: _not(_and(_not(a), _not(b))),
}
