"""Outputs: operators that emit windows and their revisions, or the tuples of a stream (semantics 12.1)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.expression import Column
from basestation.execution import thresholds
from basestation.execution.columns.bags import number_occurrences
from basestation.execution.columns.change import NO_TICKS, Change
from basestation.execution.columns.dense_id_map import DenseIdMap
from basestation.execution.columns.next_due import DUE_NOW, NextDue
from basestation.execution.columns.punctuation import PendingPunctuation, Punctuation, count_before
from basestation.execution.columns.tuple_versions import TupleVersions
from basestation.execution.columns.tuples import Tuples, null_safe_equal
from basestation.execution.columns.watermark_buffer import WatermarkBuffer
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.columns.window_combinations import WindowCombinations
from basestation.execution.columns.window_contents import WindowContents, diff_both_ways
from basestation.execution.description import OperatorDescription
from basestation.execution.graph import OUTPUT, Operator
from basestation.execution.interfaces import QueryGroup, StreamSource
from basestation.execution.output.epoch_marks import UNASSIGNED, EpochReporter, NewMarks
from basestation.execution.output.shared_windows import OutputShape, ViewMember
from basestation.execution.output.window_views import WindowView
from basestation.execution.query_block import BlockChange, QueryBlock
from basestation.execution.relational.window_ranges import WindowRanges
from basestation.execution.slices.per_tick_revisions import PerTickRevisions
from basestation.execution.streams.predicate_index.predicate_set import PredicateSet
from basestation.execution.windowing.stream_windows import TimeWindows
from basestation.updates.update import (
    CoverageColumns,
    EpochMarks,
    Interleaved,
    PunctuationUpdate,
    Rows,
    SharedUpdate,
    SharedWindowUpdates,
    TupleUpdates,
    Update,
    WindowUpdates,
    coverage_of,
)

Contents = Mapping[bool, WindowContents | WindowRanges]
"""The contents of windows: under True as ranges of windows, under False tuple by tuple, as far as shapes need them."""


class WindowOutput(Operator):
    """An Output: the windows of a block, for all queries that share them, each with its own rows (`shared_windows.py`).

    The contents of a window are computed once, and the rows of all queries are looked up together. A revision goes only to the queries
    whose rows differ.
    """

    kind = OUTPUT

    def __init__(self, block: QueryBlock, predicates: PredicateSet | None = None) -> None:
        """`predicates` are those that the stream below filters by, if it does."""
        super().__init__(block.level)
        self.block = block
        self._filters_stream = predicates is not None
        self._predicates = PredicateSet() if predicates is None else predicates
        self._shapes: dict[tuple[object, ...], OutputShape] = {}
        self.output_group: QueryGroup | None = None
        self._marks = PendingPunctuation()
        self.updates: list[Update | SharedUpdate] = []  # of the last step
        # By extent, the coverage of each window as it was reported: (used, due).
        self._covered: dict[str, tuple[DenseIdMap, DenseIdMap]] = {}

    def describe(self) -> OperatorDescription:
        shapes = [shape.describe() for shape in self._shapes.values()]
        parts = tuple(shape for shape in shapes if shape is not None)
        return OperatorDescription("emit windows", "first answers and revisions", None, parts)

    # --- queries begin and end -----------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"updates": []}

    def join(self, view: WindowView) -> ViewMember:
        """Add a member that shows a view."""
        known = len(self._predicates)
        shape = self._shapes.setdefault(view.shape, OutputShape(view, self.block.is_plain_join))
        member = ViewMember(self, shape, self._predicates.take(view.predicate), self.block.show(view))
        shape.members[member] = None
        self.block.snapshot_modes.add(shape.stretched)
        self._refill_store(known)
        return member

    def leave(self, member: ViewMember, query: int) -> None:
        """Remove a query, and with the last of equal ones their member."""
        member.queries.remove(query)
        if member.queries:
            return
        known = len(self._predicates)
        del member.shape.members[member]
        if not member.shape.members:
            del self._shapes[member.shape.key]
            self.block.snapshot_modes = {shape.stretched for shape in self._shapes.values()}
        self._predicates.release(member.number)
        for owner, claim in member.claims:
            owner.release(claim)
        self._refill_store(known)

    def _refill_store(self, known: int) -> None:
        """Fill the store anew if the predicates that the stream filters by are not the `known` ones any more."""
        if self._filters_stream and len(self._predicates) != known:
            source = self.block.inputs[0]
            assert isinstance(source, TimeWindows), "a filtered stream is below windows of time"
            source.store.fill()

    @property
    def _members(self) -> Iterator[ViewMember]:
        return chain.from_iterable(shape.members for shape in self._shapes.values())

    @property
    def numbers(self) -> list[int]:
        """The queries that it answers."""
        return [query for member in self._members for query in member.queries]

    # --- steps -------------------------------------------------------------------------------------------------------

    @property
    def tracks_versions(self) -> bool:
        """Whether it can report corrections of several clock ticks after one step."""
        return self.block.tracks_versions

    @property
    def next_due(self) -> NextDue:
        """When the output may emit an update next."""
        return DUE_NOW if self._marks else self.block.next_due

    def step(self, clock: int) -> None:
        """Turn the outcome of the block into updates."""
        outcome = self.block.outcome
        marks = self._marks.ready(self.block.marks, self.block.watermark)
        if outcome.followed is not None:
            self.updates = list(self._revise_per_tick(outcome.followed, marks))
        else:
            self.updates = [*self._revise(outcome), *self._answer_first(outcome.new, marks)]

    def _contents_of(self, windows: WindowCombinations) -> Contents:
        """Return the contents of windows in the forms that the shapes need."""
        return {stretched: self.block.content(windows, stretched) for stretched in self.block.snapshot_modes}

    def _find_rows(self, found: Contents) -> Callable[[OutputShape], list[IntArray | None]]:
        """Look up the rows of all members; return a function that gives those of a shape's members, None for all rows."""
        self.counts.rows_in += sum(map(len, found.values()))
        if self._filters_stream and len(self._predicates) == 1:
            return lambda shape: [None] * len(shape.members)
        rows = {stretched: self._predicates.of(of.columns, len(of)) for stretched, of in found.items()}
        return lambda shape: [rows[shape.stretched].get(member.number, NO_TICKS) for member in shape.members]

    def _answer_first(self, new: WindowCombinations, marks: Sequence[Punctuation]) -> Sequence[Update | SharedUpdate]:
        """Return the first answers of new windows, with the marks between them."""
        if not len(new):
            return [_punctuation_for(query, mark) for query in self.numbers for mark in marks]
        found, covered = self._contents_of(new), self.block.coverage(new)
        self._record_coverage(new.number, covered)
        rows_of = self._find_rows(found)
        updates: list[SharedWindowUpdates] = []
        for shape in self._shapes.values():
            content = found[shape.stretched]
            whole: list[ViewMember] = []
            selected: list[tuple[ViewMember, IntArray]] = []
            for member, rows in zip(shape.members, rows_of(shape), strict=True):
                if rows is None:
                    whole.append(member)
                else:
                    selected.append((member, rows))
            if whole:  # nothing is copied
                updates.append(self._share(new, covered, shape, whole, shape.project(content)))
            portion = max(1, thresholds.OUTPUT_WINDOWS // len(new))
            for begin in range(0, len(selected), portion):
                members, parts = zip(*selected[begin : begin + portion], strict=True)
                updates.append(self._share(new, covered, shape, members, shape.project_each(content, parts)))
        if not marks:
            return updates
        return [each for update in updates for piece in update.pieces() for each in _with_marks(piece, marks)]

    def _share(
        self,
        windows: WindowCombinations,
        covered: CoverageColumns,
        shape: OutputShape,
        members: Sequence[ViewMember],
        found: WindowContents,
    ) -> SharedWindowUpdates:
        """Return first answers. `found` has the windows of each member one after another, or once for all of them."""
        width = len(windows)
        at = sliding_window_view(found.bounds(), width + 1)[::width]
        if len(at) < len(members):
            at = np.repeat(at, len(members), axis=0)
        counts = (at[:, -1] - at[:, 0]).tolist()
        self.counts.rows_out += sum(counts)
        for member, count in zip(members, counts, strict=True):
            member.counts.rows_out += count
        queries = [query for member in members for query in member.queries]
        if len(queries) > len(members):
            at = np.repeat(at, [len(member.queries) for member in members], axis=0)
        return SharedWindowUpdates(queries, windows.tick, windows.n, windows.t, covered, shape.rows(found), at)

    def _revise(self, outcome: BlockChange) -> Iterator[WindowUpdates]:
        """Yield the revisions of dirty windows."""
        dirty = outcome.dirty
        if not len(dirty):
            return
        now, old = self._contents_of(dirty), outcome.old
        covered = self.block.coverage(dirty)
        changed = self._find_changed_coverage(dirty.number, covered)
        self._record_coverage(dirty.number, covered)
        for member, which, added, added_at, removed, removed_at in self._find_differences(now, old, changed):
            windows = dirty.take(which)
            revision, coverage = member.next_revision(windows.number), coverage_of(covered, which)
            tick, n, t = windows.tick, windows.n, windows.t
            for query in member.queries:
                yield WindowUpdates(query, tick, n, t, revision, coverage, added, added_at, removed, removed_at)

    def _find_differences(
        self, now: Contents, old: Contents, changed: BoolArray, compared: bool = False
    ) -> Iterator[tuple[ViewMember, IntArray, Rows, IntArray, Rows, IntArray]]:
        """Yield (member, positions of the windows to report, added rows, their offsets, removed rows, their offsets).

        A window is reported if it is `changed`, or if its rows differ. With `compared`, `now` and `old` are differences already, so
        members that show rows unchanged need no further comparison.
        """
        after, before, width = self._find_rows(now), self._find_rows(old), len(changed)
        for shape in self._shapes.values():
            members = list(shape.members)
            added = shape.project_each(now[shape.stretched], after(shape))
            removed = shape.project_each(old[shape.stretched], before(shape))
            if not (compared and shape.tells_apart(now[False])):
                gained, lost = diff_both_ways(added, removed)
                added, removed = added.take(gained), removed.take(lost)
            sides = [(shape.rows(contents), contents.bounds()) for contents in (added, removed)]
            other = changed | (np.diff(sides[0][1]) > 0).reshape(len(members), width)
            other |= (np.diff(sides[1][1]) > 0).reshape(len(members), width)
            for place in np.flatnonzero(other.any(axis=1)).tolist():
                member, which = members[place], np.flatnonzero(other[place])
                parts = [_part(rows, bounds, place * width, which, width) for rows, bounds in sides]
                count = sum(len(rows) for rows, _ in parts)
                member.counts.rows_out += count
                self.counts.rows_out += count
                yield member, which, *parts[0], *parts[1]

    def _revise_per_tick(self, followed: PerTickRevisions, marks: Sequence[Punctuation]) -> Iterator[Update]:
        """Yield first answers and revisions of several clock ticks, in one piece between marks."""
        covered = self.block.coverage(followed.windows)
        self._record_coverage(followed.windows.number, covered)
        gained, lost = {False: followed.added}, {False: followed.removed}
        unchanged = set(self._members)
        differences = self._find_differences(gained, lost, followed.first, compared=True)
        for member, which, added, added_at, removed, removed_at in differences:
            windows, first = followed.windows.take(which), followed.first[which]
            member.start_revisions(windows.number[first])
            revision = member.next_revision(windows.number, 1 + number_occurrences(windows.number))
            coverage, tick, n, t = coverage_of(covered, which), windows.tick, windows.n, windows.t
            unchanged.remove(member)
            for query in member.queries:
                updates = WindowUpdates(query, tick, n, t, revision, coverage, added, added_at, removed, removed_at)
                yield from _between_revisions(updates, first, followed.clock[which], followed.versions, marks)
        for member in self._members:
            if member in unchanged:
                yield from (_punctuation_for(query, mark) for query in member.queries for mark in marks)

    # --- coverage ----------------------------------------------------------------------------------------------------

    def _find_changed_coverage(self, numbers: IntArray, covered: CoverageColumns) -> BoolArray:
        """Return a mask of the windows whose coverage differs from the reported one."""
        mask = np.zeros(len(numbers), bool)
        for name, of in covered.items():
            for reported, now in zip(self._covered[name], of or (), strict=bool(of)):
                mask |= reported[numbers] != now
        return mask

    def _record_coverage(self, numbers: IntArray, covered: CoverageColumns) -> None:
        """Record the coverage of windows as reported."""
        for name, of in covered.items():
            known = self._covered.setdefault(name, (DenseIdMap(np.int64), DenseIdMap(np.int64)))
            for reported, now in zip(known, of or (), strict=bool(of)):
                reported[numbers] = now

    def need(self, before: int) -> None:
        """Promise that nothing changes before a tick of the extents below."""
        self.block.need(before)

    def tidy(self) -> None:
        """Drop what was recorded of windows that no longer change."""
        for reported in chain.from_iterable(self._covered.values()):
            reported.drop_before(self.block.oldest)
        for member in self._members:
            member.forget(self.block.oldest)


def _part(rows: Rows, bounds: IntArray, first: int, which: IntArray, width: int) -> tuple[Rows, IntArray]:
    """Return (the rows of `width` windows from the first one, the offsets of those at `which`); only these have rows."""
    bounds = bounds[first : first + width + 1]
    begin, end = int(bounds[0]), int(bounds[-1])
    return rows.take(slice(begin, end)), np.append(bounds[which], end) - begin


def _punctuation_for(query: int, mark: Punctuation) -> PunctuationUpdate:
    return PunctuationUpdate(query, mark.arrival, mark.value)


def _with_marks(updates: WindowUpdates, marks: Sequence[Punctuation]) -> Iterator[Update]:
    """Yield first answers, each mark before the first window that is made at its arrival or later."""
    return _place_among(updates, [(int(np.searchsorted(updates.tick, mark.arrival)), mark) for mark in marks])


def _between_revisions(
    updates: WindowUpdates, first: BoolArray, clock: IntArray, versions: TupleVersions, marks: Sequence[Punctuation]
) -> Iterator[Update]:
    """Yield updates of several clock ticks, each mark after the revisions of its own clock tick.

    `first` masks first answers, `clock` has the clock tick of each update.
    """
    places = []
    for mark in marks:
        before = np.where(first, updates.tick < mark.arrival, clock <= versions.first_answered(mark.arrival))
        places.append((int(np.count_nonzero(before)), mark))
    return _place_among(updates, places)


def _place_among(updates: WindowUpdates, marks: Iterable[tuple[int, Punctuation]]) -> Iterator[Update]:
    """Yield updates with marks between them, each after the given number of updates."""
    begin = 0
    for end, mark in marks:
        if begin < end:
            yield updates.take(slice(begin, end))
            begin = end
        yield _punctuation_for(updates.query, mark)
    if begin < len(updates):
        yield updates.take(slice(begin, None)) if begin else updates


class StreamOutput(Operator):
    """An Output: the tuples of a stream as they enter it, and the marks of its epochs. Only equal queries share it."""

    kind = OUTPUT
    tracks_versions = False

    def __init__(
        self,
        stream: StreamSource,
        columns: Sequence[Column],
        limit: int | None,
        start: int,
        since: int | None,
        keys: int,
    ) -> None:
        """Tuples that entered before the query are not in its answer (semantics 1.1).

        `since` is the tick of SINCE: then tuples with an earlier arrival are not (semantics 10.7). Epochs are reported from `start` to
        `limit`. For `keys` ticks a reading may still come that changes the report of its epoch.
        """
        super().__init__(stream.level)
        self._keys = keys
        self.numbers: list[int] = []
        self.output_group: QueryGroup | None = None
        self.stream, self._columns = stream, columns
        self._marks = PendingPunctuation()
        self._shared: list[TupleUpdates | EpochMarks | Interleaved | PunctuationUpdate] = []  # of the last step
        self._needed = NEVER
        self._arrivals = WatermarkBuffer()
        self._since = -NEVER if since is None else since
        self._given = DenseIdMap(bool)  # by tuple number, whether it was emitted
        self._epochs = EpochReporter(stream, start, limit)
        known = stream.all()
        ours = known.inserted.arrival > known.watermark if since is None else known.inserted.arrival >= since
        self._arrivals.apply(known.inserted, ours, known.removed)

    def describe(self) -> OperatorDescription:
        return OperatorDescription("emit tuples", "and epoch marks, in order of entry")

    @property
    def next_due(self) -> NextDue:
        """When the output may emit an update next."""
        return DUE_NOW if self._marks or self._arrivals.first is not None else self.stream.next_due

    @property
    def output(self) -> "StreamOutput":
        """The output itself, which is its own only member."""
        return self

    def enter(self, query: int) -> None:
        """Add a query."""
        self.numbers.append(query)

    def leave(self, query: int) -> None:
        """Remove a query."""
        self.numbers.remove(query)

    @property
    def updates(self) -> list[Update]:
        """The updates of the last step, query by query."""
        return [replace(update, query=query) for query in self.numbers for update in self._shared]

    def step(self, clock: int) -> None:
        """Emit corrections, and the tuples and marks that enter."""
        change = self.stream.change
        back, again = self._find_corrected(change)
        self._given[back.ident] = False
        is_ours = change.is_new & (change.inserted.arrival >= self._since)
        self._arrivals.apply(change.inserted, is_ours, change.removed)
        entering = self._arrivals.ready(change.watermark)
        entering = back.take(NO_TICKS) if entering is None else entering
        for tuples, weight in ((back, -1), (again, 1), (entering, 1)):
            self._given[tuples.ident] = weight == 1
        corrected = [self._updates_of(tuples, weight) for tuples, weight in ((back, -1), (again, 1)) if len(tuples)]
        marks = self._marks.ready(change.marks, change.watermark)
        self._shared = [
            *corrected,
            *interleave_marks(entering, self._updates_of(entering, 1), self._epochs.news(), marks),
        ]
        self.counts.rows_in += len(change.inserted) + len(change.removed)
        self.counts.rows_out += len(back) + len(again) + len(entering)

    def _find_corrected(self, change: Change) -> tuple[Tuples, Tuples]:
        """Return (tuples to take back, tuples to give again), without those whose shown columns did not change."""
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

    def _updates_of(self, tuples: Tuples, weight: int) -> TupleUpdates:
        rows = Rows(tuple(tuples.columns[c.id] for c in self._columns), len(tuples))
        index = self.stream.index_of(tuples.ident)
        return TupleUpdates(UNASSIGNED, tuples.tick, index, np.full(len(tuples), weight, np.int64), rows)

    def need(self, before: int) -> None:
        """Promise that nothing changes before a tick of the extents below."""
        self._needed = min(self._needed, before)

    def tidy(self) -> None:
        """Drop what no correction can name."""
        before, self._needed = self._needed, NEVER
        self.stream.need(before)
        self._given.drop_before(self.stream.first)
        # A late reading changes the report of its epoch even if no window is corrected.
        self._epochs.forget(before - self._keys)


def interleave_marks(
    entering: Tuples, updates: TupleUpdates, epochs: Sequence[NewMarks], marks: Sequence[Punctuation]
) -> Iterator[TupleUpdates | EpochMarks | Interleaved | PunctuationUpdate]:
    """Yield tuples and marks in their order.

    The mark of a new epoch stands after all tuples that arrived up to it; a mark that revises an earlier report stands after all tuples.
    """
    query, begin = updates.query, 0
    carried: list[Placed] = [(np.array([count_before(m, entering)]), _punctuation_for(query, m)) for m in marks]
    for at, marked in _split_runs([*carried, *_place_epochs(epochs, entering.arrival)]):
        end = int(at[-1])
        tuples = updates.take(slice(begin, end))
        if not isinstance(marked, EpochMarks):
            yield from (tuples, marked) if len(tuples) else (marked,)
        else:
            yield Interleaved(query, tuples, marked, at - begin) if len(tuples) else marked
        begin = end
    if begin < len(updates):
        yield updates.take(slice(begin, None))


Placed = tuple[IntArray, EpochMarks | PunctuationUpdate]
"""Marks, and how many tuples precede each of them, ascending."""


def _place_epochs(marks: Iterable[NewMarks], arrivals: IntArray) -> Iterator[Placed]:
    """Yield epoch marks with their places among tuples of these arrivals."""
    for marked, new in marks:
        places = np.searchsorted(arrivals, marked.tick, "right")
        if not new.all():
            places = np.where(new, places, len(arrivals))
        if (places[1:] < places[:-1]).any():
            order = np.argsort(places, kind="stable")
            places, marked = (
                places[order],
                EpochMarks(marked.query, marked.tick[order], coverage_of(marked.coverage, order)),
            )
        if len(places):
            yield places, marked


def _split_runs(groups: Sequence[Placed]) -> Iterator[Placed]:
    """Yield groups of placed marks, cut so that all can be emitted one after another."""
    if len(groups) < 2:
        yield from groups
        return
    places = np.concatenate([at for at, _ in groups])
    owner = np.repeat(np.arange(len(groups)), [len(at) for at, _ in groups])
    within = np.concatenate([np.arange(len(at)) for at, _ in groups])
    order = np.argsort(places, kind="stable")
    for run in np.split(order, np.flatnonzero(np.diff(owner[order])) + 1):
        at, marked = groups[owner[run[0]]]
        part = slice(int(within[run[0]]), int(within[run[-1]]) + 1)
        yield at[part], marked.take(part) if isinstance(marked, EpochMarks) else marked
