"""A selection by what is always true selects everything; one by what is never true stays, since its empty windows are answers."""

from basestation.algebra.expressions import Truth
from basestation.algebra.node import rebuild
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.window_select import WindowSelect


def drop_true_select(root):
    return rebuild(root, _drop)


def _drop(node):
    if isinstance(node, StreamSelect | WindowSelect) and node.predicate == Truth(True):
        return node.child
    return node
