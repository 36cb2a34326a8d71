"""Whole columns become what batches hold: numpy arrays of the attribute's type, and a mask where something is missing.

The fast ways below handle plain columns and give up (None) on anything else; then `sources.exact` goes value by value,
and either every value is in order after all, or the first one that is not is named with its row.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquisition.batch import dtype_of
from acquisition.errors import InputError
from acquisition.schema import Type
from acquisition.sources.value_conversion import ValueRejectedError, convert_value

_INTEGER = r"^-?[0-9]+$"
_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_DECIMAL = r"^[+-]?([0-9]{1,18}(\.[0-9]{0,18})?|\.[0-9]{1,18})$"
"""What Arrow may turn into a decimal: given an exponent or more digits, it wraps around without a word."""
_WIDE = 38, 18
"""A decimal that holds every 64-bit multiple of every scale, and what is to be rounded away from most texts."""


def convert_column(recorded, name, attribute, tick_ms):
    """(values, mask or None) of a column, as a batch holds the attribute; InputError at the first value that does not fit."""
    array = to_arrow(recorded.columns[name])
    if isinstance(array, list):
        return _one_by_one(array, recorded, name, attribute, tick_ms)
    mask = None if array.null_count == 0 else array.is_valid().to_numpy(zero_copy_only=False)
    if array.null_count == len(array):
        return _blank(len(array), attribute), mask
    try:
        values = _plain(array, attribute, tick_ms, recorded.text)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError):
        values = None
    if values is None:
        return _one_by_one(_python_values(array), recorded, name, attribute, tick_ms)
    return values, mask


def to_arrow(column):
    """A column as one Arrow array; a list where Arrow would have to guess (`1` and `0.5` in one list, huge integers)."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        column = column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)
    if isinstance(column, np.ndarray) and column.dtype != object:
        column = pa.array(column.tolist() if column.dtype.kind in "US" else column)
    if isinstance(column, pa.Array):
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
            column = column.cast(pa.string())
        return column
    column = list(column)
    kinds = set(map(type, column)) - {type(None)}
    if len(kinds) == 1:
        (kind,) = kinds
        type_ = {int: pa.int64(), float: pa.float64(), str: pa.string()}.get(kind)
        try:
            return column if type_ is None else pa.array(column, type_)
        except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
            return column
    return column if kinds else pa.nulls(len(column))


def _python_values(array):
    """The values as Python has them; times as text, because datetime knows neither nanoseconds nor far years."""
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp(array.type.unit, array.type.tz and "UTC"))
    if pa.types.is_timestamp(array.type) or pa.types.is_date(array.type):
        array = array.cast(pa.string())
    return array.to_pylist()


def _blank(length, attribute):
    return np.full(length, "" if attribute.type is Type.STRING else 0, dtype_of(attribute))


def _one_by_one(items, recorded, name, attribute, tick_ms):
    values, there = _blank(len(items), attribute), np.ones(len(items), bool)
    for row, item in enumerate(items):
        if item is None:
            there[row] = False
            continue
        try:
            values[row] = convert_value(item, attribute, tick_ms, recorded.text)
        except ValueRejectedError as why:
            raise InputError(why.code, str(why), recorded.name, row + 1, name, why.help) from None
    return values, None if there.all() else there


# --- the fast ways ---------------------------------------------------------------------------------------------------


def _plain(array, attribute, tick_ms, text):
    type_ = array.type
    if pa.types.is_string(type_):
        if attribute.type is Type.STRING:
            return _strings(array)
        return _from_text(array, attribute, tick_ms) if text else None
    if pa.types.is_timestamp(type_) and attribute.type is Type.TIME:
        return _instants(array, tick_ms)
    if not attribute.type.numeric:
        return None
    if pa.types.is_integer(type_):
        return _from_integers(array, attribute)
    if pa.types.is_floating(type_):
        return _from_floats(array, attribute)
    return _from_decimals(array, attribute) if pa.types.is_decimal(type_) else None


