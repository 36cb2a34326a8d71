"""Looping: the for-loops of TelegraphCQ (SEMANTICS 10.8): how t moves, and the windows that each of its values makes.

A loop is always one evaluation ahead: what comes after a window is known when the window is made, or cannot be.
"""

from dataclasses import dataclass

import numpy as np

from basestation.algebra import expressions as ex
from basestation.execution.columns.growable_array import GrowableArray
from basestation.execution.columns.window_batch import NEVER, NO_WINDOW, make_windows
from basestation.execution.query_failure import QueryFailedError, QueryHalt
from basestation.execution.windowing.stream_windows import RowWindows, TimeWindows
from basestation.execution.windowing.window_product import WindowProduct, WindowSequence

EVALUATION_LIMIT = 10_000
"""The evaluation at one tick that is an error (14)."""


@dataclass(frozen=True, slots=True)
class LoopInput:
    """A stream that a WindowIs names: its place among the inputs of the block, and the ends of its windows."""

    place: int
    input: object
    left: ex.Expression
    right: ex.Expression


@dataclass(frozen=True, slots=True)
class LoopIteration:
    """One value of t: the ends of the windows that it gives, by place. Made at `tick`, the n-th of it."""

    tick: int
    n: int
    t: int
    ends: dict


class ForLoop:
    """One loop. `first` is the first tick on record: behind it a loop that goes backwards ends."""

    def __init__(self, moves, streams, start, first):
        self._moves, self._streams, self._start, self._first = moves, streams, start, first
        self._began = False
        self._rising = _grows(moves)
        self._next = None  # (t, the ends for each stream) of the coming evaluation
        self._before, self._n = start, 0  # the tick of the last window, and how many it has
        self.halt = None

    def due(self, upto):
        """The windows up to a tick that were not given before. `halt` is there when the loop cannot go on."""
        if not self._began and upto >= self._start:
            self._began = True
            self._go_on(lambda: (evaluate_integer(self._moves.first, self._values(0)), False))
        found = []
        while self._next is not None:
            t, ends = self._next
            tick = self._made_at(ends)
            if tick is None or tick > upto:
                break
            self._n = self._n + 1 if tick == self._before else 1
            self._before = tick
            if self._n == EVALUATION_LIMIT:
                self._halt(f"this is the {EVALUATION_LIMIT:,}th evaluation at tick {tick}")
                break
            found.append(
                LoopIteration(tick, self._n, t, {s.place: pair for s, pair in zip(self._streams, ends, strict=True)})
            )
            self._go_on(lambda t=t: self._changed(t))
        return found

    def _values(self, t):
        return {self._moves.t.id: t, self._moves.start.id: 0 if self._moves.rows else self._start}

    def _changed(self, t):
        changed = evaluate_integer(self._moves.change, self._values(t))
        if changed == t:
            raise QueryFailedError("SN512", f"the change leaves t as it was, {t}")
        return changed, changed < t

    def _go_on(self, move):
        """Take the next value of t, and find the windows that it will make."""
        try:
            self._next = self._evaluated(*move())
        except QueryFailedError as why:
            self._halt(why.message)
        self._tell_reach()

    def _evaluated(self, t, decreased):
        """(t, ends); None where the loop is over."""
        values = self._values(t)
        if not evaluate_condition(self._moves.condition, values):
            return None
        ends = [(evaluate_integer(s.left, values), evaluate_integer(s.right, values)) for s in self._streams]
        first = [s.input.first_row if self._moves.rows else self._first for s in self._streams]
        before_all = all(right < oldest for (_, right), oldest in zip(ends, first, strict=True))
        return None if decreased and before_all else (t, ends)

    def _tell_reach(self):
        """How far back a window to come may begin, where t only grows and the left ends with it."""
        for place, stream in enumerate(self._streams):
            if self._next is None:
                stream.input.earliest_left = stream.input.earliest_right = NEVER
            elif self._rising:
                left, right = self._next[1][place]
                stream.input.earliest_left = left if find_slope(stream.left, self._moves.t) in (0, 1) else -NEVER
                stream.input.earliest_right = right if find_slope(stream.right, self._moves.t) in (0, 1) else -NEVER

    def _halt(self, message):
        self._next = None
        self.halt = QueryHalt(self._before, "SN512", f"the loop cannot go on: {message}")

    def _made_at(self, ends):
        """max(ST, the largest right end or that row's arrival, the tick before); None where that is not known yet."""
        reached = [right for _, right in ends]
        if self._moves.rows:
            reached = [s.input.arrival_of(right) for s, right in zip(self._streams, reached, strict=True)]
            if None in reached:
                return None
        return max(self._start, self._before, *reached)


