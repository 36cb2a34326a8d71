"""Outputs: what a query says at the end of a step: windows and their revisions, or the tuples of a stream (12.1)."""

from dataclasses import replace
from itertools import chain

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from basestation.execution.columns.bags import number_occurrences
from basestation.execution.columns.change import NO_TICKS
from basestation.execution.columns.dense_id_map import DenseIdMap
from basestation.execution.columns.next_due import DUE_NOW
from basestation.execution.columns.punctuation import PendingPunctuation, count_before
from basestation.execution.columns.tuples import null_safe_equal
from basestation.execution.columns.watermark_buffer import WatermarkBuffer
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.columns.window_contents import diff_both_ways
from basestation.execution.graph import OUTPUT, Operator
from basestation.execution.output.epoch_marks import EpochReporter
from basestation.execution.output.shared_windows import OutputShape, ViewMember
from basestation.execution.streams.predicate_index.predicate_set import PredicateSet
from basestation.updates.update import (
    EpochMarks,
    Interleaved,
    PunctuationUpdate,
    Rows,
    SharedWindowUpdates,
    TupleUpdates,
    WindowUpdates,
    coverage_of,
    split_by_query,
)

_AT_ONCE = 2**14
"""So many windows of several queries are answered together: memory of that size is used again and again."""


