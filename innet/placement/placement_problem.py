"""Placement problem: the network, the extents and the statistics for which a placement is chosen."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from acquisition.schedule import Schedule
from innet.costs.energy_model import NetworkModel
from innet.placement.load_memo import LoadMemo
from innet.placement.load_model import FrameSizes, Round
from innet.placement.statistics import GUESS, Statistics


@dataclass(frozen=True, slots=True)
class PlacementProblem:
    """The network, the extents and the statistics for which a placement is chosen."""

    network: NetworkModel
    sites: Mapping[str, tuple[int, ...]]  # by extent
    schedules: Mapping[int, Schedule]  # by site
    sizes: FrameSizes
    round: Round  # the longest that a placement may have
    tick_ms: int
    samples: Mapping[tuple[int, str], tuple[float, float]]  # by (site, attribute): (ms, mA) of one sample
    statistics: Statistics = GUESS
    memo: LoadMemo = field(default_factory=LoadMemo, compare=False, repr=False)
