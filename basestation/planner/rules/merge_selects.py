"""Two selections in a row are one with all their conjuncts: a tuple passes both or it does not.

No conjunct can fail on a tuple that another would have kept away: expressions are total, a division by zero is null.
"""

from basestation.algebra.expressions import conjunction
from basestation.algebra.node import rebuild
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.window_select import WindowSelect


def merge_selects(root):
    return rebuild(root, _merge)


def _merge(node):
    for select in (StreamSelect, WindowSelect):
        if isinstance(node, select) and isinstance(node.child, select):
            return select(conjunction((node.child.predicate, node.predicate)), node.child.child)
    return node
