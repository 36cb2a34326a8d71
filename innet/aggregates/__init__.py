"""Aggregates over the values of a group, the same on motes and at the base station (semantics 5.5, 5.6, 10.5).

`create_aggregate` returns the object for an aggregate of the language; `innet.aggregates.protocol` declares its methods.
"""

from innet.aggregates.count import Count
from innet.aggregates.extremes import Max, Min
from innet.aggregates.first_last import First, Last
from innet.aggregates.holistic import CountDistinct, Quantile
from innet.aggregates.protocol import EvaluableAggregate, StateField
from innet.aggregates.state import StateAggregate, as_mergeable
from innet.aggregates.sums import Avg, Sum
from innet.aggregates.variance import Stdev, Variance

MERGEABLE: dict[str, type[Count | Sum | Avg | Min | Max | Variance | First | Last]] = {
    "COUNT": Count, "SUM": Sum, "AVG": Avg, "MIN": Min, "MAX": Max, "VARIANCE": Variance, "STDEV": Stdev,
    "FIRST": First, "LAST": Last,
}  # fmt: skip
"""The aggregates with states that merge, by their name in the language."""
HOLISTIC = ("MEDIAN", "QUANTILE")
"""The aggregates that need all rows of a group at once; COUNT(DISTINCT) is another."""
NUMERIC = ("SUM", "AVG", "VARIANCE", "STDEV", *HOLISTIC)
"""The aggregates that strings do not have."""


def create_aggregate(
    name: str, type: str, *, distinct: bool = False, share: float | None = None, scale: int | None = None
) -> EvaluableAggregate:
    """Return the aggregate `name` over values of `type`: integer, time, float, string, or scaled.

    Scaled values are multiples of 10^-`scale`. `distinct` is for COUNT, `share` is the q of QUANTILE. ValueError for a
    combination that the language does not have.
    """
    if (type == "scaled") != (scale is not None):
        raise ValueError(f"expected a scale for the type scaled and no other, found type {type} and scale {scale}")
    if type == "string" and name in NUMERIC:
        raise ValueError(f"{name} needs numbers, found strings")
    if distinct and name != "COUNT":
        raise ValueError(f"{name} has no DISTINCT; COUNT has")
    if (share is None) == (name == "QUANTILE"):
        raise ValueError(f"expected a share for QUANTILE and no other aggregate, found {name} with share {share}")
    type = "integer" if type == "time" else type
    if distinct:
        return CountDistinct(type, scale)
    if name in HOLISTIC:
        return Quantile(name, type, scale, 0.5 if share is None else share)
    return MERGEABLE[name](type, scale)


def create_mote_aggregate(kind: str) -> StateAggregate:
    """Return the aggregate `kind` over integers, as motes compute it. TypeError if its states do not merge."""
    return as_mergeable(create_aggregate(kind, "integer"))


def mote_layout(kind: str) -> tuple[StateField, ...]:
    """Return the fields of the state that motes keep for the aggregate `kind` of integers. ValueError if they keep none."""
    layout = create_aggregate(kind, "integer").layout()
    if layout is None:
        raise ValueError(f"motes keep no state of {kind}")
    return layout
