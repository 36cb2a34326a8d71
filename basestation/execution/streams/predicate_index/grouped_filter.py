"""GroupedFilter: an index of the ranges that many queries ask of the columns of one stream (TelegraphCQ's grouped filters).

Queries over the same columns are a group with one index (`range_index.py`). A few queries that are newer than the index are checked
one by one. So the cost is that of looking up the values, plus the matches; a query without a match costs nothing.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
from basestation.algebra.expression import Column
from basestation.algebra.factors import ValueRange
from basestation.algebra.vector import Vector, cached_arange, constant
from basestation.execution import thresholds
from basestation.execution.columns.integer_arrays import stable_argsort
from basestation.execution.streams.predicate_index.range_index import RangeIndex

_NONE: IntArray = np.empty(0, np.int64)
GroupKey = tuple[tuple[bool, int], ...]
"""(whether the range is not a point, the column id) of each column; points come first."""


class GroupedFilter:
    """Ranges of queries, which are identified by small numbers, their slots."""

    def __init__(self) -> None:
        self._groups: dict[GroupKey, FilterGroup] = {}
        self._group_of: dict[int, FilterGroup | None] = {}  # by slot; None for one with an empty range

    def __len__(self) -> int:
        return len(self._group_of)

    def add(self, slot: int, ranges: Mapping[Column, ValueRange]) -> None:
        """Add a query with at least one range, by column."""
        if any(range_.is_empty for range_ in ranges.values()):
            self._group_of[slot] = None
            return
        key = tuple(sorted((not range_.is_point, column.id) for column, range_ in ranges.items()))
        self._group_of[slot] = group = self._groups.setdefault(key, FilterGroup(key))
        by_id = {column.id: range_ for column, range_ in ranges.items()}
        group.add(slot, tuple(by_id[id_] for _, id_ in key))

    def remove(self, slot: int) -> None:
        """Remove a query."""
        group = self._group_of.pop(slot)
        if group is not None:
            group.remove(slot)
            if not len(group):
                del self._groups[group.key]

    def any(self, columns: Mapping[int, Vector], length: int) -> BoolArray:
        """Return a mask of the rows that satisfy a query."""
        found = np.zeros(length, bool)
        for group in self._groups.values() if length else ():
            found[group.any(columns, length)] = True
        return found

    def of(self, columns: Mapping[int, Vector], length: int) -> tuple[IntArray, IntArray]:
        """Return (slots, rows): a pair for each query that a row satisfies, by slot and then by row.

        `columns` are Vectors of `length` rows by column id.
        """
        parts = [group.of(columns, length) for group in self._groups.values()] if length else []
        if len(parts) == 1 and parts[0][2]:
            return parts[0][:2]
        slots = np.concatenate([_NONE, *(part[0] for part in parts)])
        rows = np.concatenate([_NONE, *(part[1] for part in parts)])
        if (rows[1:] >= rows[:-1]).all():
            order = stable_argsort(slots)
            return slots[order], rows[order]
        both = slots * length + rows  # each pair as one number, to sort them
        both.sort()
        slots = both // max(length, 1)
        return slots, both - slots * length


class FilterGroup:
    """Queries over the same columns, in the same order. Young queries are not in the index yet."""

    def __init__(self, key: GroupKey) -> None:
        self.key = key
        self._points = sum(not wide for wide, _ in key)  # the number of columns of points
        self._columns = [id_ for _, id_ in key]
        self._ranges: dict[int, tuple[ValueRange, ...]] = {}  # by slot, in the order of the columns
        self._index: RangeIndex | None = None
        self._young: dict[int, tuple[ValueRange, ...]] = {}

    def __len__(self) -> int:
        return len(self._ranges)

    def add(self, slot: int, ranges: tuple[ValueRange, ...]) -> None:
        """Add a query."""
        self._ranges[slot] = self._young[slot] = ranges

    def remove(self, slot: int) -> None:
        """Remove a query."""
        del self._ranges[slot]
        if self._young.pop(slot, None) is None and self._index is not None:
            self._index.leave(slot)

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | {"_index": None, "_young": dict(self._ranges)}

    def _refresh(self) -> None:
        """Build the index anew if too many queries are not in it, or have left it."""
        few = thresholds.UNINDEXED_QUERIES if self._index is None else thresholds.YOUNG_QUERIES
        if len(self._young) > few or (self._index is not None and self._index.left > len(self._ranges)):
            columns = list(zip(*self._ranges.values(), strict=True))
            self._index = RangeIndex(self._points, list(self._ranges), columns)
            self._young = {}

    def any(self, columns: Mapping[int, Vector], length: int) -> IntArray:
        """Return the rows that satisfy a query, in no order, possibly several times."""
        self._refresh()
        vectors = [columns[id_] for id_ in self._columns]
        _, rows = self._check_young(vectors, length)
        return rows if self._index is None else np.concatenate([rows, self._index.any(vectors, length)])

    def of(self, columns: Mapping[int, Vector], length: int) -> tuple[IntArray, IntArray, bool]:
        """Return (slots, rows, whether they are sorted)."""
        self._refresh()
        vectors = [columns[id_] for id_ in self._columns]
        slots, rows = self._check_young(vectors, length)
        if self._index is None:
            return slots, rows, True
        more_slots, more_rows = self._index.of(vectors, length)
        return np.concatenate([slots, more_slots]), np.concatenate([rows, more_rows]), False

    def _check_young(self, vectors: list[Vector], length: int) -> tuple[IntArray, IntArray]:
        """Return (slots, rows) of the young queries, by slot and then by row."""
        found = []
        for slot in sorted(self._young):
            inside: BoolArray | None = None
            for vector, range_ in zip(vectors, self._young[slot], strict=True):
                for mask in _masks_of(vector, range_):
                    inside = mask if inside is None else inside & mask
            rows = cached_arange(length) if inside is None else inside.nonzero()[0]
            found.append((constant(slot, len(rows)), rows))
        if len(found) == 1:
            return found[0]
        return np.concatenate([_NONE, *(slots for slots, _ in found)]), np.concatenate(
            [_NONE, *(rows for _, rows in found)]
        )


def _masks_of(vector: Vector, range_: ValueRange) -> Iterator[BoolArray]:
    """Yield masks; a value lies in the range where all are true."""
    if vector.valid is not None:
        yield vector.valid
    if range_.begin is not None:
        yield (vector.values >= _scalar(range_.begin)).astype(bool, copy=False)
    if range_.stop is not None:
        yield (vector.values < _scalar(range_.stop)).astype(bool, copy=False)


def _scalar(end: int | float | str) -> int | float | AnyArray:
    """Return a bound as an operand; numpy would cut off the null characters that a string ends with."""
    return np.array(end, object) if isinstance(end, str) else end
