"""Agenda: the TDMA schedule. When each site senses, computes, receives, sends and sleeps; children send before parents.

Times are milliseconds from the beginning of a round. Rounds follow each other without a gap, from tick 0 on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from innet.placement.round_pattern import EVERY_ROUND, RoundPattern

# The limits of the encoding that motes receive.
MAX_ROUND_MS, MAX_SLOT_MS = 0xFFFF_FFFF, 0xFFFF
MAX_FIRST_ROUND = 0xFFFF_FFFF
MAX_AGENDA_SLOTS = 320
"""Slots of one mote: its own and those of its children."""


class Activity(Enum):
    """The activity of a mote in a slot."""

    SENSE = "sense"
    COMPUTE = "compute"
    RECEIVE = "receive"
    SEND = "send"


@dataclass(frozen=True, slots=True)
class Slot:
    """A span of time in a round. `peer` is the child to receive from, or the parent to send to. Between slots a mote sleeps."""

    start_ms: int
    length_ms: int
    activity: Activity
    peer: int | None = None

    @property
    def end_ms(self) -> int:
        """The end, from the beginning of the round."""
        return self.start_ms + self.length_ms


@dataclass(frozen=True, slots=True)
class SiteAgenda:
    """The slots of one site, in order of time; they do not overlap."""

    site: int
    parent: int
    slots: tuple[Slot, ...]

    def of(self, activity: Activity) -> tuple[Slot, ...]:
        """Return the slots of one activity."""
        return tuple(slot for slot in self.slots if slot.activity is activity)

    @property
    def awake_ms(self) -> int:
        """Milliseconds in all slots of a round."""
        return sum(slot.length_ms for slot in self.slots)


@dataclass(frozen=True, slots=True)
class Agenda:
    """The agenda of a network, from the round number `first` on.

    Samples of a round are sent together at its end. `first` lies in the future when motes receive the agenda, so that all
    change to it in the same round. `rounds` says in which rounds there are slots.
    """

    period: int  # ticks in a round
    tick_ms: int
    sites: Mapping[int, SiteAgenda]
    first: int = 0
    rounds: RoundPattern = EVERY_ROUND

    @property
    def begin(self) -> int:
        """The first tick of the agenda."""
        return self.first * self.period

    @property
    def period_ms(self) -> int:
        """Milliseconds in a round."""
        return self.period * self.tick_ms

    def poll_phase(self, site: int) -> int:
        """Return the first round in which a site polls its parent."""
        hops = 0
        while site in self.sites:
            site, hops = self.sites[site].parent, hops + 1
        return self.rounds.poll_phase(hops)

    @property
    def repeat_ms(self) -> int:
        """Milliseconds after which the slots on the air may repeat in the same round; 0 if no mote sends.

        All first slots, and all sampling of the round, have ended by then.
        """
        ends = [slot.end_ms for site in self.sites.values() for slot in site.slots]
        begins = [slot.start_ms for site in self.sites.values() for slot in site.of(Activity.SEND)]
        return max(ends) - min(begins) if begins else 0

    @property
    def latest_ms(self) -> int:
        """Milliseconds from the first sample of a round to the arrival of its last frame."""
        return max((slot.end_ms for site in self.sites.values() for slot in site.of(Activity.SEND)), default=0)
