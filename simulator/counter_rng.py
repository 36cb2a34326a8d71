"""Chance as a function: what is drawn depends on what it is drawn for, and on nothing that was drawn before.

A draw is named by whole numbers: the scenario's seed, the purpose, then what it is about (link, epoch, attempt …). So it
does not matter in which order things happen, whether an event is simulated alone or with a million others in an array,
or whether another query is there too: the same attempt of an epoch on the same link has the same luck. All functions take
single integers and arrays of uint64 alike, and give the same for both.
"""

from enum import IntEnum

MASK = 0xFFFF_FFFF_FFFF_FFFF
# Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014): the step and the finalizer of SplitMix.
STEP, FIRST, SECOND = 0x9E37_79B9_7F4A_7C15, 0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB


class Purpose(IntEnum):
    """What a draw is for, so that two draws about the same thing are independent."""

    FRAME = 1  # does a frame come through
    ACK = 2  # does its acknowledgement
    BURST = 3  # where a link's quality goes
    DUPLICATE = 4
    DELAY = 5
    CORRUPTION = 6
    PLACE = 7  # which bit is hit
    NOISE = 8
    DRIFT = 9


def draw(*names):
    """64 random bits. Put arrays last: what comes before them is mixed only once."""
    bits = 0
    for name in names:
        bits = _mixed((bits ^ name) * STEP & MASK)
    return bits


def uniform(bits):
    """A draw as a number from 0 to below 1, exact to 53 bits."""
    return (bits >> 11) * 2.0**-53


def deviate(bits):
    """A draw as a number with mean 0 and variance 1, nearly normal (a sum of four), never beyond 3.5.

    Integers up to the last step: a normal deviate by logarithm and cosine would differ in its last bit between a single
    number and an array.
    """
    total = (bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48)
    return (total * 1.0 - 131_070.0) * (3.0**0.5 / 65_536.0)


def _mixed(bits):
    bits = (bits ^ bits >> 30) * FIRST & MASK
    bits = (bits ^ bits >> 27) * SECOND & MASK
    return bits ^ bits >> 31
