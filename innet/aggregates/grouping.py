"""Sorts rows by group, for aggregates that cannot fold row by row."""

import numpy as np

from acquisition.arrays import AnyArray, IntArray

RADIX = 16
"""numpy sorts numbers of up to 16 bits by radix, in linear time; longer ones by comparison, ten times slower."""


def order_by_group(groups: IntArray) -> IntArray:
    """Return the positions of the rows, group after group; rows of one group keep their order."""
    positions = np.argsort(groups.astype(np.uint16), kind="stable")
    largest = int(groups.max(initial=0)) >> RADIX
    shift = RADIX
    while largest:
        digits = (groups[positions] >> shift).astype(np.uint16)
        positions = positions[np.argsort(digits, kind="stable")]
        largest, shift = largest >> RADIX, shift + RADIX
    return positions


def order_by_group_and_value(groups: IntArray, values: AnyArray) -> IntArray:
    """Return the positions of the rows, group after group, and by value within a group."""
    positions = np.argsort(values)
    return positions[order_by_group(groups[positions])]
