"""FIRST and LAST: the value with the least or greatest (tick, then site or index).

Rows with equal keys: FIRST keeps the one that came first, LAST the one that came last. They cannot be undone: which row
was the next is not kept.
"""

import numpy as np

from innet.aggregates.extremes import INTEGERS, VALUE_BITS
from innet.aggregates.protocol import StateField
from innet.aggregates.state import StateAggregate


class FirstOrLast(StateAggregate):
    pick: np.ufunc
    worst: int

    @property
    def cells(self):
        value = {"float": (np.float64, 0.0), "string": (object, "")}.get(self.type, (np.int64, 0))
        return {"seen": (bool, False), "tick": (np.int64, 0), "second": (np.int64, 0), "value": value}

    def layout(self):
        """Only sensed extents are aggregated by motes, so the second part of the key is a site."""
        if not self.on_motes:
            return None
        return StateField("seen", 1), StateField("tick", 64), StateField("site", 16), StateField("value", VALUE_BITS)

    def _fold(self, state, groups, values, weights, order):
        tick, second = order
        cells = state.cells
        rows = self._outermost(state.n_groups, groups, tick, second)
        chosen = groups[rows]
        wins = ~cells["seen"][chosen] | self._beats(
            tick[rows], second[rows], cells["tick"][chosen], cells["second"][chosen]
        )
        rows, chosen = rows[wins], chosen[wins]
        for name, column in (("tick", tick), ("second", second), ("value", values)):
            cells[name][chosen] = column[rows]
        cells["seen"][chosen] = True

    def _outermost(self, n_groups, groups, *keys):
        """The row of each group that its key and then its place in the batch put at the end."""
        rows = np.arange(len(groups))
        best = np.empty(n_groups, np.int64)
        for key in (*keys, rows):
            candidates, key = groups[rows], key[rows]
            best[candidates] = self.worst
            self.pick.at(best, candidates, key)
            rows = rows[key == best[candidates]]
        return rows

    def merge(self, state, other, into):
        cells = other.cells
        self.update(state, into, cells["value"], cells["seen"], None, (cells["tick"], cells["second"]))

    def finalize(self, state):
        return state.cells["value"].copy(), state.cells["seen"].copy()


class First(FirstOrLast):
    name = "FIRST"
    pick = np.minimum
    worst = INTEGERS.max

    def _beats(self, tick, second, held_tick, held_second):
        return (tick < held_tick) | ((tick == held_tick) & (second < held_second))


class Last(FirstOrLast):
    name = "LAST"
    pick = np.maximum
    worst = INTEGERS.min

    def _beats(self, tick, second, held_tick, held_second):
        return (tick > held_tick) | ((tick == held_tick) & (second >= held_second))
