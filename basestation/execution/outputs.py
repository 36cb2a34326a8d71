"""Outputs: what a query says at the end of a step: windows and their revisions, or the tuples of a stream (12.1)."""

import numpy as np

from basestation.algebra.placed import written
from basestation.execution.bags import occurrence
from basestation.execution.change import NO_TICKS
from basestation.execution.frame import difference
from basestation.execution.graph import OUTPUT, Operator
from basestation.execution.indexing import Arrivals
from basestation.execution.marking import EpochsTold
from basestation.execution.marks import Waiting, place_of
from basestation.execution.numbered import Numbered
from basestation.execution.tuples import equal
from basestation.execution.wins import NEVER
from basestation.revisions.answers import (
    Carried,
    EpochMarks,
    Interleaved,
    Rows,
    TupleUpdates,
    WindowUpdates,
    coverage_of,
)


class WindowOutput(Operator):
    """The windows of a block. Of each that may still change, the last revision and coverage are remembered."""

    kind = OUTPUT

    def __init__(self, query, block, columns):
        super().__init__(block.level)
        self.query, self.block, self._columns = query, block, columns
        block.remembers = True
        self._marks = Waiting()
        self.said = []  # in the last step
        self._revision = Numbered(np.int64)  # by number of the window
        self._covered = {}  # {extent: the same of used and due}

    @property
    def follows(self):
        return self.block.follows

    @property
    def silent_before(self):
        return -NEVER if self._marks else self.block.silent_before

    def step(self, clock):
        outcome = self.block.outcome
        marks = self._marks.ready(self.block.marks, self.block.watermark)
        if outcome.followed is not None:
            self.said = list(self._in_clock_ticks(outcome.followed, marks))
        else:
            self.said = [*self._revisions(outcome), *self._with_marks(list(self._first_answers(outcome)), marks)]
        self.counts.rows_out += sum(len(each.added) + len(each.removed) for each in windows_of(self.said))

    def _first_answers(self, outcome):
        new = outcome.new
        if not len(new):
            return
        frame, covered = self.block.frame_of(new), self.block.coverage(new)
        self.counts.rows_in += len(frame)
        self._remember(new.number, np.zeros(len(new), np.int64), covered)
        rows, none = self._rows(frame), self._rows(frame.take(NO_TICKS))
        nothing = np.zeros(len(new) + 1, np.int64)
        revision = np.zeros(len(new), np.int64)
        yield WindowUpdates(self.query, new.tick, new.n, new.t, revision, covered, rows, frame.bounds(), none, nothing)

    def _with_marks(self, answers, marks):
        """Marks before the first windows that are made when they arrive, or later."""
        if not marks:
            return answers
        placed = []
        for mark in marks:
            for each in answers:
                at = int(np.searchsorted(each.tick, mark.arrival))
                placed += [each.take(slice(0, at))] if at else []
                answers = [each.take(slice(at, None))] if at < len(each) else []
            placed.append(Carried(self.query, mark.arrival, mark.value))
        return [*placed, *answers]

    def _revisions(self, outcome):
        dirty = outcome.dirty
        if not len(dirty):
            return
        now, old = self.block.frame_of(dirty), outcome.old
        self.counts.rows_in += len(now) + len(old)
        came, went = difference(now, old)
        added, removed = now.take(came), old.take(went)
        added_at, removed_at = added.bounds(), removed.bounds()
        covered = self.block.coverage(dirty)
        other = (np.diff(added_at) > 0) | (np.diff(removed_at) > 0) | self._otherwise(dirty.number, covered)
        said = np.flatnonzero(other)  # the others are not given and use no number
        if not len(said):
            return
        dirty, covered = dirty.take(said), coverage_of(covered, said)
        revision = self._revision[dirty.number] + 1
        self._remember(dirty.number, revision, covered)
        yield WindowUpdates(
            self.query, dirty.tick, dirty.n, dirty.t, revision, covered,
            self._rows(added), _without_empty(added_at, said), self._rows(removed), _without_empty(removed_at, said),
        )  # fmt: skip

    def _in_clock_ticks(self, followed, marks):
        """First answers and revisions of many clock ticks, in one piece between marks."""
        windows, added, removed = followed.windows, followed.added, followed.removed
        self.counts.rows_in += len(added) + len(removed)
        added_at, removed_at = added.bounds(), removed.bounds()
        said = np.flatnonzero(followed.first | (np.diff(added_at) > 0) | (np.diff(removed_at) > 0))
        windows, clock, first = windows.take(said), followed.clock[said], followed.first[said]
        covered = self.block.coverage(windows)
        self._revision[windows.number[first]] = -1
        revision = self._revision[windows.number] + 1 + occurrence(windows.number)
        self._remember(windows.number, revision, covered)
        updates, begin = WindowUpdates(
            self.query, windows.tick, windows.n, windows.t, revision, covered,
            self._rows(added), _without_empty(added_at, said), self._rows(removed), _without_empty(removed_at, said),
        ), 0  # fmt: skip
        for mark in marks:
            before = np.where(first, windows.tick < mark.arrival, clock <= followed.versions.answered(mark.arrival))
            behind = int(np.count_nonzero(before))
            if begin < behind:
                yield updates.take(slice(begin, behind))
                begin = behind
            yield Carried(self.query, mark.arrival, mark.value)
        if begin < len(updates):
            yield updates.take(slice(begin, None)) if begin else updates

    def _otherwise(self, numbers, covered):
        """Which windows cover something else than what was said."""
        mask = np.zeros(len(numbers), bool)
        for name, of in covered.items():
            for said, now in zip(self._covered[name], of or (), strict=bool(of)):
                mask |= said[numbers] != now
        return mask

    def _remember(self, numbers, revision, covered):
        self._revision[numbers] = revision
        for name, of in covered.items():
            known = self._covered.setdefault(name, (Numbered(np.int64), Numbered(np.int64)))
            for said, now in zip(known, of or (), strict=bool(of)):
                said[numbers] = now

    def _rows(self, frame):
        return Rows(tuple(written(frame.columns[c.id]) for c in self._columns), len(frame))

    def need(self, before):
        """Nothing changes before a tick of the extents below."""
        self.block.need(before)

    def tidy(self):
        for said in (self._revision, *(each for of in self._covered.values() for each in of)):
            said.drop_before(self.block.oldest)


