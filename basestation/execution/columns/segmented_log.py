"""Parts: tuples with consecutive numbers, held in the batches in which they came, without a copy.

They are added at the end and let go of from the beginning. Small batches are put together when there are many.
"""

from bisect import bisect_right

import numpy as np

from basestation.execution.columns.tuples import concatenate_tuples

_MANY, _SEVERAL = 256, 32


class SegmentedLog:
    def __init__(self):
        self._parts, self._begins = [], []  # and the number of the first tuple of each
        self._ordered = []  # of each whether it is known to be in the order of its ticks, in which it arrives
        self._whole = 0  # how many tuples there are in the arrays that the first part is taken from
        self._loose = 0  # how many of the parts, from the last on, were not put together

    def __bool__(self):
        return bool(self._parts)

    def add(self, tuples, ordered=False):
        """At least one, whose numbers follow on those that are here; `ordered`: it is known that they arrive tick by tick."""
        if not self._parts:
            self._whole = len(tuples)
        self._parts.append(tuples)
        self._begins.append(int(tuples.ident[0]))
        self._ordered.append(ordered)
        self._loose += 1
        if self._loose > _MANY:
            self._put_together(len(self._parts) - self._loose)

    def is_last(self, tuples):
        """Whether these are what was added last, all of it and in that order."""
        return bool(self._parts) and tuples.ident is self._parts[-1].ident

    def all(self):
        """All of them; there are some."""
        if len(self._parts) > 1:
            self._put_together(0)
        return self._parts[0]

    def _put_together(self, first):
        """Make one of the parts from one on."""
        self._parts[first:] = [concatenate_tuples(self._parts[first:])]
        self._ordered[first:] = [all(self._ordered[first:])]
        del self._begins[first + 1 :]
        self._loose = 0
        if not first:
            self._whole = len(self._parts[0])

    def of(self, numbers):
        """The tuples of some numbers, at least one; all of them are here."""
        low, high = int(numbers.min()), int(numbers.max())
        at = bisect_right(self._begins, low) - 1
        if high < self._begins[at] + len(self._parts[at]):
            return self._parts[at].take(numbers - self._begins[at])
        begins = np.array(self._begins)
        which = np.searchsorted(begins, numbers, "right") - 1
        order = np.argsort(which, kind="stable")
        touched, edges = np.unique(which[order], return_index=True)
        within = np.split((numbers - begins[which])[order], edges[1:])
        found = concatenate_tuples(
            [self._parts[at].take(places) for at, places in zip(touched.tolist(), within, strict=True)]
        )
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return found.take(back)

    def between(self, low, high):
        """The tuples from tick low to tick high; there are some tuples."""
        if len(self._parts) > _SEVERAL:  # it takes longer to ask each than to make one of them
            self._put_together(0)
        return concatenate_tuples([part.take((part.tick >= low) & (part.tick <= high)) for part in self._parts])

    def forget(self, before, watermark):
        """Let go of tuples of earlier ticks whose arrival the watermark has reached, up to the first that is none of them, or
        some before it. The watermark is not before `before`.

        The number of the first that is held, or None where nothing was let go of.
        """
        number = None
        while self._parts:
            part, middle = self._parts[0], len(self._parts[0]) // 2
            if part.tick[middle] >= before or part.arrival[middle] > watermark:
                if 2 * len(part) < self._whole:  # a few that stay do not hold on to the arrays of many
                    self._parts[0] = part.take(np.arange(len(part)))
                    self._whole = len(part)
                return number  # a part is looked through when about half of it may go
            first = self._first_young(before, watermark)
            if not first:
                return number
            if first < len(part):
                self._begins[0] += first
                self._parts[0] = part.take(slice(first, None))
                return self._begins[0]
            del self._ordered[0]
            number = self._begins.pop(0) + len(self._parts.pop(0))
            self._loose = min(self._loose, len(self._parts))
            self._whole = len(self._parts[0]) if self._parts else 0
        return number

    def _first_young(self, before, watermark):
        """Where the first tuple of the first part is that has to stay; its length where none has."""
        part = self._parts[0]
        if self._ordered[0]:
            return int(part.tick.searchsorted(before))
        young = part.tick >= before
        if part.arrival is not part.tick:
            young |= part.arrival > watermark
        first = int(young.argmax())
        return first if young[first] else len(part)