class WindowOutput(Operator):
    """The windows of a block, for all that ask for them, each with its own rows (`showing.py`). What is in a window is
    found once, and who wants which rows of it is looked up for all together; a revision is told to whom it concerns."""

    kind = OUTPUT

    def __init__(self, block, wants=None):
        """`wants` are those that the stream below lets pass, if it asks."""
        super().__init__(block.level)
        self.block = block
        self._let_pass = wants is not None
        self._wants = wants if self._let_pass else PredicateSet()
        self._shapes, self.output_group = {}, None
        self._marks = PendingPunctuation()
        self.updates = []  # in the last step
        self._covered = {}  # {extent: the same of used and due}

    # --- queries come and go -----------------------------------------------------------------------------------------

    def __getstate__(self):
        return vars(self) | {"said": []}

    def join(self, view):
        """A Shown that shows what a View says."""
        known = len(self._wants)
        shape = self._shapes.setdefault(view.shape, OutputShape(view, self.block.is_plain_join))
        shown = ViewMember(self, shape, self._wants.take(view.predicate), self.block.show(view))
        shape.members[shown] = None
        self.block.snapshot_modes.add(shape.stretched)
        self._let_others_pass(known)
        return shown

    def leave(self, shown, query):
        """A query goes, and with the last of equal ones what they were together."""
        shown.queries.remove(query)
        if shown.queries:
            return
        known = len(self._wants)
        del shown.shape.members[shown]
        if not shown.shape.members:
            del self._shapes[shown.shape.key]
            self.block.snapshot_modes = {shape.stretched for shape in self._shapes.values()}
        for whom, what in [(self._wants, shown.number), *shown.asked]:
            whom.release(what)
        self._let_others_pass(known)

    def _let_others_pass(self, known):
        """Other tuples are held where the predicates are not those that were known."""
        if self._let_pass and len(self._wants) != known:
            self.block.inputs[0].store.fill()

    @property
    def _members(self):
        return chain.from_iterable(shape.members for shape in self._shapes.values())

    @property
    def numbers(self):
        """The queries that are told."""
        return [query for shown in self._members for query in shown.queries]

    # --- one clock tick ----------------------------------------------------------------------------------------------

    @property
    def tracks_versions(self):
        return self.block.tracks_versions

    @property
    def next_due(self):
        return DUE_NOW if self._marks else self.block.next_due

    def step(self, clock):
        outcome = self.block.outcome
        marks = self._marks.ready(self.block.marks, self.block.watermark)
        if outcome.followed is not None:
            self.updates = list(self._in_clock_ticks(outcome.followed, marks))
        else:
            self.updates = [*self._revisions(outcome), *self._first_answers(outcome.new, marks)]

    def _content(self, windows):
        """What is in windows, as it is asked for: in stretches or not."""
        return {stretched: self.block.content(windows, stretched) for stretched in self.block.snapshot_modes}

    def _wanted(self, found):
        """A function that tells the rows that each Shown of a Shape wants of what was found; None where that is each of them."""
        self.counts.rows_in += sum(map(len, found.values()))
        if self._let_pass and len(self._wants) == 1:
            return lambda shape: [None] * len(shape.members)
        rows = {stretched: self._wants.of(of.columns, len(of)) for stretched, of in found.items()}
        return lambda shape: [rows[shape.stretched].get(shown.number, NO_TICKS) for shown in shape.members]

    def _first_answers(self, new, marks):
        if not len(new):
            return [_carried(query, mark) for query in self.numbers for mark in marks]
        found, covered = self._content(new), self.block.coverage(new)
        self._cover(new.number, covered)
        wanted, updates = self._wanted(found), []
        for shape in self._shapes.values():
            content, asked = found[shape.stretched], list(zip(shape.members, wanted(shape), strict=True))
            all, some = [shown for shown, rows in asked if rows is None], [of for of in asked if of[1] is not None]
            if all:  # nothing is copied
                updates.append(self._for_many(new, covered, shape, all, shape.of(content)))
            portion = max(1, _AT_ONCE // len(new))
            for begin in range(0, len(some), portion):
                members, rows = zip(*some[begin : begin + portion], strict=True)
                updates.append(self._for_many(new, covered, shape, members, shape.of_each(content, rows)))
        return [each for update in split_by_query(updates) for each in _with_marks(update, marks)] if marks else updates

    def _for_many(self, windows, covered, shape, members, found):
        """First answers: what was found for members, one after another, or for all of them."""
        width = len(windows)
        at = sliding_window_view(found.bounds(), width + 1)[::width]
        if len(at) < len(members):
            at = np.repeat(at, len(members), axis=0)
        counts = (at[:, -1] - at[:, 0]).tolist()
        self.counts.rows_out += sum(counts)
        for shown, count in zip(members, counts, strict=True):
            shown.counts.rows_out += count
        queries = [query for shown in members for query in shown.queries]
        if len(queries) > len(members):
            at = np.repeat(at, [len(shown.queries) for shown in members], axis=0)
        return SharedWindowUpdates(queries, windows.tick, windows.n, windows.t, covered, shape.rows(found), at)

    def _revisions(self, outcome):
        dirty = outcome.dirty
        if not len(dirty):
            return
        now, old = self._content(dirty), outcome.old
        covered = self.block.coverage(dirty)
        otherwise = self._otherwise(dirty.number, covered)
        self._cover(dirty.number, covered)
        for shown, which, *rows in self._differing(now, old, otherwise):
            windows = dirty.take(which)
            revision = shown.revised(windows.number)
            told = windows.tick, windows.n, windows.t, revision, coverage_of(covered, which), *rows
            for query in shown.queries:
                yield WindowUpdates(query, *told)

    def _differing(self, now, old, otherwise, compared=False):
        """(who, the windows that are told to them, and of these what is added, and where, and what is removed).

        Told is what is `otherwise`, or has other rows; who shows rows as they are needs them not `compared` again.
        """
        after, before, width = self._wanted(now), self._wanted(old), len(otherwise)
        for shape in self._shapes.values():
            members = list(shape.members)
            added = shape.of_each(now[shape.stretched], after(shape))
            removed = shape.of_each(old[shape.stretched], before(shape))
            if not (compared and shape.tells_apart(now[False])):
                came, went = diff_both_ways(added, removed)
                added, removed = added.take(came), removed.take(went)
            told = [(shape.rows(each), each.bounds()) for each in (added, removed)]
            other = otherwise | (np.diff(told[0][1]) > 0).reshape(len(members), width)
            other |= (np.diff(told[1][1]) > 0).reshape(len(members), width)
            for place in np.flatnonzero(other.any(axis=1)).tolist():
                shown, which = members[place], np.flatnonzero(other[place])
                parts = [_part(*each, place * width, which, width) for each in told]
                count = sum(len(rows) for rows, _ in parts)
                shown.counts.rows_out += count
                self.counts.rows_out += count
                yield shown, which, *parts[0], *parts[1]

    def _in_clock_ticks(self, followed, marks):
        """First answers and revisions of many clock ticks, in one piece between marks."""
        covered = self.block.coverage(followed.windows)
        self._cover(followed.windows.number, covered)
        added, removed = {False: followed.added}, {False: followed.removed}
        untold = set(self._members)
        for shown, which, *rows in self._differing(added, removed, followed.first, compared=True):
            windows, first = followed.windows.take(which), followed.first[which]
            shown.answered(windows.number[first])
            revision = shown.revised(windows.number, 1 + number_occurrences(windows.number))
            told = windows.tick, windows.n, windows.t, revision, coverage_of(covered, which), *rows
            untold.remove(shown)
            for query in shown.queries:
                yield from _between(WindowUpdates(query, *told), first, followed.clock[which], followed.versions, marks)
        yield from (_carried(query, mark) for shown in untold for query in shown.queries for mark in marks)

    # --- coverage ----------------------------------------------------------------------------------------------------

    def _otherwise(self, numbers, covered):
        """Which windows cover something else than what was said."""
        mask = np.zeros(len(numbers), bool)
        for name, of in covered.items():
            for updates, now in zip(self._covered[name], of or (), strict=bool(of)):
                mask |= updates[numbers] != now
        return mask

    def _cover(self, numbers, covered):
        """Who asks for windows is told of all that they cover, and of each change of it."""
        for name, of in covered.items():
            known = self._covered.setdefault(name, (DenseIdMap(np.int64), DenseIdMap(np.int64)))
            for updates, now in zip(known, of or (), strict=bool(of)):
                updates[numbers] = now

    def need(self, before):
        """Nothing changes before a tick of the extents below."""
        self.block.need(before)

    def tidy(self):
        for updates in chain.from_iterable(self._covered.values()):
            updates.drop_before(self.block.oldest)
        for shown in self._members:
            shown.forget(self.block.oldest)


def _part(rows, bounds, first, which, width):
    """(the rows of so many windows from the first, where they begin and end in each of those under `which`); others have none."""
    bounds = bounds[first : first + width + 1]
    begin, behind = int(bounds[0]), int(bounds[-1])
    return rows.take(slice(begin, behind)), np.append(bounds[which], behind) - begin


def _carried(query, mark):
    return PunctuationUpdate(query, mark.arrival, mark.value)


def _with_marks(updates, marks):
    """First answers with marks before the first windows that are made when they arrive, or later."""
    return _placed_among(updates, [(int(np.searchsorted(updates.tick, mark.arrival)), mark) for mark in marks])


def _between(updates, first, clock, versions, marks):
    """The same of what is told of many clock ticks: a mark stands behind the revisions of its own."""
    places = []
    for mark in marks:
        before = np.where(first, updates.tick < mark.arrival, clock <= versions.first_answered(mark.arrival))
        places.append((int(np.count_nonzero(before)), mark))
    return _placed_among(updates, places)


def _placed_among(updates, marks):
    """Updates and marks, of each of which is told how many stand before it."""
    begin = 0
    for behind, mark in marks:
        if begin < behind:
            yield updates.take(slice(begin, behind))
            begin = behind
        yield _carried(updates.query, mark)
    if begin < len(updates):
        yield updates.take(slice(begin, None)) if begin else updates


class StreamOutput(Operator):
    """The tuples of a stream as they enter it, and the marks of its epochs."""

    kind = OUTPUT
    tracks_versions = False

    def __init__(self, stream, columns, limit, start, since, keys):
        """Tuples that entered before the query did are not its answer (1.1); with `since`, those that arrived before (10.7).

        For `keys` ticks a tuple may still come that is told of.
        """
        super().__init__(stream.level)
        self._keys = keys
        self.numbers, self.output_group = [], None
        self.stream, self._columns = stream, columns
        self._marks = PendingPunctuation()
        self._said = []  # in the last step, to each query
        self._needed = NEVER
        self._arrivals = WatermarkBuffer()
        self._since = -NEVER if since is None else since
        self._given = DenseIdMap(bool)
        self._epochs = EpochReporter(None, stream, start, limit)
        known = stream.all()
        ours = known.inserted.arrival > known.watermark if since is None else known.inserted.arrival >= since
        self._arrivals.apply(known.inserted, ours, known.removed)

    @property
    def next_due(self):
        return DUE_NOW if self._marks or self._arrivals.first is not None else self.stream.next_due

    @property
    def output(self):
        """Equal queries only have it, and each has all of it."""
        return self

    def enter(self, query):
        self.numbers.append(query)

    def leave(self, query):
        self.numbers.remove(query)

    @property
    def updates(self):
        """What it had to say in the last step, query by query."""
        return [replace(updates, query=query) for query in self.numbers for updates in self._said]

    def step(self, clock):
        change = self.stream.change
        back, again = self._corrected(change)
        self._given[back.ident] = False
        self._arrivals.apply(change.inserted, change.is_new & (change.inserted.arrival >= self._since), change.removed)
        entering = self._arrivals.ready(change.watermark)
        entering = back.take(NO_TICKS) if entering is None else entering
        for tuples, weight in ((back, -1), (again, 1), (entering, 1)):
            self._given[tuples.ident] = weight == 1
        corrected = [self._updates(tuples, weight) for tuples, weight in ((back, -1), (again, 1)) if len(tuples)]
        marks = self._marks.ready(change.marks, change.watermark)
        self._said = [*corrected, *interleave_marks(entering, self._updates(entering, 1), self._epochs.news(), marks)]
        self.counts.rows_in += len(change.inserted) + len(change.removed)
        self.counts.rows_out += len(back) + len(again) + len(entering)

    def _corrected(self, change):
        """(tuples to take back, tuples to give again), without those that were corrected in what this query does not show."""
        if not len(change.removed):
            return change.removed, change.removed
        back = change.removed.take(self._given[change.removed.ident])
        again = change.inserted.take(np.isin(change.inserted.ident, back.ident) & ~change.is_new)
        if not len(again):
            return back, again
        back, again = back.take(np.argsort(back.ident)), again.take(np.argsort(again.ident))
        old = back.take(np.isin(back.ident, again.ident))
        same = np.ones(len(again), bool)
        for column in self._columns:
            same &= null_safe_equal(old.columns[column.id], again.columns[column.id])
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


def interleave_marks(entering, updates, epochs, marks):
    """Tuples, and the mark of an epoch behind those that arrived up to it; marks that say it anew behind all."""
    query, begin = updates.query, 0
    carried = [(np.array([count_before(m, entering)]), PunctuationUpdate(query, m.arrival, m.value)) for m in marks]
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
        places = np.searchsorted(arrivals, marked.tick, "right")
        if not new.all():
            places = np.where(new, places, len(arrivals))
        if (places[1:] < places[:-1]).any():
            order = np.argsort(places, kind="stable")
            places, marked = places[order], marked.take(order)
        if len(places):
            yield places, marked


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
        at, updates = groups[owner[run[0]]]
        part = slice(int(within[run[0]]), int(within[run[-1]]) + 1)
        yield at[part], updates.take(part) if isinstance(updates, EpochMarks) else updates
