"""Deployment: the description of a network: motes with positions and sensors, links, gateways and extents.

Immutable. `innet.deployment.toml_reader` reads it from a TOML file. The text of the extents is carried along for the base
station, which knows the language.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from gateway.frame import LARGEST_FRAME, MAX_FRAME
from gateway.source import Source
from innet.costs.hardware import load_hardware
from innet.routing.topology import Topology

Position = tuple[float, float, float]
"""East, north and up, in metres."""


@dataclass(frozen=True, slots=True)
class SensorSpec:
    """One sensor of a mote. It gives integers from `raw_min` to `raw_max`, each that many times 10^-`scale` of the unit."""

    raw_min: int
    raw_max: int
    scale: int = 0
    unit: str | None = None  # a UCUM code
    sample_ms: float = 0.0  # of one sample
    sample_ma: float = 0.0  # that the sensor draws meanwhile


@dataclass(frozen=True, slots=True)
class Site:
    """One mote and its position."""

    id: int
    position: Position
    hardware: str  # a table of innet.costs
    sensors: Mapping[str, SensorSpec]
    battery: float = inf  # joules; infinite on the mains


@dataclass(frozen=True, slots=True)
class Deployment:
    """A network. `links[sender, receiver]` is the share of frames that arrive; a missing pair has no link."""

    name: str
    tick_ms: int
    gateways: Mapping[int, Position]  # by number, which no mote has
    motes: Mapping[int, Site]
    links: Mapping[tuple[int, int], float]
    extents: Source  # a SNEEql schema

    @property
    def mtu(self) -> int:
        """The bytes of the longest frame that the radios of all motes can carry: every mote forwards frames of others."""
        kinds = {site.hardware for site in self.motes.values()}
        return (
            min([LARGEST_FRAME, *(load_hardware(kind).radio.largest_frame for kind in kinds)]) if kinds else MAX_FRAME
        )

    @property
    def topology(self) -> Topology:
        """The links as motes report them after a long observation."""
        return Topology.of_ratios(self.links)
