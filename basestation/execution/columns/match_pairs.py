"""Match pairs: a query's slot and a tuple number as one number, so that many matches are looked up at once."""

from acquisition.arrays import IntArray

_TUPLE_BITS = 40


def pack_pairs(slots: IntArray, idents: IntArray) -> IntArray:
    """Return a number for each pair of a slot and a tuple number; pairs of one slot have the order of their tuples."""
    return slots << _TUPLE_BITS | idents


def unpack_pairs(pairs: IntArray) -> tuple[IntArray, IntArray]:
    """Return (slots, tuple numbers) of packed pairs."""
    return pairs >> _TUPLE_BITS, pairs & ((1 << _TUPLE_BITS) - 1)
