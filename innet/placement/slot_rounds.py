"""Rhythm: for how long a site that is well says nothing of an operator, at most, and in which rounds motes have slots."""

from collections.abc import Iterator
from math import gcd

from acquisition.payload import MAX_FILTER_REPORT_INTERVAL
from innet.operators.acquire import find_acquires
from innet.operators.fold import Fold
from innet.placement.load_model import Round, bound_groups, sites_below
from innet.placement.placement import Placeable, PlacedOperator, Placement, conditions
from innet.placement.round_pattern import RoundPattern
from innet.routing.tree import RoutingTree

POLL_EPOCHS = 5
"""After so many epochs a mote that has had nothing to say in its slots asks whether something waits for it."""


def longest_pause(operator: Placeable) -> int:
    """Ticks from one frame to the next: readings go at each epoch, reports of filtered ones and partials less often."""
    interval = find_acquires(operator)[operator.extent].interval
    if isinstance(operator, Fold):
        return operator.slices.longest_pause(interval)
    return interval * (MAX_FILTER_REPORT_INTERVAL if conditions(operator) else 1)


def find_slot_rounds(placement: Placement, round: Round) -> RoundPattern:
    """In which rounds of that length something of a placement is due, so that there are slots; with turns besides.

    Where all is folded that is in those in which slices are over.
    """
    ends = [end for each in placement.placed for end in _ends(each, placement.tree, round)]
    if not ends:
        return RoundPattern(asks=max(1, POLL_EPOCHS // round.epochs))
    (_, first), *_ = ends
    every = gcd(*(period for period, _ in ends), *(number - first for _, number in ends))
    return RoundPattern(every, first % every, max(1, POLL_EPOCHS // round.epochs))


def _ends(placed: PlacedOperator, tree: RoutingTree, round: Round) -> Iterator[tuple[int, int]]:
    """(after how many rounds it comes again, the number of one) in which something of an operator is due.

    That is each round where it delivers readings, or may have to send a partial early for want of room, and where slices end
    at any time.
    """
    fold = placed.operator
    if not isinstance(fold, Fold) or fold.slices.period % round.ticks:
        yield 1, 0
        return
    most = max(map(len, sites_below(tree, placed.sites).values()), default=0)
    if placed.room < 2 * bound_groups(placed, most):  # of one slice that is over, and of the next one
        yield 1, 0
    else:
        slices = fold.slices
        for edge in {slices.edge, slices.other}:
            if slices.gap_edge in (None, edge):  # a slice in windows ends where the gap begins
                yield slices.period // round.ticks, -(-edge // round.ticks) - 1
