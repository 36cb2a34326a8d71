"""Rhythm: for how long a site that is well says nothing of an operator, at most."""

from acquisition.payload import REPORTED_AFTER
from innet.operators.acquire import acquired
from innet.operators.fold import Fold
from innet.placement.placement import Placeable, conditions


def longest_pause(operator: Placeable) -> int:
    """Ticks from one frame to the next: readings go at each epoch, reports of filtered ones and partials less often."""
    interval = acquired(operator)[operator.extent].interval
    if isinstance(operator, Fold):
        return operator.slices.longest_pause(interval)
    return interval * (REPORTED_AFTER if conditions(operator) else 1)
