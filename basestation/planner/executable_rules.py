"""Executable: the rewrites whose operators can be run.

Nothing at the base station joins tick by tick: what `join_below_window` makes of a query only motes carry out. So it is
done for the joins below what they fold, and for no other.
"""

from collections.abc import Iterable

from basestation.algebra.node import PlanNode, walk
from basestation.algebra.stream_join import StreamJoin
from basestation.planner.rewriter import RULES
from basestation.planner.rules.join_below_window import join_below_window, restrict_to_ticks

EXECUTABLE_RULES = tuple(rule for rule in RULES if rule is not join_below_window)
"""Those of a query of which motes fold nothing."""


def select_rules(rules: tuple, folded: Iterable[PlanNode]) -> tuple:
    """These and, where motes fold pairs for a query, the rewrite that brings their joins below these aggregations."""
    pairs = {node.tags[0] for top in folded for node in walk(top) if isinstance(node, StreamJoin)}
    if not pairs:
        return rules
    known = {*rules, join_below_window}
    return tuple(restrict_to_ticks(pairs) if rule is join_below_window else rule for rule in RULES if rule in known)
