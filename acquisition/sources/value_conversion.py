"""Convert one value exactly to what an attribute stores, or explain why it does not fit.

This is the slow reference. `column_conversion` converts whole columns, and falls back to it for unusual values.
"""

import re
import reprlib
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from math import isfinite
from typing import TypeAlias

from acquisition.schema import Attribute, Type
from acquisition.ticks import tick_of_rfc3339
from gateway.errors import MoteloomError

Number: TypeAlias = int | float | Decimal

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_SUBMICROSECOND = re.compile(r"[.,][0-9]{6}[0-9]*[1-9]")
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


class ValueRejectedError(MoteloomError):
    """An attribute cannot store a value. `code` is a code of the error catalogue."""

    def __init__(self, code: str, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.code, self.help = code, help


def convert_value(value: object, attribute: Attribute, tick_ms: int, text: bool) -> int | float | str:
    """Return what a batch stores for a value that is not null. With `text`, strings may stand for numbers.

    Raises ValueRejectedError.
    """
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


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise ValueRejectedError("SN506", f"expected a string, found {quote_value(value)}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueRejectedError("SN506", f"{quote_value(value)} has an unpaired surrogate") from None
    return value


def _ticks(value: str | date, tick_ms: int) -> int | None:
    """Return the tick of an RFC 3339 text or a date; None if the text is a number."""
    if isinstance(value, date):
        if not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day, tzinfo=UTC)
        value = value.isoformat()
    elif _NUMBER.fullmatch(value):
        return None
    try:
        if _SUBMICROSECOND.search(value):
            raise ValueError("Python would cut off what is finer than a microsecond")
        return tick_of_rfc3339(value, tick_ms)
    except (ValueError, OverflowError):
        raise ValueRejectedError(
            "SN506",
            f"expected a time at a whole tick, found {quote_value(value)}",
            "a tick is a whole number or an RFC 3339 time such as 2026-11-18T08:00:00Z",
        ) from None


def _number(value: object, attribute: Attribute, text: bool) -> Number:
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
            message = f"expected {_expected(attribute)}, found {quote_value(value)} with blanks around it"
            raise ValueRejectedError("SN506", message, "remove the blanks")
        case _:
            if hasattr(value, "item") and not isinstance(value, bytes):  # a numpy scalar
                return _number(value.item(), attribute, text)
    raise ValueRejectedError("SN506", f"expected {_expected(attribute)}, found {quote_value(value)}")


def _expected(attribute: Attribute) -> str:
    return {Type.INTEGER: "an integer", Type.TIME: "a time"}.get(attribute.type, "a number")


def _decimal(number: Number, value: object) -> Decimal:
    """Return a number as a decimal; `value` is how an error shows it."""
    if isinstance(number, float) and not isfinite(number):
        raise ValueRejectedError(
            "SN506",
            f"expected a finite number, found {quote_value(value)}",
            "write a missing value as an empty field, or None",
        )
    if isinstance(number, int) and number.bit_length() > 256:
        raise _out_of_range(value)
    return number if isinstance(number, Decimal) else Decimal(number)


def _out_of_range(value: object) -> ValueRejectedError:
    return ValueRejectedError("SN507", f"{quote_value(value)} is out of range")


def _whole(number: Number, value: object) -> int:
    if isinstance(number, int):
        whole = number
    else:
        exact = _decimal(number, value)
        if exact.adjusted() > 20 and exact:
            raise _out_of_range(value)
        whole = int(exact) if exact and exact.adjusted() >= 0 else 0
        if whole != exact:
            raise ValueRejectedError("SN506", f"expected an integer, found {quote_value(value)}")
    if not _INT64_MIN <= whole <= _INT64_MAX:
        raise _out_of_range(value)
    return whole


def _multiple(number: Number, scale: int, value: object) -> int:
    """Return the count of the nearest multiple of 10^-scale; halves go away from zero (semantics 14 on 13)."""
    exact = _decimal(number, value)
    if not exact or exact.adjusted() + scale < -1:
        return 0
    if exact.adjusted() + scale > 20:
        raise _out_of_range(value)
    context = Context(prec=len(exact.as_tuple().digits) + 60, rounding=ROUND_HALF_UP, Emin=-(10**9), Emax=10**9)
    count = int(exact.scaleb(scale, context).quantize(Decimal(1), context=context))
    if not _INT64_MIN <= count <= _INT64_MAX:
        raise _out_of_range(value)
    return count


def _double(number: Number, value: object) -> float:
    try:
        double = float(number)
    except OverflowError:
        raise _out_of_range(value) from None
    if isfinite(double):
        return double
    if isinstance(number, float):
        _decimal(number, value)
    raise _out_of_range(value)


def quote_value(value: object) -> str:
    """Return a value as an error shows it: quoted, on one line, at most 40 characters."""
    try:
        text = (
            value if isinstance(value, str) else str(value) if isinstance(value, int | float | Decimal) else repr(value)
        )
    except RecursionError:  # repr goes less deep than a parser of JSON
        text = reprlib.repr(value)
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:41])
    return f"`{text[:40]}…`" if len(text) > 40 else f"`{text}`"
