"""Fed: an aggregation of a query that runs, and the fold whose partials come for it instead of readings."""

from dataclasses import dataclass

from basestation.algebra.slice_aggregation import SliceAggregation
from innet.operators.fold import Fold


@dataclass(frozen=True, slots=True)
class PartialSource:
    """`fold` is what the aggregation asks for, `number` that of the fold which keeps it; there may be more in that.

    `sources` has for each aggregate the place of the state that holds it; None: it is the number of readings.
    """

    node: SliceAggregation
    fold: Fold
    number: int
    sources: tuple[int | None, ...]
