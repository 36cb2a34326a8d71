"""Deployment: who is where, what they can sense, how well they hear each other, and which extents are declared.

The description of a network, frozen. `innet.deployment.toml_reader` makes it from a TOML file; the text of the extents
is carried along for whoever understands it.
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
    """One sensor of a mote. It gives whole numbers from `raw_min` to `raw_max`, each that many times 10^-scale of the unit."""

    raw_min: int
    raw_max: int
    scale: int = 0
    unit: str | None = None  # a UCUM code
    sample_ms: float = 0.0  # how long one sample takes …
    sample_ma: float = 0.0  # … and what the sensor draws meanwhile


@dataclass(frozen=True, slots=True)
class Site:
    """One mote, where it is."""

    id: int
    position: Position
    hardware: str  # a table of innet.costs
    sensors: Mapping[str, SensorSpec]
    battery: float = inf  # joules; infinite on the mains


@dataclass(frozen=True, slots=True)
class Deployment:
    """`links[sender, receiver]` is the share of frames that arrive; a pair without a link hears nothing."""

    name: str
    tick_ms: int
    gateways: Mapping[int, Position]  # numbers that no mote has
    motes: Mapping[int, Site]
    links: Mapping[tuple[int, int], float]
    extents: Source  # a SNEEql schema

    @property
    def mtu(self) -> int:
        """The bytes of the longest frame: what the radios of all motes carry, since all hand on what others send."""
        kinds = {site.hardware for site in self.motes.values()}
        return (
            min([LARGEST_FRAME, *(load_hardware(kind).radio.largest_frame for kind in kinds)]) if kinds else MAX_FRAME
        )

    @property
    def topology(self) -> Topology:
        """The links as motes would report them after having listened for long."""
        return Topology.of_ratios(self.links)