def _strings(array):
    """Equal strings of a column are one object: a column of categories costs a pointer a row."""
    coded = array.dictionary_encode()
    words = np.append(coded.dictionary.to_numpy(zero_copy_only=False), "")
    return words[coded.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)]


def _matches(array, pattern):
    return pc.all(pc.match_substring_regex(array, pattern)).as_py()


def _from_text(array, attribute, tick_ms):
    if attribute.type.whole:
        if _matches(array, _INTEGER):
            return _numpy(array.cast(pa.int64()))
        return _instants(array.cast(pa.timestamp("us", "UTC")), tick_ms) if attribute.type is Type.TIME else None
    if not _matches(array, _NUMBER if attribute.scale is None else _DECIMAL):
        return None
    if attribute.scale is None:
        return _finite(_numpy(array.cast(pa.float64())))
    return _multiples(array.cast(pa.decimal128(*_WIDE)), attribute.scale)


def _from_integers(array, attribute):
    if attribute.type.whole or attribute.scale is not None:
        values = _numpy(array.cast(pa.int64()))
        if attribute.scale is None:
            return values
        most = (2**63 - 1) // 10**attribute.scale
        return values * 10**attribute.scale if (np.abs(values) <= most).all() and (values != -(2**63)).all() else None
    return _numpy(array).astype(np.float64)  # numpy rounds to the nearest double, where Arrow refuses


def _from_floats(array, attribute):
    values = _finite(_numpy(array).astype(np.float64))
    if values is None or (attribute.scale is None and not attribute.type.whole):
        return values
    if attribute.type.whole:
        fits = (values == np.trunc(values)) & (np.abs(values) < 2.0**63)
        return values.astype(np.int64) if fits.all() else None
    # The product is off by half a unit in the last place at most, so only what lies close to a half is in doubt.
    product = values * 10.0**attribute.scale
    if not (np.abs(product) < 2.0**51).all():
        return None
    size = np.abs(product)
    down = np.floor(size)
    count = (np.copysign(down + (size - down >= 0.5), product)).astype(np.int64)
    for i in np.flatnonzero(np.abs(size - down - 0.5) <= size * 2.0**-52):
        count[i] = convert_value(float(values[i]), attribute, 1, False)
    return count


def _from_decimals(array, attribute):
    if not (np.abs(_numpy(array.cast(pa.float64()))) < 1e18).all():
        return None  # Arrow's casts of large decimals wrap around without a word
    if attribute.type.whole:
        return _numpy(array.cast(pa.int64()))
    if attribute.scale is None:
        return _finite(_numpy(array.cast(pa.string()).cast(pa.float64())))  # through text, which is rounded once
    return _multiples(array.cast(pa.decimal128(*_WIDE)), attribute.scale)


def _multiples(wide, scale):
    """The counts of nearest multiples of 10^-scale, halves away from zero; None where one has more than 64 bits."""
    rounded = pc.round(wide, scale, "half_towards_infinity").cast(pa.decimal128(38, scale))
    if rounded.null_count:
        rounded = rounded.fill_null(0)
    words = np.frombuffer(rounded.buffers()[1], "<i8").reshape(-1, 2)[rounded.offset : rounded.offset + len(rounded)]
    low, high = words[:, 0], words[:, 1]
    return low.copy() if (high == low >> 63).all() else None


def _instants(array, tick_ms):
    micros = _numpy(array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64()))
    ticks, rest = np.divmod(micros, tick_ms * 1000)
    return None if rest.any() else ticks


def _finite(values):
    return values if np.isfinite(values).all() else None


def _numpy(array):
    """A writable numpy array; what is missing reads as 0."""
    if array.null_count:
        array = array.fill_null(pa.scalar(0).cast(array.type))
    return array.to_numpy(zero_copy_only=False).copy()
