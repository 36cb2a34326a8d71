"""Array types of columns: what an array holds, in one word each, for annotations."""

from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

IntArray: TypeAlias = NDArray[np.int64]
"""Ticks, sites, indexes, positions, weights, values of integer attributes."""
FloatArray: TypeAlias = NDArray[np.float64]
"""Values of float attributes."""
BoolArray: TypeAlias = NDArray[np.bool_]
"""A mask, or which values are there."""
IntOrArray = TypeVar("IntOrArray", int, IntArray)
"""One integer or an array of them; a function of it returns the same kind."""
AnyArray: TypeAlias = NDArray[Any]
"""A column of any type: integer, float, boolean, or object for strings and exact sums."""
