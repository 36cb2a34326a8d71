"""Said: the tuples that a converter said of windows, for as long as these may change. `site` is the number of the window."""

import numpy as np

from basestation.execution.columns.integer_arrays import stable_argsort
from basestation.execution.columns.tuples import TupleBuffer
from basestation.execution.columns.window_batch import NEVER


class EmittedTuples:
    def __init__(self):
        self._held, self._latest = TupleBuffer(), -1  # the greatest number of a window of which something was said

    def add(self, tuples):
        self._held.add(tuples)
        self._latest = max(self._latest, int(tuples.site.max(initial=-1)))

    def drop(self, idents):
        if len(idents):
            self._held.keep(~np.isin(self._held.all().ident, idents))

    def forget(self, oldest):
        """No window before that number is asked for again."""
        self._held.forget("site", oldest)

    def first(self, otherwise):
        """The least number of a tuple that is remembered."""
        return self._held.least("ident", otherwise)

    def all(self):
        """All that is remembered; None where nothing was ever said."""
        return self._held.all()

    def of(self, windows):
        """(what was said of windows, in their order; at which place among them the window of each tuple stands), of their
        numbers; None where nothing was."""
        if int(windows.min(initial=NEVER)) > self._latest:
            return None
        said, order = self._held.all(), np.argsort(windows)
        at = order[np.minimum(np.searchsorted(windows, said.site, sorter=order), len(windows) - 1)]
        ours = np.flatnonzero(windows[at] == said.site)
        at = at[ours]
        order = stable_argsort(at)
        return said.take(ours[order]), at[order]
