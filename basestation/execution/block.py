"""Block: one SELECT over windows: its inputs, how their windows combine, and what is done inside them.

In each step a block first looks at the windows it has answered that will look different (`old` as they were), takes the
changes in, and then gives them and the new windows as they are now. Nothing below knows that answers have a history.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace

import numpy as np

from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_join import WindowJoin
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect
from basestation.execution import oneoff, relational
from basestation.execution.aggregating import aggregate
from basestation.execution.combining import Product
from basestation.execution.coverage import coverage
from basestation.execution.frame import Frame, difference
from basestation.execution.halting import Halt, Halted
from basestation.execution.joining.differing import differing
from basestation.execution.joining.join import join_in
from basestation.execution.windowing import RowWindows


@dataclass(frozen=True, slots=True)
class Combined:
    """A window of a block: made at `tick`, the n-th of it, of these windows of the inputs."""

    number: int  # among all windows of the block, from 0
    tick: int
    n: int
    parts: tuple
    t: int | tuple | None = None
    gone: bool = False  # it was answered early (11), and then it turned out that there is no such window

    @property
    def key(self):
        return self.tick, self.n


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step did: windows that were answered and may look different now, and new ones, in their order.

    `old` has the dirty ones as they were before, or is None where nobody asked for that.
    """

    dirty: tuple
    new: tuple
    old: Frame | None


