"""Rounds: in which of them motes have slots. In the others all sleep, but for sampling."""

from dataclasses import dataclass
from math import gcd, lcm


@dataclass(frozen=True, slots=True)
class RoundPattern:
    """Something is due in rounds whose number is `phase` more than a multiple of `every`. In one of `asks` a mote has its turn,
    a round later than its parent; never where that is 0."""

    every: int = 1
    phase: int = 0
    asks: int = 0

    def turn(self, hops: int) -> int:
        """The number of the first round in which those so far from their gateway have their turn."""
        return hops % self.asks if self.asks else 0

    def slot_share(self, turn: int) -> float:
        """The share of the rounds in which something is due or those of that turn have theirs."""
        return 1 / self.every + (1 / self.asks if self.asks else 0.0) - self.both(turn)

    def both(self, turn: int) -> float:
        """The share of the rounds in which something is due and those of that turn have theirs."""
        if not self.asks or (self.phase - turn) % gcd(self.every, self.asks):
            return 0.0
        return 1 / lcm(self.every, self.asks)


EVERY_ROUND = RoundPattern()
"""Something is due in each, and nobody asks."""
