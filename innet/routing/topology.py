"""Topology: the links that motes measured, as they reported them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

QUALITY_MAX = 255
MAX_NEIGHBOURS = 27
"""So many fit into a report, the best ones: who is not in one that is shorter is not heard."""
REPORTED_QUALITY_CHANGE = 25
"""By how much a quality has to change before it is told."""


@dataclass(frozen=True, slots=True)
class NeighbourLink:
    """One neighbour as a mote hears it; `quality` is the share of its frames that arrive, 0 to 255."""

    neighbour: int
    quality: int


@dataclass(frozen=True, slots=True)
class LinksReport:
    """All neighbours that one mote hears now."""

    mote: int
    heard: tuple[NeighbourLink, ...]
    number: tuple[int, int] = (0, 0)
    """(boot, seq) of its frame: what has a higher one was said later."""

    def differs(self, told: "LinksReport") -> bool:
        """Whether somebody came or went since that was told, or is heard noticeably better or worse."""
        now, before = ({h.neighbour: h.quality for h in report.heard} for report in (self, told))
        return now.keys() != before.keys() or any(abs(now[n] - before[n]) >= REPORTED_QUALITY_CHANGE for n in now)


@dataclass(frozen=True, slots=True)
class Topology:
    """`heard[receiver][sender]` is a quality. Replaced, never changed: `with_reports` makes the next one."""

    heard: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    numbers: Mapping[int, tuple[int, int]] = field(default_factory=dict, compare=False)

    def with_reports(self, reports: Iterable[LinksReport]) -> "Topology":
        """A report replaces the earlier one of its mote, whichever comes last; the same topology where nothing is new."""
        told, numbers = {}, dict(self.numbers)
        for report in reports:
            if report.number >= numbers.get(report.mote, (0, 0)):
                told[report.mote] = {h.neighbour: h.quality for h in report.heard}
                numbers[report.mote] = report.number
        changed = any(self.heard.get(mote) != links for mote, links in told.items())
        return Topology({**self.heard, **told}, numbers) if changed or numbers != self.numbers else self

    @classmethod
    def of_ratios(cls, ratios: Mapping[tuple[int, int], float]) -> "Topology":
        """From the share of frames that arrive, by (sender, receiver); a direction that is not named is deaf."""
        heard: dict[int, dict[int, int]] = {}
        for (sender, receiver), ratio in sorted(ratios.items()):
            heard.setdefault(receiver, {})[sender] = round(ratio * QUALITY_MAX)
            heard.setdefault(sender, {}).setdefault(receiver, 0)
        return cls(heard)

    @property
    def motes(self) -> frozenset[int]:
        """Everybody who reported or was heard."""
        return frozenset(self.heard).union(*self.heard.values())

    @property
    def neighbours(self) -> dict[int, list[int]]:
        """Everybody, and with whom a link is known in one direction or both; by number."""
        found: dict[int, set[int]] = {mote: set() for mote in self.motes}
        for receiver, links in self.heard.items():
            found[receiver].update(links)
            for sender in links:
                found[sender].add(receiver)
        return {mote: sorted(others) for mote, others in found.items()}

    @property
    def audible(self) -> dict[int, frozenset[int]]:
        """By receiver, whoever may be noticed there, be it ever so faintly.

        A full report names the best only, and whoever is left out disturbs as well. It is taken to be anybody within two hops.
        """
        named = {
            at: frozenset(other for other, quality in links.items() if quality) for at, links in self.heard.items()
        }
        full = [at for at, others in named.items() if len(others) == MAX_NEIGHBOURS]
        if not full:
            return named
        near = {mote: frozenset(others) for mote, others in self.neighbours.items()}
        return named | {at: near[at].union(*(near[other] for other in near[at])) - {at} for at in full}

    def quality(self, sender: int, receiver: int) -> int:
        """How well one is heard by the other. A direction of which nobody could say is taken to be as good as the other."""
        told = self.heard.get(receiver)
        if told is not None and (sender in told or len(told) < MAX_NEIGHBOURS):
            return told.get(sender, 0)
        return self.heard.get(sender, {}).get(receiver, 0)

    def ratio(self, sender: int, receiver: int) -> float:
        """The share of frames that arrive."""
        return self.quality(sender, receiver) / QUALITY_MAX

    def cost(self, sender: int, receiver: int) -> float:
        """Expected transmissions until a frame and its acknowledgement come through; infinite where one never does."""
        both = self.quality(sender, receiver) * self.quality(receiver, sender)
        return QUALITY_MAX**2 / both if both else float("inf")
