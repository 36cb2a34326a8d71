"""Agenda: when each site senses, computes, receives, sends and sleeps, along the tree, so that children send before parents.

Times are milliseconds from the beginning of a period; periods follow each other without a gap from tick 0 on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from innet.placement.round_pattern import EVERY_ROUND, RoundPattern

MAX_ROUND_MS, MAX_SLOT_MS = 0xFFFF_FFFF, 0xFFFF
MAX_FIRST_ROUND = 0xFFFF_FFFF
MAX_AGENDA_SLOTS = 320
"""What motes are told of an agenda has room for: lengths, the number of its first round, a mote's own slot and its children's."""


class Activity(Enum):
    SENSE = "sense"
    COMPUTE = "compute"
    RECEIVE = "receive"
    SEND = "send"


@dataclass(frozen=True, slots=True)
class Slot:
    """`peer` is the child that is listened to, or the parent that is sent to. What no slot covers is sleep."""

    start_ms: int
    length_ms: int
    activity: Activity
    peer: int | None = None

    @property
    def end_ms(self) -> int:
        return self.start_ms + self.length_ms


@dataclass(frozen=True, slots=True)
class SiteAgenda:
    """One site's slots in the order of time; none overlap."""

    site: int
    parent: int
    slots: tuple[Slot, ...]

    def of(self, activity: Activity) -> tuple[Slot, ...]:
        return tuple(slot for slot in self.slots if slot.activity is activity)

    @property
    def awake_ms(self) -> int:
        return sum(slot.length_ms for slot in self.slots)


@dataclass(frozen=True, slots=True)
class Agenda:
    """`period` in ticks: what is sampled within one goes out together, at its end.

    It holds from the round of number `first` on, which is a while after motes are told of it: those that sleep by another one
    change to it in the same moment. `rounds` says in which of them there are slots.
    """

    period: int
    tick_ms: int
    sites: Mapping[int, SiteAgenda]
    first: int = 0
    rounds: RoundPattern = EVERY_ROUND

    @property
    def begin(self) -> int:
        """The tick from which on it holds."""
        return self.first * self.period

    @property
    def period_ms(self) -> int:
        return self.period * self.tick_ms

    def turn(self, site: int) -> int:
        """The number of the first round in which it is a site's turn to ask."""
        hops = 0
        while site in self.sites:
            site, hops = self.sites[site].parent, hops + 1
        return self.rounds.turn(hops)

    @property
    def repeat_ms(self) -> int:
        """So long after the slots on the air the same ones may come again, as often as the round has time for it: all of the
        first ones are over then, and what is sampled in the round is sampled. 0 where nobody sends."""
        ends = [slot.end_ms for site in self.sites.values() for slot in site.slots]
        begins = [slot.start_ms for site in self.sites.values() for slot in site.of(Activity.SEND)]
        return max(ends) - min(begins) if begins else 0

    @property
    def latest_ms(self) -> int:
        """How long after the first sample of a period the last frame of it has arrived."""
        return max((slot.end_ms for site in self.sites.values() for slot in site.of(Activity.SEND)), default=0)
