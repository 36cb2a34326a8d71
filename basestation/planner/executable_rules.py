"""The rewrite rules whose operators the engine can run.

The base station has no join tick by tick; only motes execute the result of `join_below_window`. So that rule applies to
the joins below aggregations that motes fold, and to no other.
"""

from collections.abc import Iterable, Sequence

from basestation.algebra.node import PlanNode, walk
from basestation.algebra.stream_join import StreamJoin
from basestation.planner.rewriter import RULES, Rule
from basestation.planner.rules.join_below_window import join_below_window, restrict_to_ticks

EXECUTABLE_RULES = tuple(rule for rule in RULES if rule is not join_below_window)
"""For a query without aggregations that motes fold."""


def select_rules(rules: Sequence[Rule], folded: Iterable[PlanNode]) -> tuple[Rule, ...]:
    """`rules`, and `join_below_window` for the joins below the aggregations that motes fold (`folded`)."""
    pairs = {node.tags[0] for top in folded for node in walk(top) if isinstance(node, StreamJoin)}
    if not pairs:
        return tuple(rules)
    known = {*rules, join_below_window}
    return tuple(restrict_to_ticks(pairs) if rule is join_below_window else rule for rule in RULES if rule in known)
