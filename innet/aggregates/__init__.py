"""Aggregates: what becomes of the values of a group, the same on motes and at the base (SEMANTICS 5.5, 5.6, 10.5).

`make` gives the object for an aggregate of the language; `innet.aggregates.protocol` says what can be asked of it.
"""

from innet.aggregates.count import Count
from innet.aggregates.extremes import Max, Min
from innet.aggregates.first_last import First, Last
from innet.aggregates.holistic import CountDistinct, Quantile
from innet.aggregates.protocol import MergeableAggregate
from innet.aggregates.sums import Avg, Sum
from innet.aggregates.variance import Stdev, Variance

MERGEABLE = {
    "COUNT": Count, "SUM": Sum, "AVG": Avg, "MIN": Min, "MAX": Max, "VARIANCE": Variance, "STDEV": Stdev,
    "FIRST": First, "LAST": Last,
}  # fmt: skip
HOLISTIC = ("MEDIAN", "QUANTILE")
NUMERIC = ("SUM", "AVG", "VARIANCE", "STDEV", *HOLISTIC)


def create_aggregate(
    name: str, type: str, *, distinct: bool = False, share: float | None = None, scale: int | None = None
) -> MergeableAggregate:
    """The aggregate `name` over values of `type`: integer, time, float, string, or scaled.

    Scaled values are whole multiples of 10^-`scale`. `distinct` is for COUNT, `share` is the q of QUANTILE.
    """
    if (type == "scaled") != (scale is not None):
        raise ValueError("a scale belongs to the type scaled, and to no other")
    if type == "string" and name in NUMERIC:
        raise ValueError(f"{name} of strings")
    if distinct and name != "COUNT":
        raise ValueError(f"{name} has no DISTINCT")
    if (share is None) == (name == "QUANTILE"):
        raise ValueError("a share belongs to QUANTILE, and to no other")
    type = "integer" if type == "time" else type
    if distinct:
        return CountDistinct(type, scale)
    if name in HOLISTIC:
        return Quantile(name, type, scale, 0.5 if share is None else share)
    return MERGEABLE[name](type, scale)
