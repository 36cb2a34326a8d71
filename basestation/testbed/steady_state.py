"""The steady state of a simulated network: the energy that motes use from the last change of what they run on.

Motes listen without a pause until they have an agenda, so their set-up says nothing about how long their batteries last.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, nan

from basestation.controller.agenda import round_ticks
from basestation.controller.lifetime import lifetime_days
from basestation.controller.network_plan import INFEASIBLE, PlanCache
from basestation.controller.world import World
from basestation.testbed.base_testbed import BaseTestbed

DAY_MS = 86_400_000
LEAST_ROUNDS = 20
"""A shorter steady state says nothing about a lifetime: a round in which frames are lost is as likely as not missing."""


@dataclass(frozen=True, slots=True)
class SteadyState:
    """From `begin_ms` to `end_ms` after the scenario begins, in `rounds`; joules by mote before it, and in it."""

    begin_ms: int
    end_ms: int
    rounds: int
    is_duty_cycled: bool
    setup: Mapping[int, float]
    used: Mapping[int, float]

    @property
    def is_long_enough(self) -> bool:
        """Whether lifetimes can be extrapolated. A radio that is always on uses the same in any round."""
        return self.rounds >= (LEAST_ROUNDS if self.is_duty_cycled else 1)

    def lifetime_days(self, mote: int, battery: float) -> float:
        """When a battery of so many joules is empty, its set-up included; nan if the steady state is too short."""
        if battery == inf:
            return inf
        if not self.is_long_enough:
            return nan
        used = self.used[mote]
        left_ms = (battery - self.setup[mote]) / used * (self.end_ms - self.begin_ms) if used else inf
        return (self.begin_ms + left_ms) / DAY_MS


@dataclass(frozen=True, slots=True)
class _Snapshot:
    ms: int
    round_: int
    spent: Mapping[int, float]


class SteadyStateMeter:
    """Reads the batteries of a testbed whenever a round is over."""

    def __init__(self, bed: BaseTestbed) -> None:
        self._bed = bed
        self._begin = self._latest = _Snapshot(0, self._round(), bed.spent())

    def read(self) -> None:
        """Read the batteries if a round is over since the last time; begin anew if motes were configured."""
        number = self._round()
        if number == self._latest.round_:
            return
        self._latest = _Snapshot(self._bed.elapsed_ms, number, self._bed.spent())
        if self._begin.ms < self._bed.configured_ms:
            self._begin = self._latest

    def finish(self) -> SteadyState:
        """The steady state so far."""
        begin, latest = self._begin, self._latest
        if begin.ms < self._bed.configured_ms:  # motes were configured, or will change over, after the last round
            begin = latest
        used = {mote: joules - begin.spent[mote] for mote, joules in latest.spent.items()}
        rounds = (latest.ms - begin.ms) // self._round_ms()
        return SteadyState(begin.ms, latest.ms, rounds, self._bed.station.world.agenda is not None, begin.spent, used)

    def _round_ms(self) -> int:
        return round_ticks(self._bed.station.world) * self._bed.catalog.tick_ms

    def _round(self) -> int:
        return (self._bed.scenario.begin_ms + self._bed.elapsed_ms) // self._round_ms()


def predict_lifetime(world: World, now: int) -> float:
    """The days until the first battery is empty as the station predicts it; nan if motes have no agenda to predict."""
    if world.agenda is None:
        return nan
    try:
        return lifetime_days(PlanCache(now).plan(world).prediction)
    except INFEASIBLE:
        return nan
