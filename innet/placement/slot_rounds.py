"""Slot rounds: in which rounds motes have slots, and the longest time between two frames of a working site."""

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
"""A mote that had nothing to send polls its parent after this many epochs."""


def longest_pause(operator: Placeable) -> int:
    """Return the largest number of ticks between two frames of a site for an operator.

    Readings are sent every epoch, reports of filtered readings and partials less often.
    """
    interval = find_acquires(operator)[operator.extent].interval
    if isinstance(operator, Fold):
        return operator.slices.longest_pause(interval)
    return interval * (MAX_FILTER_REPORT_INTERVAL if conditions(operator) else 1)


def find_slot_rounds(placement: Placement, round: Round) -> RoundPattern:
    """Return the rounds, of that length, in which data of a placement is due, and in which motes poll.

    If every operator is a fold, data is due only in the rounds in which a slice ends.
    """
    ends = [end for placed in placement.placed for end in _ends(placed, placement.tree, round)]
    if not ends:
        return RoundPattern(poll_every=max(1, POLL_EPOCHS // round.epochs))
    (_, first), *_ = ends
    every = gcd(*(period for period, _ in ends), *(number - first for _, number in ends))
    return RoundPattern(every, first % every, max(1, POLL_EPOCHS // round.epochs))


def _ends(placed: PlacedOperator, tree: RoutingTree, round: Round) -> Iterator[tuple[int, int]]:
    """Yield (period, number of one round) of the rounds in which data of an operator is due.

    Data is due in every round if the operator delivers readings, if slices end within rounds, or if a mote may have to
    send a partial early for lack of room.
    """
    fold = placed.operator
    if not isinstance(fold, Fold) or fold.slices.period % round.ticks:
        yield 1, 0
        return
    most = max(map(len, sites_below(tree, placed.sites).values()), default=0)
    if placed.room < 2 * bound_groups(placed, most):  # of one slice that ended, and of the next
        yield 1, 0
    else:
        slices = fold.slices
        for edge in {slices.edge, slices.other}:
            if slices.gap_edge in (None, edge):  # a slice in windows ends where the gap begins
                yield slices.period // round.ticks, -(-edge // round.ticks) - 1
