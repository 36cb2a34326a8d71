"""Outputs: what a query says at the end of a step: windows and their revisions, or the tuples of a stream (12.1)."""

from dataclasses import replace
from itertools import chain

import numpy as np

from basestation.execution.bags import occurrence
from basestation.execution.change import NO_TICKS
from basestation.execution.frame import difference
from basestation.execution.graph import OUTPUT, Operator
from basestation.execution.indexing import Arrivals
from basestation.execution.marking import EpochsTold
from basestation.execution.marks import Waiting, place_of
from basestation.execution.numbered import Numbered
from basestation.execution.showing import Part, Shown
from basestation.execution.tuples import equal
from basestation.execution.wants import Wants
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
    """The windows of a block, for all that ask for them, each with its own rows (`showing.py`). What is in a window is
    found once, and who wants which rows of it is looked up for all together; a revision is told to whom it concerns."""

    kind = OUTPUT

    def __init__(self, block, wants=None):
        """`wants` are those that the stream below lets pass, if it asks."""
        super().__init__(block.level)
        self.block = block
        block.remembers = True
        self._let_pass = wants is not None
        self._wants = wants if self._let_pass else Wants()
        self.members, self.speaker = {}, None
        self._marks = Waiting()
        self.said = []  # in the last step
        self._covered = {}  # {extent: the same of used and due}

    # --- queries come and go -----------------------------------------------------------------------------------------

    def join(self, view):
        """A Shown that shows what a View says."""
        known = len(self._wants)
        shown = Shown(self, self._wants.take(view.predicate), view)
        self.block.show(view)
        self._let_others_pass(known)
        self.members[shown] = None
        return shown

    def _let_others_pass(self, known):
        """Other tuples are held where the predicates are not those that were known."""
        if self._let_pass and len(self._wants) != known:
            self.block.inputs[0].store.fill()

    def leave(self, shown, query):
        """A query goes, and with the last of equal ones what they were together."""
        shown.queries.remove(query)
        if not shown.queries:
            known = len(self._wants)
            del self.members[shown]
            self._wants.let_go(shown.number)
            self._let_others_pass(known)

    @property
    def numbers(self):
        """The queries that are told."""
        return [query for shown in self.members for query in shown.queries]

    # --- one clock tick ----------------------------------------------------------------------------------------------

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
            self.said = [*self._revisions(outcome), *self._first_answers(outcome.new, marks)]

    def _parts(self, frame):
        """(each that asks, the Part of a Frame that it wants)."""
        self.counts.rows_in += len(frame)
        whole = Part(frame)
        if self._let_pass and len(self._wants) == 1:
            return [(shown, whole) for shown in self.members]
        found = self._wants.of(frame.columns, len(frame))
        parts = {number: whole if rows is None else Part(frame, rows) for number, rows in found.items()}
        nothing = Part(frame, NO_TICKS)
        return [(shown, parts.get(shown.number, nothing)) for shown in self.members]

    def _given(self, shown, rows):
        shown.counts.rows_out += len(rows)
        self.counts.rows_out += len(rows)

    def _first_answers(self, new, marks):
        if not len(new):
            return [self._mark(query, mark) for query in self.numbers for mark in marks]
        frame, covered = self.block.frame_of(new), self.block.coverage(new)
        self._cover(new.number, covered)
        nothing, revision = np.zeros(len(new) + 1, np.int64), np.zeros(len(new), np.int64)
        said = []
        for shown, part in self._parts(frame):
            rows, at = shown.rows(part)
            self._given(shown, rows)
            told = new.tick, new.n, new.t, revision, covered, rows, at, shown.none(rows), nothing
            said += [WindowUpdates(query, *told) for query in shown.queries]
        return [each for update in said for each in self._with_marks(update, marks)] if marks else said

    def _mark(self, query, mark):
        return Carried(query, mark.arrival, mark.value)

    def _with_marks(self, updates, marks):
        """Marks before the first windows that are made when they arrive, or later."""
        begin = 0
        for mark in marks:
            behind = int(np.searchsorted(updates.tick, mark.arrival))
            if begin < behind:
                yield updates.take(slice(begin, behind))
                begin = behind
            yield self._mark(updates.query, mark)
        if begin < len(updates):
            yield updates.take(slice(begin, None))

    def _revisions(self, outcome):
        dirty = outcome.dirty
        if not len(dirty):
            return []
        now, old = self.block.frame_of(dirty), outcome.old
        covered = self.block.coverage(dirty)
        otherwise = self._otherwise(dirty.number, covered)
        self._cover(dirty.number, covered)
        said = []
        for (shown, after), (_, before) in zip(self._parts(now), self._parts(old), strict=True):
            after, before = shown.frame(after), shown.frame(before)
            came, went = difference(after, before)
            found = self._revised(shown, dirty, covered, otherwise, after.take(came), before.take(went))
            said += [WindowUpdates(query, *found) for query in shown.queries if len(found[0])]
        return said

    def _revised(self, shown, dirty, covered, otherwise, added, removed):
        """What is told of windows in which something is otherwise; the others are not given and use no number."""
        added_at, removed_at = added.bounds(), removed.bounds()
        which = np.flatnonzero((np.diff(added_at) > 0) | (np.diff(removed_at) > 0) | otherwise)
        windows = dirty.take(which)
        revision = shown.revision[windows.number] + 1
        shown.revision[windows.number] = revision
        return self._told(shown, windows, revision, coverage_of(covered, which), which, added, removed)

    def _told(self, shown, windows, revision, covered, which, added, removed):
        """What WindowUpdates say of the windows `which`, besides the query; in the others nothing is added or removed."""
        added_at, removed_at = (_without_empty(each.bounds(), which) for each in (added, removed))
        added, removed = shown.rows_of(added), shown.rows_of(removed)
        self._given(shown, added)
        self._given(shown, removed)
        return windows.tick, windows.n, windows.t, revision, covered, added, added_at, removed, removed_at

    def _in_clock_ticks(self, followed, marks):
        """First answers and revisions of many clock ticks, in one piece between marks."""
        covered = self.block.coverage(followed.windows)
        self._cover(followed.windows.number, covered)
        for (shown, added), (_, removed) in zip(
            self._parts(followed.added), self._parts(followed.removed), strict=True
        ):
            added, removed = shown.frame(added), shown.frame(removed)
            if not shown.tells_apart(followed.added):
                came, went = difference(added, removed)
                added, removed = added.take(came), removed.take(went)
            rows = (np.diff(each.bounds()) > 0 for each in (added, removed))
            which = np.flatnonzero(np.logical_or(*rows) | followed.first)
            windows, clock, first = followed.windows.take(which), followed.clock[which], followed.first[which]
            shown.revision[windows.number[first]] = -1
            revision = shown.revision[windows.number] + 1 + occurrence(windows.number)
            shown.revision[windows.number] = revision
            told = self._told(shown, windows, revision, coverage_of(covered, which), which, added, removed)
            for query in shown.queries:
                yield from self._between(WindowUpdates(query, *told), first, clock, followed.versions, marks)

    def _between(self, updates, first, clock, versions, marks):
        """The same with marks at their places."""
        begin = 0
        for mark in marks:
            before = np.where(first, updates.tick < mark.arrival, clock <= versions.answered(mark.arrival))
            behind = int(np.count_nonzero(before))
            if begin < behind:
                yield updates.take(slice(begin, behind))
                begin = behind
            yield self._mark(updates.query, mark)
        if begin < len(updates):
            yield updates.take(slice(begin, None)) if begin else updates

    # --- coverage ----------------------------------------------------------------------------------------------------

    def _otherwise(self, numbers, covered):
        """Which windows cover something else than what was said."""
        mask = np.zeros(len(numbers), bool)
        for name, of in covered.items():
            for said, now in zip(self._covered[name], of or (), strict=bool(of)):
                mask |= said[numbers] != now
        return mask

    def _cover(self, numbers, covered):
        """Who asks for windows is told of all that they cover, and of each change of it."""
        for name, of in covered.items():
            known = self._covered.setdefault(name, (Numbered(np.int64), Numbered(np.int64)))
            for said, now in zip(known, of or (), strict=bool(of)):
                said[numbers] = now

    def need(self, before):
        """Nothing changes before a tick of the extents below."""
        self.block.need(before)

    def tidy(self):
        numbered = (shown.revision for shown in self.members), *self._covered.values()
        for said in chain.from_iterable(numbered):
            said.drop_before(self.block.oldest)


