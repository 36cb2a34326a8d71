"""Motes sample only the ticks of readings that some window covers, at the coarsest interval that includes them all.

`[FROM NOW TO NOW SLIDE 5 MIN]` over an extent with an interval of 30 seconds covers a tenth of its readings. The rule
samples the extent at the multiples of the coarsest interval that includes all covered ticks, as ACQUIRE EVERY would
(semantics 11). Coverage counts the ticks in windows, so it stays the same.

The rule does not apply where the query names `index`, which counts the readings in between, or reads the history of the
extent, which contains them. It does not apply either where windows wait longer than one interval: time would be complete
later, because no frame tells of the ticks in between.
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from math import gcd

from basestation.algebra import expressions as ex
from basestation.algebra.node import PlanNode, rebuild, walk
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_join import StreamJoin
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.table import Once, Scan
from basestation.algebra.window import TimeWindow

_LONGEST = 2**32 - 1
"""In ticks: the interval of a schedule has 32 bits."""


def acquire_only_windowed_ticks(root: PlanNode) -> PlanNode:
    named = {column.id for node in walk(root) for e in node.expressions for column in ex.columns_of(e)}
    recorded = {node.extent.name for node in walk(root) if isinstance(node, Scan | Once) and node.history}

    def widen(node: PlanNode) -> PlanNode:
        if not isinstance(node, TimeWindow | SliceAggregation) or node.begin is None or node.begin > node.end:
            return node
        child = _below(node.child, lambda acquire: _widened(acquire, node, named, recorded))
        return node if child is node.child else node.with_children((child,))

    return rebuild(root, widen)


def _below(stream: PlanNode, change: Callable[[StreamAcquire], StreamAcquire]) -> PlanNode:
    """A stream of readings or of pairs of readings, with `change` applied to its acquisitions; any other stream as it is."""
    if isinstance(stream, StreamAcquire):
        return change(stream)
    if not isinstance(stream, StreamSelect | StreamProject | StreamJoin):
        return stream
    children = tuple(_below(child, change) for child in stream.children)
    return (
        stream
        if all(a is b for a, b in zip(children, stream.children, strict=True))
        else stream.with_children(children)
    )


def _widened(
    acquire: StreamAcquire, window: TimeWindow | SliceAggregation, named: Collection[int], recorded: Collection[str]
) -> StreamAcquire:
    extent = acquire.extent
    if acquire.tags[1].id in named or extent.name in recorded or extent.wait > acquire.interval:
        return acquire
    interval = _interval(acquire.interval, window)
    return acquire if interval == acquire.interval or interval > _LONGEST else replace(acquire, interval=interval)


def _interval(every: int, window: TimeWindow | SliceAggregation) -> int:
    """The coarsest interval, in ticks, with all multiples of `every` that windows cover; `every` if they cover none.

    The distances of the multiples from the begins of windows are all multiples of `step`. If a window has room for two of
    these distances, windows cover adjacent multiples. With room for one, all covered multiples are equal modulo both.
    """
    if window.begin is None:
        return every
    step = gcd(every, window.slide)
    first = -window.begin % step
    if (window.end - window.begin - first) // step != 0:
        return every
    rounds = window.slide // step
    tick = every * ((window.begin + first) // step * pow(every // step, -1, rounds) % rounds)
    return gcd(tick, every * rounds)
