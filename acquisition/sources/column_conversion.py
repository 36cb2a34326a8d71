"""Convert whole columns to what batches store: numpy arrays of the attribute's type, and a mask of the values present.

The fast paths handle plain columns and return None for anything else. Then `value_conversion` converts value by value:
either every value fits after all, or the error names the first one that does not, with its row.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquisition.arrays import AnyArray, BoolArray, FloatArray, IntArray
from acquisition.batch import dtype_of
from acquisition.errors import InputError
from acquisition.schema import Attribute, Type
from acquisition.sources.arrow_arrays import codes_of, nulls_to_numpy, numbers_to_numpy
from acquisition.sources.recorded_table import RecordedTable
from acquisition.sources.value_conversion import ValueRejectedError, convert_value
from gateway.errors import MoteloomError

Column: TypeAlias = tuple[AnyArray, BoolArray | None]
"""Values, and which of them are present (None: all)."""

_INTEGER = r"^-?[0-9]+$"
_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_DECIMAL = r"^[+-]?([0-9]{1,18}(\.[0-9]{0,18})?|\.[0-9]{1,18})$"
"""Texts that Arrow converts to decimals correctly: with an exponent or more digits it silently wraps around."""
_WIDE = 38, 18
"""Precision and scale of a decimal that holds every 64-bit multiple of every scale, and the digits to round."""


class TextNeededError(MoteloomError):
    """A number that was parsed as a double or integer cannot be converted exactly: its text is needed."""


def convert_column(recorded: RecordedTable, name: str, attribute: Attribute, tick_ms: int) -> Column:
    """Return a column as a batch stores the attribute. Raises InputError at the first value that does not fit."""
    array = to_arrow(recorded.columns[name])
    if isinstance(array, list):
        return _one_by_one(array, recorded, name, attribute, tick_ms)
    mask = nulls_to_numpy(array)
    if array.null_count == len(array):
        return _blank(len(array), attribute), mask
    try:
        values = _plain(array, attribute, tick_ms, recorded)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError):
        values = None
    if values is None:
        if recorded.parsed:
            raise TextNeededError(name)
        return _one_by_one(_python_values(array), recorded, name, attribute, tick_ms)
    return values, mask


def to_arrow(column: Any) -> Any:
    """Return a column as one Arrow array; as a list where Arrow would guess (`1` and `0.5`, huge integers)."""
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


def _python_values(array: pa.Array) -> list[object]:
    """Return Python values; times as text, because datetime has neither nanoseconds nor years after 9999."""
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp(array.type.unit, array.type.tz and "UTC"))
    if pa.types.is_timestamp(array.type) or pa.types.is_date(array.type):
        array = array.cast(pa.string())
    values: list[object] = array.to_pylist()
    return values


def _blank(length: int, attribute: Attribute) -> AnyArray:
    """Return the values that stand for nulls."""
    return np.full(length, "" if attribute.type is Type.STRING else 0, dtype_of(attribute))


def _one_by_one(
    items: Sequence[object], recorded: RecordedTable, name: str, attribute: Attribute, tick_ms: int
) -> Column:
    values, present = _blank(len(items), attribute), np.ones(len(items), bool)
    wrong: list[int] = []
    first: ValueRejectedError | None = None
    for row, item in enumerate(items):
        if item is None:
            present[row] = False
            continue
        try:
            values[row] = convert_value(item, attribute, tick_ms, recorded.text)
        except ValueRejectedError as error:
            wrong.append(row)
            first = first or error
            if not recorded.every_error:
                break
    if first is not None:
        rows = recorded.rows(wrong)
        raise InputError(first.code, str(first), recorded.name, rows[0], name, first.help, rows)
    return values, None if present.all() else present


# --- fast paths ------------------------------------------------------------------------------------------------------


def _plain(array: pa.Array, attribute: Attribute, tick_ms: int, recorded: RecordedTable) -> AnyArray | None:
    type_ = array.type
    if pa.types.is_string(type_):
        if attribute.type is Type.STRING:
            return _strings(array)
        return _from_text(array, attribute, tick_ms) if recorded.text else None
    if pa.types.is_timestamp(type_) and attribute.type is Type.TIME:
        return _instants(array, tick_ms)
    if not attribute.type.numeric:
        return None
    if pa.types.is_integer(type_):
        return _from_integers(array, attribute)
    if pa.types.is_floating(type_):
        return _from_floats(array, attribute, recorded.parsed)
    return _from_decimals(array, attribute) if pa.types.is_decimal(type_) else None


def _strings(array: pa.Array) -> AnyArray:
    """Return strings; equal ones are the same object, so a column of categories costs a pointer for each row."""
    codes, words = codes_of(array)
    return np.array([*words, ""], object)[codes]


def _matches(array: pa.Array, pattern: str) -> bool:
    matches: bool = pc.all(pc.match_substring_regex(array, pattern)).as_py()
    return matches


def _from_text(array: pa.Array, attribute: Attribute, tick_ms: int) -> AnyArray | None:
    if attribute.type.whole:
        if _matches(array, _INTEGER):
            return _numpy(array.cast(pa.int64()))
        return _instants(array.cast(pa.timestamp("us", "UTC")), tick_ms) if attribute.type is Type.TIME else None
    if not _matches(array, _NUMBER if attribute.scale is None else _DECIMAL):
        return None
    if attribute.scale is None:
        return _finite(_numpy(array.cast(pa.float64())))
    return _multiples(array.cast(pa.decimal128(*_WIDE)), attribute.scale)


def _from_integers(array: pa.Array, attribute: Attribute) -> AnyArray | None:
    if attribute.type.whole or attribute.scale is not None:
        values: IntArray = _numpy(array.cast(pa.int64()))
        if attribute.scale is None:
            return values
        most = (2**63 - 1) // 10**attribute.scale
        return values * 10**attribute.scale if (np.abs(values) <= most).all() and (values != -(2**63)).all() else None
    return _numpy(array).astype(np.float64)  # numpy rounds to the nearest double, Arrow raises


def _from_floats(array: pa.Array, attribute: Attribute, parsed: bool) -> AnyArray | None:
    """Return doubles as the attribute has them. `parsed` says that a text stood for each, which may be a little more or less."""
    values = _finite(_numpy(array).astype(np.float64, copy=False))
    if values is None or (attribute.scale is None and not attribute.type.whole):
        return values
    if attribute.scale is None or attribute.type.whole:
        fits = (values == np.trunc(values)) & (np.abs(values) < 2.0**63)
        return values.astype(np.int64) if fits.all() and not parsed else None
    # Text, double and product differ by less than 2^-11 up to here, so only values close to a half are in doubt.
    product = values * 10.0**attribute.scale
    nearest = np.rint(product)
    if np.abs(product).max() < 2.0**40 and np.abs(product - nearest).max() < 0.499:
        return nearest.astype(np.int64)
    if parsed or not (np.abs(product) < 2.0**51).all():
        return None
    size = np.abs(product)
    down = np.floor(size)
    count: IntArray = (np.copysign(down + (size - down >= 0.5), product)).astype(np.int64)
    for i in np.flatnonzero(np.abs(size - down - 0.5) <= size * 2.0**-52):
        count[i] = convert_value(float(values[i]), attribute, 1, False)
    return count


def _from_decimals(array: pa.Array, attribute: Attribute) -> AnyArray | None:
    if not (np.abs(_numpy(array.cast(pa.float64()))) < 1e18).all():
        return None  # Arrow's casts of large decimals silently wrap around
    if attribute.type.whole:
        return _numpy(array.cast(pa.int64()))
    if attribute.scale is None:
        return _finite(_numpy(array.cast(pa.string()).cast(pa.float64())))  # through text, which rounds once
    return _multiples(array.cast(pa.decimal128(*_WIDE)), attribute.scale)


def _multiples(wide: pa.Array, scale: int) -> IntArray | None:
    """Return the counts of the nearest multiples of 10^-scale, halves away from zero; None if one exceeds 64 bits."""
    rounded = pc.round(wide, scale, "half_towards_infinity").cast(pa.decimal128(38, scale))
    words: IntArray = np.frombuffer(rounded.buffers()[1], "<i8").reshape(-1, 2)
    words = words[rounded.offset : rounded.offset + len(rounded)]
    if (valid := nulls_to_numpy(rounded)) is not None:
        words = np.where(valid[:, None], words, 0)
    low, high = words[:, 0], words[:, 1]
    return low.copy() if (high == low >> 63).all() else None


def _instants(array: pa.Array, tick_ms: int) -> IntArray | None:
    """Return the ticks of Arrow timestamps; None if one is not at a whole tick."""
    micros: IntArray = _numpy(array.cast(pa.timestamp("us", array.type.tz)).cast(pa.int64()))
    ticks, rest = np.divmod(micros, tick_ms * 1000)
    return None if rest.any() else ticks


def _finite(values: FloatArray) -> FloatArray | None:
    return values if np.isfinite(values).all() else None


def _numpy(array: pa.Array) -> AnyArray:
    """Return a writable numpy array; nulls become 0."""
    values, valid = numbers_to_numpy(array), nulls_to_numpy(array)
    if valid is not None:
        values[~valid] = 0
    return values
