"""Slicing: aggregates over windows of time, merged from slices (DESIGN.md: Windows).

The stream is cut at the edges of the windows; a tuple is folded into its slice once. A slice keeps, for each group, the
partial states of the aggregates; a window is the merge of its slices. When tuples are gone, a slice undoes them where
all of its aggregates can, and is made again from the readings otherwise; both give the same.
"""

from collections import Counter
from dataclasses import replace

import numpy as np

from basestation.algebra.vector import all_true, constant
from basestation.execution.columns.tuples import TupleBuffer, partition
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.slices.slice_folder import SliceFolder
from basestation.execution.slices.slice_revisions import revise_windows
from basestation.execution.slices.slice_store import SliceStore
from basestation.execution.slices.two_stacks import TwoStacks
from basestation.execution.windowing.stream_windows import TimeWindows
from basestation.execution.windowing.window_store import WindowStore

_MANY = 2**14
"""So many tuples do not wait to be folded in until somebody wants to know."""
_SOME = 2**12
"""So many that come, or so many times that those that wait stand in windows, are too many to wait beside what is amended."""


class SliceWindows(TimeWindows):
    """SliceAggregation: the same windows as TimeWindows would give, each with one tuple for each group."""

    def __init__(self, stream, node, start, store):
        super().__init__(stream, node.child.columns, node.begin, node.end, node.slide, start, store)
        self._groups = [column for column, _ in node.groups]
        self._told = Counter(
            store.register(node.aggregates)
        )  # (column, number) of an aggregate, by how many ask for it

    def show(self, view):
        """The same of aggregates."""
        taken = self.store.register(view.aggregates)
        self._told.update(taken)
        return [(self, each) for each in taken]

    def release(self, each):
        self._told -= Counter([each])
        self.store.release(each[1])

    def close(self):
        for each in list(self._told.elements()):
            self.release(each)

    def content(self, given):
        return self.store.windows(given.left, given.right).frame(self._groups, self._told)

    @property
    def versions(self):
        """Of the tuples that were amended in a step of many clock ticks; None where none were."""
        versions = self.stream.change.versions
        return versions if versions is not None and len(versions) else None

    def amended(self, given, new):
        """(Amended, what it adds, what it takes back) of windows, of which the last `new` are answered for the first time."""
        found = self.store.amended(given.left, given.right, given.tick, new)
        return found, *found.frames(self._groups, self._told)

    def empty(self, count):
        none = np.zeros(count, np.int64)
        return self.store.windows(none, none - 1).frame(self._groups, self._told)

    def forget(self, before, kept):
        earliest = self._earliest(kept)
        if self.begin is None:  # what can change no more is put together
            earliest = min(before, int(kept.right.min(initial=NEVER)), self._next)
        self.store.need(earliest)
        self.stream.need(min(before, self.store.needs(earliest)))


