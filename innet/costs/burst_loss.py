"""Climate: how often and how bad times are in which links are worse, and what is then to be expected of frames over one hop.

Bad times last for whole epochs. All attempts in a slot meet the same ones, so what is to be expected is the mean over good
times and bad, and not what a link of the mean ratio would do. And a slot is made for good times: in bad ones it ends before
everything has been tried. Of frames that are handed over one after the other each has at most `limit` attempts, and no more
than those before it have left; so frame k is a hand-over with as many attempts as are left with some probability:

    P(frame k begins after u attempts) = sum over m of P(frame k - 1 began after u - m) * P(a frame takes m attempts)
"""

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from math import ceil

import numpy as np

from innet.costs.hop_delivery import HopDelivery, expect_delivery


@dataclass(frozen=True, slots=True)
class BurstLoss:
    """Of all epochs the share `bad` is a bad time of a link, each direction by itself: only the share `left` of its frames
    comes through then."""

    bad: float = 0.0
    left: float = 1.0

    def times(self, there: float, back: float) -> Iterator[tuple[float, float, float]]:
        """What a link of these ratios is in times that are bad in one direction or in both, and how likely each is."""
        ways = (1 - self.bad, 1.0), (self.bad, self.left)
        return ((p * q, there * a, back * b) for p, a in ways for q, b in ways if (a, b) != (1.0, 1.0) and p * q)


NO_BURSTS = BurstLoss()


def expect_with_bursts(
    climate: BurstLoss, there: float, back: float, limit: int, frames: float, room: float
) -> HopDelivery:
    """What is to be expected of each of so many frames in a slot with room for so many attempts, on average."""
    worse = [(chance, expect_in_slot(*ratios, limit, frames, room)) for chance, *ratios in climate.times(there, back)]
    good = expect_delivery(there, back, limit)
    if not worse:
        return good
    parts = [(1 - sum(chance for chance, _ in worse), good), *worse]
    return HopDelivery(*sum(chance * np.array(astuple(each)) for chance, each in parts).tolist())


def expect_in_slot(there: float, back: float, limit: int, frames: float, room: float) -> HopDelivery:
    """What is to be expected of each of so many frames on average, where there is room for so many attempts in all."""
    if not frames or room >= ceil(frames) * limit:
        return expect_delivery(there, back, limit)
    room = int(room)
    by_limit = np.array([astuple(expect_delivery(there, back, most)) for most in range(limit + 1)])
    expected = by_limit[np.minimum(np.arange(room, -1, -1), limit)]  # by how many attempts were made before
    tried_on = (1 - there * back) ** np.arange(limit)
    takes = np.append(0.0, tried_on - np.append(tried_on[1:], 0.0))
    begins = np.zeros(room + 1)
    begins[0] = 1.0
    found = np.zeros(expected.shape[1])
    for before in range(ceil(frames)):
        found += min(1.0, frames - before) * (begins @ expected)
        begins = np.convolve(begins, takes)[: room + 1]
    return HopDelivery(*(found / frames).tolist())
