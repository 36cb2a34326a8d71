"""Tuple state: how EXPLAIN describes tuples that an operator holds."""

from basestation.execution.columns.tuples import Tuples
from basestation.execution.description import StateDescription, array_bytes

_TAGS = 4 * 8  # bytes of number, tick, arrival and index of a tuple
_VALUE = 8  # bytes of a value; strings are references to entries that all columns share


def describe_tuples(
    what: str, limit: int | None, tuples: Tuples | None, columns: int | None = None
) -> StateDescription:
    """The state of an operator that holds `tuples`, at most `limit` of them; `columns` is their number if none are there."""
    if tuples is None:
        return StateDescription(what, limit, _TAGS + _VALUE * (columns or 0))
    vectors = tuples.columns.values()
    arrays = [
        tuples.ident, tuples.tick, tuples.arrival, tuples.part, tuples.rank, tuples.place, tuples.site, tuples.append,
        *(vector.values for vector in vectors), *(vector.valid for vector in vectors),
    ]  # fmt: skip
    return StateDescription(what, limit, _TAGS + _VALUE * len(vectors), len(tuples), array_bytes(*arrays))
