"""A join of two equal time windows on their ticks is the time window of a join tick by tick.

A pair of tuples of one tick t is in the join at w exactly if t is in range, on both sides alike; so each pair is found
once, instead of once for every window that holds it. It needs: both windows with the same range and slide, so that
they meet at every w and never twice; a key that says the ticks are equal, or windows of one tick, as [NOW], where they
are; extents whose late tuples belong to windows by their tick alone (`late append` goes by arrival as well, SEMANTICS
3.6); and nothing asked beyond the keys that is not asked of the pair itself, which a selection above the join sees to.
"""

from acquisition.extent import LatePolicy
from basestation.algebra import expressions as ex
from basestation.algebra.converters import Converter
from basestation.algebra.node import rebuild, walk
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_join import StreamJoin
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_receive import StreamReceive
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.window import TimeWindow
from basestation.algebra.window_join import WindowJoin


def join_below_window(root):
    return rebuild(root, _push)


def restrict_to_ticks(ticks):
    """The rule for joins whose left streams have these columns of ticks, and for no other."""

    def join_below_window(root):
        return rebuild(root, lambda node: after if _tick_of(after := _push(node)) in ticks else node)

    return join_below_window


def _tick_of(window):
    """The column of the ticks of what a window is of; None for what is no window of a stream."""
    return window.child.tags[0] if isinstance(window, TimeWindow) else None


def _push(node):
    if not (isinstance(node, WindowJoin) and len(node.inputs) == 2):
        return node
    left, right = node.inputs
    if not (isinstance(left, TimeWindow) and isinstance(right, TimeWindow)):
        return node
    if (left.begin, left.end, left.slide) != (right.begin, right.end, right.slide):
        return node
    if any(_goes_by_arrival(side) for side in (left, right)):
        return node
    ticks = tick_columns(left.child), tick_columns(right.child)
    on_tick = [key for key in node.keys if _is(key[0], ticks[0]) and _is(key[1], ticks[1])]
    if not on_tick and left.begin != left.end:
        return node
    keys = tuple(key for key in node.keys if key not in on_tick[:1])
    joined = StreamJoin(keys, left.child, right.child, left.child.tags)
    stream = joined if node.residual is None else StreamSelect(node.residual, joined)
    return TimeWindow(stream, left.begin, left.end, left.slide)


def _goes_by_arrival(window):
    return any(
        isinstance(below, StreamAcquire | StreamReceive) and below.extent.late is LatePolicy.APPEND
        for below in walk(window)
    )


def _is(side, columns):
    return isinstance(side, ex.Attr) and side.column in columns


def tick_columns(stream):
    """The columns of a stream that have the tick of the tuple: its tag, and what carries it up by another name."""
    match stream:
        case StreamAcquire(extent=extent, attributes=attributes):
            named = extent.time_attribute
            return {stream.tags[0]} | {c for c in attributes if named and c.name == named.name}
        case StreamReceive() | Converter():
            return {stream.tags[0]}
        case StreamSelect(child=child):
            return tick_columns(child)
        case StreamProject(outputs=outputs, child=child):
            below = tick_columns(child)
            return {stream.tags[0]} | {column for column, e in outputs if _is(e, below)}
    return {stream.tags[0]}
