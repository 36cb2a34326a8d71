"""Burst loss: links with good and bad times (a Gilbert-Elliott channel), and the expected delivery of frames over one hop.

A bad time lasts for whole epochs, so all attempts in a slot meet the same state. The expectation is therefore the mean
over good and bad times, and not the delivery of a link with the mean ratio. A slot is sized for good times: in bad times
it may end before every attempt is made. Frames follow each other; each has at most `limit` attempts, and no more than the
frames before it have left:

    P(frame k begins after u attempts) = sum over m of P(frame k - 1 began after u - m) * P(a frame takes m attempts)
"""

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from math import ceil

import numpy as np

from innet.costs.hop_delivery import HopDelivery, expect_delivery


@dataclass(frozen=True, slots=True)
class BurstLoss:
    """A link has a bad time in the share `bad` of all epochs, each direction independently.

    In a bad time only the share `left` of the frames that otherwise arrive does so.
    """

    bad: float = 0.0
    left: float = 1.0

    def times(self, there: float, back: float) -> Iterator[tuple[float, float, float]]:
        """Yield (probability, ratio there, ratio back) of each state of a link with a bad time in some direction."""
        states = (1 - self.bad, 1.0), (self.bad, self.left)
        return ((p * q, there * a, back * b) for p, a in states for q, b in states if (a, b) != (1.0, 1.0) and p * q)


NO_BURSTS = BurstLoss()


def expect_with_bursts(
    burst_loss: BurstLoss, there: float, back: float, limit: int, frames: float, room: float
) -> HopDelivery:
    """Return the expected delivery of each of `frames` frames in a slot with room for `room` attempts, over all times.

    `there` and `back` are the delivery ratios of frames and of acknowledgements; `limit` is the attempts per frame.
    """
    if not burst_loss.bad:
        return expect_delivery(there, back, limit)
    worse = [(chance, expect_in_slot(a, b, limit, frames, room)) for chance, a, b in burst_loss.times(there, back)]
    good = expect_delivery(there, back, limit)
    if not worse:
        return good
    parts = [(1 - sum(chance for chance, _ in worse), good), *worse]
    weighted = [chance * np.array(astuple(delivery)) for chance, delivery in parts]
    mean: list[float] = sum(weighted, np.zeros(4)).tolist()
    return HopDelivery(*mean)


def expect_in_slot(there: float, back: float, limit: int, frames: float, room: float) -> HopDelivery:
    """Return the mean expected delivery of `frames` frames in a slot with room for `room` attempts."""
    if not frames or room >= ceil(frames) * limit:
        return expect_delivery(there, back, limit)
    room = int(room)
    by_limit = np.array([astuple(expect_delivery(there, back, most)) for most in range(limit + 1)])
    expected = by_limit[np.minimum(np.arange(room, -1, -1), limit)]  # by the number of attempts before
    tried_on = (1 - there * back) ** np.arange(limit)
    takes = np.append(0.0, tried_on - np.append(tried_on[1:], 0.0))
    begins = np.zeros(room + 1)
    begins[0] = 1.0
    found = np.zeros(expected.shape[1])
    for before in range(ceil(frames)):
        found += min(1.0, frames - before) * (begins @ expected)
        begins = np.convolve(begins, takes)[: room + 1]
    return HopDelivery(*(found / frames).tolist())
