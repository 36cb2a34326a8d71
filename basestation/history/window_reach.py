"""Window reach: which windows of a query depend on a tuple, and from where on a query must run so that its windows lack nothing.

tuple          windows that hold it, or rows that ISTREAM gives for the next one
──┼──── least ────┼──────────── greatest ───────────┼──▶

      begin of the run        first window that is whole
──────────┼──────── lead ────────────┼──────────────────▶
"""

from collections.abc import Iterator

from basestation.algebra.converters import Converter, DStream, IStream
from basestation.algebra.node import PlanNode, walk
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_receive import StreamReceive
from basestation.algebra.table import Scan
from basestation.algebra.window import TimeWindow
from basestation.algebra.window_cross_product import WindowCrossProduct


def find_reach(root: PlanNode) -> tuple[int, int]:
    """The least and the greatest distance in ticks from a tuple to a window that depends on it."""
    found = list(_distances(root))
    return min(low for low, _ in found), max(high for _, high in found)


def find_lead(node: PlanNode) -> int:
    """So many ticks before a window the query must begin: else it lacks windows that are combined in it, or below a converter in it."""
    below = max(map(find_lead, node.children), default=0)
    if not isinstance(node, TimeWindow):
        return below + _delay(node)
    return below - node.begin if any(isinstance(each, Converter) for each in walk(node.child)) else 0


def _distances(node: PlanNode) -> Iterator[tuple[int, int]]:
    """The distances for each stream below a node."""
    if isinstance(node, StreamAcquire | StreamReceive):
        yield 0, 0
    later = _delay(node)
    for low, high in (each for child in node.children for each in _distances(child)):
        yield (low - node.end, high - node.begin) if isinstance(node, TimeWindow) else (low, high + later)


def _delay(node: PlanNode) -> int:
    """How long a window counts for others: for the next one of a converter, and for those that it is combined with, if they slide otherwise."""
    slides = {slide for child in node.children for slide in _slides(child)}
    is_compared = isinstance(node, IStream | DStream)
    is_combined = isinstance(node, WindowCrossProduct) and len(slides) > 1
    return max(slides, default=0) if is_compared or is_combined else 0


def _slides(node: PlanNode) -> Iterator[int]:
    """The slides of the windows that a node combines."""
    if isinstance(node, TimeWindow | Scan):
        yield node.slide if isinstance(node, TimeWindow) else node.interval
    else:
        for child in node.children:
            yield from _slides(child)
