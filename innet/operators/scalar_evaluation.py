"""Scalar evaluation: the result of each instruction for single operands, 32-bit integers and nulls (semantics 5.1 to 5.3)."""

from collections.abc import Callable

from innet.operators.mote_expression import Instruction, MoteConstant, MoteExpression, SiteNumber

Value = int | None
"""A 32-bit integer, or null."""


def evaluate_at_site(expression: MoteExpression, site: int) -> Value:
    """Evaluate an expression over constants and the number of the site. ValueError if it reads a sensor."""
    match expression:
        case MoteConstant(value):
            return value
        case SiteNumber():
            return site
        case Instruction(name, operands):
            values = [evaluate_at_site(operand, site) for operand in operands]
            return (choose_value if name == "PICK" else UNARY.get(name) or BINARY[name])(*values)
    raise ValueError(f"expected an expression over constants and the site, found {expression}, which is sampled")


def choose_value(truth: Value, value: Value, otherwise: Value) -> Value:
    """Return `value` if `truth` is true, else `otherwise`."""
    return value if truth == 1 else otherwise


def _cut(value: int) -> int:
    """Return the lowest 32 bits, with sign."""
    return ((value + 0x8000_0000) & 0xFFFF_FFFF) - 0x8000_0000


def _quotient(a: int, b: int) -> Value:
    if b == 0:
        return None
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _rest(a: int, b: int) -> Value:
    return None if b == 0 else abs(a) % abs(b) * (-1 if a < 0 else 1)


def _strict(function: Callable[..., Value]) -> Callable[..., Value]:
    """Return the function with null for a null operand, and the result cut to 32 bits."""

    def compute(*operands: Value) -> Value:
        if any(operand is None for operand in operands):
            return None
        result = function(*operands)
        return None if result is None else _cut(int(result))

    return compute


def _either(function: Callable[[int, int], int]) -> Callable[[Value, Value], Value]:
    """Return the function with the other operand for a null one."""
    return lambda a, b: b if a is None else a if b is None else function(a, b)


def _and(a: Value, b: Value) -> Value:
    return 0 if a == 0 or b == 0 else None if a is None or b is None else 1


def _not(a: Value) -> Value:
    return None if a is None else int(a == 0)


UNARY: dict[str, Callable[[Value], Value]] = {
    "NEG": _strict(lambda a: -a),
    "ABS": _strict(abs),
    "NOT": _not,
    "ISNULL": lambda a: int(a is None),
}
BINARY: dict[str, Callable[[Value, Value], Value]] = {
    "ADD": _strict(lambda a, b: a + b),
    "SUB": _strict(lambda a, b: a - b),
    "MUL": _strict(lambda a, b: a * b),
    "DIV": _strict(_quotient),
    "MOD": _strict(_rest),
    "LEAST": _either(min),
    "GREATEST": _either(max),
    "ELSE": lambda a, b: b if a is None else a,
    "EQ": _strict(lambda a, b: a == b),
    "NE": _strict(lambda a, b: a != b),
    "LT": _strict(lambda a, b: a < b),
    "LE": _strict(lambda a, b: a <= b),
    "GT": _strict(lambda a, b: a > b),
    "GE": _strict(lambda a, b: a >= b),
    "AND": _and,
    "OR": lambda a, b: _not(_and(_not(a), _not(b))),
}
