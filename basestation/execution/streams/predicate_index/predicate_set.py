"""Wants: which rows each of many predicates wants, all of them looked up together (`grouped.py`)."""

import numpy as np

from basestation.algebra.evaluation import Evaluation
from basestation.algebra.expression_signature import signature
from basestation.algebra.expressions import columns_of, conjunction
from basestation.algebra.factors import extract_ranges
from basestation.execution.columns.intern_table import InternTable
from basestation.execution.streams.predicate_index.grouped_filter import GroupedFilter


class PredicateSet:
    """Predicates are known by numbers; 0 is that of who wants all."""

    def __init__(self):
        self._kinds, self._all = InternTable(), 0  # how many want all
        self._grouped = GroupedFilter()
        self._rests = {}  # number -> what is no range, where there is something
        self._whole = set()  # numbers of those that have no ranges

    def __len__(self):
        """How many different predicates there are."""
        return len(self._kinds) + (self._all > 0)

    def take(self, predicate):
        """The number of a predicate, from now on; None wants all."""
        if predicate is None:
            self._all += 1
            return 0
        known = len(self._kinds)
        number = self._kinds.take(signature(predicate), predicate)
        if len(self._kinds) > known:
            ranges, rest = extract_ranges(predicate)
            if ranges:
                self._grouped.add(number, ranges)
            else:
                self._whole.add(number)
            if rest:
                self._rests[number] = conjunction(rest)
        return number

    def release(self, number):
        """A predicate is used once less."""
        if not number:
            self._all -= 1
            return
        known = len(self._kinds)
        self._kinds.release(number)
        if len(self._kinds) < known:
            if number in self._whole:
                self._whole.remove(number)
            else:
                self._grouped.remove(number)
            self._rests.pop(number, None)

    def of(self, columns, length):
        """{number: the rows that are wanted, or None where that is each of them}; a number may have no rows, and no entry."""
        found = dict.fromkeys(self._whole)
        if self._all:
            found[0] = None
        numbers, rows = self._grouped.of(columns, length)
        if len(numbers):
            begin = np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1]))
            bounds = [*begin.tolist(), len(numbers)]
            for at, number in enumerate(numbers[begin].tolist()):
                low, high = bounds[at], bounds[at + 1]
                found[number] = None if high - low == length else rows[low:high]
        for number in found.keys() & self._rests.keys():
            found[number] = _left(self._rests[number], found[number], columns, length)
        return found

    def any(self, columns, length):
        """A mask of the rows that somebody wants."""
        if not (self._all or self._whole or self._rests):
            return self._grouped.any(columns, length)
        wanted = np.zeros(length, bool)
        for rows in self.of(columns, length).values():
            wanted[slice(None) if rows is None else rows] = True
        return wanted


def _left(term, rows, columns, length):
    """The rows for which a term is true; None where that is each row there is."""
    if rows is not None:
        columns, length = {c.id: columns[c.id].take(rows) for c in columns_of(term)}, len(rows)
    true = Evaluation(columns, length).of(term).is_true
    if true.all():
        return rows
    return np.flatnonzero(true) if rows is None else rows[true]
