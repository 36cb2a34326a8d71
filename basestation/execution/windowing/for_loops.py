"""For-loops of TelegraphCQ (semantics 10.8): how t moves, and the windows that each of its values makes.

A loop is always one evaluation ahead: when it makes a window it already knows the next one, or that there is none.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from acquisition.arrays import IntArray
from basestation.algebra.expression import Expression
from basestation.algebra.window import LoopRange
from basestation.execution.columns.window_batch import NEVER, NO_WINDOW, IssuedWindows, make_windows
from basestation.execution.query_failure import QueryFailedError, QueryHalt
from basestation.execution.windowing.loop_combinations import LoopCombinations
from basestation.execution.windowing.loop_expressions import (
    evaluate_condition,
    evaluate_integer,
    find_slope,
    is_rising,
)
from basestation.execution.windowing.loop_iteration import Ends, LoopIteration
from basestation.execution.windowing.loop_windows import LoopRowWindows
from basestation.execution.windowing.window_product import WindowProduct, WindowSequence

EVALUATION_LIMIT = 10_000
"""The number of the evaluation at one tick that is an error in a replay (14). Live loops go on in the next step."""


class LoopSource(Protocol):
    """The windows of a stream in a loop, which only the loop ends."""

    earliest_left: int
    earliest_right: int
    """No later window begins before the one tick, or ends before the other."""


@dataclass(frozen=True, slots=True)
class LoopInput:
    """A stream that a WindowIs names: its position among the inputs of the block, and the ends of its windows."""

    place: int
    input: LoopSource
    left: Expression
    right: Expression


class ForLoop:
    """One loop. A loop that goes backwards ends behind `first`, the first tick on record.

    A loop that `resumes` makes fewer than EVALUATION_LIMIT windows in one step, and goes on in the next; any other loop fails
    at the evaluation with that number at one tick. `halt` is set when the loop cannot go on.
    """

    def __init__(
        self, loop: LoopRange, streams: list[LoopInput], start: int, first: int, resumes: bool = False
    ) -> None:
        self._resumes = resumes
        self._loop, self._streams, self._start, self._first = loop, streams, start, first
        self._began = False
        self._rising = is_rising(loop)
        self._next: tuple[int, list[Ends]] | None = None  # (t, the ends for each stream) of the next evaluation
        self._before, self._n = start, 0  # the tick of the last window, and how many it has
        self.halt: QueryHalt | None = None

    @property
    def resumes(self) -> bool:
        """Whether it goes on in the next step after many evaluations."""
        return self._resumes

    def due(self, upto: int) -> list[LoopIteration]:
        """The iterations up to a tick that were not given before."""
        found: list[LoopIteration] = []
        while (tick := self.next_tick(upto)) is not None:
            if self._resumes and len(found) == EVALUATION_LIMIT - 1:
                break
            if not self._resumes and tick == self._before and self._n == EVALUATION_LIMIT - 1:
                self._halt(f"this is the {EVALUATION_LIMIT:,}th evaluation at tick {tick}")
                break
            found.append(self.take())
        return found

    def next_tick(self, upto: int) -> int | None:
        """The tick of the next iteration; None if there is none up to a tick."""
        if not self._began and upto >= self._start:
            self._began = True
            self._advance(lambda: (evaluate_integer(self._loop.first, self._values(0)), False))
        tick = None if self._next is None else self._made_at(self._next[1])
        return None if tick is None or tick > upto else tick

    def take(self) -> LoopIteration:
        """Take the next iteration, which there is, and compute the one after it."""
        if self._next is None or (tick := self._made_at(self._next[1])) is None:
            raise ValueError("the loop has no next iteration")
        t, ends = self._next
        self._n = self._n + 1 if tick == self._before else 1
        self._before = tick
        self._advance(lambda: self._change(t))
        return LoopIteration(tick, self._n, t, {s.place: pair for s, pair in zip(self._streams, ends, strict=True)})

    def _values(self, t: int) -> dict[int, int]:
        return {self._loop.t.id: t, self._loop.start.id: 0 if self._loop.rows else self._start}

    def _change(self, t: int) -> tuple[int, bool]:
        """(the next value of t, whether it is below the last one)."""
        changed = evaluate_integer(self._loop.change, self._values(t))
        if changed == t:
            raise QueryFailedError("SN512", f"the change leaves t as it was, {t}")
        return changed, changed < t

    def _advance(self, move: Callable[[], tuple[int, bool]]) -> None:
        """Compute the next value of t, and the windows that it will make."""
        try:
            self._next = self._evaluate(*move())
        except QueryFailedError as failure:
            self._halt(failure.message)
        self._limit_inputs()

    def _evaluate(self, t: int, decreased: bool) -> tuple[int, list[Ends]] | None:
        """(t, ends); None where the loop is over."""
        values = self._values(t)
        if not evaluate_condition(self._loop.condition, values):
            return None
        ends = [(evaluate_integer(s.left, values), evaluate_integer(s.right, values)) for s in self._streams]
        oldest = [s.input.first_row if isinstance(s.input, LoopRowWindows) else self._first for s in self._streams]
        all_before = all(right < first for (_, right), first in zip(ends, oldest, strict=True))
        return None if decreased and all_before else (t, ends)

    def _limit_inputs(self) -> None:
        """Set how far back later windows may begin and end: where t only rises, and the ends with it."""
        for place, stream in enumerate(self._streams):
            if self._next is None:
                stream.input.earliest_left = stream.input.earliest_right = NEVER
            elif self._rising:
                left, right = self._next[1][place]
                stream.input.earliest_left = left if find_slope(stream.left, self._loop.t) in (0, 1) else -NEVER
                stream.input.earliest_right = right if find_slope(stream.right, self._loop.t) in (0, 1) else -NEVER

    def _halt(self, message: str) -> None:
        self._next = None
        self.halt = QueryHalt(self._before, "SN512", f"the loop cannot go on: {message}")

    def _made_at(self, ends: list[Ends]) -> int | None:
        """max(ST, the largest right end or the arrival of that row, the tick before); None where it is not known yet."""
        reached = [self._start, self._before]
        for stream, (_, right) in zip(self._streams, ends, strict=True):
            arrival = stream.input.arrival_of(right) if isinstance(stream.input, LoopRowWindows) else right
            if arrival is None:
                return None
            reached.append(arrival)
        return max(reached)


_Iterations = dict[int, tuple[int, dict[int, int]]]
"""By number of an iteration: (t, by input position the number of its window)."""


class ForLoops:
    """All loops of a query, combined by section 4, and the stored extents beside them, read at the ticks of the windows."""

    def __init__(self, loops: list[ForLoop], width: int) -> None:
        """`width` is the number of inputs of the block."""
        self._loops, self._width = loops, width
        self._product = WindowProduct(len(loops))
        # Several loops that go on in the next step are combined one window after another.
        resumes = len(loops) > 1 and all(loop.resumes for loop in loops)
        self._combinations = LoopCombinations(loops) if resumes else None
        self._iterations: list[_Iterations] = [{} for _ in loops]
        self._counts = [0] * len(loops)
        self.halt: QueryHalt | None = None

    def __len__(self) -> int:
        return len(self._loops)

    def due(
        self, upto: int, certain: int, issued: Sequence[IssuedWindows]
    ) -> tuple[IntArray, IntArray, IntArray, list[int] | list[tuple[int, ...]]]:
        """(ticks, n, numbers of the windows with a column for each input, t) of the combinations behind `certain`.

        The windows of the inputs are added to `issued`. An error in one of the loops ends all of them at its tick.
        """
        if self._combinations is not None:
            ticks, n, numbers = self._combine(self._combinations, upto, issued)
        else:
            ticks, n, numbers = self._combine_all(upto, certain, issued)
        rows = [
            [known[number] for known, number in zip(self._iterations, row, strict=True)] for row in numbers.tolist()
        ]
        parts = np.full((len(rows), self._width), NO_WINDOW, np.int64)
        for part, row in zip(parts, rows, strict=True):
            for _, windows in row:
                part[list(windows)] = list(windows.values())
        for place, of_input in enumerate(issued):
            if len(rows) and parts[0, place] == NO_WINDOW:  # a stored extent
                parts[:, place] = of_input.add(make_windows(ticks, np.ones_like(ticks), ticks, ticks))
        self._forget()
        if len(self) == 1:
            return ticks, n, parts, [row[0][0] for row in rows]
        return ticks, n, parts, [tuple(t for t, _ in row) for row in rows]

    def _combine_all(
        self, upto: int, certain: int, issued: Sequence[IssuedWindows]
    ) -> tuple[IntArray, IntArray, IntArray]:
        """(ticks, n, numbers of iterations with a column for each loop) of all combinations behind `certain`."""
        iterations = [loop.due(upto) for loop in self._loops]
        halts = [loop.halt for loop in self._loops if loop.halt is not None]
        if halts:
            self.halt = halt = min(halts, key=lambda halt: halt.tick)
            iterations = [[each for each in of if each.tick <= halt.tick] for of in iterations]
        new = [self._issue(place, of, issued) for place, of in enumerate(iterations)]
        if len(new) == 1:
            n = np.array([each.n for each in iterations[0]], np.int64)
            return new[0].tick, n, new[0].number[:, None]
        return self._product.combine(new, certain)

    def _combine(
        self, combinations: LoopCombinations, upto: int, issued: Sequence[IssuedWindows]
    ) -> tuple[IntArray, IntArray, IntArray]:
        """The same, of the next combinations: fewer than EVALUATION_LIMIT."""
        found, taken = combinations.take(upto, EVALUATION_LIMIT - 1)
        for place, of in enumerate(taken):
            self._issue(place, of, issued)
        halts = [loop.halt for loop in self._loops if loop.halt is not None]
        if halts and combinations.between_ticks:
            halt = min(halts, key=lambda halt: halt.tick)
            if all(loop.next_tick(halt.tick) is None for loop in self._loops):
                self.halt = halt
        ticks, n = (np.array([each[at] for each in found], np.int64) for at in (0, 1))
        return ticks, n, np.array([each[2] for each in found], np.int64).reshape(-1, len(self))

    def _issue(self, place: int, iterations: list[LoopIteration], issued: Sequence[IssuedWindows]) -> WindowSequence:
        """Issue the windows of new iterations of the loop at a place; these are known by their numbers from now on."""
        known = self._iterations[place]
        numbers = self._counts[place] + np.arange(len(iterations))
        self._counts[place] += len(iterations)
        ticks = np.array([each.tick for each in iterations], np.int64)
        if iterations:
            n = np.array([each.n for each in iterations], np.int64)
            inputs = iterations[0].ends
            ends = {each: np.array([of.ends[each] for of in iterations], np.int64) for each in inputs}
            added = {each: issued[each].add(make_windows(ticks, n, *of.T)).tolist() for each, of in ends.items()}
            for at, (number, iteration) in enumerate(zip(numbers.tolist(), iterations, strict=True)):
                known[number] = iteration.t, {each: of[at] for each, of in added.items()}
        return WindowSequence(ticks, numbers)

    def _forget(self) -> None:
        """Drop the iterations that no later combination has."""
        for at, known in enumerate(self._iterations):
            open_numbers = (
                self._product.open_numbers(at) if self._combinations is None else self._combinations.open_numbers(at)
            )
            needed = set(open_numbers.tolist())
            self._iterations[at] = {number: each for number, each in known.items() if number in needed}

    def open_numbers(self, place: int) -> IntArray:
        """The numbers of the windows of one input that later combinations may have."""
        found = [windows[place] for known in self._iterations for _, windows in known.values() if place in windows]
        return np.array(found, np.int64)
