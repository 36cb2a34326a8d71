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
from basestation.algebra.vector import Vector, constant, taken
from basestation.execution.columns.intern_table import Kinds
from basestation.execution.columns.next_due import NONE
from basestation.execution.columns.punctuation import Waiting
from basestation.execution.columns.tuples import equal, joined, no_tuples
from basestation.execution.columns.window_batch import NEVER, ranges
from basestation.execution.counters import Counts
from basestation.execution.graph import MEMBER, OUTPUT, Operator
from basestation.execution.output.corrected_matches import Noted, pairs
from basestation.execution.output.outputs import in_time
from basestation.execution.output.query_slots import Slots
from basestation.execution.streams.predicate_index.grouped_filter import Grouped
from basestation.execution.streams.stream import ADDED, computed
from basestation.updates.update import Rows, TuplesForMany, TupleUpdates
from innet.aggregates.state import Once

_NONE = np.empty(0, np.int64)


class Member:
    """One query among many, or several equal ones. It takes no steps: what it has done is told by those who do."""

    kind = MEMBER
    __slots__ = ("_before", "among", "heard", "level", "queries", "slot")  # there may be many

    def __init__(self, among, slot):
        self.among, self.slot, self.level = among, slot, among.level
        self._before = among.counts.rows_in
        self.heard = among.heard
        self.queries = []

    def enter(self, query):
        """A query comes."""
        self.among.enter(self, query)

    def leave(self, query):
        """A query goes."""
        self.among.leave(self, query)

    @property
    def counts(self):
        """Rows that were looked for in its ranges, and those that it was given."""
        return Counts(rows_in=self.among.counts.rows_in - self._before, rows_out=int(self.among.slots.given[self.slot]))


