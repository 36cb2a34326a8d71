"""RoundPattern: in which rounds motes have slots. In the others the radio sleeps all round."""

from dataclasses import dataclass
from math import gcd, lcm


@dataclass(frozen=True, slots=True)
class RoundPattern:
    """Data is due in the rounds with a number of n * `every` + `phase`.

    In one of `poll_every` rounds a mote also has a slot to poll its parent, one round later than its parent does; never
    if that is 0.
    """

    every: int = 1
    phase: int = 0
    poll_every: int = 0

    def poll_phase(self, hops: int) -> int:
        """Return the first round in which motes `hops` away from their gateway poll."""
        return hops % self.poll_every if self.poll_every else 0

    def slot_share(self, poll_phase: int) -> float:
        """Return the share of the rounds with a slot for motes of that poll phase: data is due, or they poll."""
        return 1 / self.every + (1 / self.poll_every if self.poll_every else 0.0) - self.overlap_share(poll_phase)

    def overlap_share(self, poll_phase: int) -> float:
        """Return the share of the rounds in which data is due and motes of that poll phase poll."""
        if not self.poll_every or (self.phase - poll_phase) % gcd(self.every, self.poll_every):
            return 0.0
        return 1 / lcm(self.every, self.poll_every)


EVERY_ROUND = RoundPattern()
"""Data is due in every round, and no mote polls."""