class ForLoops:
    """All loops of a query, combined as section 4 has it, and the stored extents beside them, read at that tick."""

    def __init__(self, loops, width):
        self._loops, self._width = loops, width
        self._product = WindowProduct(len(loops))
        self._turns = [{} for _ in loops]  # by number: (n, t, the numbers of the windows by place)
        self._count = 0
        self.halt = None

    def __len__(self):
        return len(self._loops)

    def due(self, upto, certain, given):
        """(ticks, n, numbers of the parts, t) of the windows behind what was certain; their parts are added to `given`.

        An error in one of the loops ends all at its tick.
        """
        turns = [loop.due(upto) for loop in self._loops]
        halts = [loop.halt for loop in self._loops if loop.halt is not None]
        if halts:
            self.halt = min(halts, key=lambda halt: halt.tick)
            turns = [[turn for turn in of if turn.tick <= self.halt.tick] for of in turns]
        new = [self._noted(known, of, given) for known, of in zip(self._turns, turns, strict=True)]
        if len(new) == 1:
            ticks, n, stands = new[0].tick, np.array([turn.n for turn in turns[0]], np.int64), new[0].number[:, None]
        else:
            ticks, n, stands = self._product.stands(new, certain)
        found = [[known[number] for known, number in zip(self._turns, row, strict=True)] for row in stands.tolist()]
        parts = np.full((len(found), self._width), NO_WINDOW, np.int64)
        for row, stand in zip(parts, found, strict=True):
            for _, places in stand:
                row[list(places)] = list(places.values())
        for place, beside in enumerate(given):
            if len(found) and parts[0, place] == NO_WINDOW:  # a stored extent
                parts[:, place] = beside.add(make_windows(ticks, np.ones_like(ticks), ticks, ticks))
        self._forget()
        ts = [tuple(t for t, _ in stand) for stand in found]
        return ticks, n, parts, [of[0] for of in ts] if len(self) == 1 else ts

    def _noted(self, known, turns, given):
        """The Sequence of new turns of one loop, which are `known` by their numbers from now on."""
        numbers = self._count + np.arange(len(turns))
        self._count += len(turns)
        ticks = np.array([turn.tick for turn in turns], np.int64)
        if turns:
            n = np.array([turn.n for turn in turns], np.int64)
            ends = {place: np.array([turn.ends[place] for turn in turns], np.int64) for place in turns[0].ends}
            added = {place: given[place].add(make_windows(ticks, n, *of.T)).tolist() for place, of in ends.items()}
            for at, (number, turn) in enumerate(zip(numbers.tolist(), turns, strict=True)):
                known[number] = turn.t, {place: of[at] for place, of in added.items()}
        return WindowSequence(ticks, numbers)

    def _forget(self):
        for at, known in enumerate(self._turns):
            coming = set(self._product.coming(at).tolist())
            self._turns[at] = {number: turn for number, turn in known.items() if number in coming}

    def coming(self, place):
        """The numbers of the windows of one stream that may stand in combinations to come."""
        found = [places[place] for known in self._turns for _, places in known.values() if place in places]
        return np.array(found, np.int64)


# --- the inputs ------------------------------------------------------------------------------------------------------


class LoopTimeWindows(TimeWindows):
    """A stream in a loop of ticks."""

    earliest_left = earliest_right = -NEVER  # no window to come begins before the one tick, or ends before the other

    def __init__(self, stream, columns, store):
        super().__init__(stream, columns, None, 0, 1, 0, store)

    may_be_dirty = True  # windows may go back in time

    def _earliest(self, kept):
        return min(self.earliest_left, int(kept.left.min(initial=NEVER)))


