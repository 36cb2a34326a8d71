"""PredicateSet: the rows that satisfy each of many predicates, all looked up together (`grouped_filter.py`)."""

from collections.abc import Mapping

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.evaluation import Evaluation
from basestation.algebra.expression import Expression
from basestation.algebra.expression_signature import signature
from basestation.algebra.expressions import columns_of, conjunction
from basestation.algebra.factors import extract_ranges
from basestation.algebra.vector import Vector, cached_arange
from basestation.execution.columns.intern_table import InternTable
from basestation.execution.description import OperatorDescription, describe_select
from basestation.execution.streams.predicate_index.grouped_filter import GroupedFilter


class PredicateSet:
    """Predicates by number; number 0 is that of no predicate, which all rows satisfy."""

    def __init__(self, reuses: bool = False) -> None:
        """With `reuses`, a new predicate may take the number of a released one, once the owner calls `recycle`."""
        self._predicates: InternTable[Expression] = InternTable(reuses)
        self._unfiltered = 0  # how many uses number 0 has
        self._grouped = GroupedFilter()
        self._rests: dict[int, Expression] = {}  # by number, the part of a predicate that is not a range
        self._without_ranges: set[int] = set()

    def __len__(self) -> int:
        """The number of distinct predicates."""
        return len(self._predicates) + (self._unfiltered > 0)

    def take(self, predicate: Expression | None) -> int:
        """Add a use of a predicate, None for none, and return its number."""
        if predicate is None:
            self._unfiltered += 1
            return 0
        known = len(self._predicates)
        number = self._predicates.take(signature(predicate), predicate)
        if len(self._predicates) > known:
            ranges, rest = extract_ranges(predicate)
            if ranges:
                self._grouped.add(number, ranges)
            else:
                self._without_ranges.add(number)
            if rest:
                self._rests[number] = conjunction(rest)
        return number

    def release(self, number: int) -> None:
        """End a use of a predicate."""
        if not number:
            self._unfiltered -= 1
            return
        known = len(self._predicates)
        self._predicates.release(number)
        if len(self._predicates) < known:
            if number in self._without_ranges:
                self._without_ranges.remove(number)
            else:
                self._grouped.remove(number)
            self._rests.pop(number, None)

    def __getitem__(self, number: int) -> Expression:
        """The predicate with a number other than 0."""
        return self._predicates[number]

    def describe(self) -> OperatorDescription:
        """The selection, for EXPLAIN: its predicate if there is only one."""
        predicates = [predicate for _, predicate in self._predicates.items()]
        if len(predicates) == 1 and not self._unfiltered:
            return OperatorDescription(describe_select(predicates[0]), "predicate index")
        return OperatorDescription(f"select by {len(self)} predicates", "predicate index")

    def number_of(self, predicate: Expression) -> int:
        """The number of a predicate in use."""
        return self._predicates.number_of(signature(predicate))

    @property
    def dropped(self) -> list[int]:
        """The numbers of released predicates that were not recycled, if numbers are reused."""
        return self._predicates.dropped

    def recycle(self) -> None:
        """Let new predicates take the numbers of released ones."""
        self._predicates.recycle()

    def pairs(self, columns: Mapping[int, Vector], length: int) -> tuple[IntArray, IntArray]:
        """Return (numbers, rows): a pair for each predicate that a row satisfies, by number and then by row."""
        if not (self._unfiltered or self._without_ranges or self._rests):
            return self._grouped.of(columns, length)
        found = sorted(self.of(columns, length).items())
        parts = [cached_arange(length) if rows is None else rows for _, rows in found]
        numbers = np.repeat(np.array([number for number, _ in found], np.int64), list(map(len, parts)))
        return numbers, np.concatenate([cached_arange(0), *parts])

    def of(self, columns: Mapping[int, Vector], length: int) -> dict[int, IntArray | None]:
        """Return by number the rows that satisfy the predicate, None for all. A number without rows may have no entry."""
        found: dict[int, IntArray | None] = dict.fromkeys(self._without_ranges)
        if self._unfiltered:
            found[0] = None
        numbers, rows = self._grouped.of(columns, length)
        if len(numbers):
            begin = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
            bounds = [*begin.tolist(), len(numbers)]
            for at, number in enumerate(numbers[begin].tolist()):
                low, high = bounds[at], bounds[at + 1]
                found[number] = None if high - low == length else rows[low:high]
        for number in found.keys() & self._rests.keys():
            found[number] = _filter_rows(self._rests[number], found[number], columns, length)
        return found

    def any(self, columns: Mapping[int, Vector], length: int) -> BoolArray:
        """Return a mask of the rows that satisfy at least one predicate."""
        if not (self._unfiltered or self._without_ranges or self._rests):
            return self._grouped.any(columns, length)
        satisfied = np.zeros(length, bool)
        for rows in self.of(columns, length).values():
            satisfied[slice(None) if rows is None else rows] = True
        return satisfied


def _filter_rows(
    term: Expression, rows: IntArray | None, columns: Mapping[int, Vector], length: int
) -> IntArray | None:
    """Return the rows for which a term is true; None for all. `rows` are the candidates, None for all."""
    if rows is not None:
        columns, length = {c.id: columns[c.id].take(rows) for c in columns_of(term)}, len(rows)
    true = Evaluation(columns, length).of(term).is_true
    if true.all():
        return rows
    return np.flatnonzero(true) if rows is None else rows[true]
