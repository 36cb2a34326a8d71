"""Placement: which sites run which operator, which sites merge partials of others, and the tree that frames follow."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from innet.operators import walk
from innet.operators.acquire import Acquire, find_acquires
from innet.operators.deliver import Deliver
from innet.operators.fold import Fold
from innet.operators.identity_cache import cache_by_identity
from innet.operators.mote_expression import MoteExpression, SensorValue, SiteNumber, split_conjuncts
from innet.operators.mote_expression import walk as walk_expression
from innet.operators.mote_select import MoteSelect
from innet.operators.scalar_evaluation import evaluate_at_site
from innet.operators.site_join import SiteJoin
from innet.partials import PartialShape
from innet.routing.tree import RoutingTree

Placeable = Deliver | Fold
"""An operator with a place: the top of an operator tree."""


@dataclass(frozen=True, slots=True)
class PlacedOperator:
    """An operator with the sites that run it.

    `number` identifies a Fold in frames; it is 0 for a Deliver, which needs none. `merging` are sites that contribute no
    readings but merge and forward partials. `room` is the number of groups that each site has memory for.
    """

    operator: Placeable
    sites: tuple[int, ...]
    number: int = 0
    merging: tuple[int, ...] = ()
    room: int = 1

    @property
    def fold(self) -> Fold:
        """The operator, if it is a Fold; TypeError otherwise."""
        if not isinstance(self.operator, Fold):
            raise TypeError(f"expected a fold, found `{self.operator.label()}`")
        return self.operator

    @property
    def shape(self) -> PartialShape:
        """The layout of the partials of a Fold."""
        fold = self.fold
        return PartialShape(self.number, self.sites, len(fold.keys), fold.kinds, fold.slices)


@dataclass(frozen=True, slots=True)
class Placement:
    """All operators that run in the network."""

    tree: RoutingTree
    placed: tuple[PlacedOperator, ...]
    unreached: tuple[int, ...] = field(default=())  # sites of operators without a route to a gateway

    @property
    def folds(self) -> tuple[PlacedOperator, ...]:
        """The operators that are folds."""
        return tuple(placed for placed in self.placed if isinstance(placed.operator, Fold))

    @property
    def shapes(self) -> dict[int, PartialShape]:
        """The layout of partials, by the number of their fold."""
        return {placed.number: placed.shape for placed in self.folds}


@cache_by_identity
def conditions(operator: Placeable) -> tuple[MoteExpression, ...]:
    """Return the terms that must be true of a reading, or of a pair, for an operator to take it.

    Selections and joins commute, so one list has the terms of all of them.
    """
    predicates = [node.predicate for node in walk(operator) if isinstance(node, MoteSelect | SiteJoin)]
    terms = [term for predicate in predicates for term in split_conjuncts(predicate)]
    return tuple(dict.fromkeys(terms))


@cache_by_identity
def is_about_site(term: MoteExpression) -> bool:
    """Whether a condition depends on the site's number alone, so that it is known before any sample."""
    parts = list(walk_expression(term))
    return any(isinstance(p, SiteNumber) for p in parts) and not any(isinstance(p, SensorValue) for p in parts)


def select_sites(operator: Placeable, sites: Iterable[int]) -> tuple[int, ...]:
    """Return the sites that run an operator: those that its conditions about the site do not exclude."""
    if not (terms := _site_conditions(operator)):
        return tuple(sites)
    return tuple(site for site in sites if all(evaluate_at_site(term, site) == 1 for term in terms))


@cache_by_identity
def _site_conditions(operator: Placeable) -> tuple[MoteExpression, ...]:
    return tuple(term for term in conditions(operator) if is_about_site(term))


def find_required_sites(operators: Iterable[Placeable], sites: Mapping[str, Collection[int]]) -> dict[str, set[int]]:
    """Return, by extent, the sites whose readings the operators need; `sites` has all sites of each extent.

    An operator over several extents needs all sites of each: a condition on one extent excludes no readings of the
    other (semantics 12.3).
    """
    found: dict[str, set[int]] = {}
    for operator in operators:
        extents = extents_of(operator)
        for name in extents:
            found.setdefault(name, set()).update(
                sites[name] if len(extents) > 1 else select_sites(operator, sites[name])
            )
    return found


def find_sending_sites(
    operators: Iterable[Deliver], sites: Mapping[str, Collection[int]]
) -> dict[str, dict[str, set[int]]]:
    """Return, by extent and attribute, the sites that send it; `sites` has all sites of each extent."""
    found: dict[str, dict[str, set[int]]] = {}
    for operator in operators:
        several, name = len(extents_of(operator)) > 1, operator.extent
        senders = sites[name] if several else select_sites(operator, sites[name])
        for attribute in operator.sent:
            found.setdefault(name, {}).setdefault(attribute, set()).update(senders)
    return found


@cache_by_identity
def extents_of(operator: Placeable) -> tuple[str, ...]:
    """Return the extents that an operator reads, each once."""
    return tuple(dict.fromkeys(node.extent for node in walk(operator) if isinstance(node, Acquire)))


def find_reported_ticks(placed: Iterable[PlacedOperator], extent: str, ticks: IntArray) -> BoolArray:
    """Return at which of `ticks` motes report on readings of an extent, if only that they were filtered.

    Motes report nothing on slices that no window holds.
    """
    found = np.zeros(len(ticks), bool)
    for operator in {each.operator for each in placed if extent in extents_of(each.operator)}:
        reported = ticks % find_acquires(operator)[extent].interval == 0
        if isinstance(operator, Fold) and operator.slices.gap_edge is not None:
            reported &= operator.slices.is_in_windows(operator.slices.number(ticks))
        found |= reported
    return found


def place_at_all_sites(operators: Iterable[Deliver], sites: dict[str, tuple[int, ...]]) -> tuple[PlacedOperator, ...]:
    """Place operators that deliver readings at every site of their extents that their conditions do not exclude."""
    return tuple(
        PlacedOperator(operator, select_sites(operator, sites[operator.extent]))
        for operator in dict.fromkeys(operators)
    )
