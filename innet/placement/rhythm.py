"""Rhythm: for how long a site that is well says nothing of an operator, at most, and when one that sleeps asks for news."""

from acquisition.payload import REPORTED_AFTER
from innet.operators.acquire import acquired
from innet.operators.fold import Fold
from innet.placement.placement import Placeable, conditions

ASKS = 5
"""After so many epochs a mote that has had nothing to say in its slots asks whether something waits for it."""


def longest_pause(operator: Placeable) -> int:
    """Ticks from one frame to the next: readings go at each epoch, reports of filtered ones and partials less often."""
    interval = acquired(operator)[operator.extent].interval
    if isinstance(operator, Fold):
        return operator.slices.longest_pause(interval)
    return interval * (REPORTED_AFTER if conditions(operator) else 1)


def rounds_to_ask(epochs: int) -> int:
    """From one round in which a mote asks to the next, where rounds have so many epochs."""
    return max(1, ASKS // epochs)
