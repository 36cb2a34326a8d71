"""FIRST and LAST: the value of the row with the least or greatest (tick, then site or index).

Of rows with equal keys, FIRST keeps the row that was folded first, LAST the one folded last. A retraction is
impossible: the state does not hold the next row.
"""

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
from innet.aggregates.extremes import INTEGERS, VALUE_BITS
from innet.aggregates.protocol import Answers, Order, StateField
from innet.aggregates.state import AggregateState, CellType, StateAggregate

EMPTY_VALUES: dict[str, CellType] = {"float": (np.float64, 0.0), "string": (object, "")}
"""The cell for values that are no integers, by their type in the language."""


class FirstOrLast(StateAggregate):
    """The base of FIRST and LAST: per group, whether there is a row, its key and its value."""

    pick: np.ufunc
    """Chooses between two keys: minimum or maximum."""
    worst: int
    """A key that every other key replaces."""

    @property
    def cells(self) -> Mapping[str, CellType]:
        value = EMPTY_VALUES.get(self.type, (np.int64, 0))
        return {"seen": (bool, False), "tick": (np.int64, 0), "second": (np.int64, 0), "value": value}

    def layout(self) -> tuple[StateField, ...] | None:
        """On motes the second part of the key is the site: motes aggregate sensed extents only."""
        if not self.on_motes:
            return None
        return (
            StateField("seen", 1),
            StateField("tick", 64),
            StateField("site", 16),
            StateField("value", VALUE_BITS),
        )

    def _fold(
        self,
        state: AggregateState,
        groups: IntArray,
        values: AnyArray | None,
        weights: IntArray | None,
        order: Order | None,
    ) -> None:
        if values is None or order is None:
            raise TypeError(f"{self.name} needs values and their order")
        tick, second = order
        cells = state.cells
        rows = self._outermost(state.n_groups, groups, tick, second)
        chosen = groups[rows]
        wins = ~cells["seen"][chosen] | self._beats(
            tick[rows], second[rows], cells["tick"][chosen], cells["second"][chosen]
        )
        rows, chosen = rows[wins], chosen[wins]
        columns: tuple[tuple[str, AnyArray], ...] = (("tick", tick), ("second", second), ("value", values))
        for name, column in columns:
            cells[name][chosen] = column[rows]
        cells["seen"][chosen] = True

    def _outermost(self, n_groups: int, groups: IntArray, *keys: IntArray) -> IntArray:
        """Return the first or last row of each group, by `keys` and then by its place in the batch."""
        rows = np.arange(len(groups))
        best = np.empty(n_groups, np.int64)
        for key in (*keys, rows):
            candidates, key = groups[rows], key[rows]
            best[candidates] = self.worst
            self.pick.at(best, candidates, key)
            rows = rows[key == best[candidates]]
        return rows

    @abstractmethod
    def _beats(self, tick: IntArray, second: IntArray, held_tick: IntArray, held_second: IntArray) -> BoolArray:
        """Return which keys (tick, second) replace the held ones."""

    def merge(self, state: AggregateState, other: AggregateState, into: IntArray) -> None:
        cells = other.cells
        self.update(state, into, cells["value"], cells["seen"], None, (cells["tick"], cells["second"]))

    def finalize(self, state: AggregateState) -> Answers:
        return state.cells["value"].copy(), state.cells["seen"].copy()


class First(FirstOrLast):
    """The value with the least key."""

    name = "FIRST"
    pick = np.minimum
    worst = INTEGERS.max

    def _beats(self, tick: IntArray, second: IntArray, held_tick: IntArray, held_second: IntArray) -> BoolArray:
        earlier: BoolArray = (tick < held_tick) | ((tick == held_tick) & (second < held_second))
        return earlier


class Last(FirstOrLast):
    """The value with the greatest key."""

    name = "LAST"
    pick = np.maximum
    worst = INTEGERS.min

    def _beats(self, tick: IntArray, second: IntArray, held_tick: IntArray, held_second: IntArray) -> BoolArray:
        later: BoolArray = (tick > held_tick) | ((tick == held_tick) & (second >= held_second))
        return later
