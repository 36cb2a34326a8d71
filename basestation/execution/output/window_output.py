"""WindowOutput: emits the first answers of windows and their revisions, for all queries that share them (semantics 12.1)."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from acquisition.arrays import BoolArray, IntArray
from basestation.execution import thresholds
from basestation.execution.columns.bags import number_occurrences
from basestation.execution.columns.change import NO_TICKS
from basestation.execution.columns.next_due import DUE_NOW, NextDue
from basestation.execution.columns.punctuation import PendingPunctuation, Punctuation
from basestation.execution.columns.tuple_versions import TupleVersions
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.columns.window_combinations import WindowCombinations, concatenate_combinations
from basestation.execution.columns.window_contents import WindowContents, diff_both_ways
from basestation.execution.description import OperatorDescription
from basestation.execution.graph import OUTPUT, Operator
from basestation.execution.interfaces import QueryGroup
from basestation.execution.output.answered_ticks import AnsweredTicks, intersect
from basestation.execution.output.reported_coverage import ReportedCoverage, coverage_by_query, coverage_of_range
from basestation.execution.output.shared_windows import OutputShape, ViewMember
from basestation.execution.output.window_views import WindowView
from basestation.execution.query_block import BlockChange, QueryBlock
from basestation.execution.relational.window_delta import diff_doubtful_windows, find_mixed_windows
from basestation.execution.relational.window_ranges import WindowRanges
from basestation.execution.slices.per_tick_revisions import PerTickRevisions
from basestation.execution.streams.predicate_index.predicate_set import PredicateSet
from basestation.execution.windowing.time_windows import TimeWindows
from basestation.updates.update import (
    CoverageColumns,
    PunctuationUpdate,
    Rows,
    SharedUpdate,
    SharedWindowUpdates,
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
    title = "emit windows"

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
        self._common: AnsweredTicks | None = AnsweredTicks()  # what belongs to all queries; None: not computed
        # By query without windows yet: the first tick that a window of each input may have in its answer.
        self._waiting: dict[int, tuple[int, ...]] = {}
        self._covered = ReportedCoverage(block.ranged is not None)

    def describe(self) -> OperatorDescription:
        shapes = [shape.describe() for shape in self._shapes.values()]
        parts = tuple(shape for shape in shapes if shape is not None)
        return OperatorDescription(self.title, "first answers and revisions", None, parts)

    # --- queries begin and end -----------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"updates": []}

    def join(self, view: WindowView) -> ViewMember:
        """Add a member that shows a view."""
        known = len(self._predicates)
        shape = self._shapes.setdefault(view.shape, OutputShape(view, self.block.is_plain_join))
        claims, oldest = self.block.show(view), self.block.oldest
        number = self._predicates.take(self.block.predicate_of(view))
        member = ViewMember(self, shape, number, claims, oldest, self.block.range_number(view))
        shape.members[member] = None
        self.block.snapshot_modes.add(shape.stretched)
        self._find_shown_groups()
        self._refill_store(known)
        return member

    def enter(self, member: ViewMember, query: int, start: int | None, limit: int | None) -> None:
        """Add a query to a member: its windows are those from tick `start` to tick `limit`; all windows if it began the block."""
        self.block.extend_limit(limit)
        if start is not None:
            self._waiting[query] = self.block.find_starts(start)
        first, last = -NEVER if start is None else NEVER, NEVER if limit is None else limit
        ticks = AnsweredTicks(first, last, self._marks.sources)
        member.queries[query] = ticks
        self._common = self._common and intersect((self._common, ticks))

    def leave(self, member: ViewMember, query: int) -> None:
        """Remove a query, and with the last of equal ones their member."""
        del member.queries[query]
        self._waiting.pop(query, None)
        self._common = None
        if member.queries:
            return
        known = len(self._predicates)
        del member.shape.members[member]
        if not member.shape.members:
            del self._shapes[member.shape.key]
            self.block.snapshot_modes = {shape.stretched for shape in self._shapes.values()}
            self._find_shown_groups()
        self._predicates.release(member.number)
        for owner, claim in member.claims:
            owner.release(claim)
        self._refill_store(known)

    def _find_shown_groups(self) -> None:
        """Note whether all shapes show what tells the rows of a query apart."""
        ids = self.block.group_ids
        self.block.shows_groups = ids is not None and all(shape.shows(ids) for shape in self._shapes.values())

    def _refill_store(self, known: int) -> None:
        """Fill the store anew if the predicates that the stream filters by are not the `known` ones any more."""
        if self._filters_stream and len(self._predicates) != known:
            source = self.block.inputs[0]
            assert isinstance(source, TimeWindows), "a filtered stream is below windows of time"
            source.store.refill()

    @property
    def _members(self) -> Iterator[ViewMember]:
        return chain.from_iterable(shape.members for shape in self._shapes.values())

    @property
    def numbers(self) -> list[int]:
        """The queries that it answers."""
        return [query for member in self._members for query in member.queries]

    @property
    def _common_ticks(self) -> AnsweredTicks:
        """The ticks whose windows belong to all queries."""
        if self._common is None:
            self._common = intersect(ticks for member in self._members for ticks in member.queries.values())
        return self._common

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
        if self._waiting and len(outcome.new):
            self._begin_queries(outcome.new)
        if outcome.followed is not None:
            self.updates = list(self._revise_per_tick(outcome, outcome.followed, marks))
        else:
            self.updates = [*self._revise(outcome), *self._answer_first(outcome.new, marks)]

    def _contents_of(self, windows: WindowCombinations) -> Contents:
        """Return the contents of windows in the forms that the shapes need."""
        return {stretched: self.block.content(windows, stretched) for stretched in self.block.snapshot_modes}

    def _find_rows(self, found: Contents, number: int | None = None) -> Callable[[OutputShape], list[IntArray | None]]:
        """Look up the rows of all members; return a function that gives those of a shape's members, None for all rows.

        With the number of a range, of the members that have it.
        """
        self.counts.rows_in += sum(map(len, found.values()))
        if self._filters_stream and len(self._predicates) == 1:
            return lambda shape: [None] * len(shape.members)
        rows = {stretched: self._predicates.of(of.columns, len(of)) for stretched, of in found.items()}
        return lambda shape: [rows[shape.stretched].get(member.number, NO_TICKS) for member in shape.members_of(number)]

    def _answer_first(self, new: WindowCombinations, marks: Sequence[Punctuation]) -> Sequence[Update | SharedUpdate]:
        """Return the first answers of new windows, with the marks between them."""
        if not len(new):
            return list(self._punctuation(marks, ()))
        found, covered = self._contents_of(new), self.block.coverage(new)
        self._covered.record(new.number, covered)
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
                updates += self._share(new, covered, shape, whole, shape.project(content))
            portion = max(1, thresholds.OUTPUT_WINDOWS // len(new))
            for begin in range(0, len(selected), portion):
                members, parts = zip(*selected[begin : begin + portion], strict=True)
                updates += self._share(new, covered, shape, members, shape.project_each(content, parts))
        if not marks:
            return updates
        answered = {query for update in updates for query in update.queries}
        ticks = self._ticks_by_query()
        pieces = [piece for update in updates for piece in update.pieces()]
        between = [each for piece in pieces for each in _with_marks(piece, ticks[piece.query].marks(marks))]
        return [*between, *self._punctuation(marks, answered)]

    def _begin_queries(self, new: WindowCombinations) -> None:
        """Find the first ticks of queries that have a window among new ones for the first time."""
        for member in self._members:
            for query in member.queries.keys() & self._waiting.keys():
                first = self.block.find_first(new, self._waiting[query])
                if first is not None:
                    member.queries[query] = replace(member.queries[query], first=first)
                    del self._waiting[query]
                    self._common = None

    def _ticks_by_query(self) -> dict[int, AnsweredTicks]:
        return {query: ticks for member in self._members for query, ticks in member.queries.items()}

    def _punctuation(self, marks: Sequence[Punctuation], answered: Collection[int]) -> Iterator[PunctuationUpdate]:
        """Yield marks alone, for all queries but those that are answered."""
        for query, ticks in self._ticks_by_query().items() if marks else ():
            if query not in answered:
                yield from (PunctuationUpdate(query, mark.arrival, mark.value) for mark in ticks.marks(marks))

    def _share(
        self,
        windows: WindowCombinations,
        covered: CoverageColumns,
        shape: OutputShape,
        members: Sequence[ViewMember],
        found: WindowContents,
    ) -> Iterator[SharedWindowUpdates]:
        """Yield first answers. `found` has the windows of each member one after another, or once for all of them."""
        width = len(windows)
        at = sliding_window_view(found.bounds(), width + 1)[::width]
        if len(at) < len(members):
            at = np.repeat(at, len(members), axis=0)
        counts = (at[:, -1] - at[:, 0]).tolist()
        self.counts.rows_out += sum(counts)
        for member, count in zip(members, counts, strict=True):
            member.counts.rows_out += count
        rows = shape.rows(found)
        for (low, high), (queries, places) in self._group_by_range(members, windows.tick).items():
            part = slice(low, high)
            of = at[places, low : high + 1] if places != list(range(len(at))) else at[:, low : high + 1]
            tags = windows.tick[part], windows.n[part], windows.t[part]
            coverage, ranged = coverage_of(covered, part), self.block.ranged is not None
            if ranged:
                coverage = coverage_by_query(coverage, [members[place].range for place in places])
            yield SharedWindowUpdates(queries, *tags, coverage, rows, of, ranged)

    def _group_by_range(
        self, members: Sequence[ViewMember], ticks: IntArray
    ) -> dict[tuple[int, int], tuple[list[int], list[int]]]:
        """Return by (first, end), positions among the ticks of new windows, the queries that these belong to, each with its member."""
        pairs = [(query, at, of) for at, member in enumerate(members) for query, of in member.queries.items()]
        if self._common_ticks.hold(ticks):
            return {(0, len(ticks)): ([query for query, _, _ in pairs], [at for _, at, _ in pairs])}
        found: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
        for query, at, of in pairs:
            first, end = of.range_of(ticks)
            if first < end:
                queries, places = found.setdefault((first, end), ([], []))
                queries.append(query)
                places.append(at)
        return found

    def _revise(self, outcome: BlockChange) -> Iterator[WindowUpdates]:
        """Yield the revisions of dirty windows."""
        dirty = outcome.dirty
        if not len(dirty):
            return
        now = {stretched: self.block.dirty_content(dirty, stretched) for stretched in self.block.snapshot_modes}
        old = outcome.old
        covered = self.block.coverage(dirty)
        touched = self.block.touched(dirty)
        changed = self._covered.find_changed(dirty.number, covered, touched)
        self._covered.record(dirty.number, covered, touched)
        for member, which, added, added_at, removed, removed_at in self._find_differences(now, old, changed):
            windows = dirty.take(which)
            revision = member.next_revision(windows.number)
            coverage = coverage_of_range(coverage_of(covered, which), member.range)
            tick, n, t = windows.tick, windows.n, windows.t
            for query, ticks in member.queries.items():
                updates = WindowUpdates(query, tick, n, t, revision, coverage, added, added_at, removed, removed_at)
                belongs = ticks.mask(tick)
                if belongs.any():
                    yield updates if belongs.all() else updates.select(belongs)

    def _find_differences(
        self, now: Contents, old: Contents, changed: BoolArray, followed: PerTickRevisions | None = None
    ) -> Iterator[tuple[ViewMember, IntArray, Rows, IntArray, Rows, IntArray]]:
        """Yield (member, positions of the windows to report, added rows, their offsets, removed rows, their offsets).

        A window is reported if it is `changed` (windows, or windows and ranges), or if its rows differ. The rows of revisions that are `followed` are differences
        already, so members that show rows unchanged need no further comparison.
        """
        number = None if followed is None else followed.range
        after, before, width = self._find_rows(now, number), self._find_rows(old, number), len(changed)
        for shape in self._shapes.values():
            members = shape.members_of(number)
            if not members:
                continue
            added = shape.project_each(now[shape.stretched], after(shape))
            removed = shape.project_each(old[shape.stretched], before(shape))
            if followed is None or not shape.tells_apart(now[False]):
                gained, lost = diff_both_ways(added, removed)
                added, removed = added.take(gained), removed.take(lost)
                if followed is not None:
                    added, removed = self._restore_order(shape, followed, added, removed)
            sides = [(shape.rows(contents), contents.bounds()) for contents in (added, removed)]
            of_members = changed
            if changed.ndim == 2:
                of_members = changed.T[[member.range for member in members if member.range is not None]]
            other = of_members | (np.diff(sides[0][1]) > 0).reshape(len(members), width)
            other |= (np.diff(sides[1][1]) > 0).reshape(len(members), width)
            for place in np.flatnonzero(other.any(axis=1)).tolist():
                member, which = members[place], np.flatnonzero(other[place])
                parts = [_part(rows, bounds, place * width, which, width) for rows, bounds in sides]
                count = sum(len(rows) for rows, _ in parts)
                member.counts.rows_out += count
                self.counts.rows_out += count
                yield member, which, *parts[0], *parts[1]

    def _restore_order(
        self, shape: OutputShape, followed: PerTickRevisions, added: WindowContents, removed: WindowContents
    ) -> tuple[WindowContents, WindowContents]:
        """Return the differences of the members of a shape, in the order of the differences of whole windows (semantics 6.4)."""
        mixed = find_mixed_windows(added) | find_mixed_windows(removed)
        width = len(followed.first)
        doubtful = np.flatnonzero(mixed & ~np.tile(followed.first, len(shape.members_of(followed.range))))
        if not len(doubtful):
            return added, removed
        items, at = np.unique(doubtful % width, return_inverse=True)
        sides = []
        for whole in followed.whole(items):
            shown = shape.project_each(whole, self._find_rows({shape.stretched: whole}, followed.range)(shape))
            sides.append(shown.select_windows(doubtful // width * len(items) + at))
        return diff_doubtful_windows(added, removed, doubtful, *sides)

    def _revise_per_tick(
        self, outcome: BlockChange, revised: Sequence[PerTickRevisions], marks: Sequence[Punctuation]
    ) -> Iterator[Update]:
        """Yield first answers and revisions of several clock ticks, in one piece between marks."""
        asked = concatenate_combinations([outcome.dirty, outcome.new])
        covered, unchanged = self.block.coverage(asked), set(self._members)
        for followed in revised:
            self._covered.record_some(asked.number, covered, followed.at, followed.range)
            of_range = coverage_of(coverage_of_range(covered, followed.range), followed.at)
            gained, lost = {False: followed.added}, {False: followed.removed}
            differences = self._find_differences(gained, lost, followed.first, followed)
            for member, which, added, added_at, removed, removed_at in differences:
                windows, first = followed.windows.take(which), followed.first[which]
                member.start_revisions(windows.number[first])
                revision = member.next_revision(windows.number, 1 + number_occurrences(windows.number))
                coverage, tick, n, t = coverage_of(of_range, which), windows.tick, windows.n, windows.t
                unchanged.remove(member)
                for query, ticks in member.queries.items():
                    updates = WindowUpdates(query, tick, n, t, revision, coverage, added, added_at, removed, removed_at)
                    belongs = ticks.mask(tick)
                    updates = updates if belongs.all() else updates.select(belongs)
                    clock, own = followed.clock[which][belongs], ticks.marks(marks)
                    yield from _between_revisions(updates, first[belongs], clock, followed.versions, own)
        changed = {query for member in self._members if member not in unchanged for query in member.queries}
        yield from self._punctuation(marks, changed)

    def need(self, before: int) -> None:
        """Promise that nothing changes before a tick of the extents below."""
        self.block.need(before)

    def tidy(self) -> None:
        """Drop what was recorded of windows that no longer change."""
        self._covered.drop_before(self.block.oldest)
        for member in self._members:
            member.forget(self.block.oldest)


def _part(rows: Rows, bounds: IntArray, first: int, which: IntArray, width: int) -> tuple[Rows, IntArray]:
    """Return (the rows of `width` windows from the first one, the offsets of those at `which`); only these have rows."""
    bounds = bounds[first : first + width + 1]
    begin, end = int(bounds[0]), int(bounds[-1])
    return rows.take(slice(begin, end)), np.append(bounds[which], end) - begin


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
        yield PunctuationUpdate(updates.query, mark.arrival, mark.value)
    if begin < len(updates):
        yield updates.take(slice(begin, None)) if begin else updates
