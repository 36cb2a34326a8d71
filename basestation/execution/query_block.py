"""Block: one SELECT over windows: its inputs, how their windows combine, and what is done inside them.

In each step a block first looks at the windows it has answered that will look different (`old` as they were), takes the
changes in, and then gives them and the new windows as they are now. Nothing below knows that answers have a history.
"""

from dataclasses import dataclass, replace

import numpy as np

from basestation.algebra.vector import constant
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_join import WindowJoin
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect
from basestation.execution.columns.integer_arrays import distinct, is_consecutive, rank_distinct
from basestation.execution.columns.next_due import DUE_NOW, find_earliest
from basestation.execution.columns.punctuation import merge_punctuation
from basestation.execution.columns.window_batch import NEVER, NO_WINDOW, IssuedWindows, expand_ranges
from basestation.execution.columns.window_combinations import (
    AnsweredWindows,
    WindowCombinations,
    concatenate_combinations,
    merge_with_positions,
)
from basestation.execution.columns.window_contents import WindowContents, diff_windows
from basestation.execution.graph import BLOCK, Operator
from basestation.execution.joins.join_delta import make_join_delta
from basestation.execution.query_failure import QueryFailedError, QueryHalt
from basestation.execution.relational import row_operators, table_operators
from basestation.execution.relational.aggregation import aggregate
from basestation.execution.relational.sliding_delta import make_sliding_delta
from basestation.execution.relational.window_ranges import WindowRanges, aggregate_ranges, can_aggregate_ranges
from basestation.execution.slices.per_tick_revisions import PerTickRevisions, make_per_tick_reviser
from basestation.execution.streams.coverage import count_coverage
from basestation.execution.windowing.stream_windows import RowWindows, StreamWindows
from basestation.execution.windowing.window_product import WindowProduct, WindowSequence


@dataclass(frozen=True, slots=True)
class BlockChange:
    """What a step did: windows that were answered and may look different now, and new ones, in their order.

    `old` has the dirty ones as they were before, as somebody asks for them. `followed` tells of all of them
    where they have to be told clock tick by clock tick.
    """

    dirty: WindowCombinations
    new: WindowCombinations
    old: dict[bool, WindowContents | WindowRanges]
    followed: PerTickRevisions | None = None


