"""Outputs: what a query says at the end of a step: windows and their revisions, or the tuples of a stream (12.1)."""

from itertools import pairwise

import numpy as np

from basestation.execution.change import NO_TICKS
from basestation.execution.coverage import coverage
from basestation.execution.frame import difference
from basestation.execution.indexing import Arrivals
from basestation.execution.intake import KEYS
from basestation.execution.numbered import Numbered
from basestation.execution.tuples import equal
from basestation.revisions.answers import EpochMark, Rows, TupleUpdates, WindowUpdate
from basestation.windows.epochs import NEVER


class WindowOutput:
    """The windows of a block. Of each that may still change, the last revision and coverage are remembered."""

    def __init__(self, query, block, columns):
        self.query, self.block, self._columns = query, block, columns
        self._said = {}  # number -> (revision, coverage)

    def step(self, clock):
        outcome = self.block.step(clock, remember=True)
        return [*self._revisions(outcome), *self._first_answers(outcome)]

    def _first_answers(self, outcome):
        if not outcome.new:
            return
        rows = self._rows(self.block.frame_of(outcome.new))
        for win, added in zip(outcome.new, rows, strict=True):
            covered = self.block.coverage(win)
            self._said[win.number] = (0, covered)
            yield WindowUpdate(self.query, win.tick, win.n, win.t, 0, covered, added, added.take(NO_TICKS))

    def _revisions(self, outcome):
        if not outcome.dirty:
            return
        now, old = self.block.frame_of(outcome.dirty), outcome.old
        came, went = difference(now, old)
        added, removed = self._rows(now.take(came)), self._rows(old.take(went))
        for win, plus, minus in zip(outcome.dirty, added, removed, strict=True):
            covered = self.block.coverage(win)
            revision, before = self._said[win.number]
            if len(plus) or len(minus) or covered != before:  # else it is not given and uses no number
                self._said[win.number] = (revision + 1, covered)
                yield WindowUpdate(self.query, win.tick, win.n, win.t, revision + 1, covered, plus, minus)

    def _rows(self, frame):
        """The Rows of each window of a frame."""
        columns = [frame.columns[c.id] for c in self._columns]
        bounds = frame.bounds().tolist()
        for begin, end in pairwise(bounds):
            yield Rows(tuple(c.take(slice(begin, end)) for c in columns), end - begin)

    def forget(self, before):
        self.block.forget(before)
        if self.block.answered:
            first = self.block.oldest
            self._said = {number: said for number, said in self._said.items() if number >= first}


class StreamOutput:
    """The tuples of a stream as they enter it, and the marks of its epochs."""

    def __init__(self, query, stream, columns, limit):
        self.query, self.stream, self._columns, self._limit = query, stream, columns, limit
        self._arrivals = Arrivals()
        self._since = -NEVER  # tuples that arrived before it are not the answer
        self._given = Numbered(bool)
        self._marked = {}

    def begin_with(self, change, since=None):
        """Tuples that entered before the query did are not its answer (1.1); SINCE, those that arrived before (10.7)."""
        if since is not None:
            self._since = since
        ours = change.come.arrival > change.watermark if since is None else change.come.arrival >= since
        self._arrivals.apply(change.come, ours, change.gone)

    def step(self, clock):
        change = self.stream.change
        back = change.gone.take(self._given[change.gone.ident])
        again = change.come.take(np.isin(change.come.ident, back.ident) & ~change.fresh)
        back, again = self._differing(back, again)
        self._given[back.ident] = False
        self._arrivals.apply(change.come, change.fresh & (change.come.arrival >= self._since), change.gone)
        entering = self._arrivals.ready(change.watermark)
        parts = [(back, -1), (again, 1), *([] if entering is None else [(entering, 1)])]
        for tuples, weight in parts:
            self._given[tuples.ident] = weight == 1
        said = [self._updates(tuples, weight) for tuples, weight in parts if len(tuples)]
        return [*said, *self._marks()]

    def _differing(self, back, again):
        """Without those that were corrected in what this query does not show."""
        if not len(again):
            return back, again
        back, again = back.take(np.argsort(back.ident)), again.take(np.argsort(again.ident))
        old = back.take(np.isin(back.ident, again.ident))
        same = np.ones(len(again), bool)
        for column in self._columns:
            same &= equal(old.columns[column.id], again.columns[column.id])
        alike = again.ident[same]
        return back.take(~np.isin(back.ident, alike)), again.take(~same)

    def _updates(self, tuples, weight):
        rows = Rows(tuple(tuples.columns[c.id] for c in self._columns), len(tuples))
        index = self.stream.index_of(tuples.ident)
        return TupleUpdates(self.query, tuples.tick, index, np.full(len(tuples), weight, np.int64), rows)

    def _marks(self):
        for key in self.stream.epochs():
            covers = self.stream.epoch_covers(key)
            if covers is None or (self._limit is not None and key[0] > self._limit):
                continue
            covered = coverage(covers)
            if self._marked.get(key, ()) != covered:
                self._marked[key] = covered
                yield EpochMark(self.query, key[0], covered)

    def forget(self, before):
        self.stream.forget(before)
        self._given.drop_before(self.stream.first)
        # A reading that came late is told of in its epoch's mark even where no window is corrected.
        self._marked = {key: covered for key, covered in self._marked.items() if key[0] >= before - KEYS}
