"""Readings that no window holds are not acquired: below windows that hold only some of the ticks, those are sampled.

`[FROM NOW TO NOW SLIDE 5 MIN]` over an extent that is sampled each half minute sees a tenth of its readings: an extent is
acquired at the multiples of the coarsest interval that has all ticks in windows, as if the query had said so (ACQUIRE
EVERY, SEMANTICS 11). Coverage is of the ticks in windows, so it stays what it was. Not where the query names `index`, which
counts the readings between, or reads the history of the extent, which has them; nor where windows wait for longer than from
one reading to the next: time would be complete later, because nothing is heard of the ticks between.
"""

from dataclasses import replace
from math import gcd

from basestation.algebra import expressions as ex
from basestation.algebra.node import rebuild, walk
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_join import StreamJoin
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.table import Once, Scan
from basestation.algebra.window import TimeWindow

_LONGEST = 2**32 - 1
"""The interval of a schedule has 32 bits."""


def acquire_only_windowed_ticks(root):
    named = {column.id for node in walk(root) for e in node.expressions for column in ex.columns_of(e)}
    recorded = {node.extent.name for node in walk(root) if isinstance(node, Scan | Once) and node.history}

    def more_rarely(node):
        if not isinstance(node, TimeWindow | SliceAggregation) or node.begin is None or node.begin > node.end:
            return node
        child = _below(node.child, lambda acquire: _held(acquire, node, named, recorded))
        return node if child is node.child else node.with_children((child,))

    return rebuild(root, more_rarely)


def _below(stream, change):
    """A stream whose tuples are readings, or pairs of them, with other acquisitions; others as they are."""
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


def _held(acquire, window, named, recorded):
    extent = acquire.extent
    if acquire.tags[1].id in named or extent.name in recorded or extent.wait > acquire.interval:
        return acquire
    interval = _interval(acquire.interval, window)
    return acquire if interval == acquire.interval or interval > _LONGEST else replace(acquire, interval=interval)


def _interval(every, window):
    """The coarsest interval that has all multiples of `every` which windows hold; the same where they hold none.

    The multiples stand `step` by step at all distances from where windows begin; where a window is long enough for two of
    the distances, windows hold multiples next to each other. With one, all that are held are the same modulo both.
    """
    step = gcd(every, window.slide)
    first = -window.begin % step
    if (window.end - window.begin - first) // step != 0:
        return every
    rounds = window.slide // step
    tick = every * ((window.begin + first) // step * pow(every // step, -1, rounds) % rounds)
    return gcd(tick, every * rounds)
