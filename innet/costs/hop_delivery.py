"""Handover: one frame from a mote to its neighbour, tried until it is acknowledged or too often: what is to be expected.

An attempt succeeds where the frame arrives (with probability `there`) and its acknowledgement does (`back`). After at
most `limit` attempts s = there * back:

    attempts      (1 - (1 - s)^limit) / s     each attempt is made where all before it were without acknowledgement
    copies        attempts * there            each that arrives is acknowledged, also the second of the same frame
    delivered     1 - (1 - there)^limit       it is lost where no attempt arrived; then all of them were made
    acknowledged  1 - (1 - s)^limit
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HopDelivery:
    """`attempts` and `copies` are means, `delivered` and `acknowledged` probabilities."""

    attempts: float
    copies: float
    delivered: float
    acknowledged: float


def expect_delivery(there: float, back: float, limit: int) -> HopDelivery:
    """What is to be expected of one frame over a link with these ratios."""
    both = there * back
    acknowledged = 1 - (1 - both) ** limit
    # Where a success is so rare that rounding would eat it, every attempt is made.
    attempts = acknowledged / both if both > 1e-9 else float(limit)
    return HopDelivery(attempts, attempts * there, 1 - (1 - there) ** limit, acknowledged)