class LoopRowWindows(RowWindows):
    """A stream in a loop of rows. The arrivals of rows are kept for as long as the loop may ask for them."""

    def __init__(self, stream, columns, start):
        super().__init__(stream, columns, None, 0, 1)
        self._start, self._arrived, self._let_go = start, GrowableArray(np.empty(0, np.int64)), 0
        self.earliest_left = (
            self.earliest_right
        ) = -NEVER  # no window to come begins before the one row, or ends before the other

    @property
    def first_row(self):
        """Row 1, or the oldest in the log."""
        return 1 - self._earlier

    def arrival_of(self, row):
        """None of a row that has not come; one below 1 counts as arrived at the start (14)."""
        if row < 1:
            return self._start
        at = row - 1 - self._let_go
        return int(self._arrived.values[at]) if at < len(self._arrived) else None

    def _made_by(self, arrivals, first):
        self._arrived.extend(arrivals)

    def _coming(self):
        return self.earliest_left

    def forget(self, before, kept):
        super().forget(before, kept)
        gone = min(self.earliest_right - 1 - self._let_go, len(self._arrived))
        if gone > 0:
            self._arrived.drop(gone)
            self._let_go += gone


# --- expressions of a loop -------------------------------------------------------------------------------------------


def evaluate_integer(e, values):
    """A whole number of 64 bits; `values` has t and ST by their columns' ids. Halted where there is none."""
    return ex.fold_expression(e, lambda part, below: _number(part, below, values))


def _number(e, below, values):
    match e:
        case ex.Literal(value=None):  # constants are computed beforehand, and this one has no value
            raise QueryFailedError("SN512", "division by zero")
        case ex.Literal(value=value):
            return value
        case ex.Attr(column=column):
            return values[column.id]
        case ex.Negative():
            found = -below[0]
        case ex.Arithmetic(op=op):
            found = _OPERATIONS[op](*below)
        case _:
            raise TypeError(f"not in a loop: {type(e).__name__}")
    if not -(2**63) <= found < 2**63:
        raise QueryFailedError("SN512", f"{found} does not fit into 64 bits")
    return found


def _divided(a, b):
    """Cut toward zero."""
    if b == 0:
        raise QueryFailedError("SN512", "division by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_OPERATIONS = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": _divided,
}  # fmt: skip
_COMPARISONS = {
    "=": lambda a, b: a == b, "<>": lambda a, b: a != b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip


def evaluate_condition(e, values):
    """Whether a condition is true. All of it is computed, so that a division by zero is never overlooked."""
    match e:
        case ex.Compare(op=op, left=left, right=right):
            return _COMPARISONS[op](evaluate_integer(left, values), evaluate_integer(right, values))
        case ex.Not(term=term):
            return not evaluate_condition(term, values)
        case ex.And(terms=terms):
            return all([evaluate_condition(term, values) for term in terms])
        case ex.Or(terms=terms):
            return any([evaluate_condition(term, values) for term in terms])
    raise TypeError(f"not in a loop: {type(e).__name__}")


# --- which way a loop goes -------------------------------------------------------------------------------------------


def _grows(moves):
    """Whether every value of t is above the one before."""
    match moves.change:
        case ex.Arithmetic(op="+", left=ex.Attr(column=moves.t), right=ex.Literal(value=step)):
            return step > 0
    return False


def find_slope(e, t):
    """1 where an expression never falls as t grows, -1 where it never rises, 0 for a constant; None: not known."""
    return ex.fold_expression(e, lambda part, below: _slope(part, below, t))


def _slope(e, below, t):
    match e:
        case ex.Literal():
            return 0
        case ex.Attr(column=column):
            return int(column == t)
        case ex.Negative():
            return _turned(below[0], -1)
        case ex.Arithmetic(op="+" | "-" as op):
            sides = {below[0], _turned(below[1], 1 if op == "+" else -1)} - {0}
            return None if len(sides) > 1 else sides.pop() if sides else 0
        case ex.Arithmetic(op="*" | "/", right=ex.Literal(value=factor)):  # cutting keeps the order
            return _turned(below[0], (factor > 0) - (factor < 0))
        case ex.Arithmetic(op="*", left=ex.Literal(value=factor)):
            return _turned(below[1], (factor > 0) - (factor < 0))
    return None


def _turned(found, sign):
    return None if found is None else found * sign
