"""Topology: the qualities of the links between motes, as they report them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

QUALITY_MAX = 255
"""The quality of a link on which every frame arrives."""
MAX_NEIGHBOURS = 27
"""Neighbours that fit into a report: the best ones. A shorter report names every neighbour in range."""
REPORTED_QUALITY_CHANGE = 25
"""A mote reports its links again when a quality changes by at least this much."""


@dataclass(frozen=True, slots=True)
class NeighbourLink:
    """The link from one neighbour; `quality` is the share of its frames that arrive, 0 to QUALITY_MAX."""

    neighbour: int
    quality: int


@dataclass(frozen=True, slots=True)
class LinksReport:
    """The links from all neighbours that one mote receives."""

    mote: int
    links: tuple[NeighbourLink, ...]
    number: tuple[int, int] = (0, 0)
    """(boot, seq) of its frame; the later report has the higher one."""

    def differs(self, earlier: "LinksReport") -> bool:
        """Whether a neighbour appeared or went since an earlier report, or a quality changed noticeably."""
        now, before = ({link.neighbour: link.quality for link in report.links} for report in (self, earlier))
        return now.keys() != before.keys() or any(abs(now[n] - before[n]) >= REPORTED_QUALITY_CHANGE for n in now)


@dataclass(frozen=True, slots=True)
class Topology:
    """`links[receiver][sender]` is a quality; `numbers` has the number of each mote's last report.

    A topology is immutable: `with_reports` returns the next one.
    """

    links: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    numbers: Mapping[int, tuple[int, int]] = field(default_factory=dict, compare=False)

    def with_reports(self, reports: Iterable[LinksReport]) -> "Topology":
        """Return the topology after `reports`; the same object if they change nothing.

        Of several reports of one mote the one with the highest number counts, in whatever order they arrive.
        """
        reported: dict[int, dict[int, int]] = {}
        numbers = dict(self.numbers)
        for report in reports:
            if report.number >= numbers.get(report.mote, (0, 0)):
                reported[report.mote] = {link.neighbour: link.quality for link in report.links}
                numbers[report.mote] = report.number
        changed = any(self.links.get(mote) != links for mote, links in reported.items())
        return Topology({**self.links, **reported}, numbers) if changed or numbers != self.numbers else self

    @classmethod
    def of_ratios(cls, ratios: Mapping[tuple[int, int], float]) -> "Topology":
        """Build a topology from delivery ratios by (sender, receiver); a direction that is missing delivers nothing."""
        found: dict[int, dict[int, int]] = {}
        for (sender, receiver), ratio in sorted(ratios.items()):
            found.setdefault(receiver, {})[sender] = round(ratio * QUALITY_MAX)
            found.setdefault(sender, {}).setdefault(receiver, 0)
        return cls(found)

    @property
    def motes(self) -> frozenset[int]:
        """Every mote that sent a report or is named in one."""
        return frozenset(self.links).union(*self.links.values())

    @property
    def neighbours(self) -> dict[int, list[int]]:
        """By mote, the motes to or from which a link is known, in ascending order."""
        found: dict[int, set[int]] = {mote: set() for mote in self.motes}
        for receiver, links in self.links.items():
            found[receiver].update(links)
            for sender in links:
                found[sender].add(receiver)
        return {mote: sorted(others) for mote, others in found.items()}

    @property
    def audible(self) -> dict[int, frozenset[int]]:
        """By receiver, the motes whose transmissions may interfere there, however faintly.

        A full report names the best neighbours only, but the others interfere as well. Then every mote within two hops
        counts as audible.
        """
        named = {
            at: frozenset(other for other, quality in links.items() if quality) for at, links in self.links.items()
        }
        full = [at for at, others in named.items() if len(others) == MAX_NEIGHBOURS]
        if not full:
            return named
        near = {mote: frozenset(others) for mote, others in self.neighbours.items()}
        return named | {at: near[at].union(*(near[other] for other in near[at])) - {at} for at in full}

    def quality(self, sender: int, receiver: int) -> int:
        """The quality of a link, 0 to QUALITY_MAX. A direction without a report counts as good as the opposite one."""
        links = self.links.get(receiver)
        if links is not None and (sender in links or len(links) < MAX_NEIGHBOURS):
            return links.get(sender, 0)
        return self.links.get(sender, {}).get(receiver, 0)

    def ratio(self, sender: int, receiver: int) -> float:
        """The delivery ratio of a link, 0 to 1."""
        return self.quality(sender, receiver) / QUALITY_MAX

    def cost(self, sender: int, receiver: int) -> float:
        """Expected transmissions until a frame and its acknowledgement arrive (ETX); infinite if they never do."""
        both = self.quality(sender, receiver) * self.quality(receiver, sender)
        return QUALITY_MAX**2 / both if both else float("inf")
