"""Propagation: how well motes hear each other by where they stand, for networks that nobody has measured yet.

Power falls with the logarithm of the distance; walls and people take something from each pair of places (the same in
both directions), noise and antennas something from each direction; what is left decides which share of frames arrives.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations
from math import dist, exp, log10
from statistics import NormalDist

_NORMAL = NormalDist()
_FAINTEST = 0.002
"""Links that lose more than all but this share are none."""


@dataclass(frozen=True, slots=True)
class PropagationModel:
    """The figures of the model; levels in dB or dBm."""

    seed: int
    power: float = 0.0  # what is sent
    loss: float = 40.0  # what the first metre takes
    exponent: float = 3.0  # ten times this is what each tenfold of the distance takes
    shadowing: float = 4.0  # spread between pairs of places
    asymmetry: float = 2.0  # spread between the directions of a pair
    half: float = -88.0  # the level at which half of the frames arrive
    steepness: float = 2.0  # how many dB change the odds by a factor of e
    best: float = 1.0  # the share that arrives next to the sender


def predict_link_ratios(
    positions: Mapping[int, tuple[float, ...]], radio: PropagationModel
) -> dict[tuple[int, int], float]:
    """The share of frames that arrive, by (sender, receiver). The same seed gives the same links."""
    links = {}
    for pair in combinations(sorted(positions), 2):
        metres = max(1.0, dist(*(positions[end] for end in pair)))
        between = radio.power - radio.loss - 10 * radio.exponent * log10(metres)
        between += radio.shadowing * _drawn(radio.seed, *pair)
        for sender, receiver in (pair, pair[::-1]):
            level = between + radio.asymmetry * _drawn(radio.seed, sender, receiver, "direction")
            ratio = round(radio.best / (1 + exp((radio.half - level) / radio.steepness)), 4)
            if ratio >= _FAINTEST:
                links[sender, receiver] = ratio
    return dict(sorted(links.items()))


def _drawn(*what: object) -> float:
    """A number from a normal distribution that depends on nothing but what it is drawn for."""
    digest = blake2b(repr(what).encode(), digest_size=8).digest()
    return _NORMAL.inv_cdf((int.from_bytes(digest, "little") + 0.5) / 2**64)
