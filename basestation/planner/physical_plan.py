"""Physical: how each operator of a plan is carried out, and what it keeps in memory for the declared rates.

The figures are bounds: selections are taken to keep everything, a window to be full. A pushed extent declares no rate
and a table no size; what depends on them is told per tuple, per group or per row.
"""

from dataclasses import dataclass

from acquisition.extent import LatePolicy
from acquisition.schema import Type
from basestation.algebra import converters, one_off, table, window
from basestation.algebra.expressions import Attr
from basestation.algebra.node import walk
from basestation.algebra.notation import label
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_join import StreamJoin
from basestation.algebra.stream_receive import StreamReceive
from basestation.algebra.stream_union import StreamUnion
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_join import WindowJoin

_NUMBER, _CODE = 8, 4  # bytes of a number, and of a string's code in its dictionary
_TAGS = 3 * _NUMBER  # tick, index, arrival
_PARTIAL = {"COUNT": 8, "SUM": 16, "AVG": 16, "MIN": 9, "MAX": 9, "FIRST": 25, "LAST": 25, "STDEV": 40, "VARIANCE": 40}
_EXACT = 48  # an exact sum of floats instead of an integer one


@dataclass(frozen=True, slots=True)
class OperatorState:
    """What an operator keeps: so many things of so many bytes. `count` is None where no rate is declared."""

    what: str
    count: int | None
    each: int

    @property
    def bytes(self):
        return None if self.count is None else self.count * self.each


@dataclass(frozen=True, slots=True)
class PhysicalOperator:
    """One operator of the physical plan: its depth in the tree, the algebra it carries out, how, and its state."""

    depth: int
    label: str
    how: str
    state: OperatorState | None


def plan_operators(root):
    """The operators of a plan from the top, each before those it reads."""
    operators = []
    _visit(root, 0, operators)
    return tuple(operators)


def sum_memory(operators):
    """The bytes of all states whose size is known, and what has to be added per what."""
    known = sum(o.state.bytes for o in operators if o.state and o.state.count is not None)
    open_ended = tuple(o.state for o in operators if o.state and o.state.count is None)
    return known, open_ended


def _visit(node, depth, operators):
    how, state = _carried_out(node)
    operators.append(PhysicalOperator(depth, label(node), how, state))
    for child in node.children:
        _visit(child, depth + 1, operators)


def _carried_out(node):
    match node:
        case StreamAcquire():
            return "readings by the schedule", _logged(node)
        case StreamReceive():
            return "tuples as they come", _logged(node)
        case StreamJoin():
            return "hash join within a tick", OperatorState(
                "tuples of a tick", _sum((_most(node.left, 1), _most(node.right, 1))), _width(node)
            )
        case StreamUnion():
            return "merge by arrival", None
        case converters.RStream():
            return "tuples of each window as they are", None
        case converters.IStream() | converters.DStream():
            return "what came and what went", OperatorState(
                "tuples said", _most(node, 1 + _horizon(node)), _TAGS + _width(node)
            )
        case window.TimeWindow(begin=begin):
            count = _most(node.child, 1 - begin + _horizon(node))
            return "ring of tuples by tick", OperatorState("tuples", count, _TAGS + _width(node))
        case window.RowWindow(begin=begin):
            revised = _most(node.child, _horizon(node)) if _horizon(node) else 0
            return "ring of tuples by row", OperatorState("tuples", _sum((1 - begin, revised)), _TAGS + _width(node))
        case window.LandmarkWindow():
            return "tuples since the start", OperatorState("tuples", None, _TAGS + _width(node))
        case window.LoopWindow():
            return "tuples that an evaluation to come may reach", OperatorState("tuples", None, _TAGS + _width(node))
        case table.Scan():
            return "newest version at each scan", OperatorState("rows of the table", None, _width(node))
        case table.Once():
            return "read at the start, in a loop for each window", OperatorState(
                "rows of the table", None, _width(node)
            )
        case WindowAggregation(aggregates=aggregates, groups=groups):
            return "one pass over each window", OperatorState(
                "groups", _groups(groups, node.child), _partial(aggregates, groups)
            )
        case SliceAggregation(aggregates=aggregates, groups=groups):
            slices = _slices(node)
            count = _groups(groups, node.child)
            how = f"{slices} slices, merged"
            return how, OperatorState(
                "partial states", None if count is None else slices * count, _partial(aggregates, groups)
            )
        case WindowJoin(inputs=inputs):
            return "hash join over state modules", OperatorState(
                "keyed tuples", _sum(_held(i) for i in inputs), _width(node)
            )
        case WindowCrossProduct(inputs=inputs):
            return "all combinations", OperatorState(
                "tuples of the inputs", _sum(_held(i) for i in inputs), _width(node)
            )
        case one_off.Sort():
            return "sort", OperatorState("tuples", _held(node.child), _width(node))
        case one_off.Distinct():
            return "hash of whole tuples", OperatorState("tuples", _held(node.child), _width(node))
        case one_off.TableJoin():
            return "hash or nested loops", OperatorState("rows", None, _width(node))
    return "tuple by tuple, in batches", None