class Block:
    """`node` is the tree above the inputs; `leaves` are the nodes in it that the inputs stand for.

    `loops` say which windows there are where it is not the inputs; `subqueries` stand in the expressions of `node`.
    """

    def __init__(self, node, inputs, leaves, clock=-1, limit=None, loops=None, subqueries=None, within=None):
        """`within`: a window is answered at the latest so many ticks after its own (11)."""
        self.node, self.inputs, self._leaves, self._limit, self._within = node, inputs, leaves, limit, within
        self._loops, self._subqueries = loops, subqueries
        self._written = node
        if subqueries is not None:
            self.node = subqueries.put_into(node)
        self.join = join_in(node, inputs, leaves) if subqueries is None else None
        self._differing = differing(node, self.join)
        self.halt = None  # why the query cannot go on
        self.answered = []  # Combined, in order
        self._begins = True  # the first of them is the first of all
        self._product = Product(len(inputs))
        hasty = within is not None and len(inputs if loops is None else loops) > 1
        self._shifts = hasty and any(isinstance(each, RowWindows) for each in inputs)
        self._gone = []  # windows that may come back
        self._certain = clock  # how far the windows were certain in the last step
        self.clock = clock
        self._count = 0

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

    def step(self, clock, remember):
        """Take in one step; `remember` asks for the dirty windows as they were."""
        dirty = self._dirty()
        old = self.frame_of(dirty) if dirty and remember else None
        self.clock = clock
        for each in self.inputs:
            each.apply()
        if self._subqueries is not None:
            self._ask()
        found = [] if self.halt is not None else self._combine(self._upto())
        if self._loops is not None:
            self.halt = self._loops.halt
        new, changed = self._compared(found)
        if self.answered and new and new[0].key < self.answered[-1].key:
            self.answered = sorted([*self.answered, *new], key=lambda c: c.key)
        else:
            self.answered += new
        return Outcome(tuple(changed.get(c.number, c) for c in dirty), tuple(new), old)

    def _compared(self, found):
        """What was found as new windows, and those there are that stand otherwise now: {number: window}."""
        known = {(*c.key, c.t): c for c in self._uncertain()} if self._shifts else {}
        new, changed = [], {}
        for tick, n, parts, t in found:
            there = known.pop((tick, n, t), None)
            if there is None:
                new.append(self._combined(tick, n, parts, t))
            else:
                changed[there.number] = replace(there, parts=parts, gone=False)
        if self._shifts:
            changed |= {c.number: replace(c, gone=True) for c in known.values()}
            self._certain = self.certain
            back = [c for c in self._gone if c.number in changed]
            kept = [changed.get(c.number, c) for c in sorted([*self.answered, *back], key=lambda c: c.key)]
            self.answered = [c for c in kept if not c.gone]
            self._gone = [c for c in kept if c.gone and c.tick > self._certain]
        return new, changed

    def _uncertain(self):
        """The answered windows that may still come to stand otherwise, also those that went away, in order."""
        found = [c for c in (*self.answered, *self._gone) if c.tick > self._certain]
        return sorted(found, key=lambda c: c.key)

    @property
    def count(self):
        """How many windows there were so far."""
        return self._count

    def before(self, win):
        """The window before one in the list of windows (6.2); None before the first."""
        at = bisect_left(self.answered, win.key, key=lambda c: c.key)
        return self.answered[at - 1] if at else None

    def with_next(self, wins):
        """Windows, and of those that are there the ones that follow them in the list of windows, in order."""
        found = {w.number: w for w in wins}
        for win in wins:
            at = bisect_right(self.answered, win.key, key=lambda c: c.key)
            found |= {w.number: w for w in self.answered[at : at + 1]}
        return tuple(sorted(found.values(), key=lambda c: c.key))

    @property
    def oldest(self):
        """The least number of a window that is remembered."""
        return min((c.number for c in (*self.answered, *self._gone)), default=0)

    def made(self, low, high):
        """The answered windows made at ticks low to high."""
        first = bisect_left(self.answered, low, key=lambda w: w.tick)
        return self.answered[first : bisect_right(self.answered, high, key=lambda w: w.tick)]

    def _upto(self):
        return self.watermark if self._limit is None else min(self.watermark, self._limit)

    # --- which windows -----------------------------------------------------------------------------------------------

    def _dirty(self):
        """The answered windows with a part that its input calls dirty, in order."""
        changed = set()
        for place, each in enumerate(self.inputs):
            if each.disturbed:
                changed |= {(place, id(w)) for w in each.dirty(self._parts(place))}
        shifting = self._uncertain() if self._shifts else ()
        if not changed:
            return tuple(shifting)
        dirty = [c for c in self._open() if any((i, id(w)) in changed for i, w in enumerate(c.parts))]
        return tuple(dirty) if not shifting else tuple(sorted({*dirty, *shifting}, key=lambda c: c.key))

    def _parts(self, place):
        """The windows of one input in the answered combinations, each once, in order."""
        return list({id(c.parts[place]): c.parts[place] for c in self._open()}.values())

    def _open(self):
        """The answered windows that may still be revised: where windows were let go of, the first is only compared with."""
        return self.answered if self._begins else self.answered[1:]

    def _combine(self, upto):
        """The new windows up to a tick: at each tick where an input has a window, all combinations of the most recent (4)."""
        certain = self.certain if self._shifts else upto
        if self._loops is not None:
            return list(self._loops.due(upto, certain))
        stands = self._product.stands([each.due(upto) for each in self.inputs], certain)
        return [(*each, None) for each in stands]

    def _ask(self):
        """Evaluate the subqueries, once, and put what they gave into the tree."""
        if not self._subqueries.answered:
            self._subqueries.step(self.clock)
            try:
                self.node = self._subqueries.put_into(self._written)
            except Halted as why:
                self.halt = Halt(self.clock, why.code, why.message)

    def _combined(self, tick, n, parts, t=None):
        self._count += 1
        return Combined(self._count - 1, tick, n, parts, t)

    # --- what is in them ---------------------------------------------------------------------------------------------

    def frame_of(self, wins):
        """The windows' tuples after everything that the block does with them."""
        frame = self._evaluate(self.node, wins)
        gone = np.array([c.gone for c in wins], bool)
        return frame.take(~gone[frame.window]) if gone.any() else frame

    def beyond(self, wins, others):
        """What windows have that others, a window or None for each, have not: as bags, in order (6.1, 6.4)."""
        if self._differing is not None:
            stands = [None if w is None or w.gone else w.parts for w in wins]
            return self._differing.beyond(stands, [None if w is None or w.gone else w.parts for w in others])
        here, there = self._placed(wins), self._placed(others)
        return here.take(difference(here, there)[0])

    def _placed(self, wins):
        """The windows' tuples, numbered by their places among `wins`; None is a window without any."""
        known = [w for w in wins if w is not None]
        frame = self.frame_of(known)
        place = np.array([i for i, w in enumerate(wins) if w is not None], np.int64)
        return replace(frame, windows=len(wins), window=place[frame.window])

    def _evaluate(self, node, wins):
        if self.join is not None and node is self.join.node:
            return self.join.frame([w.parts for w in wins])
        for place, leaf in enumerate(self._leaves):
            if leaf is node:
                return self._content(place, wins)
        match node:
            case WindowSelect(predicate=predicate, child=WindowCrossProduct(inputs=inputs)):
                return relational.join([self._evaluate(i, wins) for i in inputs], (), predicate)
            case WindowSelect(predicate=predicate, child=child):
                return relational.select(self._evaluate(child, wins), predicate)
            case WindowProject(outputs=outputs, child=child):
                return relational.project(self._evaluate(child, wins), outputs)
            case WindowAggregation(child=child):
                return aggregate(self._evaluate(child, wins), node)
            case WindowCrossProduct(inputs=inputs):
                return relational.join([self._evaluate(i, wins) for i in inputs], (), None)
            case WindowJoin(inputs=inputs, keys=keys, residual=residual):
                return relational.join([self._evaluate(i, wins) for i in inputs], keys, residual)
        if isinstance(node, oneoff.NODES):
            return oneoff.evaluate(node, [self._evaluate(child, wins) for child in node.children])
        raise TypeError(f"no window operator: {type(node).__name__}")

    def _content(self, place, wins):
        """What the windows hold of one input. A window of it that stands in several combinations is read once."""
        parts = [c.parts[place] for c in wins]
        unique = list({id(w): w for w in parts}.values())
        found = self.inputs[place].content(unique) if unique else None
        if found is None:
            found = self._nothing(place, len(unique))
        if len(unique) == len(parts):
            return found
        number = {id(w): i for i, w in enumerate(unique)}
        source = np.array([number[id(w)] for w in parts], np.int64)
        bounds = found.bounds()
        counts = (bounds[1:] - bounds[:-1])[source]
        window = np.repeat(np.arange(len(parts)), counts)
        at = np.arange(len(window)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(bounds[source], counts)
        taken = found.take(at)
        order = () if taken.tick is None else (taken.tick, taken.second)
        return Frame(len(parts), window, taken.columns, *order)

    def _nothing(self, place, count):
        return self.inputs[place].empty(count)

    # --- coverage ----------------------------------------------------------------------------------------------------

    def covers(self, win):
        return [] if win.gone else [cover for each, part in zip(self.inputs, win.parts, strict=True) for cover in each.covers(part)]

    def coverage(self, win):
        return coverage([*self.covers(win), *self.nothing()])

    def nothing(self):
        """Every extent below, covered nowhere: so that it is named even where no window ranges over it."""
        return [cover for each in self.inputs for cover in each.nothing()]

    def forget(self, before):
        """Let go of windows that cannot change any more, and of the tuples that only they could ask for.

        Nothing changes before tick `before` of the extents below.
        """
        keep = self._final(before)
        self._begins = self._begins and keep <= 1
        self.answered = self.answered[max(0, keep - 1) :]  # the one before is compared with the first that is kept
        for place, each in enumerate(self.inputs):
            kept = [*(c.parts[place] for c in self.answered), *self._coming(place)]
            each.forget(before, kept)
        if self.join is not None:
            self.join.tidy()

    def _final(self, before):
        """How many of the answered windows, from the first, can change no more."""
        final = [each.final(before) for each in self.inputs]
        for count, win in enumerate(self.answered):
            if win.tick >= before or not all(is_final(part) for is_final, part in zip(final, win.parts, strict=True)):
                return count
        return len(self.answered)

    def open_from(self, before):
        """The tick of the first window that may still change."""
        count = self._final(before)
        return min(self.answered[count].tick, before) if count < len(self.answered) else before

    def _coming(self, place):
        """The windows of one input that stand in combinations to come."""
        return self._product.coming(place) if self._loops is None else self._loops.recent(place)
