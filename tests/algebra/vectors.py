"""Vectors of Python values, for tests."""

import numpy as np

from acquisition.schema import Type
from basestation.algebra.vector import Vector, dtype_of


def vector_of(items, type_):
    """A Vector of Python values; None becomes null."""
    dtype = dtype_of(type_)
    valid = np.fromiter((item is not None for item in items), bool, len(items))
    blank = "" if type_ is Type.STRING else 0
    values = np.empty(len(items), dtype)
    values[:] = [blank if item is None else item for item in items]
    return Vector(values, None if valid.all() else valid)
