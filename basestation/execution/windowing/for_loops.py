"""For-loops of TelegraphCQ (semantics 10.8): how t moves, and the windows that each of its values makes.

A loop is always one evaluation ahead: when it makes a window it already knows the next one, or that there is none.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from acquisition.arrays import IntArray
from basestation.algebra.expression import Expression
from basestation.algebra.window import LoopRange
from basestation.execution.columns.window_batch import NEVER, NO_WINDOW, IssuedWindows, make_windows
from basestation.execution.query_failure import QueryFailedError, QueryHalt
from basestation.execution.windowing.loop_expressions import (
    evaluate_condition,
    evaluate_integer,
    find_slope,
    is_rising,
)
from basestation.execution.windowing.loop_windows import LoopRowWindows, LoopTimeWindows
from basestation.execution.windowing.window_product import WindowProduct, WindowSequence

EVALUATION_LIMIT = 10_000
"""The number of the evaluation at one tick that is an error in a replay (14). A live loop goes on in the next step."""

Ends = tuple[int, int]
"""The left and the right end of one window: ticks or rows."""


@dataclass(frozen=True, slots=True)
class LoopInput:
    """A stream that a WindowIs names: its position among the inputs of the block, and the ends of its windows."""

    place: int
    input: LoopTimeWindows | LoopRowWindows
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class LoopIteration:
    """One value of t: the ends of its windows, by input position. It is the n-th at its tick."""

    tick: int
    n: int
    t: int
    ends: dict[int, Ends]


class ForLoop:
    """One loop. A loop that goes backwards ends behind `first`, the first tick on record.

    A loop that `resumes` makes fewer than EVALUATION_LIMIT windows in one step, and goes on in the next; any other loop fails
    at the evaluation with that number at one tick.
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

    def due(self, upto: int) -> list[LoopIteration]:
        """The iterations up to a tick that were not given before. `halt` is set when the loop cannot go on."""
        if not self._began and upto >= self._start:
            self._began = True
            self._advance(lambda: (evaluate_integer(self._loop.first, self._values(0)), False))
        found: list[LoopIteration] = []
        while self._next is not None:
            t, ends = self._next
            tick = self._made_at(ends)
            if tick is None or tick > upto or (self._resumes and len(found) == EVALUATION_LIMIT - 1):
                break
            self._n = self._n + 1 if tick == self._before else 1
            self._before = tick
            if self._n == EVALUATION_LIMIT and not self._resumes:
                self._halt(f"this is the {EVALUATION_LIMIT:,}th evaluation at tick {tick}")
                break
            by_place = {stream.place: pair for stream, pair in zip(self._streams, ends, strict=True)}
            found.append(LoopIteration(tick, self._n, t, by_place))
            self._advance(lambda t=t: self._change(t))  # type: ignore[misc]  # mypy cannot infer the default of a lambda
        return found

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
        self._iterations: list[_Iterations] = [{} for _ in loops]
        self._count = 0
        self.halt: QueryHalt | None = None

    def __len__(self) -> int:
        return len(self._loops)

    def due(
        self, upto: int, certain: int, issued: Sequence[IssuedWindows]
    ) -> tuple[IntArray, IntArray, IntArray, list[int] | list[tuple[int, ...]]]:
        """(ticks, n, numbers of the windows with a column for each input, t) of the combinations behind `certain`.

        The windows of the inputs are added to `issued`. An error in one of the loops ends all of them at its tick.
        """
        iterations = [loop.due(upto) for loop in self._loops]
        halts = [loop.halt for loop in self._loops if loop.halt is not None]
        if halts:
            self.halt = halt = min(halts, key=lambda halt: halt.tick)
            iterations = [[each for each in of if each.tick <= halt.tick] for of in iterations]
        new = [self._issue(known, of, issued) for known, of in zip(self._iterations, iterations, strict=True)]
        if len(new) == 1:
            ticks, numbers = new[0].tick, new[0].number[:, None]
            n = np.array([each.n for each in iterations[0]], np.int64)
        else:
            ticks, n, numbers = self._product.combine(new, certain)
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

    def _issue(
        self, known: _Iterations, iterations: list[LoopIteration], issued: Sequence[IssuedWindows]
    ) -> WindowSequence:
        """Issue the windows of new iterations of one loop; these are `known` by their numbers from now on."""
        numbers = self._count + np.arange(len(iterations))
        self._count += len(iterations)
        ticks = np.array([each.tick for each in iterations], np.int64)
        if iterations:
            n = np.array([each.n for each in iterations], np.int64)
            places = iterations[0].ends
            ends = {place: np.array([each.ends[place] for each in iterations], np.int64) for place in places}
            added = {place: issued[place].add(make_windows(ticks, n, *of.T)).tolist() for place, of in ends.items()}
            for at, (number, each) in enumerate(zip(numbers.tolist(), iterations, strict=True)):
                known[number] = each.t, {place: of[at] for place, of in added.items()}
        return WindowSequence(ticks, numbers)

    def _forget(self) -> None:
        """Drop the iterations that no later combination has."""
        for at, known in enumerate(self._iterations):
            needed = set(self._product.open_numbers(at).tolist())
            self._iterations[at] = {number: each for number, each in known.items() if number in needed}

    def open_numbers(self, place: int) -> IntArray:
        """The numbers of the windows of one input that later combinations may have."""
        found = [windows[place] for known in self._iterations for _, windows in known.values() if place in windows]
        return np.array(found, np.int64)
