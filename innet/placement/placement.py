"""Placement: which sites run which operator, which merge what passes through them, and along which tree it rises."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from innet.operators import walk
from innet.operators.acquire import Acquire, find_acquires
from innet.operators.deliver import Deliver
from innet.operators.fold import Fold
from innet.operators.mote_expression import MoteExpression, SensorValue, SiteNumber, split_conjuncts
from innet.operators.mote_expression import walk as walk_expression
from innet.operators.mote_select import MoteSelect
from innet.operators.scalar_evaluation import evaluate_at_site
from innet.operators.site_join import SiteJoin
from innet.partials import PartialShape
from innet.routing.tree import RoutingTree

Placeable = Deliver | Fold


@dataclass(frozen=True, slots=True)
class PlacedOperator:
    """One operator where it runs. `number` is what frames call a Fold, and 0 for a Deliver, which needs none.

    `merging` are the sites that have no readings of their own in it, but pass on those of others; `room` is how many
    groups each site has memory for.
    """

    operator: Placeable
    sites: tuple[int, ...]
    number: int = 0
    merging: tuple[int, ...] = ()
    room: int = 1

    @property
    def shape(self) -> PartialShape:
        """How the partials of a Fold are made."""
        fold = self.operator
        return PartialShape(self.number, self.sites, len(fold.keys), fold.kinds, fold.slices)


@dataclass(frozen=True, slots=True)
class Placement:
    """Everything that runs inside the network."""

    tree: RoutingTree
    placed: tuple[PlacedOperator, ...]
    unreached: tuple[int, ...] = field(default=())  # sites that something should run on, and no way leads from

    @property
    def folds(self) -> tuple[PlacedOperator, ...]:
        return tuple(placed for placed in self.placed if isinstance(placed.operator, Fold))

    @property
    def shapes(self) -> dict[int, PartialShape]:
        """By their number in frames, how partials are made."""
        return {placed.number: placed.shape for placed in self.folds}


def conditions(operator: Placeable) -> tuple[MoteExpression, ...]:
    """All that must be true of a reading, or a pair of them, for an operator to take it: selections and joins commute."""
    predicates = [node.predicate for node in walk(operator) if isinstance(node, MoteSelect | SiteJoin)]
    terms = [term for predicate in predicates for term in split_conjuncts(predicate)]
    return tuple(dict.fromkeys(terms))


def is_about_site(term: MoteExpression) -> bool:
    """Whether a condition is about the number of the site alone, so that it is known before anything is measured."""
    parts = list(walk_expression(term))
    return any(isinstance(p, SiteNumber) for p in parts) and not any(isinstance(p, SensorValue) for p in parts)


def select_sites(operator: Placeable, sites: Iterable[int]) -> tuple[int, ...]:
    """The sites that an operator runs at: those that its conditions about the site do not exclude."""
    terms = [term for term in conditions(operator) if is_about_site(term)]
    return tuple(site for site in sites if all(evaluate_at_site(term, site) == 1 for term in terms))


def find_required_sites(operators: Iterable[Placeable], sites: Mapping[str, Collection[int]]) -> dict[str, set[int]]:
    """By extent, of which of its sites operators want readings.

    What one extent's conditions exclude is still due of another (SEMANTICS 12.3), so what reads several wants all.
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
    """By extent, and by each of its attributes, which of its sites send it; as `find_required_sites`."""
    found: dict[str, dict[str, set[int]]] = {}
    for operator in operators:
        several, name = len(extents_of(operator)) > 1, operator.extent
        senders = sites[name] if several else select_sites(operator, sites[name])
        for attribute in operator.sent:
            found.setdefault(name, {}).setdefault(attribute, set()).update(senders)
    return found


def extents_of(operator: Placeable) -> tuple[str, ...]:
    """The extents it reads, each once."""
    return tuple(dict.fromkeys(node.extent for node in walk(operator) if isinstance(node, Acquire)))


def find_reported_ticks(placed: Iterable[PlacedOperator], extent: str, ticks: np.ndarray) -> np.ndarray:
    """At which ticks anybody is told of readings of an extent, if only that they were filtered: of a void there is no word."""
    found = np.zeros(len(ticks), bool)
    for operator in {each.operator for each in placed if extent in extents_of(each.operator)}:
        told = ticks % find_acquires(operator)[extent].interval == 0
        if isinstance(operator, Fold) and operator.slices.gap_edge is not None:
            told &= operator.slices.is_in_windows(operator.slices.number(ticks))
        found |= told
    return found


def place_at_all_sites(operators: Iterable[Deliver], sites: dict[str, tuple[int, ...]]) -> tuple[PlacedOperator, ...]:
    """Nothing but readings, from every site of their extents that may have any to send."""
    return tuple(
        PlacedOperator(operator, select_sites(operator, sites[operator.extent]))
        for operator in dict.fromkeys(operators)
    )
