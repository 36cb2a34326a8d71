"""Emitted tuples: what a converter emitted for windows, for as long as these may change.

The column `site` of a kept tuple is the number of its window.
"""

import numpy as np

from acquisition.arrays import IntArray
from basestation.execution.columns.integer_arrays import stable_argsort
from basestation.execution.columns.tuple_state import describe_tuples
from basestation.execution.columns.tuples import TupleBuffer, Tuples
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.description import StateDescription


class EmittedTuples:
    """A buffer of tuples that is searched by window number."""

    def __init__(self) -> None:
        self._held, self._latest = TupleBuffer(), -1  # the greatest window number of a tuple

    def describe(self, limit: int | None) -> StateDescription:
        """The state, of at most `limit` tuples."""
        return describe_tuples("emitted tuples", limit, self._held.all())

    def add(self, tuples: Tuples) -> None:
        """Keep tuples."""
        self._held.add(tuples)
        self._latest = max(self._latest, int(tuples.site.max(initial=-1)))

    def drop(self, idents: IntArray) -> None:
        """Remove tuples by their numbers."""
        if len(idents) and (held := self._held.all()) is not None:
            self._held.keep(~np.isin(held.ident, idents))

    def forget(self, oldest: int) -> None:
        """Drop the tuples of windows before a number."""
        self._held.forget("site", oldest)

    def first(self, otherwise: int) -> int:
        """The least number of a kept tuple; `otherwise` where there is none."""
        return self._held.least("ident", otherwise)

    def all(self) -> Tuples | None:
        """All kept tuples; None where there never were any."""
        return self._held.all()

    def of(self, windows: IntArray) -> tuple[Tuples, IntArray] | None:
        """(the tuples of windows, window by window; the position of each tuple's window among `windows`).

        None where there are none. `windows` are window numbers. Looking at later windows concatenates no held parts.
        """
        if int(windows.min(initial=NEVER)) > self._latest or (emitted := self._held.all()) is None:
            return None
        order = np.argsort(windows)
        at = order[np.minimum(np.searchsorted(windows, emitted.site, sorter=order), len(windows) - 1)]
        ours = np.flatnonzero(windows[at] == emitted.site)
        at = at[ours]
        order = stable_argsort(at)
        return emitted.take(ours[order]), at[order]