class QueryBlock(Operator):
    """`node` is the tree above the inputs; `leaves` are the nodes in it that the inputs stand for.

    `loops` say which windows there are where it is not the inputs; `subqueries` stand in the expressions of `node`.
    """

    kind = BLOCK

    def __init__(self, node, inputs, leaves, join, clock=-1, limit=None, loops=None, subqueries=None, within=None):
        """`join` computes the join in it; `within`: a window is answered at the latest so many ticks after its own (11)."""
        super().__init__(max(each.level for each in inputs))
        self.marks = ()  # that came in this step, each once
        self.snapshot_modes = set()  # how somebody asks for dirty windows as they were: in stretches or not
        self.outcome, self._needed = None, NEVER
        self.node, self.inputs, self._leaves, self._limit, self._within = node, inputs, leaves, limit, within
        self.loops, self._subqueries = loops, subqueries
        self._written = node
        if subqueries is not None:
            self.node = subqueries.substitute_into(node)
        self.join = join
        self._differing = make_sliding_delta(node, leaves, inputs) if join is None else make_join_delta(node, join)
        stands_alone = loops is None and subqueries is None and within is None
        self._following = make_per_tick_reviser(node, inputs, leaves) if stands_alone else None
        self.halt = None  # why the query cannot go on
        self.answered = AnsweredWindows(len(inputs))
        self._given = [IssuedWindows() for _ in inputs]
        self._begins = True  # the first of them is the first of all
        self._product = WindowProduct(len(inputs))
        hasty = within is not None and len(inputs if loops is None else loops) > 1
        self._shifts = hasty and any(isinstance(each, RowWindows) for each in inputs)
        self._gone = self.none  # windows that may come back
        self._certain = clock  # how far the windows were certain in the last step
        self.clock = clock
        self._count = 0

    def show(self, view):
        """Somebody shows this of the windows: what is asked of them is there from now on. [(by whom, what)], to be let go of."""
        if self.is_plain_join:
            return self.join.show(view)
        if self.node is self._leaves[0] and isinstance(self.inputs[0], StreamWindows):
            return self.inputs[0].show(view)
        return []

    def close(self):
        for each in self.inputs:
            if isinstance(each, StreamWindows):
                each.close()

    @property
    def is_plain_join(self):
        """Whether nothing is done with what is joined."""
        return self.join is not None and self.join.node is self.node

    @property
    def all(self):
        """The blocks of subqueries, and this one."""
        below = self._subqueries.blocks if self._subqueries else ()
        return [*(each for block in below for each in block.all), self]

    @property
    def watermark(self):
        """How far the block answers."""
        return self._complete if self._within is None else max(self._complete, self.clock - self._within)

    @property
    def certain(self):
        """How far no other windows can come any more, whatever was answered early."""
        return min(self.clock, *(i.certain for i in self.inputs))

    @property
    def _complete(self):
        """How far the time of all inputs is complete."""
        asked = () if self._subqueries is None else (self._subqueries.watermark,)
        return min(self.clock, *asked, *(i.watermark for i in self.inputs))

    def step(self, clock):
        """One step, of a block that stands alone."""
        self.look(clock)
        self.answer(clock)

    def look(self, clock):
        """Look at the answers that will look different, before the stores take the changes in."""
        self._looked = self._dirty()
        asked = self.snapshot_modes if len(self._looked) and not self._follows_now else ()
        self._old = {stretched: self.content(self._looked, stretched) for stretched in asked}

    def answer(self, clock):
        """Find the new windows; `outcome` is what has happened."""
        dirty, old = self._looked, self._old
        self.clock = clock
        for each in self.inputs:
            each.apply()
        if self._subqueries is not None:
            self._ask()
        found = None if self.halt is not None else self._combine(self._upto())
        if self.loops is not None:
            self.halt = self.loops.halt
        if found is not None and self._shifts:
            dirty, found = self._compared(dirty, found)
        if found is not None and len(found):
            self._count += len(found)
            found = self.answered.add(found)
        new = self.none if found is None else found
        self.outcome = BlockChange(dirty, new, old, self._followed(dirty, new) if self._follows_now else None)
        self._looked = self._old = None
        self.marks = merge_punctuation(
            each.stream.change.marks for each in self.inputs if isinstance(each, StreamWindows)
        )
        self.counts.probed = 0 if self.join is None else self.join.probes

    @property
    def next_due(self):
        """For how long no window is due."""
        alone = self.loops is None and self._subqueries is None and self._within is None
        return find_earliest(each.next_due for each in self.inputs) if alone else DUE_NOW

    @property
    def tracks_versions(self):
        """Whether it tells what many clock ticks in one step changed in its windows."""
        return self._following is not None

    @property
    def _follows_now(self):
        return self.tracks_versions and self._following.now

    def _followed(self, dirty, new):
        windows = concatenate_combinations([dirty, new])
        found = self._following.revise(windows, self._given[0].of(windows.parts[:, 0]), len(new))
        self.counts.rows_out += len(found.added) + len(found.removed)
        return found

    @property
    def none(self):
        """None of its windows."""
        return self.answered.none

    def _compared(self, dirty, found):
        """Those of what was found that are new; the dirty ones, of which some stand otherwise now or not at all."""
        uncertain = self._uncertain()
        known = {key: at for at, key in enumerate(uncertain.keys())}
        new, there, as_found = [], [], []
        for at, key in enumerate(found.keys()):
            if key in known:
                there.append(known.pop(key))
                as_found.append(at)
            else:
                new.append(at)
        stands = uncertain.take(np.array(there, np.int64))
        stands = replace(stands, parts=found.parts[as_found], withdrawn=np.zeros(len(there), bool))
        went = uncertain.take(np.array(sorted(known.values()), np.int64))
        changed = concatenate_combinations([stands, replace(went, withdrawn=np.ones(len(went), bool))])
        new = found.take(np.array(new, np.int64))
        new = replace(new, number=self._count + np.arange(len(new)))
        self._certain = self.certain
        answered = self.answered.all()
        left = concatenate_combinations([of.take(~np.isin(of.number, changed.number)) for of in (answered, self._gone)])
        kept = concatenate_combinations([left, changed]).in_order()
        self.answered.set(kept.take(~kept.withdrawn))
        self._gone = kept.take(kept.withdrawn & (kept.tick > self._certain))
        now = concatenate_combinations([changed, dirty.take(~np.isin(dirty.number, changed.number))])
        return now.take(np.argsort(now.number)[np.argsort(np.argsort(dirty.number))]), new

    def _uncertain(self):
        """The answered windows that may still come to stand otherwise, also those that went away, in order."""
        both = concatenate_combinations([self.answered.all(), self._gone])
        return both.take(both.tick > self._certain).in_order()

    @property
    def count(self):
        """How many windows there were so far."""
        return self._count

    def before(self, windows):
        """The window before each in the list of windows (6.2); NOWHERE before the first."""
        answered = self.answered.all()
        at = self.answered.places(windows) - 1
        found = answered.take(np.maximum(at, 0))
        return replace(found, number=np.where(at < 0, NO_WINDOW, found.number))

    def with_successors(self, windows):
        """Windows, and of those that are there the ones that follow them in the list of windows, in order."""
        answered = self.answered.all()
        at = self.answered.places_behind(windows)
        if is_consecutive(at) and at[-1] == len(answered):  # they are the last ones
            return windows
        following = answered.take(distinct(at[at < len(answered)]))
        more = following.take(~np.isin(following.number, windows.number))
        return concatenate_combinations([windows, more]).in_order() if len(more) else windows

    @property
    def oldest(self):
        """The least number of a window that is remembered; that of the next one where none is."""
        return min(int(of.number.min(initial=self._count)) for of in (self.answered.all(), self._gone))

    def windows_between(self, low, high):
        """(first, behind): where the windows made at ticks low to high are among those that were answered."""
        ticks = self.answered.all().tick
        return np.searchsorted(ticks, low), np.searchsorted(ticks, high, "right")

    def _upto(self):
        return self.watermark if self._limit is None else min(self.watermark, self._limit)

    # --- which windows -----------------------------------------------------------------------------------------------

    def _dirty(self):
        """The answered windows with a part that its input calls dirty, in order."""
        if not self._shifts and not any(each.may_be_dirty for each in self.inputs):
            return self.none
        open = self._open()
        mask = np.zeros(len(open), bool)
        for place, each in enumerate(self.inputs):
            if len(open) and each.may_be_dirty:
                numbers, which = rank_distinct(open.parts[:, place])
                mask |= each.dirty(self._given[place].of(numbers))[which]
        dirty = open.take(mask)
        if not self._shifts:
            return dirty
        shifting = self._uncertain()
        return concatenate_combinations([shifting, dirty.take(~np.isin(dirty.number, shifting.number))]).in_order()

    def _open(self):
        """The answered windows that may still be revised: where windows were let go of, the first is only compared with."""
        answered = self.answered.all()
        return answered if self._begins else answered.take(slice(1, None))

    def _combine(self, upto):
        """The new windows up to a tick: at each tick where an input has a window, all combinations of the most recent (4).

        None where a block with one input has none.
        """
        certain = self.certain if self._shifts else upto
        if self.loops is not None:
            return self._combined(*self.loops.due(upto, certain, self._given))
        due = [each.due(upto) for each in self.inputs]
        if len(due) == 1 and not len(due[0]) and not self._shifts:
            return None
        numbers = [given.add(found) for given, found in zip(self._given, due, strict=True)]
        if len(due) == 1:
            return self._combined(due[0].tick, due[0].n, numbers[0][:, None])
        new = [WindowSequence(found.tick, of) for found, of in zip(due, numbers, strict=True)]
        return self._combined(*self._product.stands(new, certain))

    def _combined(self, ticks, n, parts, t=None):
        values = constant(None, len(ticks)) if t is None else np.fromiter(t, object, len(t))
        number = np.arange(self._count, self._count + len(ticks))
        return WindowCombinations(number, ticks, n, parts, values, constant(False, len(ticks)))

    def _ask(self):
        """Evaluate the subqueries, once, and put what they gave into the tree."""
        if not self._subqueries.answered:
            self._subqueries.step(self.clock)
            try:
                self.node = self._subqueries.substitute_into(self._written)
            except QueryFailedError as why:
                self.halt = QueryHalt(self.clock, why.code, why.message)

    # --- what is in them ---------------------------------------------------------------------------------------------

    def frame_of(self, windows):
        """The windows' tuples after everything that the block does with them."""
        frame = self._evaluate(self.node, windows)
        self.counts.rows_out += len(frame)
        return frame.take(~windows.withdrawn[frame.window]) if windows.withdrawn.any() else frame

    def content(self, windows, stretched):
        """The same; or where nothing is done with what is joined, each tuple once for all windows in a row that hold it."""
        if not stretched:
            return self.frame_of(windows)
        found = self.join.stretched(self._stands(windows))
        self.counts.rows_out += len(found)
        return found

    def except_all(self, windows, others):
        """What windows have that others, NOWHERE or a window for each, have not: as bags, in order (6.1, 6.4)."""
        both, mine, theirs = merge_with_positions(windows, others)
        if self._differing is not None and self._differing.overlap(stands := self._stands(both), mine, theirs):
            return self._differing.except_all(stands, mine, theirs)
        return diff_windows(self._placed(both), mine, theirs)

    def _stands(self, windows):
        """The windows of each input."""
        nowhere = windows.withdrawn | (windows.number == NO_WINDOW)
        parts = np.where(nowhere[:, None], NO_WINDOW, windows.parts) if nowhere.any() else windows.parts
        if self.join is None:
            return [given.of(parts[:, i]) for i, given in enumerate(self._given)]
        return [given.repeated(parts[:, i]) for i, given in enumerate(self._given)]

    def _placed(self, windows):
        """The windows' tuples, numbered by their places among `windows`."""
        if int(windows.number.min()) != NO_WINDOW:
            return self.frame_of(windows)
        place = np.flatnonzero(windows.number != NO_WINDOW)
        frame = self.frame_of(windows.take(place))
        return replace(frame, windows=len(windows), window=place[frame.window])

    def _evaluate(self, node, windows):
        if self.join is not None and node is self.join.node:
            return self.join.frame(self._stands(windows))
        for place, leaf in enumerate(self._leaves):
            if leaf is node:
                return self._content(place, windows)
        match node:
            case WindowSelect(predicate=predicate, child=WindowCrossProduct(inputs=inputs)):
                return row_operators.join([self._evaluate(i, windows) for i in inputs], (), predicate)
            case WindowSelect(predicate=predicate, child=child):
                return row_operators.select(self._evaluate(child, windows), predicate)
            case WindowProject(outputs=outputs, child=child):
                return row_operators.project(self._evaluate(child, windows), outputs)
            case WindowAggregation(child=child) if (
                self.join is not None and child is self.join.node and can_aggregate_ranges(node)
            ):
                return aggregate_ranges(self.join.stretched(self._stands(windows)), node)
            case WindowAggregation(child=child):
                return aggregate(self._evaluate(child, windows), node)
            case WindowCrossProduct(inputs=inputs):
                return row_operators.join([self._evaluate(i, windows) for i in inputs], (), None)
            case WindowJoin(inputs=inputs, keys=keys, residual=residual):
                return row_operators.join([self._evaluate(i, windows) for i in inputs], keys, residual)
        if isinstance(node, table_operators.TABLE_NODES):
            return table_operators.evaluate(node, [self._evaluate(child, windows) for child in node.children])
        raise TypeError(f"no window operator: {type(node).__name__}")

    def _content(self, place, windows):
        """What the windows hold of one input. A window of it that stands in several combinations is read once."""
        numbers, source = rank_distinct(windows.parts[:, place])
        found = self.inputs[place].content(self._given[place].of(numbers)) if len(numbers) else None
        if found is None:
            found = self._nothing(place, len(numbers))
        self.counts.rows_in += len(found)
        if len(numbers) == len(windows) and (source[1:] > source[:-1]).all():
            return found
        bounds = found.bounds()
        counts = (bounds[1:] - bounds[:-1])[source]
        taken = found.take(expand_ranges(bounds[source], counts))
        order = () if taken.tick is None else (taken.tick, taken.second)
        return WindowContents(len(windows), np.repeat(np.arange(len(windows)), counts), taken.columns, *order)

    def _nothing(self, place, count):
        return self.inputs[place].empty(count)

    # --- coverage ----------------------------------------------------------------------------------------------------

    def covers(self, windows):
        """What windows cover, by their places among `windows`."""
        found = []
        for place, (each, given) in enumerate(zip(self.inputs, self._given, strict=True)):
            nothing = each.empty_covers()
            if not any(cover.intake for cover in nothing):
                found += nothing
                continue
            numbers, source = rank_distinct(windows.parts[:, place])
            owner = np.flatnonzero(~windows.withdrawn)
            for cover in each.covers(given.of(numbers)):
                found.append(cover.owned(owner, source[owner]) if cover.intake else cover)
        return found

    def coverage(self, windows):
        """{extent: (used, due)} with an entry for each window."""
        return count_coverage([*self.covers(windows), *self.empty_covers()], len(windows))

    def empty_covers(self):
        """Every extent below, covered nowhere: so that it is named even where no window ranges over it."""
        return [cover for each in self.inputs for cover in each.empty_covers()]

    def need(self, before):
        """To a reader nothing changes before a tick of the extents below."""
        self._needed = min(self._needed, before)

    def tidy(self):
        """Let go of windows that cannot change any more, and of the tuples that only they could ask for."""
        before, self._needed, self.outcome = self._needed, NEVER, None
        keep = self._final(before)
        self._begins = self._begins and keep <= 1
        self.answered.drop(max(0, keep - 1))  # the one before is compared with the first that is kept
        for place, (each, given) in enumerate(zip(self.inputs, self._given, strict=True)):
            parts = (self.answered.all().parts[:, place], self._gone.parts[:, place], self._coming(place))
            first = min(int(numbers.min(initial=given.next)) for numbers in parts)
            each.forget(before, given.since(first))
            given.forget(first)
        if self.join is not None:
            self.join.tidy()

    def _final(self, before):
        """How many of the answered windows, from the first, can change no more."""
        answered = self.answered.all()
        count = int(np.searchsorted(answered.tick, before))
        for place, (each, given) in enumerate(zip(self.inputs, self._given, strict=True)):
            parts = answered.parts[:count, place]
            if not count:
                break
            first = int(parts.min())
            final = each.final(before, given.since(first))
            if not final.all():
                final = final.take(parts - first)
                count = count if final.all() else int(np.argmin(final))
        return count

    def open_from(self, before):
        """The tick of the first window that may still change."""
        count, answered = self._final(before), self.answered.all()
        return min(int(answered.tick[count]), before) if count < len(answered) else before

    def _coming(self, place):
        """The numbers of the windows of one input that stand in combinations to come."""
        if self.loops is not None:
            return self.loops.coming(place)
        return self._product.coming(place)
