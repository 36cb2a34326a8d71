"""The source of an aggregation that motes compute: the fold whose partials replace readings."""

from dataclasses import dataclass

from basestation.algebra.slice_aggregation import SliceAggregation
from innet.operators.fold import Fold


@dataclass(frozen=True, slots=True)
class PartialSource:
    """`fold` has the states that the aggregation needs; the running fold with this `number` has at least these.

    `sources` has for each aggregate the position of its state in the running fold; None: the number of readings.
    """

    node: SliceAggregation
    fold: Fold
    number: int
    sources: tuple[int | None, ...]
