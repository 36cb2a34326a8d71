"""Applies the rewrite rules in their order until none changes the plan, and records every step."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from basestation.algebra.expression import Expression
from basestation.algebra.expressions import SubqueryExpression, transform
from basestation.algebra.mapping import map_expressions
from basestation.algebra.node import PlanNode
from basestation.planner.plan import Plan
from basestation.planner.rules.acquire_only_windowed_ticks import acquire_only_windowed_ticks
from basestation.planner.rules.aggregate_by_slices import aggregate_by_slices
from basestation.planner.rules.drop_dead_columns import drop_dead_columns
from basestation.planner.rules.drop_true_select import drop_true_select
from basestation.planner.rules.flatten_products import flatten_products
from basestation.planner.rules.fold_constants import fold_constants
from basestation.planner.rules.inner_join_to_product import inner_join_to_product
from basestation.planner.rules.join_below_window import join_below_window
from basestation.planner.rules.merge_projects import merge_projects
from basestation.planner.rules.merge_selects import merge_selects
from basestation.planner.rules.push_project_below_window import push_project_below_window
from basestation.planner.rules.push_select_below_product import push_select_below_product
from basestation.planner.rules.push_select_below_project import push_select_below_project
from basestation.planner.rules.push_select_below_window import push_select_below_window
from basestation.planner.rules.select_over_product_to_join import select_over_product_to_join

Rule: TypeAlias = Callable[[PlanNode], PlanNode]
"""Rewrites a plan; returns the same object where it does not apply."""
RULES: tuple[Rule, ...] = (
    fold_constants,
    drop_true_select,
    inner_join_to_product,
    flatten_products,
    merge_selects,
    push_select_below_project,
    push_select_below_product,
    push_select_below_window,
    select_over_product_to_join,
    join_below_window,
    merge_projects,
    push_project_below_window,
    aggregate_by_slices,
    acquire_only_windowed_ticks,
    drop_dead_columns,
)
"""The order matters: pushdown first leaves less to join, and slices are cut from the rest."""


@dataclass(frozen=True, slots=True)
class RewriteStep:
    """One rewrite that changed the plan."""

    rule: str
    reason: str
    before: PlanNode
    after: PlanNode


def rewrite(plan: Plan, rules: Sequence[Rule] = RULES) -> tuple[Plan, tuple[RewriteStep, ...]]:
    """The plan with its tree rewritten, and the steps. Subqueries outside FROM are rewritten too, without steps."""
    root, steps = _rewritten(plan.root, rules)
    return replace(plan, root=root), tuple(steps)


def _rewritten(root: PlanNode, rules: Sequence[Rule]) -> tuple[PlanNode, list[RewriteStep]]:
    root = map_expressions(root, lambda e: transform(e, lambda part: _rewrite_subquery(part, rules)))
    steps: list[RewriteStep] = []
    changed = True
    while changed:
        changed = False
        for rule in rules:
            after = rule(root)
            if after is not root:
                steps.append(RewriteStep(rule.__name__, reason_of(rule), root, after))
                root, changed = after, True
    return root, steps


def _rewrite_subquery(e: Expression, rules: Sequence[Rule]) -> Expression:
    """A subquery outside FROM with its tree rewritten; any other expression unchanged."""
    if not isinstance(e, SubqueryExpression) or not isinstance(e.plan, PlanNode):
        return e
    inner, _ = _rewritten(e.plan, rules)
    return e if inner is e.plan else replace(e, plan=inner)


def reason_of(rule: Rule) -> str:
    """Why a rule is right: the first paragraph of its module's docstring."""
    return " ".join((sys.modules[rule.__module__].__doc__ or "").split("\n\n")[0].split())
