"""Hop delivery: the expected course of one frame over one hop, retransmitted until it is acknowledged (ARQ).

An attempt succeeds if the frame arrives (probability `there`) and its acknowledgement does (`back`). A frame has at most
`limit` attempts. With s = there * back:

    attempts      (1 - (1 - s)^limit) / s     an attempt is made if no attempt before it was acknowledged
    copies        attempts * there            each copy that arrives is acknowledged, duplicates too
    delivered     1 - (1 - there)^limit       a frame is lost if no attempt arrives; then all attempts were made
    acknowledged  1 - (1 - s)^limit
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HopDelivery:
    """Expectations for one frame: `attempts` and `copies` are means, `delivered` and `acknowledged` probabilities."""

    attempts: float
    copies: float
    delivered: float
    acknowledged: float


def expect_delivery(there: float, back: float, limit: int) -> HopDelivery:
    """Return the expectations for one frame over a link with these ratios."""
    both = there * back
    acknowledged = 1 - (1 - both) ** limit
    # If success is so rare that rounding would lose it, every attempt is made.
    attempts = acknowledged / both if both > 1e-9 else float(limit)
    return HopDelivery(attempts, attempts * there, 1 - (1 - there) ** limit, acknowledged)