class SharedSlices(WindowStore):
    """The slices of one stream for windows that are cut alike."""

    def __init__(self, stream, level, node, start, own=()):
        """`start` is that of a landmark window; `own` are aggregates that are kept as long as it is there."""
        super().__init__(stream, level)
        self._begin, self._slide, self._start = node.begin, node.slide, start
        self._folding = SliceFolder(node, own)
        self._base = 1 if node.begin is None else node.begin
        self._cut = (node.end + 1 - self._base) % self._slide  # where in a slide windows end; 0: where they begin
        self._anchored = node.begin is None and stream.anchor(start)
        self.fill()

    def __getstate__(self):
        return vars(self) | {"_found": {}, "_sliding": TwoStacks()}

    def fill(self):
        """Begin with all that is known of the stream."""
        self._held = SliceStore()
        self._sliding = TwoStacks()
        self._found = {}  # what windows hold, for as long as nothing changes: for all that ask for the same
        self._from = -NEVER  # slices before it are let go of
        self._settled = -NEVER  # of a landmark window: the slice in which all that can change no more is put together
        self._waiting = TupleBuffer()  # tuples that are folded in as soon as somebody wants to know
        self._wait(self.stream.all().inserted)
        self._versions = None  # of tuples that are to be folded in with the next step: in this one they are told apart

    def _numbers(self, ticks):
        """The slice of each tick. Windows begin at multiples of the slide from the base, and end at the cut."""
        behind = ticks - self._base
        whole = behind // self._slide
        return whole if self._cut == 0 else 2 * whole + (behind - whole * self._slide >= self._cut)

    def _numbers_of(self, ticks):
        """The same of tuples, which often are all in one slice."""
        if len(ticks) and self._numbers(int(ticks[0])) == self._numbers(int(ticks[-1])):
            first, last = self._numbers(int(ticks.min())), self._numbers(int(ticks.max()))
            if first == last:
                return constant(int(first), len(ticks))
        return self._numbers(ticks)

    def _low(self, number):
        """The first tick of a slice."""
        if self._cut == 0:
            return number * self._slide + self._base
        return number // 2 * self._slide + self._base + (self._cut if number % 2 else 0)

    def register(self, aggregates):
        """[(column, number)] of such pairs with aggregates, each kept until it is let go of."""
        taken = self._folding.asked.take(aggregates)
        self._keep_asked()
        return taken

    def release(self, number):
        """An aggregate is asked for once less."""
        self._folding.asked.release(number)
        self._keep_asked()

    def _keep_asked(self):
        """Keep the aggregates that are asked for. New ones are made from what the stream still has."""
        if self._folding.asked.current:
            return
        self._settle()
        self._fold_waiting()  # what waits has the columns that were asked for
        self._found = {}
        held = lambda: self._held_of(self.stream.all().inserted)[:2]  # noqa: E731 - seldom asked for
        self._held.set([self._folding.renewed(self._folding.joined(self._held.all()), held, self.stream)])

    # --- what flows in -----------------------------------------------------------------------------------------------

    def __len__(self):
        """How many groups of slices there are, and tuples that wait to be folded in."""
        stand = 0 if self._versions is None else self._versions.live_count
        return len(self._held) + len(self._waiting) + stand

    def take(self, change):
        """What there are versions of is left out until they are history."""
        self._found = {}
        self._settle()
        self._versions = change.versions
        inserted = change.inserted
        if self._versions is not None and len(inserted) > _SOME:  # what comes is in order if nothing stands before it
            self._fold_waiting()
        if len(change.removed):
            lost = self._take_back(self._no_longer_waiting(change.removed))
            if len(lost[0]):
                self._wait(self._made_of(lost))
                inserted = inserted.take(~self._among(inserted, lost))
        self._wait(inserted)

    def _wait(self, tuples):
        if len(tuples):  # where partials take their place, there are none, and no columns
            self._waiting.add(self._folding.needed(tuples))

    def _settle(self):
        if self._versions is not None:
            self._wait(self._versions.live)
            self._versions = None

    def _no_longer_waiting(self, removed):
        """What is gone waits no longer; what else is gone than what waited."""
        waiting = self._waiting.all()
        if waiting is None:
            return removed
        waited = np.isin(removed.ident, waiting.ident)
        if waited.any():
            self._waiting.keep(~np.isin(waiting.ident, removed.ident))
        return removed.take(~waited)

    def _fold_waiting(self, upto=NEVER):
        """Fold in what waits, of slices up to one."""
        tuples, self._waiting = self._waiting.all(), TupleBuffer()
        if tuples is None:
            return
        if upto < NEVER:
            over = tuples.tick < self._low(upto + 1)
            if not all_true(over):
                tuples, later = partition(tuples, over)
                self._waiting.add(later)  # a slice that is not over is folded once it is
        self._fold(tuples)

    def _fold(self, tuples):
        slices, tuples, _ = self._held_of(tuples)
        if len(tuples):
            self._put(self._folding.cells(slices, tuples, self.stream))

    def _held_of(self, tuples):
        """(slices, tuples) of those that windows may still hold, and the mask of which."""
        tuples, slices = self.stream.placed(tuples), self._numbers_of(tuples.tick)
        held = slices >= self._from
        if self._begin is None:
            held &= tuples.tick >= self._start
        return (slices, tuples, held) if all_true(held) else (slices[held], tuples.take(held), held)

    def _put(self, cells):
        """Take cells in: those of slices that are there already are put together with them."""
        later = self._held.cut_off(int(cells.slice[0]))
        if later:
            both = int(np.searchsorted(cells.slice, later[-1].slice[-1], "right"))
            self._held.add(self._folding.inserted(self._folding.joined(later), cells.between(0, both)))
            cells = cells.between(both, len(cells))
        self._held.add(cells)

    def _take_back(self, removed):
        """Undo tuples where that is exact; the (slices, groups) that have to be made again from what is there now."""
        slices, removed, _ = self._held_of(removed)
        if not len(removed):
            return slices, slices
        later = self._folding.separate(self._held.cut_off(int(slices.min())))
        later, lost = self._folding.without(later, slices, removed)
        self._held.add(later)
        return lost

    def _made_of(self, lost):
        """The tuples that (slices, groups), in order, are made of, without those that wait, or of which there are versions."""
        found = self.stream.between(self._low(int(lost[0][0])), self._low(int(lost[0][-1]) + 1) - 1)
        which = self._among(found, lost)
        waiting = self._waiting.all()
        for others in (waiting, None if self._versions is None else self._versions.tuples):
            if others is not None:
                which &= ~np.isin(found.ident, others.ident)
        return found.take(which)

    def _among(self, tuples, lost):
        """Which tuples are in some of (slices, groups)."""
        which = tuples.tick < self._low(int(lost[0][-1]) + 1)
        early = tuples.take(which)
        which[which] = self._folding.among(self._numbers(early.tick), early, lost)
        return which

    # --- what is asked for -------------------------------------------------------------------------------------------

    def windows(self, left, right):
        """What is Folded into windows, each over the ticks left to right, edges of slices."""
        key = left.tobytes(), right.tobytes()
        if key not in self._found:
            self._found[key] = self._windows(left, right)
        return self._found[key]

    def amended(self, left, right, ticks, new):
        """What became in the step of windows at `ticks`, in order, of which the last `new` are answered for the first time."""
        key = left.tobytes(), right.tobytes(), new
        if key not in self._found:
            self._found[key] = self._amended(left, right, self._versions.first_answered(ticks[len(ticks) - new :]))
        return self._found[key]

    def _amended(self, left, right, clocks):
        first, last = self._numbers(left), self._numbers(right)
        slices, tuples, held = self._held_of(self._folding.needed(self._versions.tuples))
        versions = self._versions.select(tuples, held)
        over = () if len(clocks) else self._waiting_upto(int(last.max(initial=-NEVER)))
        if len(clocks) or len(over) * len(first) > _SOME:
            self._fold_waiting()
        elif len(over):  # to look at them costs less than to fold them in
            of, over, _ = self._held_of(over)
            among = np.isin(self._folding.groups_of(over), self._folding.groups_of(tuples))
            slices, versions = np.concatenate([slices, of[among]]), versions.with_constant(over.take(among))
        reached = self._held.between(int(first.min(initial=NEVER)), int(last.max(initial=-NEVER)))
        cells, first = self._folding.joined(reached), np.maximum(first, self._settled)
        return revise_windows(self._folding, self.stream, cells, slices, versions, first, last, clocks, len(clocks))

    def _waiting_upto(self, last):
        """The tuples that wait of the slices up to one."""
        waiting = self._waiting.all()
        return () if waiting is None else waiting.take(waiting.tick < self._low(last + 1))

    def _windows(self, left, right):
        self._settle()
        first, last = self._numbers(left), self._numbers(right)
        high = int(last.max(initial=-NEVER))
        self._fold_waiting(high)
        parts = self._held.between(int(first.min(initial=NEVER)), high)
        if len(first) == 1 and parts and (whole := self._sliding.over(parts, self._folding.bundle)) is not None:
            return self._folding.whole(whole)
        return self._folding.windows(parts, np.maximum(first, self._settled), last)

    def needs(self, tick):
        """From which tick on readings, or what they cover, may be asked for, where windows need those from a tick on."""
        if self._begin is not None:
            return tick
        return self._low(int(self._numbers(tick))) if self._anchored else self._start

    def forget(self, before):
        """Drop the slices before a tick; of a landmark window, put together those that are settled."""
        self._found = {}
        self._settle()
        if self._begin is None or len(self._waiting) > _MANY:
            self._fold_waiting()
        first = int(self._numbers(before))
        removed = self._held.cut_off_before(first)
        if removed and self._begin is None:
            self._settled = first - 1
            together = self._folding.joined(removed)
            together = replace(together, slice=np.full(len(together), self._settled), width=0)
            self._held.add_before(self._folding.united(together))
        self._from = max(self._from, first)
        self._held.set(self._folding.tidied(self._held.all()))
