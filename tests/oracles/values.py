"""Values: integers, floats, strings and None (null), and what operators and functions make of them.

A predicate is True, False or None (unknown, 5.1).
"""

import math
import re
from fractions import Fraction


class Multiple(float):
    """A value of an attribute with a scale: the nearest double of count * 10^-scale (13).

    Every operation on it gives a plain float, so an expression loses the scale and the plain column keeps it (14).
    """

    def __new__(cls, count, scale):
        self = super().__new__(cls, Fraction(count, 10**scale))
        self.count, self.scale = count, scale
        return self


def nearest_multiple(value, scale):
    """The multiple of 10^-scale nearest to a number, halves away from zero (14, on 13)."""
    return Multiple(half_away(exact(value) * 10**scale), scale)


def exact(value):
    """A number as a fraction, with nothing lost."""
    if isinstance(value, Multiple):
        return Fraction(value.count, 10**value.scale)
    return Fraction(value)


def rounded(fraction):
    """The nearest double; null if that is no finite number (10.4)."""
    try:
        return float(fraction)
    except OverflowError:
        return None


def plain(value):
    """A value without its scale: what an expression gives (14, on 13)."""
    return float(value) if isinstance(value, float) else value


def finite(value):
    """10.4: a result that is no finite number is null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def in_64_bits(integer):
    """14, on 1.8: an integer outside 64 bits is null."""
    return integer if -(2**63) <= integer < 2**63 else None


def half_away(fraction):
    """The nearest integer, halves away from zero."""
    whole = math.floor(abs(Fraction(fraction)) + Fraction(1, 2))
    return -whole if fraction < 0 else whole


# --- logic and comparison (5.1) --------------------------------------------------------------------------------------


def not_(a):
    return None if a is None else not a


def and_(a, b):
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def or_(a, b):
    if a is True or b is True:
        return True
    return None if a is None or b is None else False


COMPARISONS = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def compare(op, a, b):
    """Unknown with a null (5.1). Python compares integers and floats by value (5.2), strings by code point (1.8)."""
    return None if a is None or b is None else COMPARISONS[op](a, b)


def in_list(value, items):
    """value = item OR value = item OR …"""
    result = False
    for item in items:
        result = or_(result, compare("=", value, item))
    return result


def like(text, pattern):
    """10.4: `%` any run of characters, `_` one character, `\\` takes the next character as it is."""
    if text is None or pattern is None:
        return None
    out, i = "", 0
    while i < len(pattern):
        if pattern[i] == "\\" and i + 1 < len(pattern):
            out += re.escape(pattern[i + 1])
            i += 1
        elif pattern[i] == "%":
            out += ".*"
        elif pattern[i] == "_":
            out += "."
        else:
            out += re.escape(pattern[i])
        i += 1
    return re.fullmatch(out, text, re.DOTALL) is not None


# --- arithmetic (5.1 to 5.3, 10.4) -----------------------------------------------------------------------------------


def cut_division(a, b):
    """Integer division that truncates toward zero (5.2): -7 / 2 = -3."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def whole_arithmetic(op, a, b):
    """One operator over integers of any size; b is not 0 where it divides."""
    if op == "+":
        return a + b
    if op == "-":
        return a - b
    if op == "*":
        return a * b
    return cut_division(a, b) if op == "/" else a - b * cut_division(a, b)  # 10.4: sign of the dividend


def arithmetic(op, a, b):
    if a is None or b is None:
        return None  # 5.1
    if op in "/%" and b == 0:
        return None  # 5.3
    if isinstance(a, int) and isinstance(b, int):
        return in_64_bits(whole_arithmetic(op, a, b))
    try:
        if op == "+":
            return finite(a + b)
        if op == "-":
            return finite(a - b)
        if op == "*":
            return finite(a * b)
        if op == "/":
            return finite(a / b)
        return finite(math.fmod(a, b))  # 10.4: sign of the dividend
    except OverflowError:
        return None


def negate(a):
    if a is None:
        return None
    return in_64_bits(-a) if isinstance(a, int) else -a


# --- functions (10.4) ------------------------------------------------------------------------------------------------


def _real(function):
    """A function of the reals: null of nulls, outside its domain, and where no finite number comes out."""

    def applied(*arguments):
        if None in arguments:
            return None
        try:
            return finite(float(function(*arguments)))
        except (ValueError, OverflowError):
            return None

    return applied


def _keeping(function):
    """A function that keeps its argument's type (14, on 10.4)."""

    def applied(value):
        if value is None or isinstance(value, int):
            return value
        return float(function(value))

    return applied


def absolute(value):
    if value is None:
        return None
    return in_64_bits(abs(value)) if isinstance(value, int) else abs(value)


round_half_away = _keeping(half_away)
floor = _keeping(math.floor)
ceil = _keeping(math.ceil)
sqrt = _real(math.sqrt)
power = _real(math.pow)
ln = _real(math.log)
exp = _real(math.exp)
dist = _real(lambda x1, y1, x2, y2: math.sqrt((x2 - x1) * (x2 - x1) + (y2 - y1) * (y2 - y1)))


def least(*values):
    return min((v for v in values if v is not None), default=None)  # nulls left out


def greatest(*values):
    return max((v for v in values if v is not None), default=None)


def coalesce(*values):
    return next((v for v in values if v is not None), None)


def nullif(a, b):
    return None if compare("=", a, b) is True else a


def lower(text):
    return None if text is None else "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)


def upper(text):
    return None if text is None else "".join(chr(ord(c) - 32) if "a" <= c <= "z" else c for c in text)


def length(text):
    return None if text is None else len(text)


NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def cast(value, to):
    """CAST: a float is cut, text that is no number gives null; CAST('1.5' AS integer) is 1 (14)."""
    if value is None:
        return None
    if to == "string":
        return repr(float(value)) if isinstance(value, float) else str(value)
    if isinstance(value, str):
        if not NUMBER.fullmatch(value):
            return None
        number = Fraction(value)
    else:
        number = exact(value)
    if to == "float":
        return rounded(number)
    whole = math.trunc(number)
    return in_64_bits(whole)


# --- exact roots -----------------------------------------------------------------------------------------------------


def exact_sqrt(fraction):
    """The double nearest to the square root of a fraction (5.5: rounded once)."""
    if fraction == 0:
        return 0.0
    shift = 0
    while fraction * 4**shift < 4**70:  # at least 70 bits before the point of the root
        shift += 64
    scaled = fraction * 4**shift
    root = math.isqrt(math.floor(scaled))
    rest = 0 if root * root == scaled else 1  # whatever follows lies strictly between root and root + 1
    return rounded(Fraction(2 * root + rest, 2 * 2**shift))
