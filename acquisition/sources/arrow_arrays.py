"""Convert between numpy and Arrow arrays. pyarrow's own converters import pandas, which takes 0.15 s."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from acquisition.arrays import AnyArray, BoolArray, IntArray

_TYPES = {"int64": pa.int64(), "float64": pa.float64()}


def numbers_to_arrow(values: AnyArray, valid: BoolArray | None = None) -> Any:
    """Return integers or doubles of 64 bits as an Arrow array, null where not `valid`; it keeps the memory of `values`."""
    values = np.ascontiguousarray(values)
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(_TYPES[values.dtype.name], len(values), [bits, pa.py_buffer(values)])


def mask_to_arrow(mask: BoolArray) -> Any:
    """Return a mask as an Arrow array of booleans."""
    bits = pa.py_buffer(np.packbits(mask, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, bits])


def strings_to_arrow(values: Sequence[str]) -> Any:
    """Return strings as an Arrow array without nulls."""
    encoded = [value.encode() for value in values]
    offsets = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum([len(each) for each in encoded], out=offsets[1:])
    return pa.Array.from_buffers(
        pa.string(), len(encoded), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    )


def numbers_to_numpy(array: Any) -> AnyArray:
    """Return an Arrow array of numbers as a writable numpy array; the values of nulls are arbitrary."""
    dtype = np.dtype(array.type.to_pandas_dtype())
    if not len(array):
        return np.empty(0, dtype)
    values: AnyArray = np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize).copy()
    return values


def mask_to_numpy(array: Any) -> BoolArray:
    """Return an Arrow array of booleans without nulls as a mask."""
    if not len(array):
        return np.empty(0, bool)
    bits = np.unpackbits(np.frombuffer(array.buffers()[1], np.uint8), bitorder="little")
    return bits[array.offset : array.offset + len(array)].astype(bool)


def nulls_to_numpy(array: Any) -> BoolArray | None:
    """Return the mask of the values that are not null; None if all are."""
    return None if array.null_count == 0 else mask_to_numpy(array.is_valid())


def codes_of(array: Any) -> tuple[IntArray, list[str]]:
    """Return for each string its position in the list of different ones; that of a null is behind the last."""
    coded = array.dictionary_encode()
    words: list[str] = coded.dictionary.to_pylist()
    codes, valid = numbers_to_numpy(coded.indices), nulls_to_numpy(coded.indices)
    if valid is not None:
        codes[~valid] = len(words)
    return codes, words


def literal(text: str) -> Any:
    """Return a string as an Arrow scalar."""
    return strings_to_arrow([text])[0]
