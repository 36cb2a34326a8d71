"""Ranges: what values an expression can have, from what its sensors can give; and whether a mote can hold them all.

Interval arithmetic: every value is within the interval found, which may be wider than need be. What fits here fits for
every value that the raw type of a sensor has, so nothing is left to luck.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from gateway.errors import MoteloomError
from innet.operators.mote_expression import Instruction, MoteConstant, MoteExpression, SensorValue


@dataclass(frozen=True, slots=True)
class Interval:
    """From `low` to `high`, both inside."""

    low: int
    high: int

    def __iter__(self) -> Iterator[int]:
        """Both ends."""
        yield from (self.low, self.high)

    def within(self, other: "Interval") -> bool:
        return other.low <= self.low and self.high <= other.high

    def hull(self, other: "Interval") -> "Interval":
        return Interval(min(self.low, other.low), max(self.high, other.high))


REGISTER = Interval(-(2**31), 2**31 - 1)
TRUTH = Interval(0, 1)
SITES = Interval(0, 2**16 - 1)


class ValueRangeError(MoteloomError):
    """An expression that has values which do not fit; not an error, but an answer."""

    def __init__(self, expression: MoteExpression, interval: Interval) -> None:
        super().__init__(f"{expression} can be {interval.low} to {interval.high}")
        self.expression, self.interval = expression, interval


def infer_range(expression: MoteExpression, raw: Mapping[SensorValue, Interval], room: Interval = REGISTER) -> Interval:
    """The values that an expression can have; TooWide if it, or any part of it, does not fit into `room`.

    What `raw` does not say of a sensor is taken to be all that a register holds.
    """
    match expression:
        case MoteConstant(value):
            found = Interval(value or 0, value or 0)
        case SensorValue():
            found = raw.get(expression, REGISTER)
        case Instruction(name, operands):
            found = _RULES[name](*(infer_range(part, raw, room) for part in operands))
        case _:
            found = SITES
    if not found.within(room):
        raise ValueRangeError(expression, found)
    return found


def _hull(*numbers: int) -> Interval:
    return Interval(min(numbers), max(numbers))


def _times(a: Interval, b: Interval) -> Interval:
    return _hull(a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high)


def _over(a: Interval, b: Interval) -> Interval:
    """A divisor of one sign: the furthest quotients are at the ends. Else they are no further from zero than the dividend."""
    if b.low > 0 or b.high < 0:
        return _hull(*(abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x in a for y in b))
    furthest = max(abs(a.low), abs(a.high))
    return Interval(-furthest, furthest)


def _rest(a: Interval, b: Interval) -> Interval:
    most = max(abs(b.low), abs(b.high), 1) - 1
    return Interval(max(min(a.low, 0), -most), min(max(a.high, 0), most))


def _size(a: Interval) -> Interval:
    return Interval(0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high)), max(abs(a.low), abs(a.high)))


_RULES: dict[str, Callable[..., Interval]] = {
    "ADD": lambda a, b: Interval(a.low + b.low, a.high + b.high),
    "SUB": lambda a, b: Interval(a.low - b.high, a.high - b.low),
    "MUL": _times,
    "DIV": _over,
    "MOD": _rest,
    "NEG": lambda a: Interval(-a.high, -a.low),
    "ABS": _size,
    "LEAST": lambda a, b: a.hull(b),
    "GREATEST": lambda a, b: a.hull(b),
    "ELSE": lambda a, b: a.hull(b),
    "PICK": lambda _, a, b: a.hull(b),
    **{
        name: lambda *_: TRUTH for name in ("EQ", "NE", "LT", "LE", "GT", "GE", "AND", "OR", "NOT", "ISNULL")
    },
}  # fmt: skip
