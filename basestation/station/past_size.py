"""Past size: how much a query from the past has to answer, and in how many slices a station answers it."""

from collections.abc import Mapping

from acquisition.extent import Extent
from basestation.algebra.loop_grid import find_linear
from basestation.algebra.node import PlanNode, walk
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_receive import StreamReceive
from basestation.algebra.window import LandmarkWindow, LoopWindow, RowWindow, StreamWindow, TimeWindow
from basestation.execution.past_windows import PastRange
from basestation.planner.plan import Plan

SLICE_TUPLES, SLICE_WINDOWS, SLICE_IN_WINDOWS = 50_000, 5_000, 500_000
"""Tuples, windows, and tuples in windows, each as often as a window holds it, that are answered in one go."""
SLICE_MS = 1_000
"""Of the station's time: so long it goes on with its other work between two slices."""


def count_slices(plan: Plan, past: PastRange, tuples: Mapping[str, int]) -> int:
    """In how many slices the past windows of a query are answered; `tuples` are those of each extent."""
    windows, held = measure_windows(plan, past, tuples)
    most = max(sum(tuples.values()) / SLICE_TUPLES, windows / SLICE_WINDOWS, windows * held / SLICE_IN_WINDOWS)
    return max(1, min(round(most + 0.5), past.seam - past.since))


def measure_windows(plan: Plan, past: PastRange, tuples: Mapping[str, int]) -> tuple[int, float]:
    """The number of past windows of a query, and how many of these tuples, by extent, one holds on average; of a join their pairs."""
    length, counts, held = past.seam - past.since, [1], 1.0
    for node in walk(plan.root):
        if not isinstance(node, StreamWindow):
            continue
        of = sum(tuples.get(extent.name, 0) for extent in _streams_below(node))
        match node:
            case TimeWindow(begin=begin, end=end, slide=slide):
                count, in_each = length // slide + 1, of * min(1.0, (end - begin + 1) / (past.seam - past.begin))
            case RowWindow(begin=begin, end=end, slide=slide):
                count, in_each = of // slide + 1, float(min(of, end - begin + 1))
            case LandmarkWindow(slide=slide, rows=rows):
                count, in_each = (of if rows else length) // slide + 1, of / 2
            case _:
                count, in_each = _count_iterations(node, length), of / 2
        counts.append(count)
        held *= max(1.0, in_each)
    return max(counts), held


def _count_iterations(node: StreamWindow, length: int) -> int:
    """The windows of a for-loop in so many ticks, where t moves by a fixed step; else one a tick."""
    if not isinstance(node, LoopWindow):
        raise TypeError(f"expected a window over a stream, found {type(node).__name__}")
    step = find_linear(node.loop.change, node.loop.t, node.loop.start)
    fixed = step is not None and (step.by_t, step.by_start) == (1, 0) and step.constant > 0
    return length // (step.constant if fixed and step is not None else 1) + 1


def streams_of(plan: Plan) -> set[Extent]:
    return set(_streams_below(plan.root))


def _streams_below(node: PlanNode) -> list[Extent]:
    return [each.extent for each in walk(node) if isinstance(each, StreamAcquire | StreamReceive)]