# --- how many --------------------------------------------------------------------------------------------------------


def _most(stream, ticks):
    """The most tuples of a stream in so many successive ticks; None where nothing is declared."""
    match stream:
        case StreamAcquire(extent=extent, interval=interval):
            return None if extent.sites is None else len(extent.sites) * _times(ticks, interval)
        case converters.Converter(child=child):
            held, slide = _held(child), _slide(child)
            return None if held is None or slide is None else held * _times(ticks, slide)
        case StreamJoin(left=left, right=right, keys=keys):
            counts = [_most(left, ticks), _most(right, ticks), _most(right, 1)]
            if None in counts:
                return None
            on_site = any(_sites_of(a, left) is not None and _sites_of(b, right) is not None for a, b in keys)
            return min(counts[:2]) if on_site else counts[0] * counts[2]
        case StreamUnion(parts=parts):
            return _sum(_most(part, ticks) for part in parts)
    return _most(stream.children[0], ticks) if stream.children else None


def _times(ticks, period):
    """How often something that happens every period can happen in so many successive ticks."""
    return 0 if ticks <= 0 else (ticks - 1) // period + 1


def _held(node):
    """Tuples in a window at most."""
    match node:
        case window.TimeWindow(begin=begin, end=end, child=child):
            return _most(child, end - begin + 1)
        case window.RowWindow(begin=begin, end=end):
            return max(0, end - begin + 1)
        case WindowAggregation(groups=groups, child=child):
            return _groups(groups, child)
        case SliceAggregation(groups=groups, child=child):
            return _groups(groups, child)
        case WindowCrossProduct(inputs=inputs) | WindowJoin(inputs=inputs):
            product = 1
            for held in map(_held, inputs):
                if held is None:
                    return None
                product *= held
            return product
        case table.Scan() | table.Once() | window.LandmarkWindow() | window.LoopWindow():
            return None
    return _held(node.children[0]) if node.children else None


def _slide(node):
    """Ticks between windows; None where rows or loops decide."""
    match node:
        case window.TimeWindow(slide=slide) | SliceAggregation(slide=slide):
            return slide
        case table.Scan(interval=interval):
            return interval
        case WindowCrossProduct(inputs=inputs) | WindowJoin(inputs=inputs):
            slides = [_slide(i) for i in inputs]
            return None if None in slides else min(slides)
    return _slide(node.children[0]) if node.children else None


def _groups(groups, child):
    """How many groups there can be: one without grouping, the sites where sites are grouped by, else not known."""
    if not groups:
        return 1
    sites = [_sites_of(e, child) for _, e in groups]
    return sites[0] if len(sites) == 1 else None


def _sites_of(expression, node):
    """How many sites a column can name, if it is the site of a sensed extent below."""
    if not isinstance(expression, Attr):
        return None
    pending = [node]
    while pending:
        found = pending.pop()
        if isinstance(found, StreamAcquire) and expression.column in found.attributes:
            attribute = found.extent.site_attribute
            known = (
                attribute is not None and expression.column.name == attribute.name and found.extent.sites is not None
            )
            return len(found.extent.sites) if known else None
        for column, source in getattr(found, "outputs", ()):
            if column == expression.column:
                return _sites_of(source, found.children[0])
        pending.extend(found.children)
    return None


def _slices(node):
    """Slices back to where answers are corrected, cut at both ends of the windows; of a landmark window the rest is one."""
    reach = _horizon(node) + (1 if node.begin is None else 1 - node.begin)
    return -(-reach // node.slide) * node.edges + 1


def _horizon(node):
    """How far back answers over a node are corrected, and what they are made of has to be kept."""
    extents = [n.extent for n in walk(node) if isinstance(n, StreamAcquire | StreamReceive)]
    return max((e.horizon for e in extents if e.late is LatePolicy.REVISE), default=0)


def _logged(node):
    """What was delivered, all attributes of it, for as long as it waits or may be corrected."""
    extent = node.extent
    width = _TAGS + sum(_size(a.type) for a in extent.schema)
    return OperatorState("tuples delivered", _most(node, 1 + extent.wait + _horizon(node)), width)


def _sum(counts):
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


# --- how large -------------------------------------------------------------------------------------------------------


def _width(node):
    return sum(_size(c.type) for c in node.columns)


def _size(type_):
    return _CODE if type_ is Type.STRING else _NUMBER


def _partial(aggregates, groups):
    """The bytes of one partial state: its group, and each aggregate's own."""
    size = sum(_size(e.type) for _, e in groups)
    for _, aggregate in aggregates:
        exact = aggregate.argument is not None and aggregate.argument.type is Type.FLOAT
        summed = aggregate.name in ("SUM", "AVG", "STDEV", "VARIANCE")
        size += _PARTIAL.get(aggregate.name, _NUMBER) + (_EXACT if exact and summed else 0)
    return size
