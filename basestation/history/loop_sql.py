"""Loop SQL: the windows of for-loops (semantics 10.8). The loop itself runs before Spark does: t depends on no data.

The ends of windows that move by fixed steps are computed from their number; those of other loops are listed in the statement.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from basestation.algebra.node import PlanNode
from basestation.algebra.window import LoopRange, LoopWindow
from basestation.execution.windowing.for_loops import ForLoop, LoopInput
from basestation.execution.windowing.loop_iteration import LoopIteration
from basestation.history.product_sql import combinations
from basestation.history.refusal import SparkRefusedError
from basestation.history.scalar_sql import columns_text
from basestation.history.statement import SparkStatement, StreamRelation, WindowRelation

MOST_LISTED = 5_000
"""Windows of a loop without fixed steps that are listed in a statement."""

LoopStream = tuple[LoopWindow, StreamRelation]
TableReader = Callable[[PlanNode], tuple[str, str, str]]
"""The part of a stored extent, and the first and last tick at which each of its rows is seen."""


@dataclass(slots=True)
class _Bounds:
    """How far back a loop may still reach; a loop before its data needs no bound."""

    earliest_left: int = 0
    earliest_right: int = 0


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop that was evaluated: its iterations, and the part with `_e` (number), `_w`, `_n` and `_t` of each."""

    range: LoopRange
    iterations: list[LoopIteration]
    windows: str


def loop_product(
    statement: SparkStatement, streams: Sequence[LoopStream], inputs: Sequence[PlanNode], read_table: TableReader
) -> WindowRelation:
    """The windows of the loops of a query, with their tuples; `inputs` are all entries of FROM, stored extents too."""
    loops: list[_Loop] = []
    for node, _ in streams:
        if all(node.loop != loop.range for loop in loops):
            loops.append(_evaluate(statement, node.loop, [n for n, _ in streams if n.loop == node.loop]))
    windows = _combine(statement, loops)
    places = {id(node): at for at, node in enumerate(inputs)}
    joined, orders = f"{windows} k", [""] * len(inputs)
    for node, stream in streams:
        number = next(at for at, loop in enumerate(loops) if loop.range == node.loop)
        at = places[id(node)]
        rows = _rows(statement, loops[number], node, stream, [n for n, _ in streams if n.loop == node.loop])
        seen = f" AND i{at}._arr <= k._w" if stream.is_append else ""
        joined += f" JOIN {rows} i{at} ON i{at}._e = k._e{number}{seen}"
        orders[at] = f"i{at}._ord"
    extents = frozenset().union(*(stream.extents for _, stream in streams))
    for at, entry in enumerate(inputs):
        if not isinstance(entry, LoopWindow):
            table, low, high = read_table(entry)
            joined += f" JOIN {table} i{at} ON i{at}.{low} <= k._w AND i{at}.{high} >= k._w"
            orders[at] = f"i{at}._ord"
    alone = len(inputs) == 1
    order = f", i{places[id(streams[0][0])]}._tick, i{places[id(streams[0][0])]}._sec" if alone else ""
    columns = "".join(columns_text(entry.columns) for entry in inputs)
    body = f"SELECT k._w, k._n, k._t, concat({', '.join(orders)}) AS _ord{order}{columns} FROM {joined}"
    return WindowRelation(statement.add("rows", body), windows, None, extents, has_order=alone, has_t=True)


def _evaluate(statement: SparkStatement, loop: LoopRange, nodes: Sequence[LoopWindow]) -> _Loop:
    if loop.rows:
        raise SparkRefusedError("a for-loop over ROWS: its windows depend on the arrivals of rows")
    span = statement.span
    inputs = [LoopInput(at, _Bounds(), node.left, node.right) for at, node in enumerate(nodes)]
    running = ForLoop(loop, inputs, span.start, span.first)
    iterations = running.due(span.until)
    if running.halt is not None:
        raise SparkRefusedError(running.halt.message)
    columns = {
        "_w": [each.tick for each in iterations],
        "_n": [each.n for each in iterations],
        "_t": [each.t for each in iterations],
    }
    return _Loop(loop, iterations, statement.add("loop", _listed(columns)))