def _without_empty(bounds, kept):
    """Where the rows of some windows begin and end; the other windows have none."""
    return np.append(bounds[kept], bounds[-1])


class StreamOutput(Operator):
    """The tuples of a stream as they enter it, and the marks of its epochs."""

    kind = OUTPUT
    follows = False

    def __init__(self, stream, columns, limit, start, since, keys):
        """Tuples that entered before the query did are not its answer (1.1); with `since`, those that arrived before (10.7).

        For `keys` ticks a tuple may still come that is told of.
        """
        super().__init__(stream.level)
        self._keys = keys
        self.numbers, self.speaker = [], None
        self.stream, self._columns = stream, columns
        self._marks = Waiting()
        self._said = []  # in the last step, to each query
        self._needed = NEVER
        self._arrivals = Arrivals()
        self._since = -NEVER if since is None else since
        self._given = Numbered(bool)
        self._epochs = EpochsTold(None, stream, start, limit)
        known = stream.all()
        ours = known.come.arrival > known.watermark if since is None else known.come.arrival >= since
        self._arrivals.apply(known.come, ours, known.gone)

    @property
    def silent_before(self):
        waits = self._marks or self._arrivals.first is not None
        return -NEVER if waits else self.stream.silent_before

    @property
    def among(self):
        """Equal queries only have it, and each has all of it."""
        return self

    @property
    def queries(self):
        return self.numbers

    def leave(self, query):
        self.numbers.remove(query)

    @property
    def said(self):
        """What it had to say in the last step, query by query."""
        return [replace(said, query=query) for query in self.numbers for said in self._said]

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
        self._said = [*corrected, *in_time(entering, self._updates(entering, 1), self._epochs.news(), marks)]
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
        return TupleUpdates(None, tuples.tick, index, np.full(len(tuples), weight, np.int64), rows)

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
