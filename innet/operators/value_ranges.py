"""Value range analysis: which values an expression can take, and whether they fit into a register of a mote.

Interval arithmetic over the raw ranges of sensors. Every value lies within the interval found, which may be wider than
necessary. So an expression that fits here fits for every raw value of its sensors.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from gateway.errors import MoteloomError
from innet.operators.mote_expression import Instruction, MoteConstant, MoteExpression, SensorValue


@dataclass(frozen=True, slots=True)
class Interval:
    """The integers from `low` to `high`, both included."""

    low: int
    high: int

    def __iter__(self) -> Iterator[int]:
        """Yield both ends."""
        yield from (self.low, self.high)

    def within(self, other: "Interval") -> bool:
        """Whether `other` contains this interval."""
        return other.low <= self.low and self.high <= other.high

    def hull(self, other: "Interval") -> "Interval":
        """Return the smallest interval that contains both."""
        return Interval(min(self.low, other.low), max(self.high, other.high))


REGISTER = Interval(-(2**31), 2**31 - 1)
"""The values of a register."""
TRUTH = Interval(0, 1)
"""The truth values."""
SITES = Interval(0, 2**16 - 1)
"""The numbers of motes."""


class ValueRangeError(MoteloomError):
    """An expression can take values that do not fit; the planner then keeps it at the base station."""

    def __init__(self, expression: MoteExpression, interval: Interval) -> None:
        super().__init__(f"{expression} can be {interval.low} to {interval.high}")
        self.expression, self.interval = expression, interval


def infer_range(expression: MoteExpression, raw: Mapping[SensorValue, Interval], room: Interval = REGISTER) -> Interval:
    """Return the values that an expression can take.

    `raw` has the raw ranges of sensors; a sensor without one may give any value of a register. ValueRangeError if the
    expression or any part of it does not fit into `room`.
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
    """Return the range of quotients.

    With a divisor of one sign, the extreme quotients are at the ends. Otherwise a quotient is at most as far from zero
    as the dividend.
    """
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
