"""One value, exactly: what an attribute holds of it, or why it cannot hold it.

This is the slow way, and the definition: `sources.typed` converts whole columns, and comes here for whatever is unusual.
"""

import re
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from math import isfinite

from acquisition.schema import Type
from acquisition.ticks import tick_of_rfc3339
from gateway.errors import MoteloomError

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_FINER = re.compile(r"[.,][0-9]{6}[0-9]*[1-9]")
_LEAST, _MOST = -(2**63), 2**63 - 1


class ValueRejectedError(MoteloomError):
    """A value that an attribute cannot hold; `code` is a number of the catalogue of errors."""

    def __init__(self, code, message, help=None):
        super().__init__(message)
        self.code, self.help = code, help


def convert_value(value, attribute, tick_ms, text):
    """What a batch holds of a value that is there: int, float or str. With `text`, strings may stand for numbers."""
    if attribute.type is Type.STRING:
        return _string(value)
    if attribute.type is Type.TIME and isinstance(value, str | date):
        ticks = _ticks(value, tick_ms)
        if ticks is not None:
            return ticks
    number = _number(value, attribute, text)
    if attribute.type.whole:
        return _whole(number, value)
    if attribute.scale is not None:
        return _multiple(number, attribute.scale, value)
    return _double(number, value)


def _string(value):
    if not isinstance(value, str):
        raise ValueRejectedError("SN506", f"{quote_value(value)} is no string")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueRejectedError(
                "SN506", f"{quote_value(value)} has half a surrogate pair, which is no character"
            ) from None
    return value


def _ticks(value, tick_ms):
    """The tick of an RFC 3339 text or a datetime; None where the text may be a number."""
    if isinstance(value, date):
        if not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day, tzinfo=UTC)
        value = value.isoformat()
    elif _NUMBER.fullmatch(value):
        return None
    try:
        if _FINER.search(value):
            raise ValueError("finer than Python reads; it would be cut off")
        return tick_of_rfc3339(value, tick_ms)
    except (ValueError, OverflowError):
        raise ValueRejectedError(
            "SN506",
            f"{quote_value(value)} is no time at a whole tick",
            "a tick is a whole number or an RFC 3339 time such as 2026-11-18T08:00:00Z",
        ) from None


def _number(value, attribute, text):
    """A value as int, float or Decimal."""
    match value:
        case bool():
            pass
        case int() | float():
            return value
        case Decimal() if value.is_finite():
            return value
        case str() if (text or attribute.type is Type.TIME) and _NUMBER.fullmatch(value):
            return Decimal(value)
        case str() if text and value != value.strip() and _NUMBER.fullmatch(value.strip()):
            raise ValueRejectedError(
                "SN506", f"{quote_value(value)} is {_a(attribute)} with blanks around it", "take the blanks away"
            )
        case _:
            if hasattr(value, "item") and not isinstance(value, bytes):  # a numpy scalar
                return _number(value.item(), attribute, text)
    raise ValueRejectedError("SN506", f"{quote_value(value)} is {'no ' + _a(attribute).split(' ', 1)[1]}")


def _a(attribute):
    return {Type.INTEGER: "an integer", Type.TIME: "a time"}.get(attribute.type, "a number")


def _decimal(number, value):
    if isinstance(number, float) and not isfinite(number):
        raise ValueRejectedError(
            "SN506", f"{quote_value(value)} is no finite number", "a value that is missing is an empty field, or None"
        )
    if isinstance(number, int) and number.bit_length() > 256:
        raise _too_large(value)
    return number if isinstance(number, Decimal) else Decimal(number)


def _too_large(value):
    return ValueRejectedError("SN507", f"{quote_value(value)} is out of range")


def _whole(number, value):
    if isinstance(number, int):
        whole = number
    else:
        exact = _decimal(number, value)
        if exact.adjusted() > 20 and exact:
            raise _too_large(value)
        whole = int(exact) if exact and exact.adjusted() >= 0 else 0
        if whole != exact:
            raise ValueRejectedError("SN506", f"{quote_value(value)} is no integer")
    if not _LEAST <= whole <= _MOST:
        raise _too_large(value)
    return whole


def _multiple(number, scale, value):
    """The multiple of 10^-scale nearest to a number, halves away from zero (SEMANTICS 14 on 13)."""
    exact = _decimal(number, value)
    if not exact or exact.adjusted() + scale < -1:
        return 0
    if exact.adjusted() + scale > 20:
        raise _too_large(value)
    context = Context(prec=len(exact.as_tuple().digits) + 60, rounding=ROUND_HALF_UP, Emin=-(10**9), Emax=10**9)
    count = int(exact.scaleb(scale, context).quantize(Decimal(1), context=context))
    if not _LEAST <= count <= _MOST:
        raise _too_large(value)
    return count


def _double(number, value):
    try:
        double = float(number)
    except OverflowError:
        raise _too_large(value) from None
    if isfinite(double):
        return double
    if isinstance(number, float):
        _decimal(number, value)
    raise _too_large(value)


def quote_value(value):
    """A value as an error shows it: short, and on one line."""
    text = value if isinstance(value, str) else str(value) if isinstance(value, int | float | Decimal) else repr(value)
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:41])
    return f"`{text[:40]}…`" if len(text) > 40 else f"`{text}`"