def _listed(columns: dict[str, list[int]]) -> str:
    """Numbers as a part with `_e`, which counts from 0: computed where all move by fixed steps, else listed."""
    size = len(next(iter(columns.values())))
    if not size:
        return (
            f"SELECT CAST(NULL AS BIGINT) AS _e{''.join(f', CAST(NULL AS BIGINT) AS {n}' for n in columns)} WHERE FALSE"
        )
    steps = {name: find_step(values) for name, values in columns.items()}
    if all(step is not None for step in steps.values()):
        texts = "".join(f", {values[0]}L + _e * {steps[name]}L AS {name}" for name, values in columns.items())
        return f"SELECT _e{texts} FROM (SELECT explode(sequence(0L, {size - 1}L)) AS _e)"
    if size > MOST_LISTED:
        raise SparkRefusedError(
            f"a for-loop of {size:,} windows without a fixed step; {MOST_LISTED:,} are listed at most"
        )
    rows = ", ".join(
        f"({at}L, {', '.join(f'{v}L' for v in row)})" for at, row in enumerate(zip(*columns.values(), strict=True))
    )
    return f"SELECT * FROM VALUES {rows} AS listed(_e, {', '.join(columns)})"


def find_step(values: Sequence[int]) -> int | None:
    """The difference of each value from the one before, if it is the same for all; 0 for a single value."""
    steps = {b - a for a, b in pairwise(values)}
    return None if len(steps) > 1 else steps.pop() if steps else 0


def _rows(
    statement: SparkStatement, loop: _Loop, node: LoopWindow, stream: StreamRelation, nodes: Sequence[LoopWindow]
) -> str:
    """The tuples of a stream, once for each window with its number `_e`."""
    place = next(at for at, each in enumerate(nodes) if each is node)
    left = [each.ends[place][0] for each in loop.iterations]
    right = [each.ends[place][1] for each in loop.iterations]
    columns = columns_text(node.columns)
    kept = f"array(_idx) AS _ord, _tick, _sec, _arr{columns}"
    steps = find_step(left), find_step(right)
    if not left or steps[0] is None or steps[1] is None or min(steps[0], steps[1]) < 0:
        ends = statement.add("ends", _listed({"_left": left, "_right": right}))
        return statement.add(
            "held", f"SELECT _e, {kept} FROM {stream.name} JOIN {ends} ON _tick >= _left AND _tick <= _right"
        )
    last = len(left) - 1
    first_text = (
        f"ceil((_tick - {right[0]}L) / {steps[1]}D)" if steps[1] else f"if(_tick <= {right[0]}, 0L, {last + 1}L)"
    )
    last_text = f"floor((_tick - {left[0]}L) / {steps[0]}D)" if steps[0] else f"if(_tick >= {left[0]}, {last}L, -1L)"
    first_text, last_text = f"greatest(0L, {first_text})", f"least({last}L, {last_text})"
    numbers = f"explode(sequence({first_text}, {last_text}, 1L))"
    return statement.add("held", f"SELECT {numbers} AS _e, {kept} FROM {stream.name} WHERE {first_text} <= {last_text}")


def _combine(statement: SparkStatement, loops: Sequence[_Loop]) -> str:
    """The windows of a query with `_w`, `_n`, `_t`, and the number `_e0`, `_e1`, … of the iteration of each loop."""
    if len(loops) == 1:
        return statement.add("windows", f"SELECT _w, _n, _t, _e AS _e0 FROM {loops[0].windows}")
    combined = combinations(statement, [loop.windows for loop in loops])
    joined = "".join(
        f" JOIN {loop.windows} l{at} ON l{at}._w = c._w{at} AND l{at}._n = c._n{at}" for at, loop in enumerate(loops)
    )
    t = ", ".join(f"l{at}._t" for at in range(len(loops)))
    numbers = "".join(f", l{at}._e AS _e{at}" for at in range(len(loops)))
    return statement.add("windows", f"SELECT c._w, c._n, array({t}) AS _t{numbers} FROM {combined} c{joined}")