class Standing(Operator):
    """Queries are known by small numbers, slots, which are taken again when a query has gone."""

    kind = OUTPUT
    calm, hasty = True, False  # as of a Query: nothing hangs on when it was told …
    silence = NONE  # … each tuple is handed out at once …
    within = halt = None  # … and nothing fails

    def __init__(self, stream):
        super().__init__(stream.level)
        self.stream = stream
        self.members, self._free = {}, []  # by slot; slots that nobody has
        self._grouped, self._shapes, self._rests, self._epochs = Grouped(), Kinds(), Kinds(), Kinds()
        self.slots = Slots()
        self._several = 0  # how many slots have equal ones
        self._limits = 0  # how many queries end
        self.heard = 0  # the number of the last mark that came
        self._marks, self._noted = Waiting(), Noted()
        self._needed = NEVER
        self.said = []  # in the last step

    @property
    def speaker(self):
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
        self.members[slot] = member = Member(self, slot)
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
        self._shapes.let_go(int(self.slots.shape[slot]))
        if rest := int(self.slots.rest[slot]):
            self._rests.let_go(rest)
        if told := int(self.slots.told[slot]):
            self._epochs.let_go(told)
        self._limits -= int(self.slots.limit[slot]) != NEVER
        self._noted.leave(slot)

    # --- one clock tick ----------------------------------------------------------------------------------------------

    def step(self, clock):
        change = self.stream.change
        self.counts.rows_in += len(change.come) + len(change.gone)
        said = self._corrected(change, clock) if len(change.gone) else []
        entering = self.stream.entering()
        found = self._with_noted(entering, change.watermark)
        self.heard = max((mark.source[1] for mark in change.marks), default=self.heard)
        marks = self._marks.ready(change.marks, change.watermark)
        news = {number: of for number, told in self._epochs.items() if (of := told.news())}
        self.said = said + (self._among_marks(*found, marks, news) if marks or news else self._handed(*found, 1))

    def _wanted(self, tuples):
        """(tuples, who wants which of them as slots, and rows), by slot and then in order."""
        slots, rows = self._grouped.of(tuples.columns, len(tuples))
        if len(self._rests):
            kept = np.ones(len(slots), bool)
            for rest, which in _of_each(self.slots.rest[slots]):
                if rest:
                    asked = tuples.take(rows[which])
                    for term in self._rests[rest]:
                        kept[which] &= Evaluation(asked.columns, len(asked)).of(term).true
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
            return found or (no_tuples(self.stream.change.come), _NONE, _NONE)
        index = self.stream.index_of(idents)
        added = replace(self.stream.these(idents), arrival=arrival, rank=np.full(len(idents), ADDED), place=index)
        if found is None:
            both, rows = added, np.arange(len(added))
        else:
            both = joined([found[0], added])
            rows = np.concatenate([found[2], len(found[0]) + np.arange(len(added))])
            slots = np.concatenate([found[1], slots])
        order = np.lexsort((both.place, both.rank, both.part, both.arrival))
        rows = np.argsort(order)[rows]
        by_slot = np.lexsort((rows, slots))
        return both.take(order), slots[by_slot], rows[by_slot]

    # --- corrections -------------------------------------------------------------------------------------------------

    def _corrected(self, change, clock):
        """What is taken back, and what is given instead; what passes now and did not before is noted."""
        gone, old_slots, old_rows = self._wanted(change.gone.take(np.argsort(change.gone.ident)))
        come = change.come.take(~change.fresh)
        come, new_slots, new_rows = self._wanted(come.take(np.argsort(come.ident)))
        old, new = pairs(old_slots, gone.ident[old_rows]), pairs(new_slots, come.ident[new_rows])
        given = np.flatnonzero(self._was_given(old, gone, old_slots, old_rows))
        passes = self._entered(come)[new_rows] & ~np.isin(new, old)
        self._noted.drop(old[~np.isin(old, new)])
        within = self._within(new_slots[passes], clock)  # what passes too late for a query that ends is not given
        self._noted.add(new[passes], np.where(within, clock, NEVER))
        _, in_given, again = np.intersect1d(old[given], new, assume_unique=True, return_indices=True)
        same = self._same(gone, old_rows[given[in_given]], come, new_rows[again], new_slots[again])
        back, again = np.delete(given, in_given[same]), np.sort(again[~same])
        return [
            *self._handed(gone, old_slots[back], old_rows[back], -1),
            *self._handed(come, new_slots[again], new_rows[again], 1),
        ]

    def _entered(self, tuples):
        """Which had entered before this step."""
        return (self.stream.index_of(tuples.ident) > 0) & ~np.isin(tuples.ident, self.stream.entered)

    def _was_given(self, old, gone, slots, rows):
        """To whom what is gone was given."""
        given = self._entered(gone)[rows] & (self.stream.index_of(gone.ident)[rows] > self.slots.first[slots])
        if self._limits:
            given &= self._within(slots, gone.arrival[rows])
        return self._noted.given(old, given)

    def _same(self, old, old_rows, new, new_rows, slots):
        """Where nothing that a query shows is another."""
        same = np.ones(len(slots), bool)
        for shape, which in _of_each(self.slots.shape[slots]):
            before, now = (self._shown(shape, of, at[which], Once()) for of, at in ((old, old_rows), (new, new_rows)))
            for a, b in zip(before.columns, now.columns, strict=True):
                same[which] &= equal(a, b)
        return same

    # --- what is said ------------------------------------------------------------------------------------------------

    def _shown(self, shape, tuples, rows, once):
        outputs, needed = self._shapes[shape]
        read = {id: _taken(tuples.columns[id], rows, once) for id in needed}
        columns = computed(outputs, read, len(rows))
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
        said = []
        for shape, which in _of_each(self.slots.shape[who]):
            counts = (behind - begin)[which]
            part = rows if len(counts) == len(who) else rows[ranges(begin[which], counts)]
            said.append(self._for_many(tuples, who[which], counts, part, weight, shape))
        return said

    def _for_many(self, tuples, who, counts, rows, weight, shape):
        """Tuples for queries of one shape: for each as many of the rows as are counted, one after another."""
        behind, once = counts.cumsum(), Once()
        begin, queries = behind - counts, self.slots.query[who].tolist()
        if self._several:
            alike = [self.members[slot].queries for slot in who.tolist()]
            times = list(map(len, alike))
            queries, begin, behind = list(chain.from_iterable(alike)), np.repeat(begin, times), np.repeat(behind, times)
        return TuplesForMany(
            queries, begin, behind, once(taken, tuples.tick, rows), self.stream.indexes(tuples, rows),
            constant(weight, len(rows)), self._shown(shape, tuples, rows, once),
        )  # fmt: skip

    def _among_marks(self, tuples, slots, rows, marks, news):
        """Everybody is told of marks among what it is given: of those of its epochs, and of those that came after it did."""
        given = {update.query: update for each in self._handed(tuples, slots, rows, 1) for update in each.pieces()}
        everybody, tuples, said = np.array(list(self.members)), tuples.with_columns({}), []
        begin, behind = (np.searchsorted(slots, everybody, side).tolist() for side in ("left", "right"))
        told = self.slots.told[everybody].tolist()
        for member, a, b, of in zip(self.members.values(), begin, behind, told, strict=True):
            heard = [mark for mark in marks if mark.source[1] > member.heard]
            mine = tuples.take(rows[a:b])
            for query in member.queries:
                epochs = [(replace(each, query=query), new) for each, new in news.get(of, ())]
                said += in_time(mine, given.get(query) or _nothing_for(query), epochs, heard)
        return said

    @property
    def singly(self):
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
    valid = None if vector.valid is None else once(taken, vector.valid, rows)
    return Vector(once(taken, vector.values, rows), valid)


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
