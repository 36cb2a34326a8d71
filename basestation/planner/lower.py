"""Lower: the part of a plan that motes run, in the operators of `innet`. The only bridge between the two languages.

So far motes acquire and deliver; everything above stays at the base station.
"""

from basestation.algebra.node import Node, walk
from basestation.algebra.stream_acquire import StreamAcquire
from innet.operators.acquire import Acquire
from innet.operators.deliver import Deliver


def lower(root: Node) -> tuple[Deliver, ...]:
    """One operator for each sensed extent that the plan reads, in the order of the plan."""
    return tuple(_deliver(node) for node in walk(root) if isinstance(node, StreamAcquire))


def _deliver(node: StreamAcquire) -> Deliver:
    known = {attribute.name for attribute in (node.extent.site_attribute, node.extent.time_attribute) if attribute}
    sampled = tuple(column.name for column in node.attributes if column.name not in known)
    return Deliver(Acquire(node.extent.name, node.interval, sampled), node.extent.name, sampled)
