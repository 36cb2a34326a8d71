"""Propagation: link qualities by position, for networks without measurements (log-distance path loss with shadowing).

The received power falls with the logarithm of the distance. Shadowing changes each pair of positions, equally in both
directions; noise and antennas change each direction. The resulting level gives the share of frames that arrive.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations
from math import dist, exp, log10
from statistics import NormalDist

_NORMAL = NormalDist()
_FAINTEST = 0.002
"""Links that deliver a smaller share of frames do not exist."""


@dataclass(frozen=True, slots=True)
class PropagationModel:
    """The parameters of the model; levels in dB or dBm."""

    seed: int
    power: float = 0.0  # of the transmitter
    loss: float = 40.0  # over the first metre
    exponent: float = 3.0  # a tenfold distance loses ten times this
    shadowing: float = 4.0  # standard deviation between pairs of positions
    asymmetry: float = 2.0  # standard deviation between the directions of a pair
    half: float = -88.0  # the level at which half of the frames arrive
    steepness: float = 2.0  # the dB that change the odds by a factor of e
    best: float = 1.0  # the share that arrives next to the sender


def predict_link_ratios(
    positions: Mapping[int, tuple[float, ...]], radio: PropagationModel
) -> dict[tuple[int, int], float]:
    """Return the delivery ratio by (sender, receiver), from positions in metres. Equal seeds give equal links."""
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
    """Return a normally distributed number that depends on `what` only."""
    digest = blake2b(repr(what).encode(), digest_size=8).digest()
    return _NORMAL.inv_cdf((int.from_bytes(digest, "little") + 0.5) / 2**64)
