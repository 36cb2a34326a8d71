"""Standing: queries that want what lies in their ranges of one stream of an extent, all of them in one operator.

It is told what enters the stream, and finds who wants it (`grouped.py`); a query that wants nothing of it is not touched.
What a query was given needs no state of its own: whatever entered after it began, and lies in its ranges. Only of what a
correction let pass later a note is kept.
"""

from dataclasses import replace
from itertools import chain

import numpy as np

from basestation.algebra.evaluation import Evaluation
from basestation.algebra.expression_signature import signature
from basestation.algebra.expressions import columns_of
from basestation.algebra.vector import Vector, constant, take_at
from basestation.execution.columns.intern_table import InternTable
from basestation.execution.columns.next_due import DUE_NOW
from basestation.execution.columns.punctuation import PendingPunctuation
from basestation.execution.columns.tuples import concatenate_tuples, empty_like, null_safe_equal
from basestation.execution.columns.window_batch import NEVER, expand_ranges
from basestation.execution.counters import OperatorCounters
from basestation.execution.graph import MEMBER, OUTPUT, Operator
from basestation.execution.output.corrected_matches import CorrectedMatches, pack_pairs
from basestation.execution.output.outputs import interleave_marks
from basestation.execution.output.query_slots import QuerySlots
from basestation.execution.streams.filter_stream import project_columns
from basestation.execution.streams.predicate_index.grouped_filter import GroupedFilter
from basestation.execution.streams.stream import REVISION_RANK
from basestation.updates.update import Rows, SharedTupleUpdates, TupleUpdates
from innet.aggregates.identity_memo import IdentityMemo

_NONE = np.empty(0, np.int64)


class Subscriber:
    """One query among many, or several equal ones. It takes no steps: what it has done is told by those who do."""

    kind = MEMBER
    __slots__ = ("_before", "heard", "level", "output", "queries", "slot")  # there may be many

    def __init__(self, output, slot):
        self.output, self.slot, self.level = output, slot, output.level
        self._before = output.counts.rows_in
        self.heard = output.heard
        self.queries = []

    def enter(self, query):
        """A query comes."""
        self.output.enter(self, query)

    def leave(self, query):
        """A query goes."""
        self.output.leave(self, query)

    @property
    def counts(self):
        """Rows that were looked for in its ranges, and those that it was given."""
        return OperatorCounters(
            rows_in=self.output.counts.rows_in - self._before, rows_out=int(self.output.slots.given[self.slot])
        )


