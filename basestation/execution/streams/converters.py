"""Converting: from a block's windows back to a stream, and what revisions do to it (SEMANTICS 6, 12.1)."""

import numpy as np

from basestation.algebra.dictionary_vector import decode
from basestation.algebra.vector import Vector, constant
from basestation.execution.columns.change import NO_KEYS, NO_TICKS, Change
from basestation.execution.columns.integer_arrays import distinct, rank_distinct
from basestation.execution.columns.tuples import Tuples, concatenate_tuples, empty_like
from basestation.execution.columns.watermark_buffer import IndexAssigner
from basestation.execution.columns.window_batch import NEVER, expand_ranges
from basestation.execution.columns.window_combinations import concatenate_combinations
from basestation.execution.columns.window_contents import WindowContents, diff_both_ways
from basestation.execution.streams.emitted_tuples import EmittedTuples
from basestation.execution.streams.stream import REVISION_RANK, Stream


class ConverterStream(Stream):
    """RSTREAM, ISTREAM or DSTREAM over a block.

    What was said of each window is remembered for as long as the window may change, so that only the difference is said
    when it does. In what is remembered, `site` is the number of the window.
    """

    by_site = False

    def __init__(self, how, block, tags, names_index):
        super().__init__(block.level + 1)
        self._how, self.block = how, block
        self._tick, self._index = (tag.id for tag in tags)
        self.names_index = names_index
        self._said = EmittedTuples()
        self._indexing = IndexAssigner()
        self._next = 0
        self.change = None
        self._changed = NO_KEYS  # of the windows of this step, new or revised
        self._none = None  # no tuples, once it is known which columns they have

    @property
    def watermark(self):
        return self.block.watermark

    @property
    def certain(self):
        return self.block.certain

    @property
    def next_due(self):
        return self.block.next_due

    @property
    def entered(self):
        return self._indexing.entered

    def index_of(self, idents):
        return self._indexing.of(idents)

    def step(self, clock):
        outcome = self.block.outcome
        quiet = not len(outcome.dirty) and not len(outcome.new)  # as in most small batches
        inserted, removed, ticks = self._unchanged() if quiet else self._difference(outcome, clock)
        is_new = constant(True, len(inserted))
        self._indexing.take(inserted, is_new, removed, self.watermark)
        if self.names_index:
            inserted, is_new, removed = self._with_entries(inserted, is_new, removed)
        marks = tuple(mark.after_windows() for mark in self.block.marks)
        self.change = Change(inserted, is_new, removed, ticks, self.watermark, marks)
        self.counts.rows_out += len(inserted) + len(removed)

    def _unchanged(self):
        self._changed = NO_KEYS
        return self._nothing, self._nothing, NO_TICKS

    @property
    def _nothing(self):
        """No tuples."""
        if self._none is None:
            self._none = self.all().inserted
        return self._none

    def _difference(self, outcome, clock):
        """(tuples that came, tuples that are gone, ticks of the windows that were made or changed)."""
        changed = concatenate_combinations([outcome.dirty, outcome.new])
        self._changed = np.stack([changed.tick, changed.n], axis=1)
        first_new = int(outcome.new.number[0]) if len(outcome.new) else self.block.count
        affected = (
            changed if self._how == "RStream" else self.block.with_successors(changed)
        )  # the others look one back
        now = self._now(affected)
        self.counts.rows_in += len(now)
        said, removed = self._said.of(affected.number), self._nothing
        if said is not None:
            before, window = said
            added, removed = diff_both_ways(now, WindowContents(len(affected), window, self._plain(before)))
            now, removed = now.take(added), before.take(removed)
        inserted = self._tuples(now, affected, first_new, clock)
        self._said.drop(removed.ident)
        self._said.add(inserted)
        return inserted, removed, distinct(changed.tick)

    def _now(self, windows):
        """What there is to say of each window, as a Frame numbered by `windows`."""
        if self._how == "RStream":
            return self.block.frame_of(windows)
        before = self.block.before(windows)
        return (
            self.block.except_all(windows, before) if self._how == "IStream" else self.block.except_all(before, windows)
        )

    def _plain(self, tuples):
        """The columns without the tags."""
        return {id: v for id, v in tuples.columns.items() if id not in (self._tick, self._index)}

    def _tuples(self, frame, windows, first_new, clock):
        """New tuples of the stream: of a new window they arrive with it, of a revised one in this clock tick (12.1)."""
        count = len(frame)
        ident = self._next + np.arange(count)
        self._next += count
        number, tick = windows.number[frame.window], windows.tick[frame.window]
        columns = {id: decode(vector) for id, vector in frame.columns.items()}
        columns[self._tick] = Vector(tick)
        if self.names_index:
            columns[self._index] = Vector(np.zeros(count, np.int64), np.zeros(count, bool))
        arrival, rank, part, append = tick, constant(0, count), constant(0, count), constant(False, count)
        if int(number.min(initial=first_new)) < first_new:
            new = number >= first_new
            arrival, rank = np.where(new, tick, clock), np.where(new, 0, REVISION_RANK)
        return Tuples(ident, tick, arrival, part, rank, ident, number, append, columns)

    def _with_entries(self, inserted, is_new, removed):
        """Tuples that got their index are corrected about it (14)."""
        said = self._said.all()
        if said is None or not len(self.entered):
            return inserted, is_new, removed
        entered = said.take(np.isin(said.ident, self.entered))
        index = Vector(self.index_of(entered.ident))
        numbered = entered.with_columns({**entered.columns, self._index: index})
        self._said.drop(entered.ident)
        self._said.add(numbered)
        now = np.isin(inserted.ident, self.entered)
        earlier = ~np.isin(entered.ident, inserted.ident)
        is_new = np.concatenate([is_new[~now], ~earlier])
        return (
            concatenate_tuples([inserted.take(~now), numbered]),
            is_new,
            concatenate_tuples([removed, entered.take(earlier)]),
        )

    def row_history(self):
        """No rows but of the tuples that are there."""

    def all(self):
        """A converter begins with its query."""
        windows = self.block.none
        none = empty_like(self._tuples(self.block.frame_of(windows), windows, 0, 0))
        return Change(none, np.empty(0, bool), none, NO_TICKS, self.watermark)

    def between(self, low, high):
        """The tuples from tick low to tick high, as they are now."""
        said = self._said.all()
        return self.all().inserted if said is None else said.take((said.tick >= low) & (said.tick <= high))

    def covers(self, low, high, at):
        """What the inner windows cover whose tick lies in the ranges (14)."""
        first, behind = self.block.windows_between(low, high)
        counts = np.maximum(behind - first, 0)
        return self._covered(np.repeat(np.arange(len(low)), counts), expand_ranges(first, counts))

    def _covered(self, owner, places):
        """What answered windows cover, for those that own them."""
        found, which = rank_distinct(places)
        covers = self.block.covers(self.block.answered.all().take(found))
        return [*(each.owned(owner, which) if each.intake else each for each in covers), *self.block.empty_covers()]

    def epochs(self):
        """A mark at each window's tick (12.3)."""
        return self._changed

    def epochs_from(self, tick):
        """A converter begins with the queries that read it."""
        return self._changed

    def anchor(self, low):
        """Coverage is that of inner windows, which are asked one by one."""
        return False

    def epoch_covers(self, keys):
        at = self.block.answered.find(keys[:, 0], keys[:, 1])
        nothing, found = self.empty_covers(), np.flatnonzero(at >= 0)
        known = any(
            cover.intake for cover in nothing
        )  # else all is over pushed extents, of which nobody tells what is due
        return [(at >= 0, self._covered(found, at[found]) if known else nothing)]

    def empty_covers(self):
        return self.block.empty_covers()

    @property
    def first(self):
        """The least number of a tuple that may be spoken of again: what was said is remembered in no order of numbers."""
        return self._said.first(self._next)

    def open_from(self, before):
        return self.block.open_from(before)

    def tidy(self):
        """What is said of windows is remembered for as long as their block, which is tidied after this, remembers them."""
        self.block.need(self.needed)
        self.needed = NEVER
        if len(self.block.answered):
            self._said.forget(self.block.oldest)
        self._indexing.forget(self.first)
