"""Bounds of probes: which tuples of an input may be joined with rows: those in their windows, or with wanted values."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from acquisition.arrays import IntArray
from basestation.algebra.vector import Vector, all_true, take_at
from basestation.execution.joins.join_inputs import JoinInput
from basestation.execution.joins.join_plan import Place
from basestation.execution.joins.joined_rows import JoinedRows
from basestation.execution.joins.probe_span import ProbeSpan
from basestation.execution.joins.state_module import KeyPart
from basestation.execution.joins.tick_ranges import TickRanges


class ProbeBounds(Protocol):
    """The tuples that rows may be joined with."""

    def range(self, rows: JoinedRows, i: int) -> ProbeSpan:
        """Return for each row the ticks that tuples of input i may have."""

    def wanted(self, rows: JoinedRows, place: Place) -> Sequence[tuple[KeyPart, Vector]]:
        """Return columns at a place, and the values that rows want in them beyond the keys of the join."""

    def extend(self, rows: JoinedRows, which: IntArray | slice, found: dict[int, IntArray]) -> JoinedRows:
        """Return the rows `which` with the tuples that they found, as far as these are within the bounds."""


class WindowBounds:
    """The tuples of each input that are in the windows of rows."""

    def __init__(self, inputs: Sequence[JoinInput], reaches: Sequence[TickRanges]) -> None:
        self._inputs, self._reaches = inputs, reaches

    def range(self, rows: JoinedRows, i: int) -> ProbeSpan:
        reach = self._reaches[i]
        # `extend` finds out in which windows a row is, or that it is in none.
        return ProbeSpan(reach.left, reach.right, rows.first, rows.last, reach.of, checked_later=not rows.is_single)

    def wanted(self, rows: JoinedRows, place: Place) -> Sequence[tuple[KeyPart, Vector]]:
        return ()

    def extend(self, rows: JoinedRows, which: IntArray | slice, found: dict[int, IntArray]) -> JoinedRows:
        if not rows.is_single:
            first, last = take_at(rows.first, which), take_at(rows.last, which)
            for i, at in found.items():
                low, high = self._inputs[i].windows(self._reaches[i], at)
                first, last = np.maximum(first, low, out=low), np.minimum(last, high, out=high)
            nonempty = first <= last
            if not all_true(nonempty):
                kept = np.flatnonzero(nonempty)
                first, last, found = first.take(kept), last.take(kept), {i: at.take(kept) for i, at in found.items()}
                which = kept if isinstance(which, slice) else which.take(kept)
            return JoinedRows(first, last, {i: take_at(at, which) for i, at in rows.at.items()} | found)
        rows = rows.take(which).with_tuples(found)
        for number, i in enumerate(found):
            if number > 0 or self._inputs[i].store.has_late_appends:  # otherwise the probe has checked the tick
                rows = rows.take(self._inputs[i].inside(self._reaches[i], rows.first, rows.at[i]))
        return rows


class ValueBounds(WindowBounds):
    """The tuples in the window of a row that have given values: for row j, values[i][column][rows.first[j]]."""

    def __init__(
        self,
        inputs: Sequence[JoinInput],
        reaches: Sequence[TickRanges],
        values: Mapping[int, Mapping[int, Vector]],
    ) -> None:
        """`values` has by input, by the id of a held column, the values to find."""
        super().__init__(inputs, reaches)
        self._values = values

    def wanted(self, rows: JoinedRows, place: Place) -> Sequence[tuple[KeyPart, Vector]]:
        found = [(i, id, vector) for i in place for id, vector in self._values.get(i, {}).items()]
        return [(index_part(i, id, place), vector.take(rows.first)) for i, id, vector in found]


def index_part(i: int, part: KeyPart, place: Place) -> KeyPart:
    """A part of a key of input i as the source at a place knows it: a materialized node needs the input, too."""
    if len(place) == 1 or isinstance(part, tuple):
        return part
    return i, part
