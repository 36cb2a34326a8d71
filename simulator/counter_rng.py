"""Counter-based random numbers: a draw is a function of its name and of no draw before it.

A name is a row of integers: the seed of the scenario, the purpose, then the subject (link, epoch, attempt …). The order of
events therefore does not matter, and one more query leaves all other draws as they were: the same attempt in an epoch of a
link has the same outcome. All functions take single integers and arrays of uint64 alike, and give the same values for both.
"""

from enum import IntEnum
from typing import Any, overload

import numpy as np

MASK = 0xFFFF_FFFF_FFFF_FFFF
# Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014): the step and the finalizer of SplitMix.
STEP, FIRST, SECOND = 0x9E37_79B9_7F4A_7C15, 0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB


class Purpose(IntEnum):
    """The purpose of a draw, so that two draws for one subject are independent."""

    FRAME = 1  # whether a frame comes through
    ACK = 2  # whether its acknowledgement does
    BURST = 3  # whether the state of a link changes
    DUPLICATE = 4
    DELAY = 5
    CORRUPTION = 6
    PLACE = 7  # the bit that is damaged
    NOISE = 8
    DRIFT = 9


@overload
def draw(*names: int, begun: int = 0) -> int: ...
@overload
def draw(*names: Any, begun: Any = 0) -> np.ndarray: ...
def draw(*names: Any, begun: Any = 0) -> Any:
    """64 random bits. Put arrays last: the integers before them are mixed only once.

    `begun` is the draw of the names before, where many draws begin with them: `draw(3, begun=draw(1, 2)) == draw(1, 2, 3)`.
    """
    bits: Any = begun
    for name in names:
        bits = _mix((bits ^ name) * STEP & MASK)
    return bits


@overload
def uniform(bits: int) -> float: ...
@overload
def uniform(bits: np.ndarray) -> np.ndarray: ...
def uniform(bits: Any) -> Any:
    """A draw as a number in [0, 1), exact to 53 bits."""
    return (bits >> 11) * 2.0**-53


@overload
def deviate(bits: int) -> float: ...
@overload
def deviate(bits: np.ndarray) -> np.ndarray: ...
def deviate(bits: Any) -> Any:
    """A draw as a nearly normal deviate (a sum of four): mean 0, variance 1, never beyond 3.5.

    It uses integers up to the last step. A deviate by logarithm and cosine would differ in its last bit between a single
    number and an array.
    """
    total = (bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48)
    return (total * 1.0 - 131_070.0) * (3.0**0.5 / 65_536.0)


def _mix(bits: Any) -> Any:
    bits = (bits ^ bits >> 30) * FIRST & MASK
    bits = (bits ^ bits >> 27) * SECOND & MASK
    return bits ^ bits >> 31
