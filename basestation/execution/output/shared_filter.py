"""SharedFilterOutput: all queries that select tuples of one stream of an extent by ranges, in one operator.

It looks up which queries match the tuples that enter (`grouped_filter.py`); a query without a match costs nothing. A query needs no
record of what it was given: that is every match that entered after the query began. Only matches that a correction creates later are
recorded.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.evaluation import Evaluation
from basestation.algebra.expression import Column, Expression
from basestation.algebra.expression_signature import signature
from basestation.algebra.expressions import columns_of
from basestation.algebra.factors import ValueRange
from basestation.algebra.vector import Vector, constant, take_at
from basestation.execution.columns.change import Change
from basestation.execution.columns.intern_table import InternTable
from basestation.execution.columns.match_pairs import pack_pairs
from basestation.execution.columns.next_due import DUE_NOW
from basestation.execution.columns.punctuation import PendingPunctuation, Punctuation
from basestation.execution.columns.tuples import Tuples, concatenate_tuples, empty_like, null_safe_equal
from basestation.execution.columns.window_batch import NEVER, expand_ranges
from basestation.execution.counters import OperatorCounters
from basestation.execution.description import OperatorDescription, describe_project
from basestation.execution.graph import MEMBER, OUTPUT, Operator
from basestation.execution.output.corrected_matches import CorrectedMatches
from basestation.execution.output.epoch_marks import EpochReporter, NewMarks
from basestation.execution.output.mark_places import are_new_epochs, interleave_epochs, place_epochs
from basestation.execution.output.query_slots import QuerySlots
from basestation.execution.output.stream_output import interleave_marks
from basestation.execution.streams.extent_stream import ExtentStream
from basestation.execution.streams.filter_stream import project_columns
from basestation.execution.streams.predicate_index.grouped_filter import GroupedFilter
from basestation.execution.streams.stream import REVISION_RANK
from basestation.updates.update import Rows, SharedTupleUpdates, SharedUpdate, TupleUpdates, Update
from innet.aggregates.identity_memo import IdentityMemo

_NONE: IntArray = np.empty(0, np.int64)
Outputs = tuple[tuple[Column, Expression], ...]
"""The columns that a query shows, each with its expression."""
Matches = tuple[Tuples, IntArray, IntArray]
"""(tuples, slots, rows): a pair of slot and row for each match, by slot and then in order."""


class Subscriber:
    """One query of a SharedFilterOutput, or several equal ones. It takes no steps of its own."""

    kind = MEMBER
    __slots__ = ("_before", "last_mark", "level", "output", "queries", "slot")  # there may be many

    def __init__(self, output: "SharedFilterOutput", slot: int) -> None:
        self.output, self.slot, self.level = output, slot, output.level
        self._before = output.counts.rows_in
        self.last_mark = output.last_mark  # earlier marks are not for this query
        self.queries: list[int] = []

    def enter(self, query: int) -> None:
        """Add a query."""
        self.output.enter(self, query)

    def leave(self, query: int) -> None:
        """Remove a query."""
        self.output.leave(self, query)

    @property
    def counts(self) -> OperatorCounters:
        """Rows that were looked up, and rows that matched."""
        given = int(self.output.slots.given[self.slot])
        return OperatorCounters(rows_in=self.output.counts.rows_in - self._before, rows_out=given)


class SharedFilterOutput(Operator):
    """An Output, and the QueryGroup of its queries. These are identified by slots."""

    kind = OUTPUT
    title = "emit matching tuples"
    # As a QueryGroup: no answer depends on when it is given, each tuple is emitted at once, and nothing fails.
    multi_tick, answers_early = True, False
    tracks_versions = False
    next_due = DUE_NOW
    within = halt = None

    def __init__(self, stream: ExtentStream) -> None:
        super().__init__(stream.level)
        self.stream = stream
        self.members: dict[int, Subscriber] = {}  # by slot
        self._free: list[int] = []  # slots to reuse
        self._grouped = GroupedFilter()
        self._shapes: InternTable[tuple[Outputs, set[int]]] = InternTable()
        self._rests: InternTable[Sequence[Expression]] = InternTable()
        self._epochs: InternTable[EpochReporter] = InternTable()
        self.slots = QuerySlots()
        self._equal_count = 0  # how many slots have several queries
        self._limit_count = 0  # how many queries end
        self.last_mark = 0  # the number of the last mark that came
        self._marks, self._corrected_matches = PendingPunctuation(), CorrectedMatches()
        self._needed = NEVER
        self.updates: list[Update | SharedUpdate] = []  # of the last step

    def __getstate__(self) -> dict[str, Any]:
        """Without the updates of the last step, which the engine has returned."""
        return vars(self) | {"updates": []}

    def describe(self) -> OperatorDescription:
        shapes = {int(self.slots.shape[slot]): slot for slot in self.members}
        projects = [describe_project(self._shapes[shape][0]) for shape in shapes]
        parts = tuple(OperatorDescription(project, "of the matching tuples") for project in projects)
        return OperatorDescription(self.title, "predicate index over all queries", None, parts)

    @property
    def output_group(self) -> "SharedFilterOutput":
        """The output is the group of its queries."""
        return self

    @property
    def numbers(self) -> list[int]:
        """The queries that it answers."""
        return [query for member in self.members.values() for query in member.queries]

    # --- queries begin and end -----------------------------------------------------------------------------------------

    def join(
        self,
        ranges: Mapping[Column, ValueRange],
        rest: Sequence[Expression],
        outputs: Outputs,
        limit: int | None,
        epochs: tuple[Hashable, EpochReporter] | None,
    ) -> Subscriber:
        """Add a subscriber to the tuples that lie in all `ranges` and for which all of `rest` is true; it shows `outputs`.

        `limit` is the last arrival of a query that ends. `epochs` has a signature of the epochs to report and their reporter, for a
        sensed extent.
        """
        slot = self._free.pop() if self._free else len(self.members)
        self._grouped.add(slot, ranges)
        shape = tuple((signature(expression), column.type, column.scale) for column, expression in outputs)
        needed = {column.id for _, expression in outputs for column in columns_of(expression)}
        slots = self.slots
        slots.reserve(slot)
        slots.shape[slot] = self._shapes.take(shape, (outputs, needed))
        slots.rest[slot] = self._rests.take(tuple(map(signature, rest)), rest) if rest else 0
        slots.epochs[slot] = self._epochs.take(*epochs) if epochs else 0
        slots.first[slot], slots.given[slot] = self.stream.last_index, 0
        slots.limit[slot] = NEVER if limit is None else limit
        self._limit_count += limit is not None
        self.members[slot] = member = Subscriber(self, slot)
        return member

    def enter(self, member: Subscriber, query: int) -> None:
        """Add a query, which may equal others."""
        member.queries.append(query)
        self.slots.query[member.slot] = member.queries[0]
        self._equal_count += len(member.queries) == 2

    def leave(self, member: Subscriber, query: int) -> None:
        """Remove a query, and with the last of equal ones their slot."""
        slot = member.slot
        member.queries.remove(query)
        if member.queries:
            self.slots.query[slot] = member.queries[0]
            self._equal_count -= len(member.queries) == 1
            return
        del self.members[slot]
        self._free.append(slot)
        self._grouped.remove(slot)
        self._shapes.release(int(self.slots.shape[slot]))
        if rest := int(self.slots.rest[slot]):
            self._rests.release(rest)
        if epochs := int(self.slots.epochs[slot]):
            self._epochs.release(epochs)
        self._limit_count -= int(self.slots.limit[slot]) != NEVER
        self._corrected_matches.leave(slot)

    # --- steps -------------------------------------------------------------------------------------------------------

    def step(self, clock: int) -> None:
        """Emit corrections, and the matches that enter."""
        change = self.stream.change
        self.counts.rows_in += len(change.inserted) + len(change.removed)
        corrected = self._correct(change, clock) if len(change.removed) else []
        found = self._add_corrected(self.stream.entering(), change.watermark)
        self.last_mark = max((mark.source[1] for mark in change.marks), default=self.last_mark)
        marks = self._marks.ready(change.marks, change.watermark)
        news = {number: marked for number, reporter in self._epochs.items() if (marked := reporter.news())}
        entered = self._interleave(*found, marks, news) if marks or news else self._emit(*found, 1)
        self.updates = [*corrected, *entered]

    def _match(self, tuples: Tuples) -> Matches:
        """Look up the matches of tuples."""
        slots, rows = self._grouped.of(tuples.columns, len(tuples))
        if len(self._rests):
            kept = np.ones(len(slots), bool)
            for rest, which in _group_positions(self.slots.rest[slots]):
                if rest:
                    candidates = tuples.take(rows[which])
                    for term in self._rests[rest]:
                        kept[which] &= Evaluation(candidates.columns, len(candidates)).of(term).is_true
            slots, rows = slots[kept], rows[kept]
        return tuples, slots, rows

    def _is_in_limit(self, slots: IntArray, arrivals: IntArray | int) -> BoolArray:
        """Return a mask of the matches whose query has not ended before the arrival."""
        return arrivals <= self.slots.limit[slots]

    def _add_corrected(self, entering: Tuples | None, watermark: int) -> Matches:
        """Return the matches that enter now; those that a correction created stand after all others of the same arrival."""
        found: Matches | None = None
        if entering is not None:
            tuples, slots, rows = found = self._match(entering)
            if self._limit_count:
                within = self._is_in_limit(slots, tuples.arrival[rows])
                found = tuples, slots[within], rows[within]
        slots, idents, arrival = self._corrected_matches.ready(watermark)
        if not len(slots):
            return found or (empty_like(self.stream.change.inserted), _NONE, _NONE)
        index = self.stream.index_of(idents)
        rank = np.full(len(idents), REVISION_RANK)
        added = replace(self.stream.with_idents(idents), arrival=arrival, rank=rank, place=index)
        if found is None:
            both, rows = added, np.arange(len(added))
        else:
            both = concatenate_tuples([found[0], added])
            rows = np.concatenate([found[2], len(found[0]) + np.arange(len(added))])
            slots = np.concatenate([found[1], slots])
        order = np.lexsort((both.place, both.rank, both.part, both.arrival))
        rows = np.argsort(order)[rows]
        by_slot = np.lexsort((rows, slots))
        return both.take(order), slots[by_slot], rows[by_slot]

    # --- corrections -------------------------------------------------------------------------------------------------

    def _correct(self, change: Change, clock: int) -> list[SharedTupleUpdates]:
        """Return the matches to take back, and to give instead; record those that exist only since the correction."""
        removed, old_slots, old_rows = self._match(change.removed.take(np.argsort(change.removed.ident)))
        inserted = change.inserted.take(~change.is_new)
        inserted, new_slots, new_rows = self._match(inserted.take(np.argsort(inserted.ident)))
        old, new = pack_pairs(old_slots, removed.ident[old_rows]), pack_pairs(new_slots, inserted.ident[new_rows])
        given = np.flatnonzero(self._was_given(old, removed, old_slots, old_rows))
        passes = self._had_entered(inserted)[new_rows] & ~np.isin(new, old)
        self._corrected_matches.drop(old[~np.isin(old, new)])
        within = self._is_in_limit(new_slots[passes], clock)  # a query that has ended gets no new match
        self._corrected_matches.add(new[passes], np.where(within, clock, NEVER))
        _, in_given, again = np.intersect1d(old[given], new, assume_unique=True, return_indices=True)
        same = self._shows_same(removed, old_rows[given[in_given]], inserted, new_rows[again], new_slots[again])
        back, again = np.delete(given, in_given[same]), np.sort(again[~same])
        return [
            *self._emit(removed, old_slots[back], old_rows[back], -1),
            *self._emit(inserted, new_slots[again], new_rows[again], 1),
        ]

    def _had_entered(self, tuples: Tuples) -> BoolArray:
        """Return a mask of the tuples that entered before this step."""
        return (self.stream.index_of(tuples.ident) > 0) & ~np.isin(tuples.ident, self.stream.entered)

    def _was_given(self, pairs: IntArray, removed: Tuples, slots: IntArray, rows: IntArray) -> BoolArray:
        """Return a mask of the matches of removed tuples that were given."""
        given = self._had_entered(removed)[rows] & (self.stream.index_of(removed.ident)[rows] > self.slots.first[slots])
        if self._limit_count:
            given &= self._is_in_limit(slots, removed.arrival[rows])
        return self._corrected_matches.given(pairs, given)

    def _shows_same(
        self, old: Tuples, old_rows: IntArray, new: Tuples, new_rows: IntArray, slots: IntArray
    ) -> BoolArray:
        """Return a mask of the matches whose shown columns are equal in old and new rows."""
        same = np.ones(len(slots), bool)
        for shape, which in _group_positions(self.slots.shape[slots]):
            before = self._project(shape, old, old_rows[which], IdentityMemo())
            now = self._project(shape, new, new_rows[which], IdentityMemo())
            for a, b in zip(before.columns, now.columns, strict=True):
                same[which] &= null_safe_equal(a, b)
        return same

    # --- updates -----------------------------------------------------------------------------------------------------

    def _project(self, shape: int, tuples: Tuples, rows: IntArray, once: IdentityMemo) -> Rows:
        """Return the columns that a shape shows of some rows."""
        outputs, needed = self._shapes[shape]
        read = {id: _take_rows(tuples.columns[id], rows, once) for id in needed}
        columns = project_columns(outputs, read, len(rows))
        return Rows(tuple(columns[column.id] for column, _ in outputs), len(rows))

    def _emit(self, tuples: Tuples, slots: IntArray, rows: IntArray, weight: int) -> list[SharedTupleUpdates]:
        """Return matches as updates, shape by shape."""
        self.counts.rows_out += len(slots)
        if not len(slots):
            return []
        if slots.strides == (0,):  # all of one query
            begin, end = np.array([0]), np.array([len(slots)])
        else:
            begin = np.flatnonzero(np.append(True, slots[1:] != slots[:-1]))
            end = np.append(begin[1:], len(slots))
        who = slots[begin]
        self.slots.given[who] += end - begin
        updates = []
        for shape, which in _group_positions(self.slots.shape[who]):
            counts = (end - begin)[which]
            part = rows if len(counts) == len(who) else rows[expand_ranges(begin[which], counts)]
            updates.append(self._share(tuples, who[which], counts, part, weight, shape))
        return updates

    def _share(
        self, tuples: Tuples, who: IntArray, counts: IntArray, rows: IntArray, weight: int, shape: int
    ) -> SharedTupleUpdates:
        """Return updates of queries with one shape. Slot who[i] has the next counts[i] of `rows`."""
        end, once = counts.cumsum(), IdentityMemo()
        begin, queries = end - counts, self.slots.query[who].tolist()
        if self._equal_count:
            equal = [self.members[slot].queries for slot in who.tolist()]
            times = list(map(len, equal))
            queries, begin, end = list(chain.from_iterable(equal)), np.repeat(begin, times), np.repeat(end, times)
        return SharedTupleUpdates(
            queries, begin, end, once(take_at, tuples.tick, rows), self.stream.indexes(tuples, rows),
            constant(weight, len(rows)), self._project(shape, tuples, rows, once),
        )  # fmt: skip

    def _interleave(
        self,
        tuples: Tuples,
        slots: IntArray,
        rows: IntArray,
        marks: Sequence[Punctuation],
        news: Mapping[int, list[NewMarks]],
    ) -> list[Update]:
        """Return matches with marks between them: those of each query's epochs, and those that came after the query."""
        given = {update.query: update for each in self._emit(tuples, slots, rows, 1) for update in each.pieces()}
        updates: list[Update] = []
        all_slots = np.array(list(self.members))
        if not marks and all(map(are_new_epochs, news.values())):
            placed = place_epochs(news, self.slots.epochs[all_slots], all_slots, slots, rows, tuples.arrival)
            for slot, member in self.members.items():
                for query in member.queries:
                    updates += interleave_epochs(query, given.get(query), placed.get(slot))
            return updates
        tuples = tuples.with_columns({})
        begin, end = (np.searchsorted(slots, all_slots, side).tolist() for side in ("left", "right"))
        epochs_of = self.slots.epochs[all_slots].tolist()
        for member, a, b, number in zip(self.members.values(), begin, end, epochs_of, strict=True):
            ours = [mark for mark in marks if mark.source[1] > member.last_mark]
            mine = tuples.take(rows[a:b])
            for query in member.queries:
                epochs = [(replace(marked, query=query), new) for marked, new in news.get(number, ())]
                updates += interleave_marks(mine, given.get(query) or _no_updates(query), epochs, ours)
        return updates

    def find_step_end(self, delivered: Mapping[Any, Sequence[Any]], begin: int, end: int) -> int:
        """`end`: it scans nothing."""
        return end

    def entry_ticks(self) -> Sequence[int]:
        """None: tuples are emitted when they enter."""
        return ()

    @property
    def extents(self) -> tuple[str, ...]:
        """The extent whose tuples it filters."""
        return (self.stream.extent.name,)

    @property
    def per_tick_extents(self) -> Sequence[str]:
        """The extent: late tuples take their place among those that enter, and corrections are emitted as they come."""
        return (self.stream.extent.name,)

    @property
    def settled(self) -> int:
        """The first tick that may still be revised: answers are revised back to the horizon."""
        return self.stream.watermark - self.stream.intake.horizon

    def ask(self) -> None:
        """Pass on what the queries still need; that is done when state is pruned."""
        self._needed = self.settled

    def histories(self) -> dict[str, int]:
        """Return none: no history is scanned."""
        return {}

    def tidy(self) -> None:
        """Drop what no correction can name."""
        self.stream.need(self._needed)
        # A late reading changes the report of its epoch even if no window is corrected.
        for _, reporter in self._epochs.items():
            reporter.forget(self._needed - self.stream.intake.keys)
        self._corrected_matches.forget(self.stream.first)


def _no_updates(query: int) -> TupleUpdates:
    return TupleUpdates(query, _NONE, _NONE, _NONE, Rows((), 0))


def _take_rows(vector: Vector, rows: IntArray, once: IdentityMemo) -> Vector:
    """Return some rows of a column; columns that share an array go on sharing it."""
    valid = None if vector.valid is None else once(take_at, vector.valid, rows)
    return Vector(once(take_at, vector.values, rows), valid)


def _group_positions(numbers: IntArray) -> Iterator[tuple[int, IntArray | slice]]:
    """Yield (number, the positions that have it, in order) of each distinct number."""
    if not len(numbers):
        return
    if len(numbers) == 1 or (numbers == numbers[0]).all():
        yield int(numbers[0]), slice(None)
        return
    order = np.argsort(numbers, kind="stable")
    for which in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
        yield int(numbers[which[0]]), which