def _without_empty(bounds, kept):
    """Where the rows of some windows begin and end; the other windows have none."""
    return np.append(bounds[kept], bounds[-1])


class StreamOutput(Operator):
    """The tuples of a stream as they enter it, and the marks of its epochs."""

    kind = OUTPUT
    follows = False

    def __init__(self, query, stream, columns, limit, start, since, keys):
        """Tuples that entered before the query did are not its answer (1.1); with `since`, those that arrived before (10.7).

        For `keys` ticks a tuple may still come that is told of.
        """
        super().__init__(stream.level)
        self._keys = keys
        self.query, self.stream, self._columns = query, stream, columns
        self._marks = Waiting()
        self.said = []  # in the last step
        self._needed = NEVER
        self._arrivals = Arrivals()
        self._since = -NEVER if since is None else since
        self._given = Numbered(bool)
        self._epochs = EpochsTold(query, stream, start, limit)
        known = stream.all()
        ours = known.come.arrival > known.watermark if since is None else known.come.arrival >= since
        self._arrivals.apply(known.come, ours, known.gone)

    @property
    def silent_before(self):
        waits = self._marks or self._arrivals.first is not None
        return -NEVER if waits else self.stream.silent_before

    def step(self, clock):
        change = self.stream.change
        back = change.gone.take(self._given[change.gone.ident])
        again = change.come.take(np.isin(change.come.ident, back.ident) & ~change.fresh)
        back, again = self._differing(back, again)
        self._given[back.ident] = False
        self._arrivals.apply(change.come, change.fresh & (change.come.arrival >= self._since), change.gone)
        entering = self._arrivals.ready(change.watermark)
        entering = back.take(NO_TICKS) if entering is None else entering
        for tuples, weight in ((back, -1), (again, 1), (entering, 1)):
            self._given[tuples.ident] = weight == 1
        corrected = [self._updates(tuples, weight) for tuples, weight in ((back, -1), (again, 1)) if len(tuples)]
        marks = self._marks.ready(change.marks, change.watermark)
        self.said = [*corrected, *in_time(entering, self._updates(entering, 1), self._epochs.news(), marks)]
        self.counts.rows_in += len(change.come) + len(change.gone)
        self.counts.rows_out += len(back) + len(again) + len(entering)

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

    def need(self, before):
        """Nothing changes before a tick of the extents below."""
        self._needed = min(self._needed, before)

    def tidy(self):
        before, self._needed = self._needed, NEVER
        self.stream.need(before)
        self._given.drop_before(self.stream.first)
        # A reading that came late is told of in its epoch's mark even where no window is corrected.
        self._epochs.forget(before - self._keys)


def in_time(entering, updates, epochs, marks):
    """Tuples, and the mark of an epoch behind those that arrived up to it; marks that say it anew behind all."""
    query, begin = updates.query, 0
    carried = [(np.array([place_of(m, entering)]), Carried(query, m.arrival, m.value)) for m in marks]
    for at, marked in _runs([*carried, *_placed(epochs, entering.arrival)]):
        end = int(at[-1])
        tuples = updates.take(slice(begin, end))
        if not isinstance(marked, EpochMarks):
            yield from (tuples, marked) if len(tuples) else (marked,)
        else:
            yield Interleaved(query, tuples, marked, at - begin) if len(tuples) else marked
        begin = end
    if begin < len(updates):
        yield updates.take(slice(begin, None))


def _placed(marks, arrivals):
    """(how many tuples stand before each, EpochMarks), in that order, of marks of which some are new."""
    for marked, new in marks:
        places = np.where(new, np.searchsorted(arrivals, marked.tick, "right"), len(arrivals))
        order = np.argsort(places, kind="stable")
        if len(order):
            yield places[order], marked.take(order)


def _runs(groups):
    """Groups of (places in order, what stands there) cut so that they can be said one after another."""
    if len(groups) < 2:
        yield from groups
        return
    places = np.concatenate([at for at, _ in groups])
    owner = np.repeat(np.arange(len(groups)), [len(at) for at, _ in groups])
    within = np.concatenate([np.arange(len(at)) for at, _ in groups])
    order = np.argsort(places, kind="stable")
    for run in np.split(order, np.flatnonzero(np.diff(owner[order])) + 1):
        at, said = groups[owner[run[0]]]
        part = slice(int(within[run[0]]), int(within[run[-1]]) + 1)
        yield at[part], said.take(part) if isinstance(said, EpochMarks) else said


def windows_of(said):
    return [each for each in said if isinstance(each, WindowUpdates)]