class SharedFilterOutput(Operator):
    """Queries are known by small numbers, slots, which are taken again when a query has gone."""

    kind = OUTPUT
    multi_tick, answers_early = True, False  # as of a Query: nothing hangs on when it was told …
    next_due = DUE_NOW  # … each tuple is handed out at once …
    within = halt = None  # … and nothing fails

    def __init__(self, stream):
        super().__init__(stream.level)
        self.stream = stream
        self.members, self._free = {}, []  # by slot; slots that nobody has
        self._grouped, self._shapes, self._rests, self._epochs = (
            GroupedFilter(),
            InternTable(),
            InternTable(),
            InternTable(),
        )
        self.slots = QuerySlots()
        self._several = 0  # how many slots have equal ones
        self._limits = 0  # how many queries end
        self.heard = 0  # the number of the last mark that came
        self._marks, self._noted = PendingPunctuation(), CorrectedMatches()
        self._needed = NEVER
        self.updates = []  # in the last step

    @property
    def output_group(self):
        """It speaks for its queries."""
        return self

    # --- queries come and go -----------------------------------------------------------------------------------------

    def join(self, ranges, rest, outputs, limit, epochs):
        """A Member that wants `outputs` of what lies in `ranges` and for which all of `rest` is true.

        `epochs`: (a signature of which epochs it is told of, EpochsTold), of a sensed extent.
        """
        slot = self._free.pop() if self._free else len(self.members)
        self._grouped.add(slot, ranges)
        shape = tuple((signature(expression), column.type, column.scale) for column, expression in outputs)
        needed = {column.id for _, expression in outputs for column in columns_of(expression)}
        slots = self.slots
        slots.reach(slot)
        slots.shape[slot] = self._shapes.take(shape, (outputs, needed))
        slots.rest[slot] = self._rests.take(tuple(map(signature, rest)), rest) if rest else 0
        slots.told[slot] = self._epochs.take(*epochs) if epochs else 0
        slots.first[slot], slots.given[slot] = self.stream.last_index, 0
        slots.limit[slot] = NEVER if limit is None else limit
        self._limits += limit is not None
        self.members[slot] = member = Subscriber(self, slot)
        return member

    def enter(self, member, query):
        """A query comes, which may be equal to others."""
        member.queries.append(query)
        self.slots.query[member.slot] = member.queries[0]
        self._several += len(member.queries) == 2

    def leave(self, member, query):
        """A query goes, and with the last of equal ones what they were together."""
        slot = member.slot
        member.queries.remove(query)
        if member.queries:
            self.slots.query[slot] = member.queries[0]
            self._several -= len(member.queries) == 1
            return
        del self.members[slot]
        self._free.append(slot)
        self._grouped.remove(slot)
        self._shapes.release(int(self.slots.shape[slot]))
        if rest := int(self.slots.rest[slot]):
            self._rests.release(rest)
        if told := int(self.slots.told[slot]):
            self._epochs.release(told)
        self._limits -= int(self.slots.limit[slot]) != NEVER
        self._noted.leave(slot)

    # --- one clock tick ----------------------------------------------------------------------------------------------

    def step(self, clock):
        change = self.stream.change
        self.counts.rows_in += len(change.inserted) + len(change.removed)
        updates = self._corrected(change, clock) if len(change.removed) else []
        entering = self.stream.entering()
        found = self._with_noted(entering, change.watermark)
        self.heard = max((mark.source[1] for mark in change.marks), default=self.heard)
        marks = self._marks.ready(change.marks, change.watermark)
        news = {number: of for number, told in self._epochs.items() if (of := told.news())}
        self.updates = updates + (self._among_marks(*found, marks, news) if marks or news else self._handed(*found, 1))

    def _wanted(self, tuples):
        """(tuples, who wants which of them as slots, and rows), by slot and then in order."""
        slots, rows = self._grouped.of(tuples.columns, len(tuples))
        if len(self._rests):
            kept = np.ones(len(slots), bool)
            for rest, which in _of_each(self.slots.rest[slots]):
                if rest:
                    asked = tuples.take(rows[which])
                    for term in self._rests[rest]:
                        kept[which] &= Evaluation(asked.columns, len(asked)).of(term).is_true
            slots, rows = slots[kept], rows[kept]
        return tuples, slots, rows

    def _within(self, slots, arrivals):
        """Which arrivals are not too late for whom."""
        return arrivals <= self.slots.limit[slots]

    def _with_noted(self, entering, watermark):
        """Who wants what enters now, with what a correction let pass, behind all others of the same arrival."""
        found = None
        if entering is not None:
            tuples, slots, rows = found = self._wanted(entering)
            if self._limits:
                within = self._within(slots, tuples.arrival[rows])
                found = tuples, slots[within], rows[within]
        slots, idents, arrival = self._noted.ready(watermark)
        if not len(slots):
            return found or (empty_like(self.stream.change.inserted), _NONE, _NONE)
        index = self.stream.index_of(idents)
        added = replace(
            self.stream.with_idents(idents), arrival=arrival, rank=np.full(len(idents), REVISION_RANK), place=index
        )
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

    def _corrected(self, change, clock):
        """What is taken back, and what is given instead; what passes now and did not before is noted."""
        removed, old_slots, old_rows = self._wanted(change.removed.take(np.argsort(change.removed.ident)))
        inserted = change.inserted.take(~change.is_new)
        inserted, new_slots, new_rows = self._wanted(inserted.take(np.argsort(inserted.ident)))
        old, new = pack_pairs(old_slots, removed.ident[old_rows]), pack_pairs(new_slots, inserted.ident[new_rows])
        given = np.flatnonzero(self._was_given(old, removed, old_slots, old_rows))
        passes = self._entered(inserted)[new_rows] & ~np.isin(new, old)
        self._noted.drop(old[~np.isin(old, new)])
        within = self._within(new_slots[passes], clock)  # what passes too late for a query that ends is not given
        self._noted.add(new[passes], np.where(within, clock, NEVER))
        _, in_given, again = np.intersect1d(old[given], new, assume_unique=True, return_indices=True)
        same = self._same(removed, old_rows[given[in_given]], inserted, new_rows[again], new_slots[again])
        back, again = np.delete(given, in_given[same]), np.sort(again[~same])
        return [
            *self._handed(removed, old_slots[back], old_rows[back], -1),
            *self._handed(inserted, new_slots[again], new_rows[again], 1),
        ]

    def _entered(self, tuples):
        """Which had entered before this step."""
        return (self.stream.index_of(tuples.ident) > 0) & ~np.isin(tuples.ident, self.stream.entered)

    def _was_given(self, old, removed, slots, rows):
        """To whom what is gone was given."""
        given = self._entered(removed)[rows] & (self.stream.index_of(removed.ident)[rows] > self.slots.first[slots])
        if self._limits:
            given &= self._within(slots, removed.arrival[rows])
        return self._noted.given(old, given)

    def _same(self, old, old_rows, new, new_rows, slots):
        """Where nothing that a query shows is another."""
        same = np.ones(len(slots), bool)
        for shape, which in _of_each(self.slots.shape[slots]):
            before, now = (
                self._shown(shape, of, at[which], IdentityMemo()) for of, at in ((old, old_rows), (new, new_rows))
            )
            for a, b in zip(before.columns, now.columns, strict=True):
                same[which] &= null_safe_equal(a, b)
        return same

    # --- what is said ------------------------------------------------------------------------------------------------

    def _shown(self, shape, tuples, rows, once):
        outputs, needed = self._shapes[shape]
        read = {id: _taken(tuples.columns[id], rows, once) for id in needed}
        columns = project_columns(outputs, read, len(rows))
        return Rows(tuple(columns[column.id] for column, _ in outputs), len(rows))

    def _handed(self, tuples, slots, rows, weight):
        """Tuples for those who want them."""
        self.counts.rows_out += len(slots)
        if not len(slots):
            return []
        if slots.strides == (0,):  # of one query
            begin, behind = np.array([[0], [len(slots)]])
        else:
            begin = np.flatnonzero(np.append(True, slots[1:] != slots[:-1]))
            behind = np.append(begin[1:], len(slots))
        who = slots[begin]
        self.slots.given[who] += behind - begin
        updates = []
        for shape, which in _of_each(self.slots.shape[who]):
            counts = (behind - begin)[which]
            part = rows if len(counts) == len(who) else rows[expand_ranges(begin[which], counts)]
            updates.append(self._for_many(tuples, who[which], counts, part, weight, shape))
        return updates

    def _for_many(self, tuples, who, counts, rows, weight, shape):
        """Tuples for queries of one shape: for each as many of the rows as are counted, one after another."""
        behind, once = counts.cumsum(), IdentityMemo()
        begin, queries = behind - counts, self.slots.query[who].tolist()
        if self._several:
            alike = [self.members[slot].queries for slot in who.tolist()]
            times = list(map(len, alike))
            queries, begin, behind = list(chain.from_iterable(alike)), np.repeat(begin, times), np.repeat(behind, times)
        return SharedTupleUpdates(
            queries, begin, behind, once(take_at, tuples.tick, rows), self.stream.indexes(tuples, rows),
            constant(weight, len(rows)), self._shown(shape, tuples, rows, once),
        )  # fmt: skip

    def _among_marks(self, tuples, slots, rows, marks, news):
        """Everybody is told of marks among what it is given: of those of its epochs, and of those that came after it did."""
        given = {update.query: update for each in self._handed(tuples, slots, rows, 1) for update in each.pieces()}
        everybody, tuples, updates = np.array(list(self.members)), tuples.with_columns({}), []
        begin, behind = (np.searchsorted(slots, everybody, side).tolist() for side in ("left", "right"))
        told = self.slots.told[everybody].tolist()
        for member, a, b, of in zip(self.members.values(), begin, behind, told, strict=True):
            heard = [mark for mark in marks if mark.source[1] > member.heard]
            mine = tuples.take(rows[a:b])
            for query in member.queries:
                epochs = [(replace(each, query=query), new) for each, new in news.get(of, ())]
                updates += interleave_marks(mine, given.get(query) or _nothing_for(query), epochs, heard)
        return updates

    @property
    def per_tick_extents(self):
        """What comes late takes its place among what enters, and corrections are told as they come."""
        return (self.stream.extent.name,)

    def ask(self):
        """Answers are revised back to the horizon."""
        self._needed = self.stream.watermark - self.stream.intake.horizon

    def histories(self):
        """None is read."""
        return {}

    def tidy(self):
        self.stream.need(self._needed)
        # A reading that came late is told of in its epoch's mark even where no window is corrected.
        for _, told in self._epochs.items():
            told.forget(self._needed - self.stream.intake.keys)
        self._noted.forget(self.stream.first)


def _nothing_for(query):
    return TupleUpdates(query, _NONE, _NONE, _NONE, Rows((), 0))


def _taken(vector, rows, once):
    """Some rows of a column; what is one array stays one."""
    valid = None if vector.valid is None else once(take_at, vector.valid, rows)
    return Vector(once(take_at, vector.values, rows), valid)


def _of_each(kinds):
    """(kind, where it is, in order) of each of some kinds."""
    if not len(kinds):
        return
    if len(kinds) == 1 or (kinds == kinds[0]).all():
        yield int(kinds[0]), slice(None)
        return
    order = np.argsort(kinds, kind="stable")
    for which in np.split(order, np.flatnonzero(np.diff(kinds[order])) + 1):
        yield int(kinds[which[0]]), which
